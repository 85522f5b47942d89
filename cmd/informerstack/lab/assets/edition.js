// SPDX-License-Identifier: Apache-2.0

/** The static edition of a lesson: a page with one lesson and the recorded frames of its steps. */
import { readAddress } from "./address.js";
import { RecordedSource } from "./source.js";

/** PACE_MS is the least time per hop at the usual speed: a caption can be read. */
const PACE_MS = 1000;

/** PAST_MS is the time before a step that is kept when the reader moves within the step. */
const PAST_MS = 60_000;

/** EditionSource plays the frames of a step when the page asks the program to play that step. */
export class EditionSource extends RecordedSource {
  constructor(on, { hello, lesson, lessons, starts, frames }) {
    super({ ...on, frame: (frame, how) => on.frame(this.slowed(frame), how) }, { hello, frames: [] });
    this.lessons = lessons;
    this.lesson = lessons.find((l) => l.id === lesson);
    this.starts = starts;
    this.all = complete(frames);
  }

  /** start shows the pipeline before the first step, or before the one that the address names. */
  start() {
    this.on.hello(this.hello);
    this.on.connection("recorded");
    this.choose(0, this.starts[readAddress().step] ?? this.starts.at(-1));
    this.moveTo(this.length, true);
    this.on.lessons(this.lessons);
  }

  /** next is the lesson after this one, or undefined. */
  get next() {
    return this.lessons[this.lessons.indexOf(this.lesson) + 1];
  }

  /** slowed is a frame in the slow motion of the reader: the slower, the longer a change travels. */
  slowed(frame) {
    if (frame.mode !== "slow" || this.speed > 1) return frame;
    return { ...frame, delayMs: Math.max(frame.delayMs, PACE_MS) / this.speed };
  }

  async send(command) {
    if (command.do === "lesson" && command.id === this.lesson.id) this.perform(command.step);
    if (command.do === "solve") this.proceed();
    return "";
  }

  /**
   * perform plays a step until it halts: at its end, at a stop, or at the reader's task, which has a
   * recorded solution.
   */
  perform(step) {
    const [from, end] = [this.starts[step], this.starts[step + 1] ?? this.all.length];
    const state = (at) => (this.all[at]?.lesson?.step === step ? this.all[at].lesson : null);
    let yours = false;
    this.halts = [];
    for (let at = from; at < end; at++) {
      const waits = !yours && state(at)?.state === "yours";
      yours ||= waits;
      if (waits || (state(at)?.stop && state(at + 1)?.stop?.n !== state(at).stop.n)) this.halts.push(at + 1);
    }
    if (this.halts.at(-1) !== end) this.halts.push(end);
    this.performed = step;
    const follows = this.from + this.index + 1 === from;
    this.choose(from, this.halts.shift());
    if (!follows) this.seek(0);
    this.play();
  }

  /** proceed plays the step from its present halt to the next one. */
  proceed() {
    if (!this.halts?.length) return;
    const { at, index } = this;
    this.choose(this.from, this.halts.shift());
    Object.assign(this, { at, index });
    super.play();
  }

  /** play continues after a stop. */
  play() {
    const stopped = this.at >= this.length && this.frames.at(-1)?.lesson?.stop;
    if (stopped && this.halts?.length) this.proceed();
    else super.play();
  }

  /** choose makes the source play these frames. */
  choose(from, to) {
    this.from = from;
    this.frames = this.all.slice(from, to);
    this.times = this.frames.map((frame) => Date.parse(frame.t));
    this.length = this.times.at(-1) - this.times[0];
    this.index = -1;
    this.at = 0;
  }

  /** seek moves within the frames that were chosen. */
  seek(at) {
    this.on.restart();
    for (const frame of this.all.slice(0, this.from)) {
      const time = Date.parse(frame.t);
      if (time > this.times[0] - PAST_MS) this.on.frame(frame, { at: time, silent: true });
    }
    this.index = -1;
    this.moveTo(at, true);
  }

  /**
   * moveTo waits for what is on its way: a change travels longer on the page than it did in slow
   * motion. A reader in a hurry does not wait.
   */
  moveTo(at, silent) {
    const waits = this.speed <= 1 && this.frames[this.index]?.mode === "slow";
    if (waits && this.playing && !silent && this.on.busy()) return;
    super.moveTo(at, silent);
    // The step stays ended when the reader moves back: the answer stays on the page.
    const lesson = this.frames[this.index]?.lesson;
    const done = lesson?.state === "done" && lesson.step === this.performed;
    if (done) for (const frame of this.frames) frame.lesson = kept(frame.lesson, lesson);
  }
}

/** kept is the view of a step that has ended, with the stop of an earlier frame. */
const kept = (at, ended) => (at?.stop ? { ...ended, watch: at.watch, stop: at.stop } : ended);

/** complete returns complete frames. A recorded one has only the fields that have changed. */
export function complete(frames) {
  let last = {};
  return frames.map((changed) => (last = { ...last, ...changed }));
}
