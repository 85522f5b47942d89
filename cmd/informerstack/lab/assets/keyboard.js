// SPDX-License-Identifier: Apache-2.0

/** The keyboard and the clicks on keys, for the whole page. */
import { ACTIONS, offered, perform } from "./actions.js";
import { turn } from "./lessons.js";

const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** TURNS are the keys of a teacher, and of the remote control of slides. */
const TURNS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };

/** SLIP_PX is how far a pointer may move while it is pressed on a key. */
const SLIP_PX = 8;

const keyOf = (event) => event.target.closest?.("[data-key]")?.dataset.key;

/**
 * listenForKeys follows the key that a pointer was pressed on. Lists change while it is pressed, and
 * then the browser makes no click, or one on another key.
 */
function listenForKeys(lab) {
  const toggle = (key) => key && lab.follow(key === lab.ui.follow ? "" : key);
  let pressed = null;
  document.addEventListener("pointerdown", (event) => {
    const first = event.isPrimary && event.button === 0;
    pressed = first ? { key: keyOf(event), x: event.clientX, y: event.clientY } : null;
  });
  document.addEventListener("pointercancel", () => (pressed = null)); // the page is scrolled
  document.addEventListener("pointerup", (event) => {
    const slip = pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y);
    if (pressed && slip <= SLIP_PX) toggle(pressed.key);
    pressed = null;
  });
  document.addEventListener("click", (event) => {
    if (event.detail === 0) toggle(keyOf(event)); // by the keyboard, or by a screen reader
  });
}

export function listen(lab) {
  listenForKeys(lab);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (moveBetweenChips(event) || typing(event) || lab.ui.dialog) return;
    // Space and Enter press the focused button, as everywhere.
    if (event.key === " " && event.target.closest?.("button, summary, a")) return;
    if (lab.ui.teach && event.key in TURNS && turn(lab, TURNS[event.key])) return event.preventDefault();
    if (lab.recorded && replayKey(lab, event)) return;
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
  switch (event.key) {
    case " ":
      lab.recorded.playing ? lab.recorded.pause() : lab.recorded.play();
      break;
    case "ArrowRight":
      lab.move(+1);
      break;
    case "ArrowLeft":
      lab.move(-1);
      break;
    default:
      return false;
  }
  event.preventDefault();
  return true;
}
