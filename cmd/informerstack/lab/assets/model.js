// SPDX-License-Identifier: Apache-2.0

/**
 * The model: what the page knows about the program.
 *
 *   M1  newest is the newest frame. frame is what the page shows: see present.js
 *   M2  hops holds the newest hops that are shown, in ascending order of n, at most HOPS of them
 *   M3  samples holds at most one entry per SAMPLE_MS, of the last WINDOW_S seconds
 */
const HOPS = 2000;

/** CONTROLS are the fields of a frame that the controls need at once. */
const CONTROLS = ["mode", "delayMs", "settings"];
const SAMPLE_MS = 250;
const EXAMPLE_MS = 2000;
const EXAMPLES = 10;
export const WINDOW_S = 60;

export class Model {
  constructor() {
    this.hello = null;
    this.reset();
  }

  /** reset forgets all frames: a program has started, or a recording was moved. */
  reset() {
    this.newest = null;
    this.frame = null;
    this.lastHop = -1;
    this.hops = [];
    this.samples = [];
    this.samplesVersion = 0;
    this.leftOut = 0;
    this.example = null;
    this.clockSkew = 0;
  }

  /** greet starts a connection. Another start of the program has other numbers and other hops. */
  greet(hello) {
    if (!hello.started || hello.started !== this.hello?.started) this.reset();
    this.hello = hello;
  }

  /**
   * receive takes the next frame, and returns it without the hops that were received before. now is
   * the reader's clock in milliseconds.
   */
  receive(frame, now) {
    const hops = (frame.hops ?? []).filter((hop) => hop.n > this.lastHop);
    for (const hop of hops) hop.at = timeOf(hop.t);
    this.lastHop = hops.at(-1)?.n ?? this.lastHop;
    this.newest = { ...frame, hops };
    this.clockSkew = Date.parse(frame.t) - now;
    this.leftOut = Math.max(0, (frame.counters?.events ?? 0) - (frame.counters?.shown ?? 0));
    if (this.frame) this.show(frame, CONTROLS);
    this.sample(frame);
    return this.newest;
  }

  /** show makes fields of a frame visible. */
  show(frame, fields) {
    this.frame = { ...this.frame };
    for (const field of fields) this.frame[field] = frame[field];
    if (fields.includes("t")) this.frameAt = Date.parse(frame.t);
  }

  /** arrived makes hops visible. */
  arrived(hops) {
    this.hops = this.hops.concat(hops).sort((a, b) => a.n - b.n).slice(-HOPS);
  }

  /**
   * exampleJourney is the key and the journeys that are shown while no key is followed: a complete
   * journey, if possible. The key changes at most every EXAMPLE_MS, so that it can be read, and its
   * journey is kept even if its hops have left the ring.
   */
  exampleJourney(now) {
    if (!this.example || now - this.example.at >= EXAMPLE_MS) {
      const done = this.hops.filter((hop) => hop.what === "reconciled").slice(-EXAMPLES).reverse();
      const complete = done.find(({ key }) => journeysOf(this.hops, key).at(-1).hops[0].hop === "server");
      const key = (complete ?? done[0] ?? this.hops.findLast((hop) => hop.key))?.key;
      if (key && key !== this.example?.key) this.example = { key, at: now, journeys: [] };
    }
    if (!this.example) return { journeys: [] };
    const journeys = journeysOf(this.hops, this.example.key);
    if (journeys.at(-1)?.hops.length > 1) this.example.journeys = journeys;
    return this.example;
  }

  /** now is the program's clock, estimated from its last frame. */
  now(readerNow) {
    return readerNow + this.clockSkew;
  }

  sample(frame) {
    const at = Date.parse(frame.t) / 1000;
    const last = this.samples.at(-1);
    if (last && at - last.at < SAMPLE_MS / 1000) return;
    this.samples.push({ at, ...frame.plot });
    while (this.samples[0].at < at - WINDOW_S) this.samples.shift();
    this.samplesVersion++;
  }

