// SPDX-License-Identifier: Apache-2.0

/** The dialogs: all keys with what they do, and the settings that rebuild the stack. */
import { html, Component, createRef } from "./html.js";
import { ACTIONS, keyName, offered, perform } from "./actions.js";
import { number } from "./key.js";
import { t, translated } from "./text.js";

export function Dialogs({ lab }) {
  const name = lab.ui.dialog;
  const close = () => lab.set({ dialog: null });
  if (!CONTENTS[name]) return null;
  return html`<${Dialog} key=${name} title=${t(name + ".title")} close=${close}>
    <${CONTENTS[name]} lab=${lab} close=${close} /><//>`;
}

const CONTENTS = { help: Help, settings: Settings };

/** Dialog is a modal dialog of the browser: it traps the focus, and Escape closes it. */
class Dialog extends Component {
  element = createRef();

  componentDidMount() {
    this.element.current.showModal();
  }

  /**
   * A dialog that is closed returns the focus; one that is only removed does not. Its close event
   * arrives later, when another dialog may be open.
   */
  componentWillUnmount() {
    this.removed = true;
    this.element.current.close();
  }

  render({ title, close, children }) {
    const outside = (event) => event.target === this.element.current && close();
    return html`<dialog ref=${this.element} aria-labelledby="dialog-title"
      onClose=${() => this.removed || close()} onClick=${outside}>
      <header><h2 id="dialog-title">${title}</h2>
        <button type="button" class="btn icon" aria-label=${t("close")}
          onClick=${close}>×</button></header>
      <div class="content">${children}</div>
    </dialog>`;
  }
}

const GROUPS = [...new Set(ACTIONS.map(({ piece }) => piece))];

function Help({ lab, close }) {
  const run = (a) => {
    close();
    perform(lab, a);
  };
  return html`<p>${t("help.intro")}</p>
    <div class="keys">${GROUPS.map((group) => {
      const actions = ACTIONS.filter((a) => a.piece === group && offered(lab, a));
      return actions.length > 0 && html`<section key=${group}>
        <h3>${t(`piece.${group}.name`)}</h3>
        <dl>${actions.map((a) => html`<div key=${a.id}>
          <dt><kbd>${keyName(a.key)}</kbd></dt>
          <dd><button type="button" class="link" onClick=${() => run(a)}>
            ${t(`action.${a.id}.name`)}</button>
            <span class="dim">${t(`action.${a.id}.help`)}</span></dd></div>`)}</dl></section>`;
    })}</div>
    <p class="dim">${t("help.list")}</p>
    ${lab.files && html`<p><a href=${lab.files + translated("docs/README.md")}
      target="_blank" rel="noreferrer">${t("docs")}</a></p>`}`;
}

const RATES = [0, 1, 5, 20, 100, 1000];
const OBJECTS = [5, 20, 100, 1000, 10_000];

/**
 * Settings sends one command for the stack and one for the workload. Its fields begin with the
 * present settings, and the next frame does not change what the reader has typed.
 */
function Settings({ lab, close }) {
  const now = lab.frame?.settings ?? {};
  const random = ["on", "paused"].includes(now.faults);
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const value = (name) => Number(form.get(name));
    lab.send({
      do: "settings", queue: form.get("queue"), watchList: form.get("list") === "watchList",
      fair: form.get("order") === "fair",
      workers: value("workers"), workMs: value("workMs"),
    });
    const faults = form.has("faults");
    if (value("rate") !== now.rate || value("objects") !== now.objects || faults !== random) {
      lab.send({ do: "workload", rate: value("rate"), objects: value("objects"), faults });
    }
    close();
  };
  const radio = (name, value, text, checked) => html`<label class="choice">
    <input type="radio" name=${name} value=${value} defaultChecked=${checked} /> ${text}</label>`;
  const select = (name, values, chosen) => html`<select name=${name} id=${"set-" + name}>
    ${(values.includes(chosen) || chosen == null ? values : [...values, chosen]).map((n) => html`
      <option key=${n} value=${String(n)} selected=${n === chosen}>${number(n)}</option>`)}</select>`;
  return html`<form class="settings" onSubmit=${submit}>
    <p class="dim">${t("settings.intro")}</p>
    <fieldset><legend>${t("settings.queue")}</legend>
      ${radio("queue", "deltafifo", "DeltaFIFO", now.queue !== "realfifo")}
      ${radio("queue", "realfifo", "RealFIFO", now.queue === "realfifo")}</fieldset>
    <fieldset><legend>${t("settings.list")}</legend>
      ${radio("list", "list", "LIST + WATCH", !now.watchList)}
      ${radio("list", "watchList", "WatchList", now.watchList)}</fieldset>
    <fieldset><legend>${t("piece.workqueue.name")}</legend>
      ${radio("order", "fifo", t("settings.fifo"), !now.fair)}
      ${radio("order", "fair", t("settings.fair"), now.fair)}</fieldset>
    <fieldset><legend>${t("piece.workers.name")}</legend>
      <label for="set-workers">${t("settings.workers")}</label>
      <input id="set-workers" name="workers" type="number" min="1" max="16" required
        defaultValue=${now.workers ?? 2} />
      <label for="set-workMs">${t("settings.workMs")}</label>
      <input id="set-workMs" name="workMs" type="number" min="0" max="60000" step="10" required
        defaultValue=${now.workMs ?? 100} /></fieldset>
    <fieldset><legend>${t("settings.workload")}</legend>
      <label for="set-rate">${t("settings.rate")}</label>
      ${select("rate", RATES, now.rate ?? 0)}
      <label for="set-objects">${t("settings.objects")}</label>
      ${select("objects", OBJECTS, now.objects ?? 20)}
      <label class="choice"><input type="checkbox" name="faults" defaultChecked=${random} />${" "}
        ${t("settings.faults")}</label></fieldset>
    <div class="steps"><button type="button" class="btn" onClick=${close}>${t("cancel")}</button>
      <button type="submit" class="btn primary">${t("apply")}</button></div>
  </form>`;
}
