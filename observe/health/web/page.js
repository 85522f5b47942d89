// SPDX-License-Identifier: Apache-2.0

// The page asks the program for its state every two seconds and shows it. It changes nothing there.
const period = 2000;
const limit = 20;
const byId = (id) => document.getElementById(id);

const settings = new URLSearchParams(location.hash.slice(1));
let lang = ["en", "zh"].find((name) => name === settings.get("lang")) || (navigator.language.startsWith("zh") ? "zh" : "en");
let theme = settings.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
let asked = settings.get("why") || "";
let opened = settings.get("path") || "";
let editor = settings.get("editor") || "";
let turned = placeOf(settings); // the queue that does not show its first keys, and the number of the first one shown
let listing = null; // the part of the page about that queue
let listed = false; // the text below an answer is open
let paused = false;
let page = null;
let answer = null;
let lost = false;

const text = (name) => messages[lang][name];

// el makes an element. Children are elements and texts: no text is ever read as HTML.
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") node.addEventListener("click", value);
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

// show replaces the content of a place, unless it is what is there already.
function show(id, ...nodes) {
  const place = byId(id);
  const next = el("div", {}, ...nodes);
  if (place.innerHTML === next.innerHTML) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  place.replaceChildren(...next.childNodes);
  if (focused) place.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
}

// Times and durations

function since(time, now = page.time) {
  if (!time) return text("never");
  const ago = duration(new Date(now) - new Date(time));
  return lang === "zh" ? `${ago} ${text("ago")}` : `${ago} ago`;
}

function duration(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60e3) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3600e3) return `${Math.floor(ms / 60e3)} min ${Math.floor((ms % 60e3) / 1000)} s`;
  if (ms < 48 * 3600e3) return `${Math.floor(ms / 3600e3)} h ${Math.floor((ms % 3600e3) / 60e3)} min`;
  return `${Math.floor(ms / 86400e3)} d ${Math.floor((ms % 86400e3) / 3600e3)} h`;
}

const nanoseconds = (ns) => duration(ns / 1e6);
const clock = (time) => new Date(time).toLocaleTimeString(lang, { hour12: false });

// Pieces

const dim = (...children) => el("span", { class: "dim" }, ...children);
const chip = (key) => el("a", { class: "key", "data-id": `key ${key}`, href: address({ why: key }) }, key);

function chips(list, name = (item) => item) {
  const more = list.total - list.items.length;
  return [list.items.map((item) => chip(name(item))), more > 0 && list.items.length ? dim(`+ ${more}`) : ""];
}

// keysOf are the keys of a list of a queue, with links to those before and after them.
function keysOf(q, name, key = (item) => item) {
  const list = q[name], before = list.before || 0, end = before + list.items.length;
  const link = (from, sign) => el("a", { class: "turn", "data-id": `turn ${q.name} ${name} ${sign}`, "aria-label": text(sign),
    href: address(from > 1 ? { queue: q.name, from } : { queue: "", from: 0 }) }, sign === "previous" ? "◀" : "▶");
  const back = before ? link(before + 1 - limit, "previous") : "", on = end < list.total && list.items.length ? link(end + 1, "next") : "";
  return [`${list.total} `, list.items.map((item) => el("span", { class: "placed" }, chip(key(item)), orderOf(q, name, key(item)))),
    back || on ? el("div", { class: "note" }, back, list.items.length ? ` ${before + 1}–${end} ` : "", on) : ""];
}

// orderOf is what decides when the key is next, if it is not its number.
function orderOf(q, name, key) {
  if (name === "processing") return "";
  const priority = q.priorities?.[key], group = name === "ready" ? q.held?.[key] : undefined;
  return [priority === undefined ? "" : dim(`${text("priority")} ${priority} `),
    group ? el("span", { class: "wait" }, `${text("itsGroup")} ${group.name}: ${workersOf(group)} `) : ""];
}

const workersOf = (group) => `${group.working}${group.workers ? ` / ${group.workers}` : ""} ${text("groupWorkers")}`;

