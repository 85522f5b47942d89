// SPDX-License-Identifier: Apache-2.0

/**
 * The laboratory's page. Read model.js (the state), source.js (its sources), then
 * cards-copy.js and cards-work.js in the order in which a change passes the pieces.
 *
 * A source calls the handlers below; they change the model or ui and request a drawing. draw is
 * the only place that renders, and requestAnimationFrame calls it at most once per screen frame.
 */
import { html, render, cx } from "./html.js";
import { readAddress, writeAddress } from "./address.js";
import { HandlersCard, WorkersCard, WorkqueueCard, ElectionCard } from "./cards-work.js";
import { QueueCard, ReflectorCard, ServerCard, StoreCard } from "./cards-copy.js";
import { Caption, captionOf } from "./caption.js";
import { Dialogs } from "./dialogs.js";
import { EditionSource, complete } from "./edition.js";
import { Flow, between, beside } from "./flow.js";
import { DELAYS, Header, StateLine } from "./header.js";
import { Journey } from "./journey.js";
import { listen } from "./keyboard.js";
import { alone, openAt, openFirst } from "./lessons.js";
import { Model } from "./model.js";
import { Panel } from "./panel.js";
import { Plots } from "./plots.js";
import { Presenter } from "./present.js";
import { Loading, WorkerSource } from "./program.js";
import { cardOf } from "./rails.js";
import { History, LiveSource, RecordedSource, embeddedRecording, parseRecording } from "./source.js";
import { Follower, Strip, measureCovers } from "./strip.js";
import { initialLanguage, named, remember, remembered, setLanguage, t } from "./text.js";

/** CLOCK_MS is the time after which due times and elapsed times are drawn without a frame. */
const CLOCK_MS = 250;

/** STEP_MS is the least time between two stages that are drawn: an eye sees no difference. */
const STEP_MS = 50;

/** LIT_MS is how long a card stays lit after its last change. */
const LIT_MS = 400;

/** ANNOUNCE_MS is the least time between two announcements to a screen reader. */
const ANNOUNCE_MS = 2500;

const address = readAddress();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** lab is what every component gets: the model, the reader's choices, and what can be done. */
const lab = {
  model: new Model(),
  lessons: [],
  lit: new Map(), // by card: when it was lit
  nextFocus: null,
  caption: null, // the hop that is explained
  past: null, // the source, while the reader looks back
  files: "", // the address of the repository's files, or "" if the page cannot link to them
  follower: new Follower(),
  ui: {
    connection: "connecting", follow: "", journeysBack: 0, delayMs: 0, piece: null,
    tab: matchMedia("(min-width: 1181px)").matches ? "lessons" : null,
    teach: address.teach, lesson: null, dialog: null, search: "", found: [], problem: "", announcement: "",
    program: null, // that this browser loads: the part that is loaded, or why it does not run
    language: initialLanguage(address.language), theme: remembered("theme") || (dark.matches ? "dark" : "light"),
  },
  get frame() {
    return this.model.frame;
  },

  set(changes) {
    Object.assign(this.ui, changes);
    requestDraw();
  },

  /** focus moves the focus after the next drawing: what has it now is removed or disabled by then. */
  focus(selector) {
    this.nextFocus = selector;
    requestDraw();
  },

  /** lookBack moves by frames in the last minute of a live run. After its end is the present. */
  lookBack(by) {
    const start = this.past ?? history.source({ ...on, frame: show }, this.model.hello);
    if (!start.frames.length) return;
    if (start.index + by >= start.frames.length - 1) return this.toPresent();
    this.past = start;
    start.step(by);
  },

  /** toPresent shows the running program again. */
  toPresent() {
    if (!this.past) return;
    this.past.pause();
    this.past = null;
    on.restart();
    for (const frame of history.frames) show(frame, { at: Date.parse(frame.t) - history.skew, silent: true });
  },

  /** move moves what is recorded by frames. */
  move(by) {
    if (this.source.live) this.lookBack(by);
    else this.source.step(by);
  },

  /** stopBefore is the index of the last frame with a stop of this step, or -1. */
  stopBefore(id, step) {
    const passed = this.recorded ? this.recorded.frames.slice(0, this.recorded.index + 1) : history.frames;
    return passed.findLastIndex(({ lesson }) => lesson?.stop && lesson.id === id && lesson.step === step);
  },

  /** lookAt shows the frame with this index again. */
  lookAt(index) {
    if (this.source.live) this.past ??= history.source({ ...on, frame: show }, this.model.hello);
    this.recorded.show(index);
  },

  /** recorded is the source of frames that the reader can move, or null in the present. */
  get recorded() {
    return this.past ?? (this.source.live ? null : this.source);
  },

  async send(command) {
    if (command.do === "step") this.follower.resume();
    const error = await this.source.send(command);
    this.set({ problem: error });
    clearTimeout(this.problemTimer);
    if (error) this.problemTimer = setTimeout(() => this.set({ problem: "" }), 8000);
  },

  /** follow shows one key only. The program is asked to keep its events when it samples. */
  follow(key) {
    if (key === this.ui.follow) return;
    this.set({ follow: key, journeysBack: 0 });
    presenter.follow = key;
    settle();
    this.askToFollow();
  },

  askToFollow() {
    const { follow, connection } = this.ui;
    if (this.source.live && connection === "connected") this.source.send({ do: "follow", key: follow });
  },

  /** setDelay chooses slow motion; 0 is full speed. A paused program stays paused. */
  setDelay(delayMs) {
    this.set({ delayMs });
    if (this.frame?.mode === "pause") return;
    this.send({ do: "mode", mode: delayMs > 0 ? "slow" : "run", delayMs });
  },

  changeSpeed(by) {
    const position = DELAYS.findLastIndex((delay) => delay <= this.ui.delayMs) + by;
    this.setDelay(DELAYS[Math.min(Math.max(position, 0), DELAYS.length - 1)]);
  },

  toggleTheme() {
    this.showTheme(this.ui.theme === "dark" ? "light" : "dark");
    remember("theme", this.ui.theme);
  },

  showTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.set({ theme });
  },

  toggleLanguage() {
    this.set({ language: this.ui.language === "en" ? "zh" : "en" });
    setLanguage(this.ui.language);
    for (const flow of flows) flow.measure();
  },
};

