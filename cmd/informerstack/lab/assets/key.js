// SPDX-License-Identifier: Apache-2.0

/** Keys: their colours, their short names, and the chip that shows one. */
import { html, cx } from "./html.js";
import { t } from "./text.js";

/** The palette has this many colours; style.css defines .k0 to .k9. */
const COLOURS = 10;

/**
 * colourOf returns the class of a key's colour. It is a hash (FNV-1a), so a key has the same
 * colour in every run and in every recording.
 */
export function colourOf(key) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193) >>> 0;
  }
  return "k" + ((hash ^ (hash >>> 13)) >>> 0) % COLOURS;
}

/** shortName is the key without its namespace. */
export const shortName = (key) => key.slice(key.lastIndexOf("/") + 1);

/**
 * Chip shows a key as a coloured button. keyboard.js listens for clicks on all of them. Only the
 * first chip of a list is a tab stop; the arrow keys reach the others.
 *
 * A name that is too long loses its beginning, because names often differ at the end. For this the
 * chip is written from right to left, and the name in it from left to right.
 */
export function Chip({ id, follow, full, first, priority }) {
  const colour = colourOf(id);
  const off = follow && follow !== id;
  const low = priority < 0;
  return html`<button type="button" data-key=${id}
    title=${low ? `${id}: ${t("workqueue.priority", { priority })}` : id}
    class=${cx("chip", colour, off && "off", follow === id && "followed")}
    tabindex=${first || follow === id ? 0 : -1}
    aria-pressed=${follow === id}
    aria-label=${t("chip.follow", { key: id })}>
    <bdi dir="ltr">${full ? id : shortName(id)}${low && "↓"}</bdi></button>`;
}

/** Chips shows a list of keys in one line, or a dash. priorities has those of keys. */
export function Chips({ keys, total, follow, short, priorities }) {
  if (!keys?.length) return html`<span class="none">–</span>`;
  const more = (total ?? keys.length) - keys.length;
  return html`<span class="chips">
    ${keys.map((key, i) => html`<${Chip} key=${key} id=${key} follow=${follow} first=${i === 0}
      priority=${priorities?.[key]} />`)}
    ${more > 0 && html`<span class="dim">
      ${short ? "+" + number(more) : t("more", { n: number(more) })}</span>`}
  </span>`;
}

const formats = {}; // to make one takes longer than to use it a hundred times

/** number writes an integer with the separators of the page's language, or in a compact notation. */
export function number(n, notation = "standard") {
  const language = document.documentElement.lang || "en";
  formats[language + notation] ??= new Intl.NumberFormat(language, { notation });
  return formats[language + notation].format(n ?? 0);
}

/** duration writes milliseconds in the unit that fits. */
export function duration(ms) {
  if (ms == null || Number.isNaN(ms)) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 1) return Math.max(0, Math.round(ms * 1000)) + " µs";
  if (ms < 10) return ms.toFixed(1) + " ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60_000) return (ms / 1000).toFixed(1) + " s";
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
