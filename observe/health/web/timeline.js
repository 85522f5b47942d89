// SPDX-License-Identifier: Apache-2.0

// The timeline of a key has a row for each place of the key, from the informer to the requests of its
// workers, on one time axis. It draws what the journal has recorded and nothing else:
//
//	item  something that was recorded, from start to end; until now if it has not ended
//	gap   a time that is not known: hatched
//
// rowsOf reads an answer, detailOf shows what was recorded of an item, and chart.js draws the rows.
// instant returns a time in milliseconds. Its fraction has the nanoseconds, which a Date drops.
function instant(time) {
  const [, fraction = "0"] = /\.(\d+)/.exec(time) || [];
  return Date.parse(time.replace(/\.\d+/, "")) + Number(`0.${fraction}`) * 1e3;
}

// moment is the time of day, as precise as the distance of two ticks.
function moment(time, step = 0.001) {
  const digits = step >= 1000 ? 0 : step >= 1 ? 3 : 6;
  const part = Math.floor((time - Math.floor(time / 1000) * 1000) * 1000 + 0.5).toString().padStart(6, "0");
  return clock(Math.floor(time / 1000) * 1000) + (digits ? `.${part.slice(0, digits)}` : "");
}

// Reading

const endOf = (item, start, now, running) => (running ? now : start + item.durationNanoseconds / 1e6);

function rowsOf(a) {
  const now = instant(a.time);
  const since = a.recorded ? instant(a.recorded.since) : Infinity;
  const queues = a.reconciles || [];
  const own = a.calls || [];
  const causes = queues.flatMap((q) => [...q.last.flatMap((r) => r.causes || []), ...(q.waiting || [])]);
  const calls = new Map([...own, ...causes.map((c) => c.call).filter(Boolean)]
    .map((c) => [`${c.informer} ${c.handler} ${c.time} ${c.key}`, c]));
  const rows = new Map();
  const row = (kind, id, name) => rows.get(kind + id) || rows.set(kind + id, { kind, id: kind + id, name, items: [], gaps: [] }).get(kind + id);
  const add = (to, kind, start, end, more) => to.items.push({ id: `${to.id} ${kind} ${start}`, row: to, kind, start, end, ...more });
  for (const [, call] of [...calls].sort(([, x], [, y]) => instant(x.time) - instant(y.time))) {
    const at = instant(call.time), of = `${call.informer} ${call.handler}`;
    if (call.queued) add(row("informer", call.informer, call.informer), "queued", instant(call.queued), at, { call });
    else row("informer", call.informer, call.informer).gaps.push([-Infinity, Infinity]);
    const handler = row("handler", of, call.handler);
    add(handler, "call", at, endOf(call, at, now, !call.durationNanoseconds), { call, open: !call.durationNanoseconds, last: !call.added?.length && "dim" });
  }
  queues.forEach((queue, number) => readQueue(queue, number, { row, add, now, since, requests: a.recorded?.requests }));
  for (const handler of rows.values()) if (handler.kind === "handler") gapsOfHandler(handler, since, a.key, rows);
  for (const { items } of rows.values()) items.sort((x, y) => x.start - y.start || x.end - y.end);
  const order = [...rows.values()].filter((r) => r.kind === "informer").flatMap((r) =>
    [r, ...[...rows.values()].filter((h) => h.kind === "handler" && h.items[0].call.informer === r.name)]);
  return [...order, ...[...rows.values()].filter((r) => !order.includes(r))];
}

// readQueue makes the rows of a queue: its waiting, its workers, and their requests.
function readQueue(queue, number, { row, add, now, since, requests }) {
  const [waits, works, asks] = ["queue", "worker", "request"].map((kind) => row(kind, number, queue.queue));
  const wait = (causes, until, reconcile) => {
    const known = causes.filter((c) => c.kind !== "not known");
    if (known.length) add(waits, "wait", Math.min(...known.map((c) => instant(c.time))), until ?? now, { causes, reconcile, open: until === null, tone: "wait" });
  };
  for (const r of queue.last) {
    const start = instant(r.start), running = r.result === "running";
    wait(r.causes || [], start, r);
    add(works, "reconcile", start, endOf(r, start, now, running), { reconcile: r, queue, open: running,
      tone: { forgotten: "ok", retried: "hot", running: "wait" }[r.result] });
    for (const request of r.requests || []) {
      const sent = instant(request.time), awaited = !request.durationNanoseconds;
      add(asks, "request", sent, endOf(request, sent, now, awaited), { request, reconcile: r, open: awaited,
        tone: request.error || request.status >= 400 ? "hot" : "" });
    }
  }
  for (const cause of queue.waiting || []) wait([cause], null);
  const oldest = Math.min(...[...waits.items, ...works.items].map((i) => i.start), now);
  const from = queue.reconciles > queue.last.length ? oldest : Math.min(since, oldest);
  for (const r of [waits, works, asks]) r.gaps.push([-Infinity, from]);
  if (!requests && !asks.items.length) asks.gaps = [[-Infinity, Infinity]];
}

