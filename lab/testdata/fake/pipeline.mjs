// SPDX-License-Identifier: Apache-2.0

/**
 * A small imitation of the pipeline, for work on the page without the Go program. It has the right
 * shapes, not the right semantics: nothing about informers is to be learned from it.
 */
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const NAMES = ["web", "db", "api", "job", "cron", "cache", "mail", "auth", "cart", "search", "pay", "feed"];
const TEAMS = ["red", "blue", "green"];
const ROWS = 50;

export class Pipeline {
  constructor({ rate = 0.7, objects = 12 } = {}) {
    Object.assign(this, {
      mode: "run", delayMs: 0, held: [], hops: [], n: 0, shown: 0, leftOut: 0, started: Date.now(),
      rv: 1000, up: true, fault: "", compacted: "0", objects: new Map(), log: [],
      reflector: { phase: "starting", from: "", reason: "", since: new Date(), rv: "", backoffMs: 0, failures: 0, error: "" },
      queue: new Map(), store: new Map(), changes: [],
      handlers: [{ name: "controller", pending: [], delayMs: 0, panics: 0 }, { name: "audit", pending: [], delayMs: 0, panics: 0 }],
      ready: [], dirty: new Set(), processing: new Set(), delayed: new Map(), failures: new Map(),
      running: new Map(), dead: [], outcomes: { success: 0, error: 0 }, workFault: "none",
      election: { leader: "a", leftMs: 12000, token: 7, paused: false }, index: "namespace",
      settings: { queue: "deltafifo", watchList: false, workers: 2, workMs: 120, rate, objects },
      stats: { deltafifo: [], store: [], handler: [], workqueue: [], worker: [] }, lesson: null, since: new Map(),
    });
    for (let i = 0; i < objects; i++) this.write("ADDED", this.name(i), true);
    this.list();
    this.handlers.forEach((handler) => this.handle(handler));
    this.pop();
    for (let i = 0; i < 8; i++) this.work(i);
    this.load();
    setInterval(() => this.tick(), 200);
  }

  name(i) {
    const round = Math.floor(i / NAMES.length);
    return `${i % 4 === 3 ? "batch" : "default"}/${NAMES[i % NAMES.length]}${round ? "-" + round : ""}`;
  }

  /** hop records an event and holds it while the time control says so. */
  async hop(hop, what, key = "", rv = "", detail = "", error = "") {
    const event = { hop, what, key, rv: String(rv), detail, error };
    while (this.mode === "pause" && !event.passed) {
      if (!this.held.includes(event)) this.held.push(event);
      await sleep(20);
    }
    this.held = this.held.filter((e) => e !== event);
    if (this.mode === "slow") await sleep(this.delayMs);
    else if (this.settings.rate < 50) await sleep(1 + Math.random() * 4);
    this.hops.push({ n: ++this.n, t: new Date(performance.timeOrigin + performance.now()).toISOString(), ...event });
    const mark = `${hop} ${key}`;
    if (what === "Pop" || what === "Get" || what === "reconciled") this.stats[hop]?.push(Date.now() - (this.since.get(mark) ?? Date.now()));
    else if (!this.since.has(mark) || what !== "Add") this.since.set(mark, Date.now());
    if (hop === "store" || hop === "handler") this.stats[hop].push(0.05 + Math.random() * 0.4);
  }

  write(type, key, quiet) {
    const rv = ++this.rv;
    if (type === "DELETED") this.objects.delete(key);
    else this.objects.set(key, { rv, team: TEAMS[key.length % 3] });
    this.log.push({ rv: String(rv), type, key });
    if (this.log.length > ROWS) this.log.shift();
    if (!quiet && this.reflector.phase === "watching" && !this.fault) this.receive(type, key, rv);
    else if (!quiet) (this.missed ??= []).push([type, key, rv]);
  }

  async receive(type, key, rv) {
    await this.hop("server", type, key, rv);
    const delta = { ADDED: "Added", MODIFIED: "Updated", DELETED: "Deleted" }[type];
    this.reflector.rv = String(rv);
    await this.hop("deltafifo", delta.replace("ed", "e").replace("Adde", "Add"), key, rv);
    if (!this.queue.has(key)) this.queue.set(key, []);
    this.queue.get(key).push({ type: delta, rv: String(rv) });
  }

