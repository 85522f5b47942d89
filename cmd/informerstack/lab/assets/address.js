// SPDX-License-Identifier: Apache-2.0

/**
 * The address of the page, behind its #: lesson=tombstones&step=2&lang=zh&speed=slow&teach. Steps
 * count from 1, as on the page. speed is slow, full, or a number of milliseconds per hop. teach is
 * for a teacher: large type, answers only on request, and the arrow keys turn the steps. desk opens
 * the pipeline without a lesson.
 */

/** SLOW_MS is the delay per hop of speed=slow. */
const SLOW_MS = 1500;
const MAX_MS = 3000;

/** readAddress returns what a URL asks for. A field that it lacks, or that is wrong, is undefined. */
export function readAddress(url = location) {
  const asked = new URLSearchParams(url.hash.slice(1));
  const speed = { slow: SLOW_MS, full: 0 }[asked.get("speed")] ?? Number.parseInt(asked.get("speed"), 10);
  const step = Number.parseInt(asked.get("step"), 10);
  return {
    lesson: asked.get("lesson") || undefined,
    step: step > 0 ? step - 1 : 0,
    language: asked.get("lang") || undefined,
    delayMs: speed >= 0 ? Math.min(speed, MAX_MS) : undefined,
    teach: asked.has("teach"),
    desk: asked.has("desk"),
  };
}

/** writeAddress makes the address lead to the step of the lesson that is open, or to none. */
export function writeAddress(lesson) {
  const asked = new URLSearchParams(location.hash.slice(1));
  asked.delete("lesson");
  asked.delete("step");
  if (lesson) {
    asked.set("lesson", lesson.id);
    asked.set("step", lesson.step + 1);
  }
  const text = asked.toString().replaceAll(/=(?=&|$)/g, "");
  if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? "#" + text : location.pathname);
}
