// SPDX-License-Identifier: Apache-2.0

// The timeline's drawing: a track for each row, the axis, the pointer and the keys. A part of the time is
// shown after a zoom; a poll redraws it, so the listeners are those of its place.
let view = null; // the times at both edges; null: all that is known
let picked = ""; // the id of the item that was clicked
let pointed = ""; // that of the one under the pointer, or with the focus
let drawn = { rows: [], from: 0, to: 1, width: 1 };

const svg = (name, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.flat().filter((c) => c !== ""));
  return node;
};

const at = (time) => (100 * (time - drawn.from)) / (drawn.to - drawn.from);
const percent = (n) => `${Math.max(-5, Math.min(105, n)).toFixed(4)}%`;
const pixels = (from, to) => ((Math.min(to, drawn.to) - Math.max(from, drawn.from)) / (drawn.to - drawn.from)) * drawn.width;

function drawRow(row) {
  const gaps = merged(row.gaps).filter(([from, to]) => pixels(from, to) > 0);
  const shown = row.items.filter((i) => i.end >= drawn.from && i.start <= drawn.to);
  return [
    el("div", { class: "label" }, el("b", {}, text(row.kind)), " ", el("span", { class: "note" }, row.name)),
    svg("svg", { class: "track", height: 26, role: "group", "aria-label": `${text(row.kind)} ${row.name}`, "data-row": row.id },
      gaps.map(([from, to]) => svg("rect", { class: "gap", x: percent(Math.max(0, at(from))), width: percent(at(Math.min(to, drawn.to)) - Math.max(0, at(from))), height: 26, fill: "url(#unknown)" })),
      gaps.filter(([from, to]) => pixels(from, to) > 90 && !shown.some((i) => i.start < to && i.end > from))
        .map(([from, to]) => svg("text", { class: "unknown", x: percent((Math.max(0, at(from)) + Math.min(100, at(to))) / 2), y: 17, "text-anchor": "middle" }, text("notKnown"))),
      [...shown].sort((a, b) => (b.end - b.start) - (a.end - a.start)).map(drawItem), // the short ones above
      drawFields(shown)),
  ];
}

function drawItem(item) {
  const from = Math.max(-2, at(item.start)), to = Math.min(102, at(item.end));
  return svg("g", { class: `item ${item.tone || ""}${item.open ? " open" : ""}${item.id === picked ? " picked" : ""}`, role: "button", "data-id": item.id,
    tabindex: item.id === (drawn.rows.some((r) => r.items.some((i) => i.id === picked)) ? picked : drawn.rows.find((r) => r.items.length)?.items[0].id) ? 0 : -1,
    "aria-label": summary(item), "aria-pressed": String(item.id === picked) },
  svg("rect", { x: percent(from), width: percent(Math.max(0, to - from)), y: 6, height: 14 }));
}

// drawFields writes the changed fields beside the call, where there is room for the whole text.
function drawFields(items) {
  return items.map((item, i) => {
    const fields = (item.kind === "call" && item.call.fields?.join(" ")) || "";
    const next = items[i + 1]?.start ?? drawn.to;
    return fields && pixels(item.end, next) > fields.length * 7.5 + 16
      ? svg("text", { class: "fields", x: percent(at(item.end)), dx: 6, y: 17 }, fields) : "";
  });
}

function merged(gaps) {
  const sorted = [...gaps].sort((a, b) => a[0] - b[0]);
  return sorted.reduce((all, [from, to]) => {
    const last = all.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
    return all;
  }, []);
}

function drawAxis(since) {
  const steps = [1, 2, 5].flatMap((n) => [-3, -2, -1, 0, 1, 2, 3].map((e) => n * 10 ** e)).filter((n) => n < 1e4)
    .concat([1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 864e5]).sort((a, b) => a - b);
  const span = drawn.to - drawn.from, room = (span / drawn.width) * 124;
  const step = steps.find((n) => n >= room) || steps.at(-1) * Math.ceil(room / steps.at(-1));
  const ticks = [];
  for (let t = Math.ceil(drawn.from / step) * step; t <= drawn.to; t += step) ticks.push(t);
  const inside = (t) => pixels(drawn.from, t) > 52 && pixels(t, drawn.to) > 52;
  return [el("div", { class: "label" }), svg("svg", { class: "axis", height: 22, "aria-hidden": "true" },
    ticks.filter(inside).map((t) => [svg("line", { x1: percent(at(t)), x2: percent(at(t)), y1: 17, y2: 22 }),
      svg("text", { x: percent(at(t)), y: 13, "text-anchor": "middle" }, moment(t, step))]).flat(),
    since >= drawn.from && since <= drawn.to ? svg("line", { class: "since", x1: percent(at(since)), x2: percent(at(since)), y1: 16, y2: 22 }) : "")];
}

// edges returns the times that are shown: all items, and now unless that would squeeze them.
function edges(rows, now, since) {
  const items = rows.flatMap((r) => r.items);
  let from = Math.min(...items.map((i) => i.start));
  const last = Math.max(...items.map((i) => i.end));
  if (since < from && from - since < (now - from) / 2) from = since;
  const to = now - last < 3 * (last - from) + 1 ? now : last;
  const margin = Math.max(to - from, 0.01) * 0.03;
  return { from: from - margin, to: to + margin };
}

