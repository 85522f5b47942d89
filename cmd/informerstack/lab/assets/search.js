// SPDX-License-Identifier: Apache-2.0

/** The search for a key, among all that the store has. */
import { html } from "./html.js";
import { Chip } from "./key.js";
import { t } from "./text.js";

/** search asks the program, and shows the answer unless the reader has typed on. */
async function search(lab, text) {
  lab.set({ search: text });
  if (!text) return;
  const found = await lab.source.find(text);
  if (lab.ui.search === text) lab.set({ found });
}

export function Search({ lab }) {
  const { search: text, found, follow } = lab.ui;
  return html`<search class="search">
    <label><span>${t("search.label")} <kbd>/</kbd></span>
      <input type="search" id="search" value=${text} placeholder=${t("search.example")}
        autocomplete="off" spellcheck="false"
        onInput=${(event) => search(lab, event.target.value.trim())} /></label>
    ${text && html`<div class="chips" role="status">
      ${found.map((key, i) => html`<${Chip} key=${key} id=${key} follow=${follow} full first=${i === 0} />`)}
      ${!found.length && html`<span class="dim">${t("search.none")}</span>`}</div>`}
  </search>`;
}
