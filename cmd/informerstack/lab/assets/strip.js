// SPDX-License-Identifier: Apache-2.0

/**
 * The strip: all pieces of the pipeline in one or two rows, on a screen that is too small for all
 * cards. It stays in view, tokens travel along it, and each piece leads to its card. The Follower
 * keeps the card of the present hop in view.
 */
import { html, cx } from "./html.js";
import { hasCaption } from "./caption.js";
import { number, shortName } from "./key.js";
import { pointed } from "./lessons.js";
import { cardOf } from "./rails.js";
import { named, t } from "./text.js";

/** SMALL is the screen on which style.css shows the strip. */
const SMALL = matchMedia("(max-width: 1180px), (max-height: 699px)");

/** count writes a number that has at most four characters. */
const count = (n) => number(n, "compact");

/** VALUES is what the strip says of each piece, in the order in which a change passes them. */
const VALUES = {
  server: ({ server }) => (server?.up === false ? t("strip.down") : `rv ${server?.rv ?? "–"}`),
  reflector: ({ reflector }) => named("phase", reflector?.phase ?? "idle"),
  queue: ({ queue }) => (queue?.kind === "Parts" ? "–" : t("queue.keys", { n: count(queue?.keys) })),
  store: ({ store }) => t("objects", { n: count(store?.objects) }),
  handlers: ({ handlers = [] }) =>
    t("handlers.pending", { n: count(handlers.reduce((sum, { pending = 0 }) => sum + pending, 0)) }),
  workqueue: ({ workqueue }) => t("strip.queued", { n: count(workqueue?.queued) }),
  workers: ({ workers }) => t("strip.running", { n: count(workers?.running?.length) }),
  election: ({ election }) =>
    !election?.on ? t("election.off")
      : election.leftMs > 0 ? t("strip.leader", { name: shortName(election.leader) })
      : t("strip.noLeader"), // the lease may still name one
};
const PIECES = Object.keys(VALUES);

export function Strip({ lab }) {
  const { frame, follower } = lab;
  const shown = [...pointed(lab), ...(frame?.code?.watch ?? [])];
  const at = placesOf(lab);
  return html`<nav class="strip" aria-label=${t("strip.all")}>
    ${frame && PIECES.map((piece) => html`<button key=${piece} type="button" data-piece=${piece}
      title=${t(`piece.${piece}.name`)} aria-current=${at.includes(piece) ? "true" : undefined}
      class=${cx((lab.lit.has(piece) || at.includes(piece)) && "lit", shown.includes(piece) && "pointed")}
      onClick=${() => follower.visit(piece)}>
      <b>${piece === "queue" ? frame.queue?.kind : t("strip.names")[piece]}</b>
      <small>${VALUES[piece](frame)}</small></button>`)}
    <div key="overlay" class="overlay" aria-hidden="true"></div>
  </nav>`;
}

/**
 * placesOf returns the pieces that a reader should look at: what a lesson that
 * has stopped points to, what the caption is about, or the piece of a lesson that was lit last.
 */
function placesOf(lab) {
  const lesson = lab.frame?.lesson;
  const watch = pointed(lab);
  if (lesson?.stop && watch.length) return watch;
  if (hasCaption(lab)) return lab.caption ? [cardOf(lab.caption)] : [];
  const lit = watch.filter((piece) => lab.lit.has(piece)).sort((a, b) => lab.lit.get(a) - lab.lit.get(b));
  return [lit.at(-1) ?? lab.follower.last(watch) ?? watch[0]].filter(Boolean);
}

/** VISIT_MS is how long the card that a reader has chosen stays in view. */
const VISIT_MS = 4000;
const MARGIN_PX = 8;

