// SPDX-License-Identifier: Apache-2.0

/** The panel beside the pipeline: lessons, code, the piece that was clicked, or the list of events. */
import { html, cx } from "./html.js";
import { Code } from "./code.js";
import { Chip } from "./key.js";
import { Lessons } from "./lessons.js";
import { whatOf } from "./model.js";
import { Path, Prose } from "./prose.js";
import { Search } from "./search.js";
import { named, t, translated } from "./text.js";

export function Panel({ lab }) {
  const playable = lab.source.lesson || (lab.source.live && lab.model.hello?.writable);
  const offers = { lessons: playable, code: lab.model.hello?.code?.lines, piece: true, events: true };
  const tabs = Object.keys(offers).filter((name) => offers[name]);
  const tab = lab.ui.tab && tabs.includes(lab.ui.tab) ? lab.ui.tab : null;
  return html`<aside class=${cx("panel", !tab && "closed")} aria-label=${t("panel")}>
    <div class="tabs" role="group" aria-label=${t("panel")}>
      ${tabs.map((name) => html`<button key=${name} type="button" class=${cx("tab", name === tab && "on")}
        aria-pressed=${name === tab}
        onClick=${() => lab.set({ tab: name === tab ? null : name })}>${t("tab." + name)}</button>`)}
    </div>
    ${tab && html`<div class="sheet">
      ${tab === "lessons" && html`<${Lessons} lab=${lab} />`}
      ${tab === "code" && html`<${Code} lab=${lab} />`}
      ${tab === "piece" && html`<${Piece} lab=${lab} />`}
      ${tab === "events" && html`<${Events} lab=${lab} />`}
    </div>`}
  </aside>`;
}

/** PIECES names the code and the chapter of each piece. */
const PIECES = {
  server: { files: ["apitest/server.go"], chapter: "docs/apitest.md" },
  reflector: { files: ["reflector/phase.go", "reflector/reflector.go"], chapter: "docs/reflector.md" },
  queue: { files: ["deltafifo/deltafifo.go", "deltafifo/realfifo.go"], chapter: "docs/deltafifo.md" },
  store: {
    files: ["store/threadsafemap.go", "store/key.go", "internal/freshness/freshness.go"],
    chapter: "docs/store.md", more: "docs/freshness.md",
  },
  handlers: { files: ["informer/changelog.go", "informer/processor.go"], chapter: "docs/informer.md" },
  workqueue: { files: ["workqueue/queue.go", "workqueue/delaying.go"], chapter: "docs/workqueue.md", more: "docs/fairness.md" },
  workers: { files: ["controller/worker.go", "controller/controller.go"], chapter: "docs/controller.md" },
  election: {
    files: ["leaderelection/elector.go", "leaderelection/phase.go"], chapter: "docs/leaderelection.md",
  },
};

/** Piece explains one piece: what it is, what always holds, and where to read more. */
function Piece({ lab }) {
  const name = PIECES[lab.ui.piece] ? lab.ui.piece : null;
  if (!name) return html`<p class="dim">${t("pieceNone")}</p>`;
  const text = t("piece." + name);
  return html`<article class="piece">
    <h2 tabindex="-1" id="panel-heading">${text.title ?? text.name}</h2>
    <p><${Prose} text=${text.what} follow=${lab.ui.follow} /></p>
    <h3>${t("invariant")}</h3>
    <ul class="laws">${text.laws.map((law, i) => html`<li key=${i}><${Prose} text=${law} /></li>`)}</ul>
    <h3>${t("mistake")}</h3>
    <p><${Prose} text=${text.mistake} /></p>
    <h3>${t("readOn")}</h3>
    <ul class="links">
      ${PIECES[name].files.map((file) => html`<li key=${file}>
        ${t("link.code")} <${Path} lab=${lab} path=${file} /></li>`)}
      ${[PIECES[name].chapter, PIECES[name].more].filter(Boolean).map((path) => html`<li key=${path}>
        ${t("link.chapter")} <${Path} lab=${lab} path=${translated(path)} /></li>`)}
    </ul>
  </article>`;
}

const EVENTS = 60;

/** Events lists the newest hops as text: what the tokens show, for reading. */
function Events({ lab }) {
  const { follow } = lab.ui;
  const hops = lab.model.hops.filter((hop) => !follow || hop.key === follow).slice(-EVENTS).reverse();
  return html`<article class="events">
    <h2>${t("tab.events")}</h2>
    <p class="dim">${t("eventsNote", { n: EVENTS })}</p>
    <${Search} lab=${lab} />
    <ol>${hops.map((hop) => html`<li key=${hop.n}>
      <time>${hop.t.slice(11, 23)}</time>
      <span class="hop">${named("hop", hop.hop)}</span> <b>${whatOf(hop)}</b>
      ${hop.key && html` <${Chip} id=${hop.key} follow=${follow} />`}
      ${hop.rv && html` <span class="rv">@${hop.rv}</span>`}
      ${hop.detail && html` <span class="dim">${hop.detail}</span>`}
      ${hop.error && html` <span class="hot">${hop.error}</span>`}
    </li>`)}</ol>
  </article>`;
}
