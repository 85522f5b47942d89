// SPDX-License-Identifier: Apache-2.0

/**
 * The flow between the cards, or between the pieces of the strip: rails that connect them, and tokens
 * that travel along the rails.
 *
 * The rails are an SVG; the tokens are elements above it, moved by the Web Animations API, so that
 * a frame of the animation runs no code of the page.
 *
 *	F1  at most MAX_TOKENS tokens exist; a hop beyond that is counted by its rail's crowd
 *	F2  a rail has at most one crowd at a time: a token with a number instead of a key
 */
import { cx } from "./html.js";
import { colourOf, shortName } from "./key.js";
import { RAILS, railsOf } from "./rails.js";
import { t } from "./text.js";

const MAX_TOKENS = 40;
const CROWD_MS = 520;
/** LABEL_PX is the distance of a label from a rail that goes up or down. */
const LABEL_PX = 56;
const SVG = "http://www.w3.org/2000/svg";

/** isOne reports whether a hop is one token: an object, a request, or a message of the watch. */
const isOne = (rail, hop) => hop.key || rail === "ask" || (rail === "wire" && hop.what !== "LIST");

/** messageOf is the text of a token without a key: WATCH @1722, 410 Gone. A held one has no error. */
function messageOf({ what, rv, error = "" }) {
  if (what === "ERROR") return error.includes("too old") || error.includes("Expired") ? "410 Gone" : "ERROR";
  return what === "WATCH" || what === "BOOKMARK" ? `${what} @${rv || "–"}` : what;
}

export class Flow {
  /** container holds the pieces; overlay covers it and belongs to the Flow; layout is one of the below. */
  constructor(container, overlay, layout) {
    this.container = container;
    this.layout = layout;
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "rails");
    this.layer = document.createElement("div");
    this.layer.className = "tokens";
    overlay.append(this.svg, this.layer);
    this.paths = {};
    this.crowds = {};
    this.flying = 0;
    new ResizeObserver(() => this.measure()).observe(container);
    this.measure();
  }

  /** measure draws the rails anew: a card has moved, or the language has changed. */
  measure() {
    const origin = this.container.getBoundingClientRect();
    const boxes = {};
    for (const element of this.container.querySelectorAll("[data-piece]")) {
      const r = element.getBoundingClientRect();
      if (!r.width) continue; // it is not shown
      boxes[element.dataset.piece] = {
        left: r.left - origin.left, right: r.right - origin.left,
        top: r.top - origin.top, bottom: r.bottom - origin.top,
      };
    }
    this.svg.replaceChildren();
    for (const [name, [from, to]] of Object.entries(RAILS)) {
      const drawn = origin.width > 0 && boxes[from] && boxes[to];
      this.paths[name] = drawn && this.layout.path(name, boxes[from], boxes[to], boxes);
      if (this.paths[name]) this.drawRail(name, this.paths[name]);
    }
  }

  drawRail(name, [[x1, y1], [x2, y2]]) {
    const length = Math.hypot(x2 - x1, y2 - y1);
    const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
    const tip = 6;
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("class", "rail-" + name);
    line.setAttribute("d", `M${x1} ${y1}L${x2 - ux * tip} ${y2 - uy * tip}`);
    const head = document.createElementNS(SVG, "path");
    head.setAttribute("class", "head");
    head.setAttribute("d", `M${x2} ${y2}l${-ux * 8 - uy * 4} ${-uy * 8 + ux * 4}l${uy * 8} ${-ux * 8}Z`);
    this.svg.append(line, head);
    if (!this.layout.labels) return;
    const label = document.createElementNS(SVG, "text");
    label.textContent = t("rail." + name);
    const across = Math.abs(uy) > Math.abs(ux);
    // Tokens pass in the middle: the label is above them, or behind their end.
    const side = name === "wire" ? -1 : 1; // the requests are on its right
    label.setAttribute("x", (x1 + x2) / 2 + (across ? side * LABEL_PX : 0));
    label.setAttribute("y", (y1 + y2) / 2 + (across ? 4 : -14));
    label.setAttribute("class", !across ? "above" : side < 0 ? "before" : "beside");
    this.svg.append(label);
  }

  /** launch sends a token for each hop along a rail, or counts the hops that are too many. */
  launch(rail, hops, travel) {
    const path = this.paths[rail];
    if (!path) return;
    const crowded = hops.length > this.layout.most;
    hops.forEach((hop, i) => {
      if (!isOne(rail, hop) || crowded || this.flying >= MAX_TOKENS) this.join(rail, path, hop);
      else this.fly(path, this.token(hop), travel, i - (hops.length - 1) / 2);
    });
  }

  token(hop) {
    const element = document.createElement("span");
    element.className = cx("token", hop.key ? colourOf(hop.key) : "message",
      hop.error && "failed", hop.detail?.includes("tombstone") && "ghost");
    element.textContent = hop.key ? shortName(hop.key) : messageOf(hop);
    return element;
  }

  /** join adds a hop to the crowd that waits for its rail, and sends the crowd if the rail is free. */
  join(rail, path, hop) {
    const crowd = (this.crowds[rail] ??= { waiting: 0, flying: false });
    crowd.waiting += hop.key ? 1 : Number.parseInt(hop.detail, 10) || 1;
    if (crowd.flying) return;
    crowd.flying = true;
    const element = document.createElement("span");
    element.className = "token crowd";
    element.textContent = "×" + crowd.waiting;
    crowd.waiting = 0;
    this.fly(path, element, CROWD_MS, 0, () => (crowd.flying = false));
  }

  /** fly moves a token along a path. Tokens that travel together are side by side. */
  fly([[x1, y1], [x2, y2]], element, duration, row, then) {
    this.flying++;
    this.layer.append(element);
    const place = (x, y) => this.place(x, y, row);
    const animation = element.animate(
      [
        { transform: place(x1, y1), opacity: 0 },
        { transform: place(x1, y1), opacity: 1, offset: 0.12 },
        { transform: place(x2, y2), opacity: 1, offset: 0.85 },
        { transform: place(x2, y2), opacity: 0 },
      ],
      { duration, easing: "ease-in-out", fill: "both" },
    );
    animation.onfinish = animation.oncancel = () => {
      this.flying--;
      element.remove();
      then?.();
    };
  }

  /** place is the transform of a token, which is beside others. */
  place(x, y, row) {
    const [across, down] = this.layout.distance;
    return `translate(${x + row * across}px, ${y + row * down}px) translate(-50%, -50%)`;
  }

  /** hold shows the hops that a paused program keeps back, as tokens that rest on their rails. */
  hold(held) {
    const signature = held.map((hop) => hop.hop + hop.what + hop.key).join();
    if (signature === this.heldSignature) return;
    this.heldSignature = signature;
    for (const element of this.layer.querySelectorAll(".held")) element.remove();
    const onRail = {};
    for (const hop of held) {
      const [rail] = railsOf(hop);
      if (!this.paths[rail] || (onRail[rail] ?? 0) >= this.layout.most) continue;
      const [[x1, y1], [x2, y2]] = this.paths[rail];
      const row = (onRail[rail] = (onRail[rail] ?? 0) + 1) - 1;
      const element = this.token(hop);
      element.classList.add("held");
      element.style.transform = this.place((x1 + x2) / 2, (y1 + y2) / 2, row);
      this.layer.append(element);
    }
  }

  /** clear removes all tokens: the recording was moved, or another key is followed. */
  clear() {
    for (const animation of this.layer.getAnimations({ subtree: true })) animation.cancel();
  }
}

