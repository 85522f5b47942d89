// SPDX-License-Identifier: Apache-2.0

/**
 * Actions: everything that a reader can do to the program, each with its key.
 *
 * An action belongs to a piece, and its button is in the footer of that piece's card; an action of
 * piece "time" is in the header, and one of piece "page" never leaves the browser. command returns
 * what is sent; active reports whether the button is to appear pressed, and when, whether it is
 * there.
 */
import { html, cx } from "./html.js";
import { t } from "./text.js";

/** SLOW_HANDLER_MS is the delay per call of a handler that was slowed down. */
const SLOW_HANDLER_MS = 1000;

const settings = (lab) => lab.frame?.settings ?? {};
const lastHandler = (lab) => lab.frame?.handlers?.at(-1) ?? {};
const leader = (lab) => lab.frame?.election ?? {};
const namespaces = (lab) => lab.frame?.reflector?.namespaces?.map(({ name }) => name);
const custom = (lab) => lab.frame?.reflector?.kind;
const fault = (kind) => ({
  active: (lab) => lab.frame?.workers?.fault === kind,
  command: (lab) => {
    const off = lab.frame?.workers?.fault === kind;
    return { do: "reconcile", fault: off ? "none" : kind };
  },
});
/** nextMode is what the run key does: pause, or continue as fast as before. */
const nextMode = (lab) =>
  lab.frame?.mode !== "pause" ? "pause" : lab.ui.delayMs > 0 ? "slow" : "run";
const followed = (lab) => (lab.ui.follow ? { key: lab.ui.follow } : {});

export const ACTIONS = [
  {
    id: "run", key: " ", piece: "time",
    command: (lab) => ({ do: "mode", mode: nextMode(lab), delayMs: lab.ui.delayMs }),
  },
  { id: "step", key: ".", piece: "time", command: () => ({ do: "step" }) },
  { id: "back", key: "ArrowLeft", piece: "time", local: (lab) => lab.lookBack(-1) },
  { id: "live", key: "End", piece: "time", local: (lab) => lab.toPresent() },
  { id: "slower", key: "[", piece: "time", local: (lab) => lab.changeSpeed(+1) },
  { id: "faster", key: "]", piece: "time", local: (lab) => lab.changeSpeed(-1) },

  { id: "create", key: "n", piece: "server", writes: true, command: () => ({ do: "create" }) },
  {
    id: "change", key: "u", piece: "server", writes: true,
    command: (lab) => ({ do: "change", ...followed(lab) }),
  },
  {
    id: "delete", key: "d", piece: "server", writes: true,
    command: (lab) => ({ do: "delete", ...followed(lab) }),
  },
  { id: "compact", key: "k", piece: "server", writes: true, command: () => ({ do: "compact" }) },
  {
    id: "server", key: "x", piece: "server", writes: true,
    active: (lab) => lab.frame?.server?.up === false,
    command: (lab) => ({ do: "server", up: lab.frame?.server?.up === false }),
  },
  {
    id: "define", key: "5", piece: "server", writes: true, when: custom,
    active: (lab) => custom(lab)?.phase === "serving",
    command: (lab) => ({ do: "define", on: custom(lab)?.phase !== "serving" }),
  },
  {
    id: "workload", key: "a", piece: "server", writes: true,
    active: (lab) => settings(lab).rate > 0,
    command: (lab) => ({
      do: "workload", rate: settings(lab).rate > 0 ? 0 : 5, objects: settings(lab).objects || 20,
    }),
  },

  ...["cut", "stall", "expire"].map((kind, i) => ({
    id: kind, key: "cte"[i], piece: "reflector", writes: true,
    active: (lab) => lab.frame?.server?.fault === kind,
    command: () => ({ do: "watch", fault: kind }),
  })),
  {
    id: "watchList", key: "w", piece: "reflector", writes: true,
    active: (lab) => settings(lab).watchList === true,
    command: (lab) => ({ do: "settings", watchList: !settings(lab).watchList }),
  },

  {
    id: "namespace", key: "6", piece: "reflector", writes: true, when: namespaces,
    active: (lab) => namespaces(lab).includes("batch"),
    command: (lab) => ({
      do: "namespaces", names: namespaces(lab).includes("batch")
        ? namespaces(lab).filter((name) => name !== "batch") : [...namespaces(lab), "batch"],
    }),
  },

  {
    id: "queue", key: "q", piece: "queue", writes: true,
    active: (lab) => lab.frame?.queue?.kind === "RealFIFO",
    command: (lab) => ({
      do: "settings", queue: lab.frame?.queue?.kind === "RealFIFO" ? "deltafifo" : "realfifo",
    }),
  },
  { id: "resync", key: "r", piece: "store", writes: true, command: () => ({ do: "resync" }) },
  {
    id: "own", key: "m", piece: "store", writes: true,
    command: (lab) => ({ do: "own", key: lab.ui.follow || lab.frame?.store?.items?.[0]?.key }),
  },

  {
    id: "slow", key: "h", piece: "handlers", writes: true,
    active: (lab) => lastHandler(lab).delayMs > 0,
    command: (lab) => ({
      do: "handler", name: lastHandler(lab).name,
      delayMs: lastHandler(lab).delayMs > 0 ? 0 : SLOW_HANDLER_MS,
    }),
  },
  {
    id: "panic", key: "p", piece: "handlers", writes: true,
    command: (lab) => ({ do: "handler", name: lastHandler(lab).name, panic: true }),
  },

  {
    id: "shutdown", key: "s", piece: "workqueue", writes: true,
    active: (lab) => lab.frame?.workqueue?.shutDown != null,
    command: (lab) => ({ do: lab.frame?.workqueue?.shutDown ? "restart" : "shutdown" }),
  },
  {
    id: "fair", key: "3", piece: "workqueue", writes: true,
    active: (lab) => settings(lab).fair === true,
    command: (lab) => ({ do: "settings", fair: !settings(lab).fair }),
  },

  { id: "fail", key: "f", piece: "workers", writes: true, ...fault("fail") },
  { id: "hang", key: "g", piece: "workers", writes: true, ...fault("hang") },
  { id: "conflict", key: "o", piece: "workers", writes: true, ...fault("conflict") },
  {
    id: "noted", key: "4", piece: "workers", writes: true,
    active: (lab) => settings(lab).noted === true,
    command: (lab) => ({ do: "settings", noted: !settings(lab).noted }),
  },

  {
    id: "kill", key: "l", piece: "election", writes: true,
    command: () => ({ do: "leader", fault: "kill" }),
  },
  {
    id: "release", key: "1", piece: "election", writes: true,
    command: () => ({ do: "leader", fault: "release" }),
  },
  {
    id: "isolate", key: "2", piece: "election", writes: true,
    active: (lab) => leader(lab).cutNames?.length > 0,
    command: (lab) => ({ do: "leader", fault: leader(lab).cutNames?.length ? "resume" : "cut" }),
  },
  {
    id: "freeze", key: "y", piece: "election", writes: true,
    active: (lab) => leader(lab).paused === true,
    command: (lab) => ({ do: "leader", fault: leader(lab).paused ? "resume" : "pause" }),
  },

  {
    id: "settings", key: ",", piece: "page", writes: true,
    local: (lab) => lab.set({ dialog: "settings" }),
  },
  { id: "lessons", key: "j", piece: "page", local: (lab) => lab.set({ tab: "lessons" }) },
  {
    id: "search", key: "/", piece: "page",
    local: (lab) => {
      lab.set({ tab: "events" });
      lab.focus("#search");
    },
  },
  { id: "code", key: "i", piece: "page", local: (lab) => lab.set({ tab: "code" }) },
  { id: "events", key: "v", piece: "page", local: (lab) => lab.set({ tab: "events" }) },
  { id: "unfollow", key: "Escape", piece: "page", local: (lab) => lab.follow("") },
  { id: "theme", key: "b", piece: "page", local: (lab) => lab.toggleTheme() },
  { id: "language", key: "z", piece: "page", local: (lab) => lab.toggleLanguage() },
  { id: "help", key: "?", piece: "page", local: (lab) => lab.set({ dialog: "help" }) },
];

