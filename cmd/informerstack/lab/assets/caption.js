// SPDX-License-Identifier: Apache-2.0

/** The caption: in slow motion, one line says what happened at the newest hop, and why. */
import { html } from "./html.js";
import { whatOf } from "./model.js";
import { Prose } from "./prose.js";
import { Stop, stopOf } from "./stop.js";
import { filled, named, t } from "./text.js";

/** READABLE_MS is the least time per hop in which a caption can be read. */
const READABLE_MS = 800;

/** SAME are hops that have the texts of another one. */
const SAME = {
  server: { POST: "PUT", PATCH: "PUT", DELETE: "PUT" }, deltafifo: { Update: "Add", Delete: "Add" },
};

/**
 * textOf returns the text for a hop: that of its fact, which earlier events have proved, or else the
 * one that is true of every such hop. A call with an error has a text of its own.
 */
export function textOf({ hop, what, key, rv, error, fact, args }) {
  const texts = t("caption")[hop];
  const name = SAME[hop]?.[what] ?? what;
  const always = texts?.[name];
  const failed = error && (texts?.[`${name} failed`] ?? (always && t("captionFailed")));
  const text = texts?.[`${name} ${fact}`] ?? (error ? failed : always);
  return text && filled(text, { ...args, key: `[[${key}]]`, rv: rv || "–", error });
}

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
    ? html`<b>${named("hop", hop.hop)} ${whatOf(hop)}</b> <${Prose} text=${textOf(hop)} follow=${lab.ui.follow} />`
    : html`<span class="dim">${t("captionNone")}</span>`}</p>`;
}
