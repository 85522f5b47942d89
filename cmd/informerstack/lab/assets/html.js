// SPDX-License-Identifier: Apache-2.0

/** The page's one import of Preact and htm: templates without a compiler. */
import { h, render, Component, createRef } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
export { render, Component, createRef };

/** cx joins class names and drops false ones. */
export const cx = (...names) => names.filter(Boolean).join(" ");
