// SPDX-License-Identifier: Apache-2.0

/** Tests of the page's parts that need no browser: node --test lab/testdata/ */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTIONS } from "../assets/actions.js";
import { colourOf, duration, shortName } from "../assets/key.js";
import en from "../assets/messages.en.js";
import zh from "../assets/messages.zh.js";
import { Model, journeysOf, lanesOf } from "../assets/model.js";
import { parseRecording } from "../assets/source.js";

/** at makes a hop of default/web at a number of milliseconds after the start. */
const at = (n, ms, hop, what, rv = "") => ({
  n, hop, what, rv, key: "default/web", t: new Date(Date.UTC(2026, 0, 1) + ms).toISOString(),
});

const frame = (ms, hops, more = {}) => ({
  t: new Date(Date.UTC(2026, 0, 1) + ms).toISOString(), hops, plot: { depth: 1 }, ...more,
});

const journey = [
  at(1, 0, "server", "MODIFIED", "41"), at(2, 1, "deltafifo", "Update", "41"),
  at(3, 5, "deltafifo", "Pop", "41"), at(4, 6, "store", "Update", "41"),
  at(5, 7, "handler", "OnUpdate", "41"), at(6, 8, "workqueue", "Add"),
  at(7, 20, "workqueue", "Get"), at(8, 21, "worker", "reconcile"), at(9, 30, "worker", "reconciled"),
  at(10, 31, "workqueue", "Done"),
];

test("both languages have the same messages", () => {
  const paths = (node, path = "") =>
    Object.entries(node).flatMap(([name, value]) =>
      typeof value === "string" ? [path + name] : paths(value, path + name + "."));
  assert.deepEqual(paths(zh).sort(), paths(en).sort());
});

test("a message has the same arguments in both languages", () => {
  const compare = (a, b, path) => {
    for (const name in a) {
      if (typeof a[name] !== "string") compare(a[name], b[name], path + name + ".");
      else assert.deepEqual(b[name].match(/{\w+}/g)?.sort(), a[name].match(/{\w+}/g)?.sort(), path + name);
    }
  };
  compare(en, zh, "");
});

test("every action has a key of its own, and its texts", () => {
  assert.equal(new Set(ACTIONS.map((a) => a.key)).size, ACTIONS.length);
  for (const { id, piece } of ACTIONS) {
    assert.ok(en.action[id]?.name && en.action[id]?.help, id);
    assert.ok(en.piece[piece]?.name, piece);
  }
});

test("a key has the same colour always, and all colours are used", () => {
  assert.equal(colourOf("default/web"), colourOf("default/web"));
  const colours = new Set(Array.from({ length: 200 }, (_, i) => colourOf("default/web-" + i)));
  assert.equal(colours.size, 10);
  assert.equal(shortName("default/web"), "web");
  assert.equal(shortName("node-1"), "node-1");
});

test("durations have the unit that fits", () => {
  assert.deepEqual([0, 0.25, 3.14, 250, 4200, 192_000].map(duration),
    ["0 ms", "250 µs", "3.1 ms", "250 ms", "4.2 s", "3 min 12 s"]);
});

test("M2, M3: hops arrive once, are drawn once, and are bounded", () => {
  const model = new Model();
  model.greet({ started: "1" });
  model.add(frame(0, journey.slice(0, 4)), 0);
  model.add(frame(100, journey.slice(2)), 100); // two of them again
  assert.deepEqual(model.hops.map((hop) => hop.n), journey.map((hop) => hop.n));
  assert.equal(model.takeFresh().length, 10);
  assert.equal(model.takeFresh().length, 0);
  model.add(frame(200, Array.from({ length: 5000 }, (_, i) => at(100 + i, 0, "store", "Update"))), 200);
  assert.equal(model.hops.length, 2000);
  assert.equal(model.hops.at(-1).n, 5099);
});

test("a reconnect keeps the hops, another start of the program does not", () => {
  const model = new Model();
  model.greet({ started: "1" });
  model.add(frame(0, journey), 0);
  model.greet({ started: "1" });
  assert.equal(model.hops.length, 10);
  model.greet({ started: "2" });
  assert.equal(model.hops.length, 0);
});

test("M4: samples are of the last minute, at most four a second", () => {
  const model = new Model();
  for (let ms = 0; ms <= 120_000; ms += 100) model.add(frame(ms, []), ms);
  assert.ok(model.samples.length <= 241, String(model.samples.length));
  assert.ok(model.samples.at(-1).at - model.samples[0].at <= 60);
});

test("the page reports how many events were left out", () => {
  const model = new Model();
  model.add(frame(0, [], { counters: { events: 1234, shown: 1200 } }), 0);
  assert.equal(model.leftOut, 34);
});

test("a request's path becomes the object's key", () => {
  const model = new Model();
  const put = { ...at(1, 0, "server", "PUT"), key: "/api/v1/namespaces/default/configmaps/web" };
  model.add(frame(0, [put, { ...put, n: 2, key: "/api/v1/nodes" }]), 0);
  assert.deepEqual(model.hops.map((hop) => hop.key), ["default/web", ""]);
});

test("a journey begins with a watch event, and a resourceVersion finds its journey", () => {
  const next = [at(11, 40, "server", "MODIFIED", "42"), at(12, 41, "handler", "OnUpdate", "41"), at(13, 42, "workqueue", "Add")];
  const journeys = journeysOf([...journey, ...next], "default/web");
  assert.deepEqual(journeys.map((j) => [j.rv, j.hops.length]), [["41", 11], ["42", 2]]);
  assert.deepEqual(journeysOf(journey, "default/db"), []);
});

test("a relist or a resync is a journey of its own, although the resourceVersion is the same", () => {
  const replay = [at(11, 50, "deltafifo", "Pop", "41"), at(12, 51, "handler", "OnUpdate", "41")];
  const journeys = journeysOf([...journey, ...replay], "default/web");
  assert.deepEqual(journeys.map((j) => [j.rv, j.hops.length]), [["41", 10], ["41", 2]]);
});

test("the lanes of a journey have its stays and its moments", () => {
  const model = new Model();
  model.add(frame(0, journey), 0);
  const lanes = lanesOf(journeysOf(model.hops, "default/web")[0], ["server", "deltafifo", "workqueue", "worker"]);
  assert.deepEqual(lanes.map((lane) => lane.spans), [[], [[1, 5]], [[8, 20]], [[21, 30]]]);
  assert.deepEqual(lanes[2].moments.map((moment) => moment.what), ["Add", "Get", "Done"]);
});

test("a recording that was cut off can be read", () => {
  const text = '{"hello":{"version":"1"}}\n{"frame":{"seq":1}}\n\n{"frame":{"seq":2}}\n{"frame":{"se';
  const { hello, frames } = parseRecording(text);
  assert.equal(hello.version, "1");
  assert.deepEqual(frames.map((f) => f.seq), [1, 2]);
});
