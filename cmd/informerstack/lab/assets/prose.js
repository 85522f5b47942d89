// SPDX-License-Identifier: Apache-2.0

/** Prose: texts with code and keys in them, and links to the repository. */
import { html } from "./html.js";
import { Chip } from "./key.js";
import { local } from "./text.js";

/**
 * Prose shows a text with two kinds of markup: `code`, and [[default/web]] for a key. Everything
 * is rendered as text, so nothing in it can become HTML.
 */
export function Prose({ text, follow }) {
  return local(text).split(/(`[^`]+`|\[\[[^\]]+\]\])/).map((part) => {
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("[[")) return html`<${Chip} id=${part.slice(2, -2)} follow=${follow} first />`;
    return part;
  });
}

/** Path links to a file of the repository. A page that may be anywhere names it. */
export function Path({ lab, path, text = path }) {
  if (!lab.files) return html`<code>${text}</code>`;
  return html`<a href=${lab.files + path} target="_blank" rel="noreferrer"><code>${text}</code></a>`;
}
