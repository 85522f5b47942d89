// SPDX-License-Identifier: Apache-2.0

/** The caption: in slow motion, one line says what happens now and why. */
import { html } from "./html.js";
import { Prose } from "./prose.js";
import { Stop, stopOf } from "./stop.js";
import { named, t } from "./text.js";

/** READABLE_MS is the least time per hop in which a caption can be read. */
const READABLE_MS = 800;

/** SAME are events that have the text of another one. */
const SAME = {
  MODIFIED: "ADDED", DELETED: "ADDED", POST: "PUT", PATCH: "PUT", DELETE: "PUT",
  Update: "Add", Delete: "Add", OnUpdate: "OnAdd", OnDelete: "OnAdd",
};

const textOf = ({ hop, what }) => t("caption")[hop]?.[SAME[what] ?? what];

/** captionOf returns the newest of some hops that has a caption, or null. */
export const captionOf = (hops, follow) =>
  hops.findLast((hop) => (!follow || hop.key === follow) && textOf(hop)) ?? null;

/** hasCaption reports whether the time is so slow that there is a caption. */
export const hasCaption = ({ frame }) =>
  frame?.mode === "pause" || (frame?.mode === "slow" && frame.delayMs >= READABLE_MS);

export function Caption({ lab }) {
  if (stopOf(lab)) return html`<${Stop} lab=${lab} />`;
  if (!hasCaption(lab)) return null;
  const hop = lab.caption;
  return html`<p class="caption" aria-live="polite">${hop
    ? html`<b>${named("hop", hop.hop)} ${hop.what}</b> <${Prose} text=${textOf(hop)
      .replaceAll("{key}", () => `[[${hop.key}]]`).replaceAll("{rv}", hop.rv)} follow=${lab.ui.follow} />`
    : html`<span class="dim">${t("captionNone")}</span>`}</p>`;
}
