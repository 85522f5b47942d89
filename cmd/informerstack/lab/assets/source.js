// SPDX-License-Identifier: Apache-2.0

/**
 * Sources of frames. The page does not know whether a program or a recording sends them: both
 * sources call on.hello, on.frame and on.connection, and have send.
 */

/** LiveSource follows a running program through an EventSource, which reconnects by itself. */
export class LiveSource {
  constructor(on) {
    this.on = on;
    this.live = true;
    this.lessons = [];
  }

  start() {
    const stream = (this.stream = new EventSource("lab/events"));
    stream.addEventListener("open", () => this.on.connection("connected"));
    stream.addEventListener("error", () => {
      // A browser gives up for good after an answer that is not a stream, as that of a program
      // with another token. It may be one of something between; so start again then.
      const refused = stream.readyState === EventSource.CLOSED;
      this.on.connection(refused ? "refused" : "disconnected");
      if (refused) setTimeout(() => this.start(), 2000);
    });
    stream.addEventListener("hello", (event) => this.greet(JSON.parse(event.data)));
    stream.addEventListener("frame", (event) => this.on.frame(JSON.parse(event.data)));
  }

  stop() {
    this.stream.close();
  }

  async greet(hello) {
    this.token = hello.token;
    this.on.hello(hello);
    if (hello.lessons?.length || hello.lessons === true) {
      const answer = await fetch("lab/lessons");
      if (answer.ok) this.on.lessons((await answer.json()).lessons ?? []);
    }
  }

  /** find returns keys of the store that contain a text. */
  async find(text) {
    const answer = await fetch("lab/keys?" + new URLSearchParams({ contains: text }));
    return answer.ok ? (await answer.json()).keys : [];
  }

  /** send posts a command, after those before it, and returns the error's text, or "". */
  send(command) {
    this.sent = (this.sent ?? Promise.resolve()).then(() => this.post(command));
    return this.sent;
  }

  async post(command) {
    try {
      const answer = await fetch("lab/command", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Lab-Token": this.token ?? "" },
        body: JSON.stringify(command),
        keepalive: true, // also when the page closes
      });
      if (answer.ok) return "";
      const body = await answer.json().catch(() => ({}));
      return body.error || `${answer.status} ${answer.statusText}`;
    } catch (error) {
      return String(error.message || error);
    }
  }
}

/** RecordedSource plays frames of a recording at the reader's pace. */
export class RecordedSource {
  constructor(on, recording) {
    this.on = on;
    this.live = false;
    this.frames = recording.frames;
    this.hello = { ...recording.hello, writable: false };
    this.times = this.frames.map((frame) => Date.parse(frame.t));
    this.length = this.frames.length ? this.times.at(-1) - this.times[0] : 0;
    this.speed = 1;
    this.index = -1;
    this.at = 0;
  }

  start() {
    this.on.hello(this.hello);
    this.on.connection("recorded");
    this.play();
  }

  get playing() {
    return this.timer != null;
  }

  /** play continues from the present position, or from the start at the end. */
  play() {
    if (this.at >= this.length) this.seek(0);
    this.pause();
    let last = performance.now();
    this.timer = setInterval(() => {
      const now = performance.now();
      this.moveTo(this.at + (now - last) * this.speed);
      last = now;
      if (this.at >= this.length) this.pause();
    }, 100);
    this.on.moved();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.on.moved();
  }

  /** step shows the next frame, or the one before. */
  step(by) {
    const index = Math.min(Math.max(this.index + by, 0), this.frames.length - 1);
    if (by < 0) return this.show(index);
    this.pause();
    this.moveTo(this.times[index] - this.times[0]);
  }

  /** show shows one frame. */
  show(index) {
    this.pause();
    this.seek(this.times[index] - this.times[0]);
  }

  /** seek moves to a time in milliseconds and rebuilds what the page shows from the frames before. */
  seek(at) {
    this.on.restart();
    const from = this.times.findIndex((time) => time - this.times[0] >= at - 60_000);
    this.index = Math.max(from, 0) - 1;
    this.moveTo(at, true);
  }

  moveTo(at, silent) {
    this.at = Math.min(Math.max(at, 0), this.length);
    const until = this.times[0] + this.at;
    while (this.index + 1 < this.frames.length && this.times[this.index + 1] <= until) {
      this.index++;
      this.on.frame(this.frames[this.index], { at: this.times[this.index], silent });
    }
    this.on.moved();
  }

  async send() {
    return "";
  }

  /** find looks among the objects of the present frame, of which a recording has at most 50. */
  async find(text) {
    const items = this.frames[this.index]?.store?.items ?? [];
    return items.map(({ key }) => key).filter((key) => key.includes(text)).slice(0, 20);
  }
}

/** sameStop reports whether two views of a lesson are of one stop. */
const sameStop = (a, b) => Boolean(a?.stop) && a.stop.n === b?.stop?.n && a.step === b.step && a.id === b.id;

/** KEPT_MS is how far a reader can look back in a live run. */
const KEPT_MS = 60_000;

/**
 * History keeps the last frames of a live run, of each stop of a lesson one. skew is the program's
 * clock minus the reader's.
 */
export class History {
  constructor() {
    this.frames = [];
    this.skew = 0;
  }

  add(frame) {
    const last = this.frames.at(-1);
    if (sameStop(frame.lesson, last?.lesson)) {
      this.frames.pop();
      frame = { ...frame, hops: [...last.hops, ...frame.hops] };
    }
    this.frames.push(frame);
    this.skew = Date.parse(frame.t) - Date.now();
    const oldest = Date.parse(frame.t) - KEPT_MS;
    while (Date.parse(this.frames[0].t) < oldest) this.frames.shift();
  }

  /** source returns a source that is at the end of what is kept now. */
  source(on, hello) {
    const past = new RecordedSource(on, { hello, frames: this.frames.slice() });
    past.index = past.frames.length - 1;
    past.at = past.length;
    return past;
  }
}

/** embeddedRecording returns the recording that a page without a program carries, or null. */
export async function embeddedRecording() {
  const packed = document.getElementById("recording")?.textContent;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
}

/** parseLine reads one line; the last one may be cut off if the program was killed. */
function parseLine(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}

/** parseRecording reads JSON lines: one {"hello":…}, then one {"frame":…} per line. */
export function parseRecording(text) {
  const recording = { hello: {}, frames: [] };
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const entry = parseLine(line);
    if (entry.hello) recording.hello = entry.hello;
    if (entry.frame) recording.frames.push(entry.frame);
  }
  return recording;
}
