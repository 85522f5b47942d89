// SPDX-License-Identifier: Apache-2.0

/**
 * Lessons: a list, and the lesson that is being played.
 *
 * A step without a question is played when the reader arrives at it. A step with a question is
 * played when the reader has found the answer: until then the page shows nothing that gives it away.
 * In a step with a task, the program prepares, and then the reader acts until its checks hold.
 */
import { html, cx } from "./html.js";
import { Path, Prose } from "./prose.js";
import { Again, proceed, stopOf } from "./stop.js";
import { local, named, remember, remembered, t, translated } from "./text.js";

export function Lessons({ lab }) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  return lesson ? html`<${Lesson} lab=${lab} lesson=${lesson} />` : html`<${List} lab=${lab} />`;
}

/** SHOWN is the choice of a reader who has asked for the answer. */
const SHOWN = -1;

/** ANSWER_MS is how long the program may take until a frame tells that it plays a step. */
const ANSWER_MS = 2000;

/** finished returns the ids of the lessons that the reader has completed in this browser. */
const finished = () => (remembered("lessons") || "").split(" ").filter(Boolean);

/** complete remembers that the reader has come to the end of a lesson. */
function complete({ id }) {
  const ids = finished();
  if (!ids.includes(id)) remember("lessons", [...ids, id].join(" "));
}

function List({ lab }) {
  const done = finished();
  return html`<article class="lessons">
    <h2 tabindex="-1">${t("lessons.title")}</h2>
    <p class="dim">${lab.lessons.length ? t("lessons.intro") : t("lessons.none")}</p>
    <ol>${lab.lessons.map((lesson) => html`<li key=${lesson.id}>
      <button type="button" onClick=${() => begin(lab, lesson)}>
        <span>${local(lesson.title)}</span>
        <small>${done.includes(lesson.id)
          ? t("lessons.done") : t("lessons.steps", { n: lesson.steps.length })}</small>
      </button></li>`)}</ol>
  </article>`;
}

/** begin opens a lesson at its first step. seed shuffles the options, until the lesson is opened again. */
function begin(lab, lesson) {
  if (lesson.follow) lab.follow(lesson.follow);
  lab.set({ lesson: { id: lesson.id, step: 0, played: -1, choice: null, seed: Math.random() }, tab: "lessons" });
  lab.focus(".lesson h2");
  if (lesson.steps[0].question) prepare(lab, lesson);
  play(lab, lesson);
}

/** prepare makes the pipeline ready for the question of the present step. */
function prepare(lab, lesson) {
  const { step } = lab.ui.lesson;
  lab.set({ lesson: { ...lab.ui.lesson, sentAt: performance.now() } });
  if (lab.source.live) lab.send({ do: "lesson", id: lesson.id, step: step - 1, solved: true });
}

/**
 * openAt opens a lesson at a step: an address leads there, or the page was loaded again. The program
 * plays the steps before it first, unless it is there already.
 */
export function openAt(lab, id, step) {
  const lesson = lab.lessons.find((l) => l.id === id);
  if (!lesson?.steps) return false;
  const at = Math.min(step, lesson.steps.length - 1);
  const there = lab.model.newest?.lesson;
  const played = there?.id === id && there.step === at ? at : -1;
  const choice = played === at ? SHOWN : null;
  if (lesson.follow) lab.follow(lesson.follow);
  lab.set({ lesson: { id, step: at, played, choice, seed: Math.random() }, tab: "lessons" });
  const asks = lesson.steps[at].question && choice == null;
  const ready = there?.id === id && there.step === at - 1;
  if (asks && !ready) prepare(lab, lesson);
  play(lab, lesson);
  return true;
}

/** openFirst opens the first lesson, the first time that this browser shows the page. */
export function openFirst(lab) {
  if (remembered("opened") || !lab.lessons.length) return;
  remember("opened", "yes");
  begin(lab, lab.lessons[0]);
}

/** alone reports whether the lesson shows its own object only. */
export const alone = (lab) =>
  lab.lessons.find((lesson) => lesson.id === lab.ui.lesson?.id)?.alone === true;

/** turn is the arrow key of a teacher: it shows an answer, a solution, or another step. */
export function turn(lab, by) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  if (!lesson) return false;
  const { step, choice } = lab.ui.lesson;
  if (by > 0 && lesson.steps[step].question && choice == null) answer(lab, lesson, SHOWN);
  else if (by > 0 && stopOf(lab)) proceed(lab);
  else if (by > 0 && !ended(lab, lesson)) solve(lab, lesson);
  else if (lesson.steps[step + by]) goTo(lab, lesson, step + by);
  return true;
}

