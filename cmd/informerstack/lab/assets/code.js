// SPDX-License-Identifier: Apache-2.0

/** The learner's code: a controller with the line where a key is, and switches that change lines. */
import { html, cx } from "./html.js";
import { ActionButton } from "./actions.js";
import { Chip } from "./key.js";
import { whatOf } from "./model.js";
import { Prose } from "./prose.js";
import { named, t } from "./text.js";

/** TRIES are the actions that show the consequence of a change. */
const TRIES = { done: ["change"], add: ["fail", "change"], forget: ["fail", "change"], slow: ["workload"] };

export function Code({ lab }) {
  const { lines, changes } = lab.model.hello.code;
  const made = changes.filter(({ id }) => lab.frame?.code?.changes.includes(id));
  const place = placeOf(lab, made);
  return html`<article class="code">
    <h2 tabindex="-1">${t("code.title")}</h2>
    <p class="dim">${t("code.intro")}</p>
    <ol class="source">${lines.map((line, i) => html`<${Line} key=${i} lab=${lab} line=${line}
      now=${place.line === i} passed=${place.passed.has(i)}
      change=${changes.find((change) => change.line === i)} />`)}</ol>
    <p class="place"><${Place} lab=${lab} place=${place} /></p>
    <div class="consequence" role="status">${made.length
      ? made.map(({ id }) => html`<p key=${id}>
          <${Prose} text=${consequence(lab, id)} follow=${lab.ui.follow} /></p>`)
      : html`<p class="dim">${t("code.off")}</p>`}</div>
    <p class="tries">${[...new Set(made.flatMap(({ id }) => TRIES[id]))].map((id) => html`
      <${ActionButton} key=${id} lab=${lab} id=${id} />`)}</p>
  </article>`;
}

/** Line is one line of the code, as it is now, with the switch that changes it. */
function Line({ lab, line, now, passed, change }) {
  const made = change && lab.frame?.code?.changes.includes(change.id);
  return html`<li class=${cx(now && "now", passed && "passed")} aria-current=${now ? "step" : undefined}>
    <span>${made && change.removes ? html`<del>${line}</del>` : line}
      ${made && change.adds && html`<ins>${change.adds}</ins>`}</span>
    ${change && switchable(lab) && html`<button type="button" role="switch" id=${"change-" + change.id}
      class=${cx("btn", made && "on")} aria-checked=${Boolean(made)}
      disabled=${lab.ui.connection !== "connected"}
      onClick=${() => lab.send({ do: "code", id: change.id, on: !made })}>
      ${t(`code.${change.id}.name`)}</button>`}
  </li>`;
}

/** switchable reports whether the program takes changes: not a recording, nor another cluster. */
const switchable = (lab) => lab.source.live && lab.model.hello.writable === true;

/**
 * placeOf finds where the followed key is, or the next held key, or the newest: the hop that is held,
 * otherwise the last one. passed are the lines of its hops since the handler was called.
 */
function placeOf(lab, made) {
  const held = lab.frame?.mode === "pause" ? (lab.frame.held ?? []) : [];
  const newest = held.find((hop) => hop.key) ?? lab.model.hops.findLast((hop) => hop.key);
  const key = lab.ui.follow || newest?.key;
  const hops = lab.model.hops.filter((hop) => hop.key === key);
  const next = held.find((hop) => hop.key === key);
  if (next) hops.push(next);
  const lines = hops.map((hop, i) => lineOf(lab, made, hop, hops[i - 1]));
  const passed = new Set(lines.slice(hops.findLastIndex((hop) => hop.hop === "handler")));
  return { key, hop: hops.at(-1), held: Boolean(next), line: lines.at(-1), passed };
}

/** lineOf is the line of a hop. An Add after a reconcile is that in place of AddRateLimited. */
function lineOf(lab, made, { hop, what }, before) {
  const again = hop === "workqueue" && what === "Add" && before?.hop === "worker";
  const change = again && made.find(({ id }) => id === "add");
  return change ? change.line : lab.model.hello.code.hops[`${hop} ${what}`];
}

/** Place names the key and its hop. */
function Place({ lab, place: { key, hop, held, line } }) {
  if (!hop) return t("journey.empty");
  return html`<${Chip} id=${key} follow=${lab.ui.follow} first />${" "}
    ${held && t("code.next")} ${named("hop", hop.hop)} <b>${whatOf(hop)}</b>
    ${line == null && html` <span class="dim">${t("code.outside")}</span>`}`;
}

/** consequence says what to watch for after a change. */
function consequence(lab, id) {
  const { undone = [] } = lab.frame.code;
  if (id !== "done" || !undone.length) return t(`code.${id}.ready`);
  const key = undone.includes(lab.ui.follow) ? lab.ui.follow : undone[0];
  return t(lab.frame.workqueue?.dirty?.includes(key) ? "code.done.dirty" : "code.done.stuck", { key });
}
