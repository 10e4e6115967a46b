/**
 * Words in the reader's own language. Every language is one file of sentences by name, with places in braces; a page
 * says which files it has, the browser which one is wanted, and the reader may choose another.
 *
 * Where nothing was chosen, English speaks: what the kit says by itself is there without anything being loaded. An old
 * browser can read this file: it is what tells a person that theirs is too old.
 */

import { h } from "./dom.js";
import ENGLISH from "./words/en.js";

/** @typedef {string | { one: string, other: string }} Wording of a sentence; two where it depends on its `number` */
/** @typedef {Readonly<Record<string, Wording>>} Words */
/** @typedef {string | number | Node} Field numbers are written as the language does */
/** @typedef {Readonly<Record<string, Field>>} Fields */
/** @typedef {keyof typeof LANGUAGES} Language */

/** What there is, by its own name: whoever looks for it reads no other. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

/** How dates and numbers are written where the browser names no country of the language. */
const STANDARD = { en: "en-GB", de: "de-DE" };
const PLACE = /\{(\w+)\}/;
const KEPT = "relaxdp language";

/** @type {{ language: Language, locale: string, words: Words }} */
let current = { language: "en", locale: STANDARD.en, words: ENGLISH };
/** @type {Set<() => void>} */
const listeners = new Set();

/**
 * Return the first language that is wanted and known, and how its dates and numbers are written.
 *
 * @param {readonly string[]} wanted as a browser lists them
 * @param {string | null} [chosen] by the reader, who knows better
 * @returns {{ language: Language, locale: string }}
 */
export function preferred(wanted, chosen = null) {
  const known = (/** @type {string} */ name) => Object.keys(LANGUAGES).includes(name.toLowerCase().split("-")[0]);
  const first = [...(chosen === null ? [] : [chosen]), ...wanted, "en"].find(known) ?? "en";
  const language = /** @type {Language} */ (first.toLowerCase().split("-")[0]);
  const local = wanted.find((name) => name.toLowerCase().startsWith(`${language}-`));
  return { language, locale: local ?? STANDARD[language] };
}

/**
 * Speak a language from now on, and tell everything that is shown.
 *
 * @param {{ language: Language, locale: string }} chosen
 * @param {Words} words
 */
export function speak({ language, locale }, words) {
  current = { language, locale, words: { ...ENGLISH, ...words } };
  for (const listener of listeners) listener();
}

/**
 * Be told when another language is spoken.
 *
 * @param {() => void} listener
 */
export const onLanguage = (listener) => void listeners.add(listener);

/**
 * Return a sentence.
 *
 * @param {string} name
 * @param {Fields} [fields]
 */
export const word = (name, fields) => pieces(name, fields).join("");

/**
 * Return a sentence in pieces, of which some may be elements.
 *
 * @param {string} name
 * @param {Fields} [fields]
 * @returns {(string | Node)[]}
 */
export function pieces(name, fields = {}) {
  const wording = current.words[name];
  if (wording === undefined) throw new TypeError(`there are no words for ${name}`);
  const rule = () => new Intl.PluralRules(current.locale).select(Number(fields.number)) === "one";
  const text = typeof wording === "string" ? wording : wording[rule() ? "one" : "other"];
  return text.split(PLACE).map((piece, i) => {
    if (i % 2 === 0) return piece;
    const field = fields[piece];
    if (field === undefined) throw new TypeError(`${name} has no ${piece}`);
    return typeof field === "number" ? count(field) : field;
  });
}

/**
 * Return a number as the language writes it.
 *
 * @param {number | bigint} number
 * @param {Intl.NumberFormatOptions} [options]
 */
export function count(number, options) {
  return new Intl.NumberFormat(current.locale, options).format(number);
}

/**
 * Return a number with all its digits, or its short form where it is too large or too small to be read.
 *
 * @param {number} number
 */
export function plainNumber(number) {
  const size = Math.abs(number);
  if (!Number.isFinite(size) || size >= 1e21 || (size !== 0 && size < 1e-6)) return String(number);
  const [whole, part] = String(size).split(".");
  const digits = count(BigInt(whole), { useGrouping: size >= 10000 }); // a year has four digits
  return `${number < 0 ? "-" : ""}${digits}${part === undefined ? "" : decimalMark() + part}`;
}

/**
 * Return an exact decimal number, like an epsilon, with the language's mark.
 *
 * @param {string} text
 */
export const decimal = (text) => text.replace(".", decimalMark());

/** @param {string[]} items */
export const listed = (items) => new Intl.ListFormat(current.locale, { type: "conjunction" }).format(items);

/** @param {string} time */
export function moment(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  return date.toLocaleString(current.locale, { dateStyle: "long", timeStyle: "short" });
}

const decimalMark = () => count(1.5).slice(1, -1);

/**
 * Read a number as people write it: "7,5" in German and "7.5" in English, and the other way round where only that can
 * be meant. NaN for what is none.
 *
 * @param {string} text
 */
export function readNumber(text) {
  const [own, other] = decimalMark() === "," ? [",", "."] : [".", ","];
  const plain = text
    .trim()
    .replaceAll("\u2212", "-")
    .replace(/[\s'’\u00a0\u202f]/g, "");
  const grouped = new RegExp(`^[+-]?\\d{1,3}(\\${other}\\d{3})+(\\${own}\\d+)?$`);
  const digits = grouped.test(plain) ? plain.replaceAll(other, "") : plain;
  if (!/^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i.test(digits)) return Number.NaN;
  return Number(digits.replace(",", "."));
}

/**
 * Say everything in a page that names its words: `data-word` the text of an element, `data-word-label` its label.
 *
 * @param {ParentNode} root
 */
export function translate(root) {
  document.documentElement.lang = current.language;
  for (const element of root.querySelectorAll("[data-word]")) {
    element.textContent = word(element.getAttribute("data-word") ?? "");
  }
  for (const element of root.querySelectorAll("[data-word-label]")) {
    element.setAttribute("aria-label", word(element.getAttribute("data-word-label") ?? ""));
  }
}

/**
 * Return the switch: a button for each language, of which that which is spoken is pressed.
 *
 * @param {(language: Language) => void} choose
 */
export function languageSwitch(choose) {
  const names = /** @type {[Language, string][]} */ (Object.entries(LANGUAGES));
  const buttons = names.map(([language, name]) => {
    const say = () => button.setAttribute("aria-pressed", String(current.language === language));
    const button = h(
      "button",
      { type: "button", class: "quiet", lang: language, onclick: () => choose(language) },
      name,
    );
    onLanguage(say);
    say();
    return button;
  });
  return h("div", { class: "languages", role: "group", "data-word-label": "language" }, ...buttons);
}

/** What the reader chose before; null where that is nothing, or nothing is kept. */
export function rememberedLanguage() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

/** @param {Language} language */
export function rememberLanguage(language) {
  try {
    localStorage.setItem(KEPT, language);
  } catch {
    // A private window: it is asked again.
  }
}
