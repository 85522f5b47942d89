// SPDX-License-Identifier: Apache-2.0

/** The program in this browser, in a worker: its source of frames, and the bar while it loads. */
import { html } from "./html.js";
import { LiveSource } from "./source.js";
import { t } from "./text.js";

/** WORKER is the script that loads and runs the program. It is beside the page. */
const WORKER = "worker.js";

/**
 * WorkerSource follows a program in a worker. Each message is JSON in both directions: see
 * protocol.md. on.loading receives the loaded part of the program, from 0 to 1, and on.failed why it
 * does not run.
 */
export class WorkerSource extends LiveSource {
  start() {
    this.requests = [];
    try {
      this.worker = new Worker(WORKER);
    } catch (error) {
      this.on.failed(error.message); // the page was opened as a file, for example
      return;
    }
    this.worker.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    this.worker.addEventListener("error", (event) => this.on.failed(event.message || WORKER));
  }

  stop() {
    this.worker.terminate();
  }

  receive({ loaded, failed, hello, lessons, frame, n, ...answer }) {
    if (loaded !== undefined) this.on.loading(Math.min(loaded, 1));
    else if (failed !== undefined) this.on.failed(failed);
    else if (hello) {
      this.on.hello(hello);
      this.on.connection("connected");
    } else if (lessons) this.on.lessons(lessons.lessons);
    else if (frame) this.on.frame(frame);
    else this.requests[n](answer);
  }

  /** ask sends a request, and returns the answer to it. */
  ask(request) {
    return new Promise((resolve) => {
      const n = this.requests.push(resolve) - 1;
      this.worker.postMessage(JSON.stringify({ n, ...request }));
    });
  }

  async find(text) {
    return (await this.ask({ find: text })).keys ?? [];
  }

  async post(command) {
    return (await this.ask({ command })).error ?? "";
  }
}

/** Loading reports how much of the program is loaded, or why the page plays a recording. */
export function Loading({ lab }) {
  const { loaded, failed } = lab.ui.program;
  if (failed !== undefined) {
    return html`<p class="program" role="status">${t("program.failed", { error: failed })}${" "}
      <a href="index.html">${t("program.recorded")}</a></p>`;
  }
  return html`<p class="program"><label>${t("program.loading")}
    <progress max="1" value=${loaded}></progress></label>${" "}
    <span class="dim">${t("program.meanwhile")}</span></p>`;
}