/** route returns the two ends of the straight rail between two boxes, or null if they overlap. */
function route(a, b) {
  const middle = (lo1, hi1, lo2, hi2) => (Math.max(lo1, lo2) + Math.min(hi1, hi2)) / 2;
  const y = Math.min(middle(a.top, a.bottom, b.top, b.bottom), Math.max(a.top, b.top) + 78);
  const x = middle(a.left, a.right, b.left, b.right);
  const gap = 3;
  const ends = (x1, y1, x2, y2) => [[x1, y1], [x2, y2]];
  if (a.right <= b.left) return rowOf(a, b) ? ends(a.right + gap, y, b.left - gap, y) : null;
  if (b.right <= a.left) return rowOf(a, b) ? ends(a.left - gap, y, b.right + gap, y) : null;
  if (a.bottom <= b.top) return b.top - a.bottom < 160 ? ends(x, a.bottom + gap, x, b.top - gap) : null;
  if (b.bottom <= a.top) return a.top - b.bottom < 160 ? ends(x, a.top - gap, x, b.bottom + gap) : null;
  return null;
}

/** ASIDE_PX is how far the requests are beside the rail of the watch. */
const ASIDE_PX = 58;

/** aside moves the rail of the requests beside that of the answers, which has the same ends. */
function aside(name, path) {
  if (name !== "ask" || !path) return path;
  const across = path[0][1] === path[1][1] ? [0, ASIDE_PX] : [ASIDE_PX, 0];
  return path.map(([x, y]) => [x + across[0], y + across[1]]);
}

/** rowOf reports whether two boxes are beside each other. */
const rowOf = (a, b) => a.top < b.bottom && b.top < a.bottom;

/**
 * A layout says where the rails are, whether they have labels, how many tokens of one frame are
 * readable on one rail, and the distance of tokens that are side by side.
 *
 * between is that of the cards: straight from one to the other.
 */
export const between = {
  path: (name, a, b) => aside(name, route(a, b)),
  labels: true, most: 5, distance: [0, 23],
};

/** LANE_PX is how far the two lanes of the strip are below its first row: forth, and back. */
const LANE_PX = { forth: 8, back: 22 };

/** beside is that of the strip: below its first row, so that no token covers a text. */
export const beside = {
  path(name, a, b, { server }) {
    const middle = ({ left, right }) => (left + right) / 2;
    const [x1, x2] = [middle(a), middle(b)];
    if (Math.abs(x1 - x2) < 1) return [[x1, a.bottom], [x2, b.top]]; // from row to row
    const y = server.bottom + (x1 < x2 ? LANE_PX.forth : LANE_PX.back);
    return [[x1, y], [x2, y]];
  },
  labels: false, most: 1, distance: [0, 0],
};