/** The handlers of a source. */
const on = {
  connection(connection) {
    lab.set({ connection });
  },

  hello(hello) {
    if (hello.started !== lab.model.hello?.started) history.frames = [];
    lab.past?.pause();
    lab.past = null;
    presenter.reset();
    clearTokens();
    lab.model.greet(hello);
    if (hello.replay && lab.source.live) replay();
    else if (lab.ui.follow) lab.askToFollow(); // another program, or another stream of this one
    requestDraw();
  },

  /** restart forgets all frames: a recording was moved. */
  restart() {
    lab.model.reset();
    presenter.reset();
    clearTokens();
  },

  lessons(lessons) {
    lab.lessons = lessons;
    follow(readAddress());
    if (!lab.ui.lesson && !address.desk && lab.model.hello?.writable) openFirst(lab);
    requestDraw();
  },

  frame(frame, how) {
    if (lab.source.live) history.add(frame);
    if (!lab.past) show(frame, how);
  },

  moved() {
    requestDraw();
  },

  /** busy reports whether something is on its way between the cards. */
  busy: () => presenter.due.length > 0,
};

/** follow goes where an address leads. */
function follow({ lesson, step, delayMs }) {
  if (delayMs !== undefined) lab.setDelay(delayMs);
  if (lesson && (lesson !== lab.ui.lesson?.id || step !== lab.ui.lesson.step)) openAt(lab, lesson, step);
}

/** show shows a frame; silent is true while a recording is moved over it. */
function show(frame, { at = Date.now(), silent = false } = {}) {
  const before = lab.model.newest;
  const fresh = lab.model.receive(frame, at);
  if (silent) presenter.jump(fresh);
  else presenter.take(fresh);
  if (before?.mode !== frame.mode || before?.delayMs !== frame.delayMs) {
    if (frame.mode === "slow") lab.ui.delayMs = frame.delayMs;
    if (frame.mode === "run") lab.ui.delayMs = 0;
  }
  announce(frame, before);
  requestDraw();
}

/** replay fetches the recording that a program shows instead of a live run. */
async function replay() {
  lab.source.stop();
  const answer = await fetch("lab/recording");
  lab.source = new RecordedSource(on, parseRecording(await answer.text()));
  lab.source.start();
}

/** load loads the program into this browser. Once it runs, it replaces the recording. */
function load() {
  const recording = lab.source;
  const program = new WorkerSource({
    ...on,
    loading: (loaded) => lab.set({ program: { loaded } }),
    failed(error) {
      if (lab.source === program) on.connection("disconnected");
      lab.set({ program: { failed: error } });
    },
    hello(hello) {
      recording.pause();
      on.restart();
      lab.source = program;
      lab.set({ program: null });
      on.hello(hello);
    },
  });
  lab.set({ program: { loaded: 0 } });
  program.start();
}

let announcedAt = -Infinity;

/** announce reports a change of the reflector's phase to screen readers, not too often. */
function announce(frame, before) {
  const phase = frame.reflector?.phase;
  if (!before || phase === before.reflector?.phase) return;
  if (performance.now() - announcedAt < ANNOUNCE_MS) return;
  announcedAt = performance.now();
  lab.ui.announcement = t("reflector.picture", { phase: named("phase", phase) });
}

/** presenter decides when each card changes; flows draw what moves between them, and along the strip. */
const still = matchMedia("(prefers-reduced-motion: reduce)");
const history = new History();
const presenter = new Presenter({
  model: lab.model,
  still: () => still.matches || document.hidden,
  depart(rail, hops, travel) {
    lab.caption = captionOf(hops, lab.ui.follow) ?? lab.caption;
    for (const flow of flows) flow.launch(rail, hops, travel);
  },
  arrive(hops) {
    lab.caption = captionOf(hops, lab.ui.follow) ?? lab.caption;
    lab.model.arrived(hops);
    for (const hop of hops) lab.lit.set(cardOf(hop), performance.now());
  },
});

