// SPDX-License-Identifier: Apache-2.0

/** The cards from the local copy to the work: handlers, workqueue, workers, election. */
import { html, cx } from "./html.js";
import { Card, Empty, More } from "./card.js";
import { Chip, Chips, colourOf, duration, number, shortName } from "./key.js";
import { named, t } from "./text.js";

/** LOG_CELLS is how many changes of the change log are drawn. */
const LOG_CELLS = 16;
const LETTER = { OnAdd: "+", OnUpdate: "~", OnDelete: "−" };

/** HandlersCard shows the end of the change log, with each handler's cursor below it. */
export function HandlersCard({ lab }) {
  const handlers = lab.frame.handlers ?? [];
  const log = (lab.frame.log?.items ?? []).slice(-LOG_CELLS);
  const blank = Math.max(0, LOG_CELLS - log.length);
  const { follow } = lab.ui;
  return html`<${Card} lab=${lab} piece="handlers" title=${t("piece.handlers.name")}
    summary=${t("handlers.count", { n: handlers.length })}
    bad=${handlers.some((handler) => handler.delayMs > 0)}>
    <div class="changelog" aria-label=${t("handlers.log")} role="list">
      ${Array.from({ length: blank }, (_, i) => html`
        <span key=${"blank" + i} class="cell blank" role="presentation"></span>`)}
      ${log.map(({ what, key = "", rv = "" }, i) => html`
        <span key=${i} role="listitem" data-key=${key} title=${`${what} ${key} @${rv}`}
          class=${cx("cell", colourOf(key), follow && follow !== key && "off")}>
          ${LETTER[what] ?? "·"}</span>`)}
    </div>
    <ul class="cursors" tabindex="0">
      ${handlers.map((handler) => html`<${Cursor} key=${handler.name} lab=${lab} handler=${handler} />`)}
    </ul>
    <p class="note">${t("handlers.note")}</p>
  <//>`;
}

/** Cursor marks how far a handler has read: the cells to its right are its backlog. */
function Cursor({ lab, handler }) {
  const pending = handler.pending ?? 0;
  const place = Math.max(0, LOG_CELLS - pending);
  const left = (place / LOG_CELLS) * 100 + "%";
  return html`<li class=${cx(pending > 0 && "behind", handler.delayMs > 0 && "slowed")}>
    <span class="rail"><span class="backlog" style=${{ left, right: "0" }}></span>
      <span class="caret" style=${{ left }} aria-hidden="true"></span></span>
    <span class="name">${handler.name}</span>
    <span class="state">
      ${pending ? t("handlers.pending", { n: number(pending) }) : t("handlers.current")}
      ${pending > 0 && handler.oldestMs > 0 && html` ·${" "}
        <span title=${t("handlers.oldestHelp")}>${duration(handler.oldestMs)}</span>`}
      ${handler.delayMs > 0 && html` · ${t("handlers.slow", { delay: duration(handler.delayMs) })}`}
      ${handler.panics > 0 && html` ·${" "}
        <b class="hot">${t("handlers.panics", { n: number(handler.panics) })}</b>`}</span>
  </li>`;
}

/** WorkqueueCard shows the sets of the workqueue, and the heap of delayed keys. */
export function WorkqueueCard({ lab }) {
  const q = lab.frame.workqueue ?? {};
  const processing = new Set(q.processing ?? []);
  const again = (q.dirty ?? []).filter((key) => processing.has(key));
  const follow = lab.ui.follow;
  const undone = lab.frame.code?.undone?.includes(again[0]);
  const column = (name, keys, total, fair) => html`<div class=${"set set-" + name}>
    <h3>${t(`workqueue.${name}`)} <small>${number(total ?? keys?.length)}</small></h3>
    ${fair && html`<${Groups} q=${q} />`}
    <${Chips} keys=${keys} total=${total} follow=${follow} priorities=${fair && q.priorities} />
  </div>`;
  return html`<${Card} lab=${lab} piece="workqueue" title=${t("piece.workqueue.name")}
    summary=${t("workqueue.limited", { n: number(q.limited) })}>
    <div class="sets">
      ${column("queue", q.queue, q.queued, true)}
      ${column("dirty", q.dirty, Math.max(q.dirty?.length ?? 0, (q.queued ?? 0) + again.length))}
      ${column("processing", q.processing)}
      <div class="set set-delayed">
        <h3>${t("workqueue.delayed")} <small>${number(q.delayedTotal)}</small></h3>
        <${Limiter} lab=${lab} q=${q} />
        <${Bucket} bucket=${q.bucket} />
        <${Delayed} lab=${lab} items=${q.delayed ?? []} total=${q.delayedTotal} />
        <${DeadLetters} lab=${lab} />
      </div>
    </div>
    <p class="note">${q.shutDown ? html`<${ShutDown} shutDown=${q.shutDown} />` : again.length
      ? html`<${Chip} id=${again[0]} follow=${follow} /> ${t(undone ? "workqueue.undone" : "workqueue.again")}`
      : t(lab.frame.settings?.fair ? "workqueue.fair" : "workqueue.note")}</p>
  <//>`;
}

