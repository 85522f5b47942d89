// SPDX-License-Identifier: Apache-2.0

/** The frame of a card, and the rows that several cards share. */
import { html, cx } from "./html.js";
import { ActionBar } from "./actions.js";
import { number } from "./key.js";
import { pointed, predicting } from "./lessons.js";
import { t } from "./text.js";

/**
 * Card is one piece of the pipeline. Its heading opens the piece's panel; it is lit while the last
 * frame had a change in it, and marked while a lesson or a change of the code points to it.
 */
export function Card({ lab, piece, title, summary, bad, children }) {
  const question = predicting(lab);
  const wrong = question?.tried.includes(piece);
  const shown = pointed(lab).includes(piece) || lab.frame?.code?.watch?.includes(piece);
  return html`<section id=${"card-" + piece} data-piece=${piece} aria-labelledby=${"title-" + piece}
    class=${cx("card", "card-" + piece, lab.lit.has(piece) && "lit", shown && "pointed", bad && "bad")}>
    <header>
      <h2 id=${"title-" + piece}>
        <button type="button" class="title" title=${t("open", { piece: title })}
          aria-expanded=${lab.ui.tab === "piece" && lab.ui.piece === piece}
          onClick=${() => lab.set({ tab: "piece", piece })}>${title}</button>
      </h2>
      <small>${summary}</small>
    </header>
    ${question && html`<button type="button" class=${cx("pick", wrong && "wrong")} aria-pressed=${Boolean(wrong)}
      onClick=${() => question.choose(piece)}>
      <span>${wrong ? "✕ " : ""}${t("lessons.pick", { piece: title })}</span></button>`}
    <div class="body">${children}</div>
    <${ActionBar} lab=${lab} piece=${piece} />
  </section>`;
}

/** More says how many rows of a list are not shown. */
export function More({ shown, total }) {
  if (!(total > shown)) return null;
  return html`<li class="dim more">${t("more", { n: number(total - shown) })}</li>`;
}

/** Empty is what a card shows instead of an empty list. */
export const Empty = ({ children }) => html`<p class="dim empty">${children}</p>`;