// gapsOfHandler finds what a handler's row does not know: calls that were dropped, and those of other
// objects that added no key here. The changes that wait for the handler are known if there are none.
function gapsOfHandler(handler, since, key, rows) {
  const calls = handler.items.map((i) => i.call);
  const { informer, handler: name } = calls[0];
  const oldest = handler.items[0].start;
  if (calls.some((c) => c.key !== key)) handler.gaps.push([-Infinity, Infinity]);
  else handler.gaps.push([-Infinity, calls[0].number > 1 || !calls[0].number ? oldest : Math.min(since, oldest)]);
  handler.items.forEach((item, i) => {
    if (i && calls[i].number - calls[i - 1].number > 1) handler.gaps.push([handler.items[i - 1].end, item.start]);
  });
  const from = rows.get(`informer${informer}`);
  const known = page.informers.find((i) => i.name === informer)?.handlers?.find((h) => h.name === name);
  from.gaps.push(...handler.gaps);
  if (frames || known?.pending !== 0) from.gaps.push([handler.items.at(-1).start, Infinity]);
}

// Details

const lasts = (item) => (item.open ? `${text("lasts")} ${duration(item.end - item.start)}` : duration(item.end - item.start));

const heads = {
  queued: ({ call }) => `${text("queuedFor")} ${call.handler}`,
  call: ({ call }) => `${call.kind} ${call.key}${call.fields ? ` · ${call.fields.join(" ") || text("noField")}` : ""}`,
  wait: ({ causes }) => `${text("waited")} · ${causes.map((c) => c.kind).join(", ")}`,
  reconcile: ({ reconcile: r }) => `reconcile · ${r.result}${r.error ? ` · ${r.error}` : ""}${r.requests ? ` · ${r.requests.length + (r.moreRequests || 0)} ${text("requests")}` : ""}`,
  request: ({ request: r }) => `${r.method} ${r.path} · ${r.status || r.error || ""}`,
};

const summary = (item) => `${heads[item.kind](item)} · ${moment(item.start)} · ${lasts(item)}`;

function pairs(...all) {
  return el("dl", { class: "pairs" }, all.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

const causeText = (c) => [c.kind, c.call && `${c.call.key} (${c.call.informer}, ${c.call.handler})`, c.call?.fields?.join(" "), c.by,
  c.delayNanoseconds && nanoseconds(c.delayNanoseconds), c.error].filter(Boolean).join(" · ");

function detailOf(item) {
  const { call, causes, reconcile: r, request } = item;
  const times = [[text("began"), moment(item.start)], [text("took"), lasts(item)]];
  const reasons = (list, more) => (list?.length ? el("ul", { class: "facts" }, list.map((c) => el("li", {}, causeText(c))), more ? el("li", {}, `+ ${more}`) : "") : "");
  const title = el("p", { class: "reason" }, heads[item.kind](item));
  if (request) return [title, pairs(...times, [text("response"), request.error || String(request.status || text("awaited"))], ["reconcile", moment(instant(r.start))])];
  if (call) {
    return [title, pairs(...times, [text("version"), [call.was, call.resourceVersion].filter(Boolean).join(" → ")],
      [text("fields"), item.kind === "call" ? call.fields?.join(" ") || (call.kind === "update" ? (call.fields ? text("noField") : text("notKnown")) : "") : ""],
      [text("managers"), call.managers?.join(", ")], [text("adds"), call.added?.join(", ") || text("none")])];
  }
  if (item.kind === "wait") return [title, pairs(...times, [text("causes"), reasons(causes, r?.moreCauses)])];
  const later = item.queue.last.slice(0, item.queue.last.indexOf(r)).reverse().find((next) => (next.causes || []).some((c) => c.kind === "retry"));
  const waits = (item.queue.waiting || []).some((c) => c.kind === "retry");
  const retried = r.result !== "retried" ? "" : later ? `${moment(instant(later.start))} (${later.result})` : waits ? text("notTaken") : text("notKnown");
  return [title, pairs(...times, [text("causes"), reasons(r.causes, r.moreCauses)], [text("error"), r.error], [text("retriedAt"), retried],
    [text("requests"), r.requests || answer.recorded?.requests ? "" : text("notKnown")]),
  r.requests ? table([[text("requests")], [text("response")], [text("took"), "number"]], r.requests.map((q) => [
    `${q.method} ${q.path}`, el("span", { class: q.error || q.status >= 400 ? "hot" : "" }, q.error || String(q.status || text("awaited"))),
    q.durationNanoseconds ? nanoseconds(q.durationNanoseconds) : ""])) : "",
  r.moreRequests ? el("p", { class: "note" }, `+ ${r.moreRequests}`) : ""];
}