function groupsOf(q) {
  return q.groupCount ? el("div", { class: "note" }, `${text("keyGroups")} ${q.groupCount}: `,
    q.groups.map((g) => `${g.name} ${text("ready")} ${g.queued}, ${workersOf(g)}`).join(" · "), q.groupCount > q.groups.length ? " …" : "") : "";
}

// longest says how long the last key of a queue waits.
function longest(q) {
  return q.lastDue ? el("div", { class: "note" }, `${text("lastDue")} ${duration(new Date(q.lastDue) - new Date(page.time))}, `,
    new Date(q.lastDue).toLocaleString(lang, { hour12: false })) : "";
}

function table(head, rows) {
  const numbers = head.map(([, kind]) => (kind ? { class: kind } : {}));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": head[0][0] }, el("table", {},
    el("thead", {}, el("tr", {}, head.map(([title], i) => el("th", { scope: "col", ...numbers[i] }, title)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) =>
      el(i ? "td" : "th", i ? { ...numbers[i], "data-head": head[i][0] } : { scope: "row" }, ...[cell].flat(Infinity).map(asText)))))),
  ));
}

const asText = (child) => (child instanceof Node || child === null ? child : String(child));

// Sections

function showFindings() {
  show("findings", page.findings.length
    ? page.findings.map((f) => el("div", { class: "card finding" },
      el("h3", {}, f.key ? el("a", { href: address({ why: f.key }), "data-id": `finding ${f.kind} ${f.key}` }, text("kinds")[f.kind] || f.kind)
        : text("kinds")[f.kind] || f.kind),
      el("p", {}, f.sentence, " ", f.key ? chip(f.key) : ""), el("p", { class: "dim" }, f.advice, " ", el("code", {}, f.chapter))))
    : el("p", { class: "dim" }, text("noFindings")));
}

const pathName = (a) => `${a.informer} ${a.handler} ${a.queue}`;

function showPaths() {
  const arrows = page.journal ? page.journal.arrows : [];
  show("paths", arrows.length
    ? table([[text("informer")], [text("handler")], [text("queue")], [text("adds"), "number"]],
      arrows.map((a) => [
        el("button", { type: "button", class: "open", "data-id": pathName(a), "aria-expanded": String(opened === pathName(a)),
          onclick: () => { opened = opened === pathName(a) ? "" : pathName(a); remember(); showAll(); } }, a.informer),
        a.handler, a.queue, a.adds]))
    : el("p", { class: "dim" }, text("noPaths")));
  const arrow = arrows.find((a) => pathName(a) === opened);
  show("path", arrow ? stops(arrow) : "");
}

// stops are the cards of one path, in the order of a change.
function stops(arrow) {
  const informer = page.informers.find((i) => i.name === arrow.informer) || { handlers: [] };
  const handler = informer.handlers.find((h) => h.name === arrow.handler) || {};
  const facts = factsOf(arrow.informer, arrow.handler);
  const queue = queueOf(arrow.queue);
  const counts = page.journal.queues.find((q) => q.queue === arrow.queue);
  const stop = (title, pairs, ...rest) => el("section", { class: "card stop" }, el("h3", {}, title),
    el("dl", {}, pairs.filter(Boolean).map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])), ...rest);
  const keys = (list, name) => (list ? el("div", { class: "keys" }, ...chips(list, name)) : "");
  return el("div", { class: "stops" },
    stop(text("reflector"), [[text("phase"), informer.phase || text("none")], [text("version"), informer.resourceVersion || text("none")],
      [text("contact"), since(informer.lastContact)], [text("failures"), informer.consecutiveFailures ?? 0]]),
    stop(text("store"), [[text("objects"), informer.objects ?? 0], informer.bytes && [text("memory"), bytes(informer.bytes)],
      [text("state"), life(informer)]]),
    stop(text("handlers"), [[text("pending"), handler.pending ?? 0], [text("calls"), handler.calls ?? 0],
      facts && facts.calls > 0 && [text("mean"), nanoseconds(facts.timeNanoseconds / facts.calls)],
      facts && [text("filtered"), facts.filtered]]),
    stop(text("workqueue"), [[text("ready"), queue ? queue.ready.total : 0], [text("waiting"), queue ? queue.waiting.total : 0]],
      queue ? keys(queue.ready) : "", queue ? keys(queue.waiting, (w) => w.key) : ""),
    stop(text("workers"), [[text("processing"), queue ? queue.processing.total : 0],
      counts && [text("reconciles"), counts.reconciles], counts && [text("median"), nanoseconds(counts.medianNanoseconds)]],
    queue ? keys(queue.processing) : ""));
}

