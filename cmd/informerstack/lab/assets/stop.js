// SPDX-License-Identifier: Apache-2.0

/**
 * Stops: a lesson stops at its decisive frame, with a sentence about it, until the reader continues.
 * The reader can look back at that frame later.
 */
import { html } from "./html.js";
import { action, keyName, perform } from "./actions.js";
import { Chip } from "./key.js";
import { Prose } from "./prose.js";
import { named, remember, remembered, t } from "./text.js";

/** stopOf is the stop of the frame on the page, or null. */
export const stopOf = ({ frame }) => frame?.lesson?.stop ?? null;

/** proceed continues after a stop, or leads from an earlier stop back to the present. */
export function proceed(lab) {
  remember("lookedBack", "yes");
  lab.focus(".lesson .steps .primary"); // the button is removed
  if (lab.past) lab.toPresent();
  else if (lab.source.live) perform(lab, action("run"));
  else lab.source.play();
}

/** reveal scrolls to a stop, and each list to its first row of the followed key: the newest one of the log. */
function reveal(stop) {
  stop?.scrollIntoView({ block: "nearest" });
  for (const list of stop ? document.querySelectorAll("#flow .rows") : []) {
    const chip = list.querySelector(".followed")?.getBoundingClientRect();
    const { top, bottom } = list.getBoundingClientRect();
    if (chip && (chip.top < top || chip.bottom > bottom)) list.scrollTop += chip.bottom - bottom;
  }
}

/** Stop says what the frame of a stop shows, and continues. The first one asks to look back. */
export function Stop({ lab }) {
  const { says, event } = stopOf(lab);
  const asks = lab.source.live && !lab.past && !remembered("lookedBack");
  return html`<section ref=${reveal} class="caption stop" aria-label=${t("stop.title")}>
    <div role="status">${says ? html`<${Prose} text=${says} follow=${lab.ui.follow} />`
      : html`<${Seen} event=${event} follow=${lab.ui.follow} />`}</div>
    <p><button type="button" class="btn primary" aria-keyshortcuts=${lab.past ? "End" : "Space"}
        onClick=${() => proceed(lab)}>${t(lab.past ? "stop.present" : "stop.proceed")}${" "}
        <kbd>${keyName(lab.past ? "End" : " ")}</kbd></button>
      ${asks && html` <span class="dim">${t("stop.lookBack")}</span>`}</p>
  </section>`;
}

/** Seen names the event of a frame that does not prove its sentence. */
function Seen({ event, follow }) {
  if (!event) return t("stop.seen");
  return html`<b>${named("hop", event.hop)} ${event.what}</b>
    ${event.key && html` <${Chip} id=${event.key} follow=${follow} first />`}
    ${event.rv && html` <span class="rv">@${event.rv}</span>`} ${event.detail} ${event.error}`;
}

/** Again leads back to the last stop of the present step. */
export function Again({ lab, lesson }) {
  const at = stopOf(lab) ? -1 : lab.stopBefore(lesson.id, lab.ui.lesson.step);
  if (at < 0) return null;
  return html`<p><button type="button" class="btn quiet again" onClick=${() => lab.lookAt(at)}>
    ← ${t("stop.again")}</button></p>`;
}
