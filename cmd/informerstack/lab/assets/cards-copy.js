// SPDX-License-Identifier: Apache-2.0

/** The cards from the wire to the local copy: server, reflector, delta queue, store. */
import { html, cx } from "./html.js";
import { Card, Empty, More } from "./card.js";
import { Chip, Chips, duration, number } from "./key.js";
import { local, named, t } from "./text.js";

const SIGN = { ADDED: "+", MODIFIED: "~", DELETED: "−" };

/**
 * held is the version up to which a frame's copy has the changes of a key. Each namespace of an
 * informer of namespaces has its own; of another namespace, the copy has nothing.
 */
function held({ reflector, store }, key, others) {
  if (!reflector?.namespaces) return Number(store?.rv) || 0;
  const found = reflector.namespaces.find(({ name }) => key.startsWith(name + "/"));
  return found && !found.leftOut ? Number(found.rv) || 0 : others;
}

/** ServerCard shows the server's log, and where in it the reflector is. */
export function ServerCard({ lab }) {
  const server = lab.frame.server ?? {};
  const { kind, namespaces, rv } = lab.frame.reflector ?? {};
  const read = Number(rv) || 0;
  const unread = (entry) =>
    Number(entry.rv) > (namespaces ? held(lab.frame, entry.key ?? "", 0) : read);
  const log = [...(server.log ?? [])].reverse();
  const summary = server.up === false ? t("server.down") : html`rv <b>${server.rv}</b>`;
  const cursor = namespaces ? -1 : log.findIndex((entry) => !unread(entry));
  const compacted = Number(server.compacted) || 0;
  const gone = kind && kind.phase !== "serving"; // and its log with it
  return html`<${Card} lab=${lab} piece="server" title=${t("piece.server.name")} summary=${summary}
    bad=${server.up === false}>
    <ol class="rows log" reversed>
      ${log.map((entry, i) => html`
        <li key=${entry.rv} class=${cx(unread(entry) && "unread", i === cursor && "cursor")}>
          <span class="rv">${entry.rv}</span>
          <span class=${"sign " + entry.type} title=${entry.type}>
            <i aria-hidden="true">${SIGN[entry.type] ?? "·"}</i><span class="word">${entry.type}</span></span>
          ${entry.key && html`<${Chip} id=${entry.key} follow=${lab.ui.follow} first=${i === 0} />`}
        </li>`)}
    </ol>
    ${!log.length && html`<${Empty}>${t("server.empty")}<//>`}
    <p class="note">${t("server.count", { n: number(server.objects) })}${" "}
      ${server.fault ? html`<b class="hot">${named("fault", server.fault)}</b> ` : ""}
      ${compacted > 0 && t("server.compacted", { rv: server.compacted }) + " "}
      ${(read > 0 || namespaces) && !gone && notRead(server, read, compacted, log.filter(unread).length)}
    </p>
  <//>`;
}

/** notRead says what is between the reflector's version and the server's, as far as the log shows it. */
function notRead({ rv }, read, compacted, n) {
  if (n > 0) return t("server.unread", { n: number(n) });
  const others = read > 0 && Number(rv) > read && compacted <= read;
  return t(others ? "server.others" : "server.note", { read });
}

/** The state machine as it is drawn: the place of each phase, and the edges between them. */
const PHASES = {
  starting: [42, 14], "backing off": [156, 14],
  listing: [42, 57], streaming: [156, 57],
  opening: [42, 100], watching: [156, 100],
};
const EDGES = [
  ["starting", "listing", "M42 26V43"], ["starting", "streaming", "M78 22L122 44"],
  ["listing", "opening", "M42 69V86"], ["streaming", "watching", "M156 69V86"],
  ["streaming", "listing", "M118 57H83"],
  ["opening", "watching", "M80 96H115"], ["watching", "opening", "M118 104H83"],
  ["backing off", "starting", "M118 14H83"],
  ["watching", "backing off", "M193 94Q206 57 194 22"],
];

/** withoutRequest is the error of a request, without the address that was requested. */
const withoutRequest = (error) => error.replace(/^\w+ "[^"]*": /, "");