// queueOf returns a queue of the page, or a controller's, in one form.
function queueOf(name) {
  const queue = page.queues.find((q) => q.name === name);
  if (queue) return queue;
  const controller = page.controllers.find((c) => c.name === name);
  return controller && asQueue(controller);
}

const asQueue = (c) => ({ ...c, processing: { ...c.running, items: c.running.items.map((r) => r.key) }, again: { total: 0, items: [] } });

function life(i) {
  if (i.stopped) return text("stopped");
  if (i.synced) return text("synced");
  return i.started ? text("notSynced") : text("notStarted");
}

function showInformers() {
  show("informers", page.informers.length
    ? table([[text("informer")], [text("state")], [text("objects"), "number"], [text("memory")], [text("dataAge"), "number"], [text("handler")]],
      page.informers.map((i) => [
        [i.name, el("div", { class: "note" }, i.selection || text("noSelection"))],
        [el("span", { class: i.synced && !i.stopped ? "ok" : "wait" }, life(i)), i.started && i.phase && !i.stopped ? dim(` · ${i.phase}`) : "",
          i.consecutiveFailures ? el("div", { class: "hot" }, `${text("failures")}: ${i.consecutiveFailures} · ${i.lastError}`) : ""],
        i.objects, memory(i), [i.currentAsOf ? since(i.currentAsOf) : text("notKnown"), el("div", { class: "note" }, `${text("contact")} ${since(i.lastContact)}`)],
        i.handlers.map((h) => el("div", {}, h.name, " ", dim(`${text("calls")} ${h.calls}${perCall(i, h)}`),
          h.pending ? el("span", { class: "wait" }, ` · ${text("pending")} ${h.pending}, ${text("oldest")} ${duration(h.oldestPendingSeconds * 1000)}`) : "",
          h.panics ? el("span", { class: "hot" }, ` · ${text("panics")} ${h.panics}`) : ""))]))
    : el("p", { class: "dim" }, text("noInformers")));
}

// memory is the estimated size of all objects, with the fields that take most of it if it is large.
function memory(i) {
  if (!i.bytes) return "";
  const large = i.bytes >= 1e6 ? i.largestFields || [] : [];
  return [bytes(i.bytes), large.map((f) => el("div", { class: "note" }, `${f.path} ${Math.round(100 * f.share)} %`)),
    i.unread ? el("div", { class: "note" }, text("unread")) : ""];
}

const bytes = (n) => (n < 1e6 ? `${Math.round(n / 1e3)} kB` : `${(n / 1e6).toFixed(1)} MB`);

function perCall(informer, handler) {
  const facts = factsOf(informer.name, handler.name);
  return facts && facts.calls > 0 ? `, ${text("mean")} ${nanoseconds(facts.timeNanoseconds / facts.calls)}` : "";
}

const factsOf = (informer, handler) => page.journal && page.journal.handlers.find((h) => h.informer === informer && h.handler === handler);

const allQueues = (of) => [...of.queues, ...of.controllers.map(asQueue)];