/** Groups lists the groups of a fair queue, with their queued keys and those that workers have. */
function Groups({ q: { groups, groupsTotal } }) {
  if (!groups?.length) return null;
  return html`<ul class="groups" title=${t("workqueue.groupsHelp")}>
    ${groups.map(({ name, queued, working }) => html`<li key=${name}>
      <span>${name}</span> ${number(queued)}${working > 0 && html`<small> +${number(working)}</small>`}</li>`)}
    <${More} shown=${groups.length} total=${groupsTotal} />
  </ul>`;
}

/** ShutDown says how the queue was shut down, and what has come of it. */
function ShutDown({ shutDown: { drain, ended, refused } }) {
  return html`<b class="hot">${t(drain ? "workqueue.drain" : "workqueue.shutDown")}</b>
    ${drain && " " + t(ended ? "workqueue.drained" : "workqueue.draining")}
    ${refused > 0 && " " + t("workqueue.refused", { n: number(refused) })}`;
}

const LIMITERS = ["MaxOf", "Exponential", "FastSlow", "Bucket"];

/** Limiter offers the limiters, and shows the count of the followed key, or of the newest one. */
function Limiter({ lab, q }) {
  const choose = (event) => lab.send({ do: "limiter", name: event.target.value });
  const counts = q.requeues ?? [];
  const count = counts.find((c) => c.key === lab.ui.follow) ?? counts[0];
  return html`<p class="limiter">${lab.source.live && lab.model.hello?.writable && q.limiter
      ? html`<select onChange=${choose} value=${q.limiter} aria-label=${t("workqueue.limiter")}
          title=${t("workqueue.limiterHelp." + q.limiter)}>
          ${LIMITERS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`
      : q.limiter && html`<b>${q.limiter}</b>`}
    ${count && html`<span class="requeues" title=${t("workqueue.requeuesHelp", { next: duration(count.nextMs) })}>
      NumRequeues(${shortName(count.key)}) = <b>${number(count.n)}</b></span>`}</p>`;
}

/** Bucket draws the token bucket, and how many keys wait for a token. */
function Bucket({ bucket }) {
  if (!bucket?.burst) return null;
  const { tokens, burst, perSecond } = bucket;
  const full = Math.max(0, tokens / burst);
  return html`<p class="bucket" title=${t("workqueue.bucketHelp", { rate: perSecond })}>
    <svg viewBox="0 0 20 20" aria-hidden="true"><path class="water"
        d=${`M${4 - 1.5 * full} ${18 - 14 * full}H${16 + 1.5 * full}L16 18H4Z`} />
      <path d="M2 3L4 18H16L18 3" /></svg>
    ${tokens < 0 ? t("workqueue.bucketEmpty", { n: number(-tokens) })
      : t("workqueue.bucket", { tokens: number(tokens), burst: number(burst) })}</p>`;
}

/** Delayed lists the heap in the order of the due times; a bar shrinks until a key is due. */
function Delayed({ lab, items, total }) {
  if (!items.length) return html`<span class="none">–</span>`;
  return html`<ol class="rows heap">
    ${items.map((item, i) => {
      const left = Math.max(0, item.dueMs - lab.age);
      const whole = Math.max(item.failures > 0 ? (item.nextMs ?? 0) / 2 : item.dueMs, left, 1);
      return html`<li key=${item.key}>
        <${Chip} id=${item.key} follow=${lab.ui.follow} first=${i === 0} />
        <span class="rv">${duration(left)}</span>
        <span class="due"><i style=${{ width: Math.min(100, (left / whole) * 100) + "%" }}></i></span>
        ${item.failures > 0 && html`<span class="dim" title=${t("workqueue.failuresHelp")}>
          ${t("workqueue.failures", { n: item.failures, next: duration(item.nextMs) })}</span>`}
        ${item.stale && html`<span class="dim" title=${t("workqueue.staleHelp")}>
          ${t("workqueue.stale", { rv: item.stale })}</span>`}
      </li>`;
    })}
    <${More} shown=${items.length} total=${total} />
  </ol>`;
}

/** DeadLetters lists the newest keys that the controller has given up. */
function DeadLetters({ lab }) {
  const { deadLetters, deadLettersTotal } = lab.frame.workers ?? {};
  if (!deadLetters?.length) return null;
  const shown = deadLetters.slice(0, 5);
  return html`<div class="dead">
    <h3>${t("workers.dead")} <small>${number(deadLettersTotal)}</small></h3>
    <ul class="rows">${shown.map((letter, i) => html`<li key=${letter.key}>
      <${Chip} id=${letter.key} follow=${lab.ui.follow} first=${i === 0} />
      <span class="dim" title=${letter.error}>
        ${t("workers.attempts", { n: letter.attempts })} · ${letter.reason}</span></li>`)}
      <${More} shown=${shown.length} total=${deadLettersTotal} />
    </ul></div>`;
}

/** WorkersCard shows each worker with its key. */
export function WorkersCard({ lab }) {
  const workers = lab.frame.workers ?? {};
  const running = workers.running ?? [];
  const idle = Math.max(0, (workers.count ?? 0) - running.length - (workers.ended ?? 0));
  const outcomes = Object.entries(workers.outcomes ?? {})
    .map(([name, n]) => `${named("outcome", name)} ${number(n)}`);
  const standby = lab.frame.election?.on && !lab.frame.election.leftMs;
  return html`<${Card} lab=${lab} piece="workers" title=${t("piece.workers.name")}
    summary=${outcomes.join(" · ") || number(workers.count)}
    bad=${Boolean(workers.fault && workers.fault !== "none")}>
    <ul class="rows">
      ${running.map((worker, i) => html`<li key=${worker.key}>
        <span class="spin" aria-hidden="true"></span>
        <${Chip} id=${worker.key} follow=${lab.ui.follow} first=${i === 0} />
        <span class="rv">${duration(worker.ms + lab.age)}</span></li>`)}
      ${workers.ended > 0 && html`<li key="ended" class="dim">
        ${t("workers.ended", { n: workers.ended })}</li>`}
      ${idle > 0 && html`<li key="idle" class="dim"><span class="spin idle" aria-hidden="true"></span>
        ${t(standby ? "workers.standby" : "workers.idle", { n: idle })}</li>`}
    </ul>
  <//>`;
}

/** ago writes a time in tenths of a second, which change slowly enough to be read. */
const ago = (ms) => (Math.max(0, ms) / 1000).toFixed(1) + " s";

/** fenced describes what the receiver of the leaders' writes has done. */
const fenced = ({ refused, token }) =>
  refused ? t("election.refused", { n: number(refused) }) : t("election.stored", { token });

/** stateOf is what a candidate does; a recording may be older than the field. */
const stateOf = (e, name) => e.states?.[name] ?? (name === e.leader ? "leads" : "waits");

/** aboutCandidate says what a candidate does, and the time that it goes by. */
function aboutCandidate(e, name) {
  const state = stateOf(e, name);
  const ahead = state === "leads" && e.renewedMs < -1000;
  return [
    t("election." + state), e.pausedNames?.includes(name) && t("election.paused"),
    e.cutNames?.includes(name) && t("election.cut"),
    state === "leads" && e.leftMs > 0 && !ahead && t("election.renewed", { ago: ago(e.renewedMs) }),
    ahead && t("election.ahead", { by: duration(-e.renewedMs) }),
    e.observed?.[name] > 0 && t("election.observed", { ago: ago(e.observed[name]) }),
  ].filter(Boolean).join(" · ");
}

/** LeaseWrites shows the newest write of the lease, with those that named the same version. */
function LeaseWrites({ e: { writes = [] } }) {
  if (!writes.length) return null;
  const [{ rv, holder }] = writes;
  const same = writes.filter((write) => write.rv === rv).reverse();
  return html`<li class="writes" title=${t("election.writesHelp", { rv: rv || "–" })}>
    PUT rv ${rv || "–"}: ${same.map(({ by, code }, i) => html`${i > 0 && ", "}${by} →${" "}
      <b class=${code === 409 && "hot"}>${code}</b>`)}${!holder && ', holder ""'}</li>`;
}

/** ElectionCard shows the candidates, the lease and the fencing token. */
export function ElectionCard({ lab }) {
  const e = lab.frame.election ?? {};
  if (!e.on) {
    return html`<${Card} lab=${lab} piece="election" title=${t("piece.election.name")}
      summary=${t("election.off")}>
      <${Empty}>${t("election.offNote")}<//><//>`;
  }
  const left = Math.max(0, (e.leftMs ?? 0) - lab.age);
  const whole = Math.max(e.durationMs ?? 15_000, left);
  return html`<${Card} lab=${lab} piece="election" title=${t("piece.election.name")}
    summary=${html`${t("election.token")} <b>${e.leftMs ? e.token : "–"}</b>`} bad=${!e.leftMs || e.paused}>
    <div class="lease"><i style=${{ width: (left / whole) * 100 + "%" }}></i>
      ${e.deadlineMs > 0 && html`<em title=${t("election.deadlineHelp")}
        style=${{ left: (1 - e.deadlineMs / whole) * 100 + "%" }}></em>`}
      <span>${e.leftMs > 0 && t("election.left", { left: duration(left) })}</span></div>
    <ul class="rows candidates" tabindex="0">
      ${(e.candidates ?? []).map((name) => html`<li key=${name} class=${cx(stateOf(e, name) !== "leads" && "dim")}>
        <span aria-hidden="true">${stateOf(e, name) === "leads" ? "●" : "○"}</span> ${shortName(name)}
        <span class="dim">${aboutCandidate(e, name)}</span></li>`)}
      ${!e.leftMs && html`<li key="note" class="note hot">${t("election.nobody")}
        ${e.openMs > 0 && " " + t("election.opens", { wait: duration(Math.max(0, e.openMs - lab.age)) })}</li>`}
      <${LeaseWrites} e=${e} />
      ${e.fence?.writes > 0 && html`<li key="fence" class="fence">${fenced(e.fence)}</li>`}
    </ul>
  <//>`;
}