/** ReflectorCard shows the state machine, with the phase and the reason of the last transition. */
export function ReflectorCard({ lab }) {
  const r = lab.frame.reflector ?? {};
  const phase = r.phase ?? "idle";
  const since = r.since ? lab.now - Date.parse(r.since) : null;
  return html`<${Card} lab=${lab} piece="reflector" title=${t("piece.reflector.name")}
    summary=${!r.namespaces && html`rv <b>${r.rv || "–"}</b>`} bad=${phase === "backing off"}>
    ${r.namespaces && html`<${Namespaces} all=${r.namespaces} />`}
    ${!r.namespaces && html`<svg class="machine" viewBox="0 0 206 114" role="img"
      aria-label=${t("reflector.picture", { phase: named("phase", phase) })}>
      <defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6"
        orient="auto"><path d="M0 0L6 3L0 6Z" /></marker></defs>
      ${EDGES.map(([from, to, d]) => html`<path key=${from + to} d=${d} marker-end="url(#tip)"
        class=${cx("edge", r.from === from && phase === to && "now")} />`)}
      ${Object.entries(PHASES).map(([name, [x, y]]) => html`
        <g key=${name} class=${cx("phase", name === phase && "now", name === "backing off" && "wait")}>
          <rect x=${x - 37} y=${y - 11} width="74" height="22" rx="11" />
          <text x=${x} y=${y + 4}>${named("phase", name)}</text>
        </g>`)}
    </svg>`}
    ${!r.namespaces && html`<p class="note"><b>${named("phase", phase)}</b>${since != null && ` ${duration(since)}`}
      ${r.from && html` · ${t("reflector.from", { from: named("phase", r.from) })}`}
      ${r.reason && r.reason !== r.error &&
        t("reflector.because", { reason: named("reason", local(r.reason)) })}</p>`}
    ${r.kind && html`<p class="note" title=${r.kind.reason}>${r.kind.resource}:${" "}
      <b>${named("kindPhase", r.kind.phase)}</b></p>`}
    ${r.backoffMs > 0 && html`<p class="note">${t("reflector.backoff", { wait: duration(r.backoffMs) })}
      ${r.failures > 0 && html` · ${t("reflector.failures", { n: r.failures })}`}</p>`}
    ${r.error && html`<p class="note hot" tabindex="0">${withoutRequest(r.error)}</p>`}
  <//>`;
}

/** Namespaces lists the reflectors of an informer of namespaces, each with its phase and version. */
function Namespaces({ all }) {
  return html`<p class="note">${t("reflector.each")}</p>
    <ul class="rows namespaces">${all.map(({ name, phase, rv, leftOut, error }) => html`<li key=${name}>
      <b>${name}</b> <span class="dim">${named("phase", phase)}${rv && ` @${rv}`}</span>
      ${(leftOut || error) && html`<span class="hot" title=${error}>
        ${leftOut ? t("reflector.leftOut") : withoutRequest(error)}</span>`}</li>`)}
      ${!all.length && html`<li class="dim">–</li>`}</ul>`;
}

/** QueueCard shows the delta queue: keys with their deltas, or single deltas in order. */
export function QueueCard({ lab }) {
  const queue = lab.frame.queue ?? {};
  const items = queue.items ?? [];
  const real = queue.kind === "RealFIFO";
  const hidden = queue.kind === "Parts";
  return html`<${Card} lab=${lab} piece="queue" title=${queue.kind ?? "DeltaFIFO"}
    summary=${hidden ? "" : [!real && t("queue.keys", { n: number(queue.keys) }), t("queue.deltas", { n: number(queue.deltas) })]
      .filter(Boolean).join(" · ")} bad=${queue.hold}>
    <ol class="rows">
      ${items.map((item, i) => html`<li key=${real ? i : item.key}>
        ${item.key
          ? html`<${Chip} id=${item.key} follow=${lab.ui.follow} first=${i === 0} />`
          : html`<b>${t("queue.all")}</b>`}
        <span class="deltas">${(item.deltas ?? []).map((delta, j) => html`
          <${Delta} key=${j} delta=${delta} />`)}
        </span>
      </li>`)}
      <${More} shown=${items.length} total=${real ? queue.deltas : queue.keys} />
    </ol>
    ${!items.length && html`<${Empty}>${t(hidden ? "queue.hidden" : "queue.empty")}<//>`}
    ${!hidden && html`<p class="note">
      ${t(queue.hold ? "queue.hold" : real ? "queue.noteReal" : "queue.note")}</p>`}
  <//>`;
}