function showQueues() {
  const other = listing ? allQueues(listing) : [];
  const all = allQueues(page).map((q) => (q.name === turned.queue && other.shift()) || q);
  show("queues", all.length
    ? table([[text("queue")], [text("ready")], [text("processing")], [text("waiting")], [text("reconciles"), "number"]],
      all.map((q) => {
        const counts = page.journal && page.journal.queues.find((c) => c.queue === q.name);
        const gone = q.deadLetters && q.deadLetters.total;
        return [[q.name, q.phase ? dim(` ${q.phase}`) : "", gone ? el("div", { class: "hot" }, `${text("deadLetters")} ${gone}`) : ""],
          [keysOf(q, "ready"), groupsOf(q)], keysOf(q, "processing"), [keysOf(q, "waiting", (w) => w.key), longest(q)],
          counts ? [`${counts.reconciles} `, dim(`${text("median")} ${nanoseconds(counts.medianNanoseconds)}`)] : ""];
      }))
    : el("p", { class: "dim" }, text("noQueues")));
}

function showBusiest() {
  const keys = page.journal ? page.journal.keys : [];
  show("busiest", keys.length
    ? table([[text("key")], [text("queue")], [text("reconciles"), "number"], [text("echoes"), "number"], [text("result")]],
      keys.map((k) => [chip(k.key), k.queue, k.reconciles, `${k.echoes} / ${k.of}`,
        k.last.length ? [el("span", { class: k.last[0].result === "retried" ? "hot" : "" }, k.last[0].result), " ",
          dim(`${since(k.last[0].start)}, ${text("causes")}: ${k.last[0].causes.map((c) => c.kind).join(", ")}`)] : ""]))
    : el("p", { class: "dim" }, text("noKeys")));
}

function showElections() {
  const all = page.elections || [];
  byId("elections-section").hidden = !all.length;
  show("elections", table([[text("elections")], [text("state")], [text("leader")], [text("renewal"), "number"]],
    all.map((e) => [e.name, [el("span", { class: e.leading ? "ok" : "wait" }, e.leading ? text("yes") : text("no")), dim(` ${e.phase}`)],
      e.leader || text("none"), since(e.lastRenewal)])));
}

function showGroups() {
  const all = page.groups || [];
  byId("groups-section").hidden = !all.length;
  const counts = (numbers) => Object.entries(numbers || {}).sort().map(([name, n]) => `${name} ${n}`).join(", ");
  show("groups", all.map((g) => [
    el("h3", {}, g.name, " ", el("span", { class: g.ready ? "ok" : "wait" }, g.identity || text("none"))),
    g.filteringInformers ? el("p", { class: "wait" }, `${text("filtering")}: ${g.filteringInformers}`) : "",
    el("p", { class: "dim" }, `${counts(g.states)} · ${counts(g.moves)}${g.lastError ? ` · ${since(g.lastErrorTime)}: ${g.lastError}` : ""}`),
    table([[text("member")], [text("groups"), "number"], [text("target"), "number"], [text("state")]],
      [...g.members, ...(g.free ? [{ identity: text("none"), shards: g.free, target: "" }] : [])].map((m) => [
        m.identity, m.shards, m.target,
        [m.leaving ? dim(text("leaving")) : "", m.stuck ? el("span", { class: "hot" }, text("stuck")) : ""]]))]));
}

function showKinds() {
  const all = page.kinds || [];
  byId("kinds-section").hidden = !all.length;
  show("kinds", table([[text("kinds")], [text("version")], [text("phase")], [text("informers"), "number"], [text("state")]],
    all.map((k) => [k.resource, k.version,
      [el("span", { class: k.phase === "serving" ? "ok" : k.required ? "hot" : "wait" }, k.phase), dim(` ${since(k.since)}`)],
      k.informers, k.reason || ""])));
}