  /** series returns columns of the samples as uPlot wants them: times first. */
  series(...columns) {
    const data = [this.samples.map((s) => s.at)];
    for (const column of columns) data.push(this.samples.map((s) => column(s) ?? null));
    return data;
  }
}

/** timeOf reads an RFC 3339 time in milliseconds, with the fractions that Date.parse drops. */
function timeOf(text) {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? "";
  return Date.parse(text) + Number("0." + fraction.slice(3).padEnd(1, "0"));
}

/** CHANGES are the watch events that begin a journey. */
const CHANGES = new Set(["ADDED", "MODIFIED", "DELETED"]);

/**
 * journeysOf splits the hops of a key into journeys, oldest first. A journey begins with a watch
 * event, or with a second Pop, because a relist or a resync has no event per key. A hop with a
 * resourceVersion joins the newest journey that has it, any other hop joins the newest. Two changes
 * that one reconcile handles are two journeys, and the later one ends there.
 */
export function journeysOf(hops, key) {
  const journeys = [];
  for (const hop of hops) {
    if (hop.key !== key) continue;
    const same = hop.rv && journeys.findLast((journey) => journey.rv === hop.rv);
    const journey = same || journeys.at(-1);
    const begins = (hop.hop === "server" && CHANGES.has(hop.what)) || (hop.what === "Pop" && journey?.popped);
    if (!journey || begins) journeys.push({ rv: hop.rv, hops: [hop], popped: hop.what === "Pop" });
    else {
      journey.hops.push(hop);
      journey.popped ||= hop.what === "Pop";
    }
  }
  return journeys;
}

/** whatOf names what happened at a hop: a reconcile with an error has failed. */
export const whatOf = ({ hop, what, error }) =>
  hop === "worker" && error && what === "reconciled" ? "failed" : what;

/** The hops that end the stay of a change in a lane. */
const LEAVES = { deltafifo: "Pop", workqueue: "Get", worker: "reconciled" };

/**
 * lanesOf arranges a journey as a swimlane: per hop the spans between arrival and departure, and
 * the moments of all its events, in milliseconds since the journey began.
 */
export function lanesOf(journey, order) {
  const start = journey.hops[0].at;
  const end = journey.hops.at(-1).at;
  return order.map((name) => {
    const moments = journey.hops
      .filter((hop) => hop.hop === name)
      .map((hop) => ({ ...hop, ms: hop.at - start }));
    const spans = [];
    let entered = null;
    for (const moment of moments) {
      if (moment.what === LEAVES[name]) {
        if (entered != null) spans.push([entered, moment.ms]);
        entered = null;
      } else if (LEAVES[name] && moment.what !== "Done" && moment.what !== "Forget") {
        entered ??= moment.ms;
      }
    }
    if (entered != null) spans.push([entered, end - start]);
    return { name, moments, spans };
  });
}

/** STAYS are the hops in which a change spends its time: the events that begin and end each. */
const STAYS = [
  ["deltafifo", (hop) => hop.hop === "deltafifo" && hop.what !== "Pop", (hop) => hop.what === "Pop"],
  ["store", (hop) => hop.what === "Pop", (hop) => hop.hop === "store"],
  ["handler", (hop) => hop.hop === "store", (hop) => hop.hop === "handler"],
  ["workqueue", (hop) => hop.hop === "workqueue" && hop.what === "Add", (hop) => hop.what === "Get"],
  ["worker", (hop) => hop.what === "reconcile", (hop) => hop.what === "reconciled"],
];

/** staysOf returns how long a change stayed in each hop, in milliseconds; null if it has not left it. */
export function staysOf({ hops }) {
  return STAYS.map(([name, begins, ends]) => {
    const from = hops.find(begins);
    const to = from && hops.find((hop) => hop.at >= from.at && ends(hop));
    return { name, ms: to ? to.at - from.at : null };
  });
}
