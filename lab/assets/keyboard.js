// SPDX-License-Identifier: Apache-2.0

/** The keyboard and the clicks on keys: one listener each for the whole page. */
import { ACTIONS, offered, perform } from "./actions.js";

const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function listen(lab) {
  document.addEventListener("click", (event) => {
    const key = event.target.closest?.("[data-key]")?.dataset.key;
    if (key) lab.follow(key === lab.ui.follow ? "" : key);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (moveBetweenChips(event) || typing(event) || lab.ui.dialog) return;
    // Space and Enter press the focused button, as everywhere.
    if (event.key === " " && event.target.closest?.("button, summary, a")) return;
    if (!lab.source.live && replayKey(lab, event)) return;
    const found = ACTIONS.find((a) => a.key === event.key && offered(lab, a));
    if (!found || (event.repeat && found.id !== "step")) return;
    event.preventDefault();
    perform(lab, found);
  });
}

/** typing reports whether a key belongs to the element that has the focus. */
function typing({ target, key }) {
  if (target.type === "range" || target.type === "radio") return key in ARROWS;
  return Boolean(target.closest?.("input, select, textarea"));
}

/** moveBetweenChips moves the focus within a list of keys, which is one tab stop. */
function moveBetweenChips(event) {
  const by = ARROWS[event.key];
  const chip = event.target.closest?.(".chip");
  if (!by || !chip) return false;
  const list = chip.closest(".rows, .chips, .card, .panel") ?? document;
  const chips = [...list.querySelectorAll(".chip")];
  chips[chips.indexOf(chip) + by]?.focus();
  event.preventDefault();
  return true;
}

/** replayKey moves a recording. */
function replayKey(lab, event) {
  const { source } = lab;
  switch (event.key) {
    case " ":
      source.playing ? source.pause() : source.play();
      break;
    case "ArrowRight":
      source.step(+1);
      break;
    case "ArrowLeft":
      source.step(-1);
      break;
    default:
      return false;
  }
  event.preventDefault();
  return true;
}
