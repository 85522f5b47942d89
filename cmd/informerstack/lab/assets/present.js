// SPDX-License-Identifier: Apache-2.0

/**
 * The clock of the page. A frame is a state, and its hops are the way to it. The presenter shows a
 * frame in stages: an item leaves its card, travels, and arrives; only then does the next card
 * change.
 *
 *	T1  each card shows the newest frame of which every item has arrived at this card
 *	T2  a later frame never shows a card as it was in an earlier one
 *	T3  a page at rest shows the newest frame
 *
 * While time is slow, while the program is paused and while a lesson plays, each stage begins when
 * the one before has ended, and a frame when the one before is shown. At full speed there is no time
 * for this: stages overlap, and frames begin when they arrive.
 */
import { RAILS, cardOf, railsOf } from "./rails.js";

/** TRAVEL_MS is how long an item travels, GAP_MS the time between stages at full speed. */
const TRAVEL_MS = 520;
const QUICK_MS = 380;
const GAP_MS = 60;

/** MAX_STAGES bounds the stages of a frame, MAX_LAG_MS how far the page is behind the program. */
const MAX_STAGES = 12;
const MAX_LAG_MS = 6000;

/** PARTS are the fields of a frame that each card shows. */
const PARTS = {
  server: ["server"], reflector: ["reflector"], queue: ["queue"], store: ["store"],
  handlers: ["handlers", "log"], workqueue: ["workqueue"], workers: ["workers"], election: ["election"],
};
const CARDS = Object.keys(PARTS);

export class Presenter {
  /**
   * model takes what is shown. depart is called when hops leave along a rail, arrive when they have
   * happened. still reports whether nothing may move.
   */
  constructor({ model, depart, arrive, still }) {
    Object.assign(this, { model, depart, arrive, still });
    this.follow = ""; // the key that alone takes stages
    this.reset();
  }

  /** reset forgets what is on its way. */
  reset() {
    this.due = []; // in the order of their times
    this.busyUntil = 0;
    this.shownBy = {}; // the seq of the frame that each part shows
  }

  /** take presents a frame, or shows it at once if nothing may move. */
  take(frame) {
    const now = performance.now();
    if (this.still() || !this.model.frame || frame.lesson?.state === "preparing") return this.jump(frame);
    const strict = frame.mode !== "run" || (frame.lesson && frame.lesson.state !== "done");
    if (strict !== this.strict || this.busyUntil - now > MAX_LAG_MS) this.flush();
    this.strict = strict;
    const start = strict ? Math.max(now, this.busyUntil) : now;
    const slow = frame.mode === "slow" ? Math.min(frame.delayMs / 3, 880) : 0;
    const travel = strict ? TRAVEL_MS + slow : QUICK_MS;
    this.schedule(frame, start, travel, strict ? travel : GAP_MS);
  }

  schedule(frame, start, travel, gap) {
    const arrivals = {};
    const departures = {};
    let at = start;
    let end = start;
    for (const { rail, card, moving, hops } of stagesOf(frame.hops ?? [], this.follow)) {
      const [from, to] = RAILS[rail] ?? [card, card];
      const arrival = rail ? at + travel : at;
      departures[from] ??= at;
      arrivals[to] = arrival;
      if (rail) this.at(at, () => this.depart(rail, moving, travel));
      this.at(arrival, () => this.arrive(hops));
      end = Math.max(end, arrival);
      if (rail) at += gap;
    }
    for (const card of CARDS) {
      this.at(arrivals[card] ?? departures[card] ?? start, () => this.show(card, frame));
    }
    this.at(end, () => this.show("rest", frame));
    this.due.sort((a, b) => a.at - b.at);
    this.busyUntil = Math.max(this.busyUntil, end);
  }

  at(at, act) {
    this.due.push({ at, act });
  }

  /** show shows a part of a frame: a card, or the rest. */
  show(part, frame) {
    if (this.shownBy[part] > frame.seq) return;
    this.shownBy[part] = frame.seq;
    this.model.show(frame, PARTS[part] ?? Object.keys(frame).filter(isRest));
  }

  /** advance shows what is due. It returns the time until the next change, or null. */
  advance() {
    const now = performance.now();
    let n = 0;
    while (n < this.due.length && this.due[n].at <= now) n++;
    for (const { act } of this.due.splice(0, n)) act();
    return this.due.length ? this.due[0].at - now : null;
  }

  /** flush shows at once what is on its way. */
  flush() {
    for (const { act } of this.due.splice(0)) act();
    this.busyUntil = 0;
  }

  /** jump shows a frame at once. */
  jump(frame) {
    this.flush();
    for (const part of [...CARDS, "rest"]) this.show(part, frame);
    this.arrive(frame.hops ?? []);
  }
}

const inCards = new Set(Object.values(PARTS).flat());
const isRest = (field) => !inCards.has(field);

/**
 * stagesOf arranges hops in stages: each is one rail, or one card without a rail. The hops of a key
 * are in stages that follow each other. Hops of other keys share them, as far as possible. While a
 * key is followed, the hops of others take no stage.
 */
function stagesOf(hops, follow) {
  const stages = [];
  const reached = new Map(); // by key: the stage of its last hop
  const join = (hop, rail, happens) => {
    const card = cardOf(hop);
    const last = reached.get(hop.key) ?? -1;
    const same = (stage) => stage.rail === rail && stage.card === card;
    const from = last >= 0 && same(stages[last]) ? last : last + 1;
    let i = stages.findIndex((stage, at) => at >= from && same(stage));
    if (i < 0 && stages.length >= MAX_STAGES) i = stages.findLastIndex(same);
    if (i < 0) i = stages.push({ rail, card, moving: [], hops: [] }) - 1;
    if (rail) stages[i].moving.push(hop);
    if (happens) stages[i].hops.push(hop);
    reached.set(hop.key, i);
  };
  for (const hop of causesFirst(hops)) {
    const rails = follow && hop.key && hop.key !== follow ? [] : railsOf(hop);
    rails.slice(0, -1).forEach((rail) => join(hop, rail, false));
    join(hop, rails.at(-1), true);
  }
  return stages;
}

/** causesFirst puts a write, which is recorded when it is answered, before the event that it has caused. */
function causesFirst(hops) {
  const ordered = [];
  for (const hop of hops) {
    const caused = railsOf(hop)[0] !== "write" ? -1 : ordered.findIndex(
      (other) => other.key === hop.key && railsOf(other)[0] === "wire");
    ordered.splice(caused < 0 ? ordered.length : caused, 0, hop);
  }
  return ordered;
}