  to(phase, reason, more = {}) {
    const from = this.reflector.phase;
    Object.assign(this.reflector, { phase, from, reason, since: new Date(), backoffMs: 0, error: "" }, more);
  }

  async list() {
    this.to("starting", "");
    await sleep(400);
    this.to(this.settings.watchList ? "streaming" : "listing", "a round begins");
    await this.hop("server", "LIST", "", this.rv, `${this.objects.size} items`);
    await sleep(300);
    await this.hop("deltafifo", "Replace", "", this.rv, `${this.objects.size} items`);
    for (const [key, object] of this.objects) this.queue.set(key, [{ type: "Replaced", rv: String(object.rv) }]);
    for (const key of this.store.keys()) if (!this.objects.has(key)) this.queue.set(key, [{ type: "Deleted", rv: this.store.get(key) }]);
    this.missed = [];
    this.reflector.rv = String(this.rv);
    this.open("the list is complete");
  }

  async open(reason) {
    this.to("opening", reason);
    await sleep(350);
    this.to("watching", `resumed at ${this.reflector.rv}`, { watchSince: new Date(), failures: 0 });
    this.fault = "";
    for (const [type, key, rv] of this.missed?.splice(0) ?? []) this.receive(type, key, rv);
  }

  async retry(error, ms) {
    this.to("backing off", "the request failed", { error, backoffMs: ms, failures: this.reflector.failures + 1 });
    await sleep(ms);
    if (!this.up) return this.retry(error, Math.min(ms * 2, 8000));
    this.list();
  }

  async pop() {
    for (;;) {
      const [key, deltas] = this.queue.entries().next().value ?? [];
      if (!key) {
        await sleep(3);
        continue;
      }
      await this.hop("deltafifo", "Pop", key, deltas.at(-1).rv, deltas.map((d) => d.type).join(", "));
      this.queue.delete(key);
      const gone = deltas.at(-1).type === "Deleted";
      const what = gone ? "Delete" : this.store.has(key) ? "Update" : "Add";
      const rv = deltas.at(-1).rv;
      if (gone) this.store.delete(key);
      else this.store.set(key, rv);
      await this.hop("store", what, key, rv);
      this.changes.push({ what: "On" + what, key, rv });
      this.changes = this.changes.slice(-ROWS);
      for (const handler of this.handlers) handler.pending.push({ what: "On" + what, key, rv, at: Date.now() });
    }
  }

  async handle(handler) {
    for (;;) {
      const change = handler.pending[0];
      if (!change) {
        await sleep(3);
        continue;
      }
      if (handler.delayMs) await sleep(handler.delayMs);
      if (handler.name === "controller") {
        await this.hop("handler", change.what, change.key, change.rv);
        await this.hop("workqueue", "Add", change.key);
        this.add(change.key);
      }
      handler.pending.shift();
    }
  }

  add(key) {
    if (this.dirty.has(key)) return;
    this.dirty.add(key);
    if (!this.processing.has(key)) this.ready.push(key);
  }

  async work(number) {
    for (;;) {
      const key = number < this.settings.workers && this.election.leader === "a" ? this.ready.shift() : undefined;
      if (!key) {
        await sleep(5);
        continue;
      }
      this.dirty.delete(key);
      this.processing.add(key);
      this.running.set(key, Date.now());
      await this.hop("workqueue", "Get", key);
      await this.hop("worker", "reconcile", key);
      await sleep(this.workFault === "hang" ? 4000 : this.settings.workMs * (0.5 + Math.random()));
      const fails = ["fail", "conflict"].includes(this.workFault) || Math.random() < 0.03;
      const [namespace, name] = key.split("/");
      if (Math.random() < 0.3) await this.hop("server", "PATCH", `/api/v1/namespaces/${namespace}/configmaps/${name}`);
      await this.hop("worker", "reconciled", key, "", "", fails ? `update ${key}: the object has been modified` : "");
      if (fails) this.retryKey(key);
      else this.failures.delete(key);
      this.outcomes[fails ? "error" : "success"]++;
      await this.hop("workqueue", "Done", key);
      this.running.delete(key);
      this.processing.delete(key);
      if (this.dirty.has(key)) this.ready.push(key);
    }
  }