/** Delta is one change. A delete without a version is a tombstone. */
function Delta({ delta: { type, rv } }) {
  const lost = type === "Deleted" && !rv;
  return html`<span class=${cx("delta", type, lost && "ghost")} title=${lost ? t("queue.tombstone") : undefined}>
    ${type}<i>${rv ? "@" + rv : lost ? " ✝" : ""}</i></span>`;
}

/** LOG_ROWS is how many changes of the server's log a frame has at most. */
const LOG_ROWS = 50;

const INDEXES = ["namespace", "label:team", "owner"];

/** StoreCard shows the objects and one index, which the reader chooses. */
export function StoreCard({ lab }) {
  const store = lab.frame.store ?? {};
  const items = store.items ?? [];
  // The server's version also counts writes to other resources, so the changes are counted.
  const log = lab.frame.server?.log ?? [];
  const behind = log.filter((entry) => Number(entry.rv) > held(lab.frame, entry.key ?? "", Infinity)).length;
  const newest = new Map(log.map((entry) => [entry.key, Number(entry.rv)]));
  const stale = (item) => newest.get(item.key) > Number(item.rv);
  return html`<${Card} lab=${lab} piece="store" title=${t("piece.store.name")}
    summary=${html`${t("objects", { n: number(store.objects) })}
      ${behind > 0 && html` · <span class="hot" title=${t("store.behindHelp")}>
        ${t("store.behind", { n: number(behind) + (behind >= LOG_ROWS ? "+" : "") })}</span>`}`}>
    <ul class="rows tiles">
      ${items.map((item, i) => html`<li key=${item.key} class=${cx(stale(item) && "stale")}
        title=${stale(item) ? t("store.stale") : undefined}>
        <${Chip} id=${item.key} follow=${lab.ui.follow} first=${i === 0} />
        <span class="rv">@${item.rv}</span>
      </li>`)}
      <${More} shown=${items.length} total=${store.objects} />
    </ul>
    ${!items.length && html`<${Empty}>${t("store.empty")}<//>`}
    <${Freshness} store=${store} now=${lab.now} />
    <${IndexRows} lab=${lab} index=${store.index} items=${items} />
  <//>`;
}

/** Freshness says how current the copy is: up to which version, and as of when. */
function Freshness({ store: { rv, asOf }, now }) {
  const upTo = rv ? html`rv <b>${rv}</b>` : t("store.noList");
  const when = asOf ? t("store.asOf", { ago: duration(now - Date.parse(asOf)) }) : rv && t("store.lost");
  return html`<p class=${cx("note", "fresh", rv && !asOf && "hot")} title=${t("store.freshHelp")}>
    ${upTo}${when && html` · ${when}`}</p>`;
}

/** INDEX_ROWS is how many values of an index are drawn. */
const INDEX_ROWS = 4;

/** firstKey returns a list with one key of a set: the followed key, if it is in the set. */
const firstKey = (keys = [], follow) => (keys.includes(follow) ? [follow] : keys.slice(0, 1));

/**
 * IndexRows shows an index as a map, and what its function returns for the followed object. The
 * namespace is a part of the key already.
 */
function IndexRows({ lab, index, items }) {
  const values = index?.values ?? [];
  const { follow } = lab.ui;
  const own = index?.name !== INDEXES[0] && items.find((item) => item.key === follow)?.values;
  const choose = (event) => lab.send({ do: "index", name: event.target.value });
  const names = INDEXES.includes(index?.name) || !index?.name ? INDEXES : [index.name, ...INDEXES];
  return html`<div class="index">
    <label>${t("store.index")} ${lab.source.live && lab.model.hello?.writable
      ? html`<select onChange=${choose} value=${index?.name}>
          ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`
      : html`<b>${index?.name ?? "–"}</b>`}</label>
    ${own && html`<span class="indexed" title=${t("store.indexFuncHelp")}>
      IndexFunc → [${own.join(", ")}]</span>`}
    <dl>${values.slice(0, INDEX_ROWS).map((entry) => html`<div key=${entry.value}>
      <dt>${entry.value || "–"}</dt>
      <dd><${Chips} keys=${firstKey(entry.keys, follow)} total=${entry.n} short follow=${follow} /></dd>
    </div>`)}</dl>
    ${!values.length && html`<p class="dim">${t("store.noValues")}</p>`}
  </div>`;
}