/** SCROLLS are the keys that scroll a page. */
const SCROLLS = new Set(["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

/**
 * Follower scrolls to the card of the present hop.
 *
 *	L1  it moves nothing on a screen that has no strip, and nothing while a pointer is pressed
 *	L2  a reader who scrolls is left alone until the next step, or a tap on the strip
 *	L3  where its smooth scrolling ends, it looks once more whether the cards are in view
 */
export class Follower {
  constructor() {
    this.resume();
    this.pressed = false;
    const inPage = ({ target }) => !target.closest?.(".panel, .strip, .top, dialog, input, select");
    const scrolls = (event) => inPage(event) && (this.left = true);
    addEventListener("wheel", scrolls, { passive: true });
    addEventListener("touchmove", scrolls, { passive: true });
    addEventListener("keydown", (event) => SCROLLS.has(event.key) && scrolls(event));
    addEventListener("pointerdown", ({ clientX }) => {
      this.pressed = true;
      if (clientX >= document.documentElement.clientWidth) this.left = true; // on the scroll bar
    });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (this.pressed = false));
    addEventListener("scrollend", () => {
      const again = this.moving && !this.left && !this.pressed;
      this.moving = false;
      if (again) reveal(this.shown.split(","));
    });
  }

  /** resume follows again, from the next drawing. */
  resume() {
    this.left = false;
    this.until = 0; // until when a chosen card stays in view
    this.room = ""; // the heights that leave room for cards
    this.shown = "";
  }

  /** last is the piece in a list that was shown last, if it still is the place. */
  last(pieces) {
    return pieces.find((piece) => piece === this.shown);
  }

  /** visit shows the card that the reader has chosen, and gives it the focus. */
  visit(piece) {
    this.resume();
    this.until = performance.now() + VISIT_MS;
    reveal([piece]);
    document.querySelector(`#card-${piece} .title`)?.focus({ preventScroll: true });
  }

  /**
   * follow scrolls to the cards of the present hop, if they have changed or the room for them has: the
   * sentence of a stop is higher than a caption.
   */
  follow(lab) {
    const { id, step, stop } = lab.frame?.lesson ?? {};
    const turn = [id, step, Boolean(stop), lab.frame?.mode].join();
    if (turn !== this.turn) this.resume();
    this.turn = turn;
    if (!SMALL.matches || this.left || this.pressed || performance.now() < this.until) return;
    const places = placesOf(lab);
    const room = [".lead", ".panel"].map((part) => document.querySelector(part)?.offsetHeight).join();
    const same = places.join() === this.shown && room === this.room;
    if (!places.length || (same && !stop)) return; // at a stop, what is above may still grow
    [this.shown, this.room] = [places.join(), room];
    this.moving = reveal(places);
  }
}

/**
 * reveal scrolls until cards are in view, between the strip and a panel below. If not all of them
 * fit there, it is the first one, and if that is too high, its top. It returns whether it scrolls.
 */
function reveal(pieces) {
  const boxes = pieces.map((piece) => document.getElementById("card-" + piece)?.getBoundingClientRect())
    .filter(Boolean).sort((a, b) => a.top - b.top);
  if (!boxes.length) return false;
  const { top, bottom } = visible();
  const high = (box) => boxes[0].top + bottom - top >= box.bottom;
  const last = boxes.filter(high).at(-1) ?? boxes[0];
  if (boxes[0].top >= top && last.bottom <= bottom) return false;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  scrollBy({ top: boxes[0].top - top, behavior: still ? "instant" : "smooth" });
  return true;
}

/** visible is the part of the screen that neither the header and the strip nor the panel cover. */
function visible() {
  const lead = document.querySelector(".lead");
  const panel = document.querySelector(".panel");
  const under = Number.parseFloat(getComputedStyle(lead).top) || 0;
  const fixed = getComputedStyle(panel).position === "fixed";
  return {
    top: under + lead.offsetHeight + MARGIN_PX,
    bottom: (fixed ? panel.getBoundingClientRect().top : innerHeight) - MARGIN_PX,
  };
}

/** measureCovers keeps the heights of what covers the page, for style.css. */
export function measureCovers() {
  const covers = { "--lead": ".lead", "--panel": ".panel" };
  const measure = () => {
    for (const [name, selector] of Object.entries(covers)) {
      const height = document.querySelector(selector)?.offsetHeight ?? 0;
      document.documentElement.style.setProperty(name, height + "px");
    }
  };
  const observer = new ResizeObserver(measure);
  for (const selector of Object.values(covers)) observer.observe(document.querySelector(selector));
  measure();
}