function showAnswer() {
  if (!answer) return show("answer");
  if (answer.error) return show("answer", el("p", { class: "card hot" }, answer.error));
  const line = (c) => `${since(c.time || c.start, answer.time)}: ${c.text}`;
  show("answer", el("div", { class: "card" },
    el("p", { class: "reason" }, text("reasons")[answer.reason] || answer.reason, " ", el("code", {}, answer.key)),
    el("p", {}, answer.sentence),
    answer.evidence.length ? el("ul", { class: "facts" }, answer.evidence.map((e) => el("li", {}, e))) : "",
    answer.goroutines ? el("button", { type: "button", onclick: readStacks }, text("readStacks")) : "",
    answer.stack ? stackOf(answer) : "",
    answer.calls || answer.reconciles ? el("details", { open: listed && "" }, el("summary", {}, text("asText")), answer.calls ? [el("h3", {}, text("lastCalls")), el("ul", { class: "facts" }, answer.calls.map((c) =>
      el("li", {}, line(c), " ", dim(c.added.length ? `→ ${c.added.join(", ")}` : text("filtered")))))] : "",
    (answer.reconciles || []).map((k) => [el("h3", {}, `${text("lastReconciles")} · ${k.queue} (${k.reconciles})`),
      el("ul", { class: "facts" }, k.last.map((r) => el("li", {}, line(r))))])) : ""));
}

// editors open a file at a line. A path that is not absolute was trimmed by the compiler.
const editors = {
  "VS Code": (file, n) => `vscode://file${file}:${n}`,
  JetBrains: (file, n) => `idea://open?file=${file}&line=${n}`,
};

function stackOf({ stack, sources = [] }) {
  const [state, ...frames] = stack;
  const choice = el("select", { id: "editor", "data-id": "editor", "aria-label": text("openIn") },
    ["", ...Object.keys(editors)].map((name) => el("option", { value: name, selected: editor === name && "" }, name || text("editorNone"))));
  return [el("p", {}, `${text("stack")}: ${state}`),
    el("ol", { class: "stack" }, frames.map((frame, i) => {
      const cut = frame.lastIndexOf(" "), source = sources[i] || "", [, file, line] = /^(\/.*):(\d+)$/.exec(source) || [];
      return el("li", {}, `${frame.slice(0, cut)} `,
        source ? el("button", { type: "button", class: "source", "data-id": `source ${i}`, "data-source": source }, frame.slice(cut + 1)) : frame.slice(cut + 1),
        editors[editor] && file ? [" ", el("a", { href: editors[editor](encodeURI(file), line), "data-id": `open ${i}` }, editor)] : "");
    })),
    sources.length ? el("p", { class: "note" }, text("openIn"), " ", choice) : ""];
}

// copy puts a path into the clipboard, or selects it if the page may not.
async function copy(button) {
  const { source } = button.dataset;
  const done = await navigator.clipboard?.writeText(source).then(() => true, () => false);
  const shown = document.querySelector(`[data-source="${CSS.escape(source)}"]`) || button;
  shown.textContent = done ? `${text("copied")} ${source}` : source;
  if (!done) getSelection().selectAllChildren(shown);
}

byId("answer").addEventListener("click", (event) => { if (event.target.dataset.source) copy(event.target); });
byId("answer").addEventListener("toggle", (event) => { listed = event.target.open; }, true);
byId("answer").addEventListener("change", (event) => { editor = event.target.value; remember(); showAll(); });

