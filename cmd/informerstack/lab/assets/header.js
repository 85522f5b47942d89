// SPDX-License-Identifier: Apache-2.0

/** The top of the page: time control, the reader's settings, and the state line. */
import { html, cx } from "./html.js";
import { ActionButton, action, keyName, offered, perform } from "./actions.js";
import { Chip, duration, number } from "./key.js";
import { whatOf } from "./model.js";
import { named, t, translated } from "./text.js";

/** DELAYS are the positions of the slow-motion slider: milliseconds per hop, 0 for full speed. */
export const DELAYS = [0, 50, 100, 200, 400, 800, 1500, 3000];

export function Header({ lab }) {
  return html`<header class="top">
    <h1><span class="mark" aria-hidden="true"></span>informerstack <em>${t("laboratory")}</em></h1>
    ${lab.recorded ? html`<${ReplayControl} lab=${lab} />` : html`<${TimeControl} lab=${lab} />`}
    <div class="spacer"></div>
    <nav class="tools" aria-label=${t("tools")}>
      ${lab.files && html`<a class="btn" href=${lab.files + translated("docs/README.md")}
        target="_blank" rel="noreferrer">${t("docs")}</a>`}
      ${TOOLS.map((id) => html`<${Tool} key=${id} lab=${lab} id=${id} />`)}
    </nav>
  </header>`;
}

const TOOLS = ["settings", "language", "theme", "help"];
const TOOL_ICONS = { settings: "⚙", theme: "◐", help: "?" };

function Tool({ lab, id }) {
  const a = action(id);
  if (!offered(lab, a)) return null;
  const label = t(`action.${id}.name`);
  return html`<button type="button" class=${"btn icon tool-" + id} title=${`${label} (${a.key})`}
    aria-label=${TOOL_ICONS[id] && label}
    lang=${id === "language" ? t("otherLanguage") : undefined}
    aria-keyshortcuts=${a.key} onClick=${() => perform(lab, a)}>
    ${TOOL_ICONS[id] ?? t(`action.${id}.icon`)}</button>`;
}

/** TimeControl runs, pauses, steps and slows down a live program. */
function TimeControl({ lab }) {
  const paused = lab.frame?.mode === "pause";
  const position = DELAYS.findLastIndex((delay) => delay <= lab.ui.delayMs);
  return html`<div class=${cx("time", paused && "paused")} role="group" aria-label=${t("time")}>
    <${ActionButton} lab=${lab} id="run" label=${paused ? t("run") : t("pause")} />
    <${ActionButton} lab=${lab} id="back" label="‹" />
    <${ActionButton} lab=${lab} id="step" />
    <label class="slow"><span>${t("slow")}</span>
      <input type="range" min="0" max=${DELAYS.length - 1} step="1" value=${position} aria-label=${t("slow")}
        disabled=${lab.ui.connection !== "connected"}
        aria-valuetext=${delayText(lab.ui.delayMs)}
        onInput=${(event) => lab.setDelay(DELAYS[event.target.value])} />
      <output>${delayText(lab.ui.delayMs)}</output></label>
  </div>`;
}

const delayText = (ms) => (ms > 0 ? t("perHop", { delay: duration(ms) }) : t("fullSpeed"));

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5];

/** ReplayControl moves through a recording. */
function ReplayControl({ lab }) {
  const source = lab.recorded;
  return html`<div class=${cx("time", lab.past && "past")} role="group" aria-label=${t("replay")}>
    ${lab.past && html`<${ActionButton} lab=${lab} id="live" label=${t("live")} />`}
    <button type="button" class=${cx("btn", source.playing && "on")} aria-keyshortcuts="Space"
      onClick=${() => (source.playing ? source.pause() : source.play())}>
      ${source.playing ? t("pause") : t("play")} <kbd>${keyName(" ")}</kbd></button>
    <button type="button" class="btn icon" aria-label=${t("frameBack")}
      onClick=${() => lab.move(-1)}>‹</button>
    <button type="button" class="btn icon" aria-label=${t("frameOn")}
      onClick=${() => lab.move(+1)}>›</button>
    <label class="seek"><span class="hidden">${t("position")}</span>
      <input type="range" min="0" max=${Math.max(10, Math.ceil(source.length / 10) * 10)} step="10"
        value=${Math.round(source.at)} aria-valuetext=${clock(source.at)}
        onInput=${(event) => source.seek(Number(event.target.value))} />
      <output>${clock(source.at)} / ${clock(source.length)}</output></label>
    <label><span class="hidden">${t("replaySpeed")}</span>
      <select value=${String(source.speed)}
        onChange=${(event) => (source.speed = Number(event.target.value))}>
        ${SPEEDS.map((n) => html`<option key=${n} value=${String(n)}>×${n}</option>`)}
      </select></label>
  </div>`;
}

/** clock writes milliseconds as minutes and seconds. */
function clock(ms) {
  const tenths = Math.round(ms / 100);
  const seconds = Math.floor(tenths / 10);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}.${tenths % 10}`;
}

/** RANDOM_FAULTS are the states of the random faults that the page names. */
const RANDOM_FAULTS = ["on", "paused"];

/** StateLine reports what the cards do not: the connection, what is followed, held, not drawn. */
export function StateLine({ lab }) {
  const { frame, model, ui } = lab;
  const { events, perSecond } = frame?.counters ?? {};
  const readOnly = lab.source.live && model.hello && !model.hello.writable;
  return html`<section class=${cx("state", ui.connection)} aria-label=${t("stateLine")}>
    <span class="connection"><i aria-hidden="true"></i>${t("connection." + ui.connection)}</span>
    ${model.hello && html`<span>${frame?.reflector?.kind?.resource ?? model.hello.resource ?? ""}</span>`}
    ${readOnly && html`<span class="badge">${t("readOnly")}</span>`}
    ${frame && html`<span>${t("events", {
      n: number(events), rate: number(Math.round(perSecond ?? 0)),
    })}</span>`}
    ${RANDOM_FAULTS.includes(frame?.settings?.faults) && html`<span class="badge warn"
      title=${t("randomFaults.help")}>${t("randomFaults." + frame.settings.faults)}</span>`}
    ${model.leftOut > 0 && html`<span class="badge warn" title=${t("sampledHelp")}>
      ${t("sampled", { n: number(model.leftOut) })}</span>`}
    ${lab.ui.follow && html`<div class="following">
      <span class="dim">${t("following")}</span>
      <${Chip} id=${lab.ui.follow} follow=${lab.ui.follow} full first />
      <button type="button" class="btn icon" title=${t("action.unfollow.help")}
        aria-label=${t("action.unfollow.name")}
        onClick=${() => lab.follow("")}>×</button></div>`}
    ${frame?.mode === "pause" && html`<${Held} held=${frame.held ?? []} follow=${ui.follow} />`}
  </section>`;
}

/** HELD is how many held events are named; all of them are counted. */
const HELD = 3;

/** Held names the events that a paused program keeps back, the next one first. */
function Held({ held, follow }) {
  return html`<span class="badge warn">
      ${held.length ? t("held", { n: held.length }) : t("paused")}</span>
    ${held.slice(0, HELD).map((hop, i) => html`<span key=${i} class="heldHop">
      ${named("hop", hop.hop)} ${whatOf(hop)}${" "}
      ${hop.key && html`<${Chip} id=${hop.key} follow=${follow} first />`}</span>`)}`;
}