/** settle shows at once what is on its way. */
function settle() {
  presenter.flush();
  clearTokens();
}

const clearTokens = () => flows.forEach((flow) => flow.clear());

let flows = [];
let requested = false;
let drawnAt = 0;
let wakeUp = 0; // the timer of the presenter's next change

function requestDraw() {
  if (requested) return;
  requested = true;
  requestAnimationFrame(draw);
}

function draw() {
  requested = false;
  drawnAt = performance.now();
  clearTimeout(wakeUp);
  const wait = presenter.advance();
  if (wait != null) wakeUp = setTimeout(requestDraw, Math.max(wait, STEP_MS));
  const { model, ui } = lab;
  const recorded = lab.recorded;
  lab.now = recorded ? (recorded.times?.[0] ?? 0) + recorded.at : model.now(Date.now());
  if (["disconnected", "refused"].includes(ui.connection) || !model.frame) lab.now = model.frameAt ?? 0;
  lab.age = lab.frame?.mode === "pause" ? 0 : Math.max(0, lab.now - (model.frameAt ?? 0));
  for (const [card, at] of lab.lit) if (drawnAt - at > LIT_MS) lab.lit.delete(card);
  if (lab.lessons.length) writeAddress(ui.lesson);
  render(html`<${Page} lab=${lab} />`, document.getElementById("page"));
  if (lab.nextFocus) document.querySelector(lab.nextFocus)?.focus({ preventScroll: true });
  lab.nextFocus = null;
  if (!flows.length && model.frame) makeFlows();
  for (const flow of flows) flow.hold(lab.frame?.mode === "pause" ? (lab.frame.held ?? []) : []);
  lab.follower.follow(lab);
}

/** makeFlows makes what needs the elements of the page. */
function makeFlows() {
  const strip = document.querySelector(".strip");
  flows = [new Flow(document.getElementById("flow"), document.getElementById("overlay"), between),
    new Flow(strip, strip.querySelector(".overlay"), beside)];
  measureCovers();
}

/** Page has a key where an element must stay: the desk has the focus and folds, the overlay the flow. */
function Page() {
  const { frame, ui } = lab;
  return html`
    <a class="skip" href="#flow">${t("skip")}</a>
    <${Header} lab=${lab} />
    <${StateLine} lab=${lab} />
    ${ui.program && html`<${Loading} lab=${lab} />`}
    <div class="hidden" role="status" aria-live="polite">${ui.announcement}</div>
    ${ui.problem && html`<div class="problem" role="alert">${ui.problem}</div>`}
    <div key="desk" class=${cx("desk", ui.follow && "has-follow", alone(lab) && "alone")}>
      <main>
        <div class="lead"><${Strip} lab=${lab} /><${Caption} lab=${lab} /></div>
        <div id="flow" class="flow" tabindex="-1" data-seq=${frame?.seq}>${frame && html`
          <${ServerCard} lab=${lab} /><${ReflectorCard} lab=${lab} />
          <${QueueCard} lab=${lab} /><${StoreCard} lab=${lab} />
          <${HandlersCard} lab=${lab} /><${WorkqueueCard} lab=${lab} />
          <div class="stack"><${WorkersCard} lab=${lab} /><${ElectionCard} lab=${lab} /></div>`}
          <div key="overlay" id="overlay" class="overlay" aria-hidden="true"></div></div>
        ${!frame && html`<p class="waiting">${t("waiting")}</p>`}
        ${frame && html`<div class="lower"><${Journey} lab=${lab} /><${Plots} lab=${lab} /></div>`}
      </main>
      <${Panel} lab=${lab} />
    </div>
    <${Dialogs} lab=${lab} />`;
}

/** begin starts the page with its source: a program, or what the page carries. */
async function begin() {
  const recording = await embeddedRecording();
  if (recording?.program) recording.frames = complete(recording.frames);
  if (!recording) lab.files = "read/";
  else if (recording.files) lab.files = recording.files;
  const Source = !recording ? LiveSource : recording.lesson ? EditionSource : RecordedSource;
  lab.source = new Source(on, recording);
  listen(lab);
  lab.showTheme(lab.ui.theme);
  dark.addEventListener("change", () => {
    if (!remembered("theme")) lab.showTheme(dark.matches ? "dark" : "light");
  });
  // The event comes later: the page may have written its own address again.
  addEventListener("hashchange", ({ newURL }) => follow(readAddress(new URL(newURL))));
  lab.source.start();
  if (recording?.program) load();
  if (lab.source.lesson && !lab.ui.lesson) openAt(lab, lab.source.lesson.id, address.step);
  setInterval(() => {
    if (lab.frame && !document.hidden && performance.now() - drawnAt > CLOCK_MS) requestDraw();
  }, CLOCK_MS);
  requestDraw();
}

setLanguage(lab.ui.language);
document.documentElement.dataset.theme = lab.ui.theme;
document.documentElement.toggleAttribute("data-teach", address.teach);
begin();