export const action = (id) => ACTIONS.find((a) => a.id === id);

/** offered reports whether the page shows an action: not those that the program would refuse. */
export function offered(lab, a) {
  if (a.when && !a.when(lab)) return false;
  if (a.piece === "page") return !a.writes || (lab.source.live && lab.model.hello?.writable);
  if (!lab.source.live) return false;
  return !a.writes || lab.model.hello?.writable === true;
}

/** perform runs an action: in the page, or by a command. */
export function perform(lab, a) {
  if (a.local) return a.local(lab);
  lab.toPresent(); // a command concerns what the program does now
  lab.send(a.command(lab));
}

/** keyName is what a key is called on the page. */
export const keyName = (key) => t("key")[key] ?? key;

/** ActionButton is the button of one action, with its key. */
export function ActionButton({ lab, id, label }) {
  const a = action(id);
  if (!offered(lab, a)) return null;
  const pressed = a.active?.(lab);
  return html`<button type="button" class=${cx("btn", pressed && "on")}
    disabled=${!a.local && lab.ui.connection !== "connected"}
    aria-pressed=${a.active ? pressed === true : undefined}
    aria-keyshortcuts=${a.key === " " ? "Space" : a.key}
    title=${t(`action.${id}.help`)}
    onClick=${() => perform(lab, a)}>
    ${label ?? t(`action.${id}.name`)} <kbd>${keyName(a.key)}</kbd>
  </button>`;
}

/** ActionBar is the footer of a card: the actions of its piece. */
export function ActionBar({ lab, piece }) {
  const actions = ACTIONS.filter((a) => a.piece === piece && offered(lab, a));
  if (!actions.length) return null;
  return html`<div class="bar" role="group" aria-label=${t("bar", { piece: t(`piece.${piece}.name`) })}>
    ${actions.map((a) => html`<${ActionButton} key=${a.id} lab=${lab} id=${a.id} />`)}
  </div>`;
}