/** yours reports whether the program waits for the reader to do the task of the present step. */
function yours(lab, lesson) {
  const state = lab.frame?.lesson;
  return state?.id === lesson.id && state.step === lab.ui.lesson.step && state.state === "yours";
}

/** solve makes the program do the task. */
function solve(lab, lesson) {
  if (yours(lab, lesson)) lab.send({ do: "solve" });
}

/** goTo shows another step. A step that was played before is only shown. */
function goTo(lab, lesson, step) {
  const now = lab.ui.lesson;
  lab.set({ lesson: { ...now, step, hint: false, tried: [], choice: step <= now.played ? SHOWN : null } });
  play(lab, lesson);
  lab.focus(".lesson h2"); // the button of this step may be disabled in the next
}

/** play makes the program play the present step, unless its question is still open. */
function play(lab, lesson) {
  const { step, played, choice } = lab.ui.lesson;
  if (step <= played || (lesson.steps[step].question && choice == null)) return;
  lab.set({ lesson: { ...lab.ui.lesson, played: step, sentAt: performance.now() } });
  lab.send({ do: "lesson", id: lesson.id, step });
}

/** again begins a step anew that the program could not play: it plays the steps before it first. */
function again(lab, lesson) {
  lab.set({ lesson: { ...lab.ui.lesson, sentAt: performance.now() } });
  lab.send({ do: "lesson", id: lesson.id, step: lab.ui.lesson.step });
}

/**
 * leave returns to the list and ends the lesson: the program restores its settings. The static
 * edition has a page for the list.
 */
export function leave(lab) {
  if (lab.source.lesson) return location.assign("index.html");
  if (alone(lab)) lab.follow("");
  lab.set({ lesson: null });
  lab.send({ do: "lesson", id: "" });
  lab.focus(".lessons h2");
}

/** ended reports whether the program has played the present step to its end. */
function ended(lab, lesson) {
  const state = lab.frame?.lesson;
  if (state?.id !== lesson.id) return false;
  const { step } = lab.ui.lesson;
  return state.step > step || (state.step === step && state.state === "done");
}

/** answer takes a choice. A wrong one is only noted: the reader tries again. */
function answer(lab, lesson, choice) {
  const { question } = lesson.steps[lab.ui.lesson.step];
  if (choice !== SHOWN && choice !== question.where && !question.options?.[choice]?.right) {
    const tried = (lab.ui.lesson.tried ?? []).filter((other) => other !== choice);
    return lab.set({ lesson: { ...lab.ui.lesson, tried: [...tried, choice] } });
  }
  lab.set({ lesson: { ...lab.ui.lesson, choice } });
  lab.focus(".lesson .steps .primary"); // the options are disabled
  play(lab, lesson);
}

/** asking returns the lesson if the question of its present step is open, or null. */
function asking(lab) {
  const lesson = lab.lessons.find((l) => l.id === lab.ui.lesson?.id);
  return lesson?.steps[lab.ui.lesson.step].question && lab.ui.lesson.choice == null ? lesson : null;
}

/**
 * predicting returns what a click on a card answers, and which cards were tried, while a question
 * asks for a card, or null.
 */
export function predicting(lab) {
  const lesson = asking(lab);
  if (!lesson?.steps[lab.ui.lesson.step].question.where) return null;
  return { choose: (piece) => answer(lab, lesson, piece), tried: lab.ui.lesson.tried ?? [] };
}

/**
 * pointed returns the pieces that the lesson points to, or nothing while its question is open, or while
 * the program plays another step.
 */
export function pointed(lab) {
  const state = lab.frame?.lesson;
  const { lesson } = lab.ui;
  const other = lesson?.id === state?.id && lesson?.step !== state?.step;
  return asking(lab) || other ? [] : (state?.watch ?? []);
}

