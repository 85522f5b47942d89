// SPDX-License-Identifier: Apache-2.0

/** The ways between the cards, and the way that each hop takes. */

/** The rails: where they begin and end. */
export const RAILS = {
  ask: ["reflector", "server"],
  wire: ["server", "reflector"],
  deltas: ["reflector", "queue"],
  pop: ["queue", "store"],
  notify: ["store", "handlers"],
  keys: ["handlers", "workqueue"],
  get: ["workqueue", "workers"],
  write: ["workers", "server"],
};

/** SERVER are the rails of the server's events. A LIST is a request and its answer. */
const SERVER = {
  LIST: ["ask", "wire"], WATCH: ["ask"],
  ADDED: ["wire"], MODIFIED: ["wire"], DELETED: ["wire"], BOOKMARK: ["wire"], ERROR: ["wire"],
  POST: ["write"], PUT: ["write"], PATCH: ["write"], DELETE: ["write"],
};

/** railsOf returns the rails that a hop takes, one after the other. Not every hop is a movement. */
export function railsOf(hop) {
  switch (hop.hop) {
    case "server":
      return SERVER[hop.what] ?? [];
    case "deltafifo":
      return hop.what === "Pop" ? ["pop"] : ["deltas"];
    case "store":
      return ["notify"]; // into the log, where each handler finds it
    case "workqueue":
      return { Get: ["get"], Add: ["keys"] }[hop.what] ?? [];
  }
  return [];
}

/** cardOf returns the piece of a hop's card. */
export function cardOf(hop) {
  const pieces = { deltafifo: "queue", handler: "handlers", worker: "workers" };
  return pieces[hop.hop] ?? hop.hop;
}
