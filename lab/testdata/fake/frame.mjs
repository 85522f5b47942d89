// SPDX-License-Identifier: Apache-2.0

/** The frames that the imitation sends, with the limits of the protocol: 50 rows, 200 hops. */
const ROWS = 50;
const HOPS = 200;
const cut = (items) => [...items].slice(0, ROWS);

function quantiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
  return [at(0.5), at(0.99)];
}

export function frameOf(p, seq) {
  const now = Date.now();
  const hops = p.hops.splice(0);
  p.shown += Math.min(hops.length, HOPS);
  p.rates = [...(p.rates ?? []), [now, p.n]].filter(([at]) => at > now - 2000);
  const perSecond = (p.n - p.rates[0][1]) / Math.max(0.1, (now - p.rates[0][0]) / 1000);
  const values = new Map();
  for (const [key] of p.store) {
    const value = p.index === "namespace" ? key.split("/")[0] : (p.objects.get(key)?.team ?? "");
    if (!values.has(value)) values.set(value, []);
    values.get(value).push(key);
  }
  const delayed = [...p.delayed.values()].sort((a, b) => a.due - b.due);
  return {
    seq, t: new Date(now).toISOString(), mode: p.mode, delayMs: p.delayMs, held: p.held.slice(0, 10).map(({ hop, what, key, rv }) => ({ hop, what, key, rv })),
    server: { up: p.up, rv: String(p.rv), objects: p.objects.size, log: p.log, fault: p.fault, compacted: p.compacted },
    reflector: p.reflector,
    queue: {
      kind: p.settings.queue === "realfifo" ? "RealFIFO" : "DeltaFIFO", keys: p.queue.size,
      deltas: [...p.queue.values()].reduce((n, deltas) => n + deltas.length, 0),
      items: cut(p.queue.entries()).map(([key, deltas]) => ({ key, deltas })),
    },
    store: {
      objects: p.store.size, rv: p.reflector.rv, items: cut(p.store.entries()).map(([key, rv]) => ({ key, rv })),
      index: { name: p.index, values: [...values].map(([value, keys]) => ({ value, n: keys.length, keys: cut(keys) })) },
    },
    log: { items: p.changes },
    handlers: p.handlers.map((h) => ({
      name: h.name, pending: h.pending.length, oldestMs: h.pending[0] ? now - h.pending[0].at : 0, delayMs: h.delayMs, panics: h.panics,
    })),
    workqueue: {
      queued: p.ready.length, queue: cut(p.ready), dirty: cut(p.dirty), processing: cut(p.processing),
      delayed: delayed.slice(0, ROWS).map((d) => ({ key: d.key, dueMs: d.due - now, failures: d.failures, nextMs: d.nextMs })),
      delayedTotal: delayed.length, limited: p.failures.size,
    },
    workers: {
      count: p.settings.workers, running: [...p.running].map(([key, since]) => ({ key, ms: now - since })), fault: p.workFault,
      deadLetters: p.dead.slice(0, ROWS), deadLettersTotal: p.dead.length, outcomes: p.outcomes,
    },
    election: { on: true, identity: "a", ...p.election, leading: p.election.leader === "a", durationMs: 15000, candidates: ["a", "b"] },
    settings: { ...p.settings, index: p.index }, lesson: p.lesson,
    counters: { events: p.n, shown: p.shown, perSecond },
    hops: hops.slice(0, HOPS),
    plot: {
      depth: p.queue.size + p.ready.length, backlog: Math.max(...p.handlers.map((h) => h.pending.length)), retries: p.delayed.size, perSecond,
      hopMs: Object.fromEntries(Object.entries(p.stats).map(([hop, values]) => [hop, quantiles(values)])),
    },
  };
}
