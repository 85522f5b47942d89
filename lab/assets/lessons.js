// SPDX-License-Identifier: Apache-2.0

/**
 * Lessons: a list, and the lesson that is being played.
 *
 * A step without a question is played when the reader arrives at it. A step with a question is
 * played when the reader has answered, so that the pipeline shows whether the guess was right.
 */
import { html, cx } from "./html.js";
import { Path } from "./panel.js";
import { Prose, local, named, remember, remembered, t } from "./text.js";

export function Lessons({ lab }) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  return lesson ? html`<${Lesson} lab=${lab} lesson=${lesson} />` : html`<${List} lab=${lab} />`;
}

/** finished returns the ids of the lessons that the reader has completed in this browser. */
const finished = () => (remembered("lessons") || "").split(" ").filter(Boolean);

function List({ lab }) {
  const done = finished();
  return html`<article class="lessons">
    <h2>${t("lessons.title")}</h2>
    <p class="dim">${lab.lessons.length ? t("lessons.intro") : t("lessons.none")}</p>
    <ol>${lab.lessons.map((lesson) => html`<li key=${lesson.id}>
      <button type="button" onClick=${() => begin(lab, lesson)}>
        <span>${local(lesson.title)}</span>
        <small>${done.includes(lesson.id) ? t("lessons.done") : t("lessons.steps", { n: lesson.steps.length })}</small>
      </button></li>`)}</ol>
  </article>`;
}

/** begin opens a lesson at its first step. */
function begin(lab, lesson) {
  lab.set({ lesson: { id: lesson.id, step: 0, played: -1, choice: null }, tab: "lessons" });
  play(lab, lesson);
}

/** goTo shows another step. A step that was played before is only shown. */
function goTo(lab, lesson, step) {
  const now = lab.ui.lesson;
  lab.set({ lesson: { ...now, step, choice: step <= now.played ? -1 : null } });
  play(lab, lesson);
  if (step === lesson.steps.length - 1) remember("lessons", [...new Set([...finished(), lesson.id])].join(" "));
}

/** play makes the program play the present step, unless its question is still open. */
function play(lab, lesson) {
  const { step, played, choice } = lab.ui.lesson;
  if (step <= played || (lesson.steps[step].question && choice == null)) return;
  lab.set({ lesson: { ...lab.ui.lesson, played: step } });
  lab.send({ do: "lesson", id: lesson.id, step });
}

function answer(lab, lesson, choice) {
  lab.set({ lesson: { ...lab.ui.lesson, choice } });
  play(lab, lesson);
}

function Lesson({ lab, lesson }) {
  const { step, choice } = lab.ui.lesson;
  const now = lesson.steps[step];
  const state = lab.frame?.lesson?.id === lesson.id && lab.frame.lesson.step === step ? lab.frame.lesson : null;
  const open = now.question && choice == null;
  const number = lab.lessons.indexOf(lesson) + 1;
  const last = step === lesson.steps.length - 1;
  return html`<article class="lesson">
    <p class="dim">${t("lessons.place", { n: number, of: lab.lessons.length, step: step + 1, steps: lesson.steps.length })}</p>
    <h2>${local(lesson.title)}</h2>
    <div class="progress" aria-hidden="true">${lesson.steps.map((_, i) => html`<i key=${i} class=${cx(i <= step && "done")}></i>`)}</div>
    <p class="text" aria-live="polite"><${Prose} text=${now.text} follow=${lab.ui.follow} /></p>
    ${now.question && html`<${Question} key=${lesson.id + step} lab=${lab} lesson=${lesson} question=${now.question} choice=${choice} />`}
    ${!open && now.after && html`<p class="text"><${Prose} text=${now.after} follow=${lab.ui.follow} /></p>`}
    ${state?.state === "running" && html`<p class="dim running"><span class="spin" aria-hidden="true"></span> ${t("lessons.running")}</p>`}
    ${state?.error && html`<p class="hot" role="alert">${state.error}</p>`}
    <div class="steps">
      <button type="button" class="btn" onClick=${() => (step === 0 ? lab.set({ lesson: null }) : goTo(lab, lesson, step - 1))}>
        ← ${step === 0 ? t("lessons.all") : t("lessons.back")}</button>
      ${last
        ? html`<button type="button" class="btn primary" disabled=${open} onClick=${() => lab.set({ lesson: null })}>${t("lessons.end")}</button>`
        : html`<button type="button" class="btn primary" disabled=${open} onClick=${() => goTo(lab, lesson, step + 1)}>${t("lessons.next")} →</button>`}
    </div>
    ${lesson.links?.length > 0 && html`<h3>${t("readOn")}</h3>
      <ul class="links">${lesson.links.map((link, i) => html`<li key=${i}>${named("link", link.kind)} ${link.href
        ? html`<a href=${safe(link.href)} target="_blank" rel="noreferrer">${local(link.text)}</a>`
        : html`<${Path} lab=${lab} path=${link.path ?? ""} text=${local(link.text) || link.path} />`}</li>`)}</ul>`}
    ${step > 0 && html`<button type="button" class="btn quiet" onClick=${() => lab.set({ lesson: null })}>${t("lessons.all")}</button>`}
  </article>`;
}

/** safe refuses links that are not web addresses. */
const safe = (href) => (/^https?:\/\//.test(href) ? href : undefined);

/** Question asks before the answer is shown. choice is an option's index, or -1 if it was shown without one. */
function Question({ lab, lesson, question, choice }) {
  const open = choice == null;
  return html`<fieldset class="question">
    <legend><${Prose} text=${question.ask} /></legend>
    ${question.options.map((option, i) => html`<label key=${i}
      class=${cx(!open && option.right && "right", !open && choice === i && !option.right && "wrong")}>
      <input type="radio" name="answer" checked=${choice === i} disabled=${!open}
        onChange=${() => answer(lab, lesson, i)} />
      <span><${Prose} text=${option.text} />${!open && option.right && html` <b>✓</b>`}
        ${choice === i && !option.right && html` <b>✕</b>`}</span></label>`)}
    ${open
      ? html`<button type="button" class="btn quiet" onClick=${() => answer(lab, lesson, -1)}>${t("lessons.show")}</button>`
      : html`<p role="status"><${Prose} text=${question.answer} /></p>`}
  </fieldset>`;
}