  retryKey(key) {
    const failures = (this.failures.get(key) ?? 0) + 1;
    if (failures > 5) {
      this.failures.delete(key);
      this.dead.unshift({ key, reason: "MaxAttempts", attempts: failures, error: "the object has been modified" });
      return;
    }
    this.failures.set(key, failures);
    const ms = 500 * 2 ** failures;
    this.delayed.set(key, { key, due: Date.now() + ms, failures, nextMs: ms * 2 });
    this.hop("workqueue", "AddRateLimited", key, "", `${failures} requeues`);
  }

  async load() {
    for (;;) {
      const { rate } = this.settings;
      await sleep(rate > 50 ? 20 : rate > 0 ? (1000 / rate) * (0.4 + Math.random() * 1.2) : 200);
      if (rate > 0 && this.up && this.mode !== "pause") for (let i = 0; i < Math.max(1, rate / 50); i++) this.change();
    }
  }

  change(key) {
    const keys = [...this.objects.keys()];
    this.write("MODIFIED", key && this.objects.has(key) ? key : keys[Math.floor(Math.random() * keys.length)]);
  }

  tick() {
    for (const item of this.delayed.values()) {
      if (item.due > Date.now()) continue;
      this.delayed.delete(item.key);
      this.add(item.key);
    }
    const e = this.election;
    if (e.leader && !e.paused && Date.now() % 2000 < 200) e.leftMs = 15000;
    e.leftMs -= 200;
    if (e.leftMs <= 0) Object.assign(e, { leader: e.leader === "a" ? "b" : "a", token: e.token + 1, leftMs: 15000, paused: false });
    for (const hop in this.stats) this.stats[hop] = this.stats[hop].slice(-200);
  }

  /** command does what a POST asks for, and throws the refusal. */
  command(c) {
    const s = this.settings;
    switch (c.do) {
      case "mode": Object.assign(this, { mode: c.mode, delayMs: c.delayMs ?? this.delayMs }); break;
      case "step": if (this.held[0]) this.held[0].passed = true; break;
      case "create": this.write("ADDED", c.key || this.name(this.objects.size + (this.rv % 7))); break;
      case "change": this.change(c.key); break;
      case "delete": this.write("DELETED", c.key || [...this.objects.keys()][0]); break;
      case "compact": this.compacted = String(this.rv); break;
      case "server":
        this.up = c.up;
        if (!c.up) this.retry("dial tcp 127.0.0.1:6443: connect: connection refused", 1000);
        break;
      case "watch":
        this.fault = c.fault;
        if (c.fault === "cut") this.open("the connection was cut");
        else if (c.fault === "expire") this.retry("410 Gone: too old resource version", 800);
        else setTimeout(() => this.open("the watch was silent"), 6000);
        break;
      case "handler": {
        const handler = this.handlers.find((h) => h.name === c.name);
        if (!handler) throw new Error(`no handler ${c.name}`);
        if (c.panic) handler.panics++;
        else handler.delayMs = c.delayMs;
        break;
      }
      case "reconcile": this.workFault = c.fault; break;
      case "resync": for (const [key, rv] of this.store) this.queue.set(key, [{ type: "Sync", rv }]); break;
      case "leader": this.election.paused = c.fault !== "resume"; if (c.fault === "kill") this.election.leftMs = 4000; break;
      case "settings": for (const name of ["queue", "watchList", "workers", "workMs"]) if (name in c) s[name] = c[name]; this.list(); break;
      case "workload": s.rate = c.rate; s.objects = c.objects; for (let i = this.objects.size; i < c.objects; i++) this.write("ADDED", this.name(i), i < c.objects - 60); break;
      case "index": this.index = c.name; break;
      case "lesson": this.play(c); break;
      case "follow": this.followed = c.key; break;
      default: throw new Error(`unknown command "${c.do}"`);
    }
  }

  async play({ id, step }) {
    this.lesson = { id, step, state: "running", watch: ["queue", "store"] };
    await sleep(1200);
    if (step === 1) this.write("DELETED", [...this.objects.keys()][0]);
    this.lesson = { ...this.lesson, state: "done" };
  }
}
