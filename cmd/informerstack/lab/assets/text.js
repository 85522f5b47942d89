// SPDX-License-Identifier: Apache-2.0

/** The page's texts in the reader's language. */
import en from "./messages.en.js";
import zh from "./messages.zh.js";

const messages = { en, zh };
let language = "en";

/** initialLanguage is that of the address, the remembered one, or the browser's, if the page has it. */
export function initialLanguage(asked) {
  const wishes = [asked, remembered("language"), (navigator.language || "en").slice(0, 2)];
  return wishes.find((wish) => messages[wish]) ?? "en";
}

/** setLanguage makes t return texts of a language. */
export function setLanguage(choice) {
  language = choice;
  document.documentElement.lang = choice === "zh" ? "zh-Hans" : "en";
  document.title = t("title");
  remember("language", choice);
}

/**
 * t returns the message at a path such as "card.store.name", with {name} replaced by the
 * argument of that name, and {+s} by the plural's "s" unless {n} is 1. A message that a language
 * lacks is shown in English.
 */
export function t(path, args) {
  const text = lookup(messages[language], path) ?? lookup(en, path) ?? path;
  return typeof text === "string" ? filled(text, args) : text;
}

/** filled puts arguments into a text, as t does. */
export function filled(text, args) {
  if (args?.n !== undefined) text = text.replaceAll("{+s}", String(args.n) === "1" ? "" : "s");
  for (const name in args) text = text.replaceAll(`{${name}}`, () => String(args[name]));
  return text;
}

/** named is the message of a name that the program sent, or the name itself if there is none. */
export const named = (group, name) => lookup(messages[language], `${group}.${name}`) ?? name ?? "";

function lookup(tree, path) {
  return path.split(".").reduce((node, name) => node?.[name], tree);
}

/** local picks the page's language from a text that the program sent as {en, zh}. */
export function local(text) {
  if (text == null || typeof text === "string") return text ?? "";
  return text[language] ?? text.en ?? "";
}

/** translated is the path of a document in the page's language. */
export function translated(path) {
  if (language !== "zh") return path;
  if (path === "docs/README.md") return "docs/zh/docs.md"; // zh/README.md is that of the repository
  return path.replace(/^docs\//, "docs/zh/");
}

/** remembered reads a setting of an earlier visit; a browser may forbid it. */
export function remembered(name) {
  try {
    return localStorage.getItem("informerstack." + name);
  } catch {
    return null;
  }
}

/** remember stores a setting for the next visit. */
export function remember(name, value) {
  try {
    localStorage.setItem("informerstack." + name, value);
  } catch {
    // The page works without it.
  }
}
