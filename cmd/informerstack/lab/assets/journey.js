// SPDX-License-Identifier: Apache-2.0

/** The journey of one change as a swimlane, with the time of each hop. */
import { html, cx } from "./html.js";
import { Chip, colourOf, duration } from "./key.js";
import { journeysOf, lanesOf, staysOf, whatOf } from "./model.js";
import { t } from "./text.js";

const LANES = ["server", "deltafifo", "store", "handler", "workqueue", "worker"];

/** MAX_MOMENTS is how many hops of one journey are listed. */
const MAX_MOMENTS = 24;

/** Journey shows the newest journey of the followed key, or of the key that moved last. */
export function Journey({ lab }) {
  const { key, journeys } = lab.ui.follow
    ? { key: lab.ui.follow, journeys: journeysOf(lab.model.hops, lab.ui.follow) }
    : lab.model.exampleJourney(lab.now);
  const back = Math.min(lab.ui.journeysBack ?? 0, Math.max(0, journeys.length - 1));
  const journey = journeys.at(-1 - back);
  const turn = (journeysBack) => lab.set({ journeysBack });
  return html`<section class="card journey" aria-labelledby="title-journey">
    <header>
      <h2 id="title-journey">${t("journey.title")}</h2>
      ${key && html`<${Chip} id=${key} follow=${lab.ui.follow} full first />`}
      ${journey?.rv && html`<span class="rv">@${journey.rv}</span>`}
      <small>${journey && t("journey.total", { time: duration(lengthOf(journey)) })}</small>
      ${lab.ui.follow && journeys.length > 1 && html`<span class="pager">
        <button type="button" class="btn" aria-label=${t("journey.earlier")}
          disabled=${back >= journeys.length - 1} onClick=${() => turn(back + 1)}>‹</button>
        <span class="dim">${journeys.length - back}/${journeys.length}</span>
        <button type="button" class="btn" aria-label=${t("journey.later")}
          disabled=${back === 0} onClick=${() => turn(back - 1)}>›</button></span>`}
    </header>
    ${journey ? html`<${Swimlane} journey=${journey} colour=${colourOf(key)} /><${Stays} journey=${journey} />`
      : html`<p class="dim empty">${t("journey.empty")}</p>`}
    <p class="note">${lab.ui.follow ? t("journey.following") : t("journey.note")}</p>
  </section>`;
}

const lengthOf = (journey) => journey.hops.at(-1).at - journey.hops[0].at;

function Swimlane({ journey, colour }) {
  const lanes = lanesOf(journey, LANES);
  const total = Math.max(lengthOf(journey), 0.001);
  const share = (ms) => (Math.min(Math.max(ms, 0), total) / total) * 100;
  const span = ([from, to]) =>
    ({ left: share(from) + "%", width: Math.max(share(to) - share(from), 0.4) + "%" });
  return html`<div class=${"lanes " + colour + "-line"}>
    ${lanes.map(({ name, moments, spans }) => {
      const named = moments.filter(({ what }) => what !== "Forget" && what !== "Done");
      const first = named[0] ?? moments[0];
      const shown = moments.slice(0, MAX_MOMENTS);
      return html`<div key=${name} class=${cx("lane", !moments.length && "missed")}>
        <b>${t("hop." + name)}</b>
        <span class="track">
          ${spans.map((ends, i) => html`<i key=${"span" + i} class="span" style=${span(ends)}></i>`)}
          ${shown.map(({ n, ms, detail = "", error = "" }, i) => html`
            <i key=${n} class=${cx("dot", error && "failed")} style=${{ left: share(ms) + "%" }}
              title=${`${whatOf(shown[i])} +${duration(ms)} ${detail} ${error}`}></i>`)}
        </span>
        <span class="what">${first
          ? html`<span class="rv">+${duration(first.ms)}</span> ${summary(named.length ? named : moments)}`
          : html`<span class="dim">${t("journey.notYet")}</span>`}</span>
      </div>`;
    })}
  </div>`;
}

/** Stays is one bar: where the time of a journey went. */
function Stays({ journey }) {
  const stays = staysOf(journey);
  const total = Math.max(stays.reduce((sum, { ms }) => sum + ms, 0), 0.001);
  return html`<div class="stays">
    <span class="bar" aria-hidden="true">${stays.map(({ name, ms }, i) => html`
      <i key=${name} class=${"p" + i} style=${{ width: (ms / total) * 100 + "%" }}></i>`)}</span>
    <ul class="legend">${stays.map(({ name, ms }, i) => html`<li key=${name}>
      <i class=${"p" + i} aria-hidden="true"></i>${t("hop." + name)} <b>${duration(ms)}</b></li>`)}</ul>
  </div>`;
}

/** summary names the events of a lane in order; repeated ones are counted. */
function summary(moments) {
  const parts = [];
  for (const what of moments.map(whatOf)) {
    if (parts.at(-1)?.what === what) parts.at(-1).n++;
    else parts.push({ what, n: 1 });
  }
  const words = parts.slice(-2).map(({ what, n }) => (n > 1 ? `${what} ×${n}` : what));
  return words.join(" → ");
}