function Lesson({ lab, lesson }) {
  const { step, choice } = lab.ui.lesson;
  const now = lesson.steps[step];
  const open = now.question && choice == null;
  if (step === lesson.steps.length - 1 && ended(lab, lesson)) complete(lesson);
  if (lab.source.lesson) document.title = local(lesson.title); // the page of this lesson alone
  const place = {
    n: lab.lessons.indexOf(lesson) + 1, of: lab.lessons.length,
    step: step + 1, steps: lesson.steps.length,
  };
  const prose = (text) => html`<p class="text"><${Prose} text=${text} follow=${lab.ui.follow} /></p>`;
  return html`<article class="lesson">
    <p class="dim">${t("lessons.place", place)}</p>
    <h2 tabindex="-1">${local(lesson.title)}</h2>
    <div class="progress" aria-hidden="true">
      ${lesson.steps.map((_, i) => html`<i key=${i} class=${cx(i <= step && "done")}></i>`)}</div>
    <div aria-live="polite">${prose(now.text)}</div>
    ${now.question && html`<${Question} key=${lesson.id + step} question=${now.question}
      seed=${lab.ui.lesson.seed} choice=${choice} tried=${lab.ui.lesson.tried ?? []} choose=${(i) => answer(lab, lesson, i)} />`}
    ${now.task && html`<${Task} key=${lesson.id + step} lab=${lab} lesson=${lesson} task=${now.task} />`}
    <div role="status">
      ${!open && ended(lab, lesson) && !lab.frame.lesson.error && now.after && prose(now.after)}</div>
    <${Progress} lab=${lab} lesson=${lesson} />
    <${Again} lab=${lab} lesson=${lesson} />
    <${Steps} lab=${lab} lesson=${lesson} open=${open} />
    <${Links} lab=${lab} links=${lesson.links ?? []} />
    ${step > 0 && html`<button type="button" class="btn quiet"
      onClick=${() => leave(lab)}>${t("lessons.all")}</button>`}
  </article>`;
}

/** Progress reports that the program plays the step, or why it could not. */
function Progress({ lab, lesson }) {
  const state = lab.frame?.lesson;
  const { step, played, sentAt = 0 } = lab.ui.lesson;
  const lost = lab.source.live && lab.model.newest?.lesson?.id !== lesson.id && performance.now() - sentAt > ANSWER_MS;
  if (played === step && lost) {
    return html`<p class="dim" role="status">${t("lessons.elsewhere")}
      <button type="button" class="btn" onClick=${() => openAt(lab, lesson.id, step)}>${t("lessons.here")}</button></p>`;
  }
  if (state?.id !== lesson.id || state.step !== step) return null;
  if (state.error) return html`<${Failure} lab=${lab} lesson=${lesson} error=${state.error} />`;
  if (!["preparing", "running"].includes(state.state)) return null; // at its end, or the reader's turn
  return html`<p class="dim running">
    <span class="spin" aria-hidden="true"></span> ${t("lessons." + state.state)}</p>`;
}

/** Failure offers to begin a step again that the program could not play. The details are for its author. */
function Failure({ lab, lesson, error }) {
  if (lab.failure !== error) console.info("lesson", lesson.id, "step", lab.ui.lesson.step, error);
  lab.failure = error;
  return html`<p class="hot" role="alert">${t("lessons.failed")}</p>
    <p><button type="button" class="btn again" onClick=${() => again(lab, lesson)}>${t("lessons.again")}</button></p>`;
}

/** Steps has the buttons that lead to the step before, on after a stop, and after the end to the next step. */
function Steps({ lab, lesson, open }) {
  const { step } = lab.ui.lesson;
  const last = step === lesson.steps.length - 1;
  const next = lab.lessons[lab.lessons.indexOf(lesson) + 1];
  const onward = () => (last ? leave(lab) : goTo(lab, lesson, step + 1));
  return html`<div class="steps">
    <button type="button" class="btn"
      onClick=${() => (step === 0 ? leave(lab) : goTo(lab, lesson, step - 1))}>
      ← ${step === 0 ? t("lessons.all") : t("lessons.back")}</button>
    ${stopOf(lab) && !ended(lab, lesson)
      ? html`<button key="next" type="button" class="btn primary proceeds" onClick=${() => proceed(lab)}>
          ${t("stop.proceed")}</button>`
      : html`<button key="next" type="button" class="btn primary" disabled=${open} aria-disabled=${!ended(lab, lesson)}
          onClick=${() => ended(lab, lesson) && onward()}>
          ${last ? t("lessons.end") : t("lessons.next") + " →"}</button>`}
    ${last && next && ended(lab, lesson) && html`<${Onward} lab=${lab} next=${next} />`}
  </div>`;
}

