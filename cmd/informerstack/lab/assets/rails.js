// SPDX-License-Identifier: Apache-2.0

/** The ways between the cards, and the way that each hop takes. */

/** The rails: where they begin and end. */
export const RAILS = {
  wire: ["server", "reflector"],
  deltas: ["reflector", "queue"],
  pop: ["queue", "store"],
  notify: ["store", "handlers"],
  keys: ["handlers", "workqueue"],
  get: ["workqueue", "workers"],
  write: ["workers", "server"],
};

/** railOf returns the rail on which a hop arrives, or undefined: not every event is a movement. */
export function railOf(hop) {
  switch (hop.hop) {
    case "server":
      if (/^(POST|PUT|PATCH|DELETE)$/.test(hop.what)) return "write";
      return /^(ADDED|MODIFIED|DELETED|LIST)$/.test(hop.what) ? "wire" : undefined;
    case "deltafifo":
      return hop.what === "Pop" ? undefined : "deltas";
    case "store":
      return "pop";
    case "handler":
      return "notify";
    case "workqueue":
      if (hop.what === "Get") return "get";
      return hop.what === "Add" ? "keys" : undefined;
  }
}

/** cardOf returns the piece of a hop's card. */
export function cardOf(hop) {
  const pieces = { deltafifo: "queue", handler: "handlers", worker: "workers" };
  return pieces[hop.hop] ?? hop.hop;
}