function showTimeline() {
  const rows = answer && !answer.error ? rowsOf(answer) : [];
  byId("timeline-section").hidden = !rows.some((r) => r.items.length);
  if (byId("timeline-section").hidden) return;
  const since = answer.recorded ? instant(answer.recorded.since) : -Infinity;
  const wide = byId("timeline").clientWidth, stacked = matchMedia("(max-width: 860px)").matches;
  drawn = { rows, ...(view || edges(rows, instant(answer.time), since)), width: Math.max(100, stacked ? wide : wide - 200) };
  show("timeline", drawAxis(since), rows.map(drawRow));
  const recorded = since >= drawn.from && since <= drawn.to;
  byId("since-note").textContent = recorded
    ? `${text(page.journal && page.journal.since === answer.recorded.since ? "recordedFrom" : "completeFrom")} ${moment(since, 1000)}` : "";
  pointAt(itemWith(pointed));
  const item = itemWith(picked);
  show("detail", item ? el("div", { class: "card" }, detailOf(item)) : "");
}

const itemWith = (id) => drawn.rows.flatMap((r) => r.items).find((i) => i.id === id);

// Pointer and keys

function pointAt(item) {
  pointed = item ? item.id : "";
  byId("pointed").textContent = item ? summary(item) : text("timelineHelp");
}

function pick(item) {
  picked = item && item.id !== picked ? item.id : "";
  if (item && view && (item.end < view.from || item.start > view.to)) {
    const half = (view.to - view.from) / 2;
    view = { from: item.start - half, to: item.start + half };
  }
  showTimeline();
}

// nearest returns the item of the row under the pointer that is at most so many pixels away.
function nearest(event, within) {
  const track = event.target.closest(".track");
  const row = track && drawn.rows.find((r) => r.id === track.dataset.row);
  if (!row) return null;
  const box = track.getBoundingClientRect(), x = event.clientX - box.left;
  const place = (time) => (at(time) / 100) * box.width;
  const distance = (i) => Math.max(place(i.start) - x, x - place(i.end), 0);
  const [item] = row.items.filter((i) => distance(i) <= within).sort((a, b) => distance(a) - distance(b) || (a.end - a.start) - (b.end - b.start));
  return item;
}

// timeOf returns the time at the pointer.
function timeOf(event) {
  const box = byId("timeline").querySelector(".track").getBoundingClientRect();
  return drawn.from + ((event.clientX - box.left) / box.width) * (drawn.to - drawn.from);
}

// zoom shows a part of the present span, around a time.
function zoom(factor, around = (drawn.from + drawn.to) / 2) {
  if (factor < 1 && drawn.to - drawn.from < 0.01) return;
  view = { from: around - (around - drawn.from) * factor, to: around + (drawn.to - around) * factor };
  showTimeline();
}

function pan(part) {
  const by = (drawn.to - drawn.from) * part;
  view = { from: drawn.from + by, to: drawn.to + by };
  showTimeline();
}

let drag = null; // where the button went down: the item there, the time
let pressed = null; // the item, for the click that follows unless the pointer moved

function marks(event) {
  const box = byId("timeline").getBoundingClientRect(), range = byId("range");
  range.hidden = !drag || Math.abs(event.clientX - drag.clientX) < 8;
  range.style.left = `${Math.min(event.clientX, drag.clientX) - box.left}px`;
  range.style.width = `${Math.abs(event.clientX - drag.clientX)}px`;
}

byId("timeline").addEventListener("pointerdown", (event) => { 
  if (event.target.closest(".track") && event.button === 0) drag = { clientX: event.clientX, item: nearest(event, 16), time: timeOf(event) };
});
byId("timeline").addEventListener("pointermove", (event) => (drag ? marks(event) : pointAt(nearest(event, 8))));
byId("timeline").addEventListener("pointerleave", () => { if (!drag) pointAt(itemWith(document.activeElement?.dataset.id)); });
byId("timeline").addEventListener("click", (event) => {
  if (pressed) pick(pressed.item);
  else if (event.detail === 0 && event.target.closest(".item")) pick(itemWith(event.target.closest(".item").dataset.id)); // without a pointer
});
addEventListener("pointercancel", () => { drag = null; byId("range").hidden = true; });
addEventListener("pointerup", (event) => {
  if (!drag) return;
  const [began, moved] = [drag, Math.abs(event.clientX - drag.clientX)];
  drag = null;
  byId("range").hidden = true;
  pressed = moved < 8 ? began : null;
  if (pressed) return;
  const times = [began.time, timeOf(event)].sort((a, b) => a - b);
  view = { from: times[0], to: times[1] };
  showTimeline();
});
byId("timeline").addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
  event.preventDefault();
  zoom(event.deltaY < 0 ? 0.8 : 1.25, timeOf(event));
}, { passive: false });
byId("timeline").addEventListener("focusin", (event) => pointAt(itemWith(event.target.closest("[data-id]")?.dataset.id)));
byId("timeline").addEventListener("keydown", (event) => {
  const items = drawn.rows.flatMap((r) => r.items).sort((a, b) => a.start - b.start);
  const here = items.findIndex((i) => i.id === event.target.dataset?.id);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (here < 0 || (!step && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  if (!step) return pick(items[here]);
  picked = "";
  pick(items[Math.max(0, Math.min(items.length - 1, here + step))]);
  byId("timeline").querySelector(`[data-id="${CSS.escape(picked)}"]`)?.focus();
});
byId("zoom-in").addEventListener("click", () => zoom(0.5));
byId("zoom-out").addEventListener("click", () => zoom(2));
byId("earlier").addEventListener("click", () => pan(-0.5));
byId("later").addEventListener("click", () => pan(0.5));
byId("zoom-all").addEventListener("click", () => { view = null; showTimeline(); });
addEventListener("resize", () => { if (page) showTimeline(); });