/** Onward leads to the next lesson, which is a page of its own in the static edition. */
function Onward({ lab, next }) {
  const text = t("lessons.nextLesson", { title: local(next.title) }) + " →";
  if (lab.source.lesson) return html`<a class="btn quiet nextLesson" href="${next.id}.html">${text}</a>`;
  return html`<button type="button" class="btn quiet nextLesson" onClick=${() => begin(lab, next)}>${text}</button>`;
}

function Links({ lab, links }) {
  if (!links.length) return null;
  return html`<h3>${t("readOn")}</h3>
    <ul class="links">${links.map((link, i) => html`<li key=${i}>
      ${named("link", link.kind)}${" "}
      <${Path} lab=${lab} path=${translated(link.path)} text=${link.text ?? translated(link.path)} />
    </li>`)}</ul>`;
}

/** Task says what the reader has to do, why another way does not count, and how it can be done. */
function Task({ lab, lesson, task }) {
  const { step, hint } = lab.ui.lesson;
  const state = lab.frame?.lesson;
  const here = state?.id === lesson.id && state.step === step;
  const because = here && state.wrong > 0 && task.wrong?.[state.wrong - 1]?.because;
  const acts = yours(lab, lesson);
  const [turn, done] = lab.source.lesson ? ["taskThere", "taskShown"] // a page alone can only show it
    : ["task", "taskDone"];
  return html`<section class=${cx("task", acts && "yours")}>
    <p role="status"><b>${t("lessons." + (ended(lab, lesson) ? done : turn))}</b>${" "}
      <${Prose} text=${task.ask} follow=${lab.ui.follow} /></p>
    ${because && html`<p class="hot" role="alert"><${Prose} text=${because} /></p>`}
    ${acts && hint && html`<p><${Prose} text=${task.hint} /></p>`}
    ${acts && html`<p>
      ${!hint && task.hint && html`<button type="button" class="btn quiet"
        onClick=${() => lab.set({ lesson: { ...lab.ui.lesson, hint: true } })}>${t("lessons.hint")}</button>`}
      <button type="button" class="btn quiet" onClick=${() => solve(lab, lesson)}>
        ${t("lessons.solve")}</button></p>`}
  </section>`;
}

/**
 * Question asks before the answer is shown. choice is the index of the right option, or the right
 * card if the question asks where; SHOWN if the answer was shown without it, or null while the
 * question is open. tried are the wrong choices, the newest last: the reader may try all others.
 */
function Question({ question, seed, choice, tried, choose }) {
  const open = choice == null;
  const wrong = tried.at(-1);
  const why = question.where ? (question.why?.[wrong] ?? t("lessons.notHere")) : question.options[wrong]?.why;
  return html`<fieldset class="question">
    <legend><${Prose} text=${question.ask} /></legend>
    ${question.where
      ? html`<p>${open ? t("lessons.where") : html`${choice === question.where ? "✓" : "→"}${" "}
          <b>${t(`piece.${question.where}.name`)}</b>`}</p>`
      : shuffled(question.options, seed).map(({ option, i }) => html`
          <${Option} key=${i} option=${option} wrong=${tried.includes(i)} open=${open} choose=${() => choose(i)} />`)}
    <p role="status">${open ? wrong != null && html`✕ <${Prose} text=${why} />` : html`<${Prose} text=${question.answer} />`}</p>
    ${open && html`<button type="button" class="btn quiet" onClick=${() => choose(SHOWN)}>
      ${t("lessons.show")}</button>`}
  </fieldset>`;
}

/** Option stays enabled while the question is open, so that the focus is not lost. */
function Option({ option, wrong, open, choose }) {
  const right = !open && option.right;
  return html`<button type="button" disabled=${!open} aria-pressed=${Boolean(wrong || right)}
    class=${cx("option", right && "right", wrong && "wrong")} onClick=${choose}>
    <span aria-hidden="true">${right ? "✓" : wrong ? "✕" : "○"}</span>
    <span><${Prose} text=${option.text} /></span></button>`;
}

/** shuffled returns the options in an order that the seed decides, each with its index. */
function shuffled(options, seed = 0) {
  const place = (i) => (Math.sin((seed + 1) * 1000 + i * 77) * 10_000) % 1;
  return options.map((option, i) => ({ option, i })).sort((a, b) => place(a.i) - place(b.i));
}