function showAll() {
  document.documentElement.lang = lang;
  document.documentElement.dataset.theme = theme;
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = text(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", text(node.dataset.label));
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (!page) return;
  document.title = `${page.program} · informerstack devtools`;
  byId("program").textContent = page.program;
  const state = byId("state");
  state.className = lost ? "lost" : "";
  const mode = frames ? text("recorded") : paused ? text("paused") : text("live");
  state.textContent = lost ? text("lost")
    : `${mode} · ${clock(page.time)}${page.journal ? ` · ${text("since")} ${clock(page.journal.since)}` : ""}`;
  for (const section of [showAnswer, showTimeline, showFindings, showPaths, showInformers, showQueues, showRates, showBusiest, showElections, showGroups, showKinds]) section();
  const keys = new Set((page.journal ? page.journal.keys : []).map((k) => k.key));
  for (const q of page.queues) for (const k of [...q.ready.items, ...q.processing.items]) keys.add(k);
  const options = [...keys].map((value) => el("option", { value }));
  if (byId("keys").innerHTML !== el("datalist", {}, ...options).innerHTML) byId("keys").replaceChildren(...options);
}

// The program

let frames = 0; // of a recording; 0: the program is running
let frame = -1;
let asking = false; // a slow program gets no second question

async function fetchJSON(parameters) {
  if (frame >= 0) parameters.frame = frame;
  const response = await fetch(`?${new URLSearchParams({ format: "json", ...parameters })}`, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error((await response.text()).trim());
  frames = Number(response.headers.get("Informerstack-Frames") || 0);
  return response.json();
}

async function refresh() {
  const wanted = frame;
  asking = true;
  const next = await fetchJSON({ limit, brief: 1 }).catch(() => null);
  if (frame !== wanted) return; // the slider was moved, which has asked for another frame
  page = next || page;
  lost = !next;
  if (next) noteRates();
  byId("frames").hidden = !frames;
  byId("pause").hidden = frames > 0;
  if (frames && frame < 0) {
    byId("frame").max = frames - 1;
    byId("frame").value = frames - 1;
  }
  if (turned.queue && !lost) await refreshListing();
  if (asked && !lost) await refreshAnswer();
  asking = false;
  showAll();
}

async function refreshAnswer() {
  const key = asked, wanted = frame;
  let next;
  try {
    next = await fetchJSON({ why: key });
  } catch (err) {
    next = { error: err.message };
  }
  if (key === asked && frame === wanted) answer = next;
}

// placeOf returns the place in a queue that a fragment has.
function placeOf(fragment) {
  return { queue: fragment.get("queue") || "", from: Number(fragment.get("from")) || 1 };
}

async function refreshListing() {
  const { queue, from } = turned, wanted = frame;
  const next = await fetchJSON({ queue, from, limit, brief: 1 }).catch(() => null);
  if (queue === turned.queue && from === turned.from && frame === wanted) listing = next;
}

// turn shows other keys of a queue.
async function turn(place) {
  if (place.queue === turned.queue && place.from === turned.from) return;
  turned = place;
  listing = null;
  if (turned.queue) await refreshListing();
  showAll();
}

// readStacks stops a program with many goroutines for a moment. Later answers have the stack, too.
async function readStacks() {
  await fetchJSON({ why: asked, stacks: 1 }).catch(() => null);
  await refreshAnswer();
  showAll();
}

async function ask(key) {
  asked = key;
  byId("key").value = key;
  answer = view = null;
  picked = pointed = "";
  if (asked) await refreshAnswer();
  showAll();
  if (asked) byId("ask-title").scrollIntoView({ block: "nearest" });
}

// address returns the fragment for what is shown, with changes.
function address(changes = {}) {
  const known = { lang, theme, why: asked, path: opened, editor, ...(turned.queue ? turned : {}), ...changes };
  return `#${new URLSearchParams(Object.entries(known).filter(([, value]) => value))}`;
}

const remember = () => history.replaceState(null, "", address());

// A key is a link, and so are the keys after the shown ones: Back returns to what was shown before.
addEventListener("hashchange", () => {
  const fragment = new URLSearchParams(location.hash.slice(1)), key = fragment.get("why") || "";
  turn(placeOf(fragment));
  if (key !== asked) ask(key);
});

byId("ask").addEventListener("submit", (event) => { 
  event.preventDefault();
  const key = byId("key").value.trim();
  if (key === asked) ask(key);
  else location.hash = address({ why: key });
});
byId("pause").addEventListener("click", () => { paused = !paused; showAll(); });
byId("lang").addEventListener("click", () => { lang = lang === "zh" ? "en" : "zh"; remember(); showAll(); });
byId("theme").addEventListener("click", () => { theme = theme === "dark" ? "light" : "dark"; remember(); showAll(); });
byId("frame").addEventListener("input", () => { frame = Number(byId("frame").value); refresh(); });
byId("key").value = asked;

addEventListener("DOMContentLoaded", () => { showAll(); refresh(); });
setInterval(() => { if (!paused && !document.hidden && !frames && !asking) refresh(); }, period);
