// SPDX-License-Identifier: Apache-2.0

// The rates of each queue are drawn from the page's own polls of the last minutes. The program keeps
// nothing for them. The time before the first poll, and that without an answer, is a gap.
const ratesFor = 5 * 60e3;
const samples = new Map(); // the counts at each poll, by queue

function noteRates() {
  if (frames) return;
  const time = instant(page.time);
  const arrows = page.journal ? page.journal.arrows : [];
  const depths = new Map(); // queues with one name are one, as for the journal
  for (const q of [...page.queues, ...page.controllers]) depths.set(q.name, (depths.get(q.name) || 0) + q.ready.total);
  for (const name of samples.keys()) if (!depths.has(name)) samples.delete(name);
  for (const [name, ready] of depths) {
    const all = (samples.get(name) || []).filter((s) => time - s.time <= ratesFor && s.time < time);
    const counted = page.journal && page.journal.queues.find((c) => c.queue === name);
    const adding = arrows.filter((a) => a.queue === name);
    const since = counted || adding.length ? page.journal.since : ""; // the journal has seen the queue
    all.push({ time, since, ready, adds: adding.reduce((n, a) => n + a.adds, 0), dones: counted ? counted.reconciles : 0 });
    samples.set(name, all);
  }
}

// perSecond returns the rate between each two polls that follow each other in one recording.
function perSecond(all, name) {
  return all.map((s, i) => {
    const before = all[i - 1];
    const known = before && s.since && before.since === s.since && s.time - before.time < 3 * period;
    return { time: s.time, value: known ? ((s[name] - before[name]) / (s.time - before.time)) * 1e3 : null };
  });
}

const rate = (n) => (n >= 10 ? Math.round(n) : Math.round(n * 10) / 10);

// line draws points from left to right, and no line where one is not known.
function line(points, end, top, name) {
  const place = (p) => `${(300 * (1 - (end - p.time) / ratesFor)).toFixed(1)},${(44 - (40 * p.value) / top).toFixed(1)}`;
  const parts = points.reduce((all, p) => (p.value === null ? [...all, []] : (all.at(-1).push(place(p)), all)), [[]]);
  return parts.filter((p) => p.length).map((p) => svg("polyline", { class: name, points: (p.length > 1 ? p : [p[0], p[0]]).join(" ") }));
}

function chart(lines, title) {
  const end = instant(page.time);
  const values = lines.flatMap(([, points]) => points.map((p) => p.value)).filter((v) => v !== null);
  const top = Math.max(1, ...values), first = Math.min(end, ...lines.flatMap(([, points]) => points.filter((p) => p.value !== null).map((p) => p.time)));
  const last = (points) => points.at(-1).value;
  return el("div", { class: "rate" },
    el("p", {}, lines.map(([name, points]) => el("span", {}, el("i", { class: `mark ${name}` }), ` ${text(name)} `,
      el("b", {}, last(points) === null ? text("notKnown") : `${rate(last(points))}${title}`)))),
    svg("svg", { viewBox: "0 0 300 46", preserveAspectRatio: "none", role: "img", "aria-label": lines.map(([name]) => text(name)).join(", ") },
      svg("rect", { class: "gap", x: 0, y: 0, width: Math.max(0, 300 * (1 - (end - first) / ratesFor)).toFixed(1), height: 46, fill: "url(#unknown)" }),
      lines.flatMap(([name, points]) => line(points, end, top, name))),
    el("p", { class: "note ends" }, el("span", {}, `${text("to")} ${rate(top)}${title}`), el("span", {}, `${ratesFor / 60e3} min`)));
}

function showRates() {
  const all = [...samples].filter(([, s]) => s.at(-1).time === instant(page.time));
  byId("rates-section").hidden = frames > 0 || !all.length;
  show("rates", all.map(([name, s]) => el("div", { class: "card" }, el("h3", {}, name),
    chart([["added", perSecond(s, "adds")], ["ended", perSecond(s, "dones")]], "/s"),
    chart([["depth", s.map((p) => ({ time: p.time, value: p.ready }))]], ""))));
}
