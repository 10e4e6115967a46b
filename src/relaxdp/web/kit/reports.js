/** What reports tell of one person, in words: how good a guess becomes, and what a report says. Nothing touches a page. */

import { toHex } from "../device/bytes.js";
import { Bloom } from "../device/encodings/bloom.js";
import { LocalHash } from "../device/encodings/local_hash.js";
import { Numeric } from "../device/encodings/numeric.js";
import { Ranged } from "../device/encodings/range.js";
import { Unary } from "../device/encodings/unary.js";
import { readValue } from "../device/typed.js";
import { count, decimal, plainNumber, word } from "./language.js";

/** @typedef {import("../device/encodings/registry.js").Encoding} Encoding */
/** @typedef {import("../device/state.js").Sent} Sent */

/**
 * A guess that somebody makes about an answer: how often it is right, out of `scale`, knowing nothing, and at most,
 * knowing all reports.
 *
 * @typedef {object} Guess
 * @property {number} scale 100, or more where a blind guess is rarely right
 * @property {number} blind rounded
 * @property {number} bound rounded up: it is a promise
 * @property {number} share the bound itself, from 0 to 1
 */

const MOST_NAMED = 20;
// A blind guess at free text: somebody suspects one word and would be right one time in a hundred.
export const WORDS_SUSPECTED = 100;
const NEARLY_CERTAIN = 0.9;

/**
 * How many equally likely answers there are for somebody who knows nothing. A number is guessed by halves of its range.
 *
 * @param {Encoding} encoding
 */
export function answersOf(encoding) {
  if (encoding.values !== null) return encoding.values.length;
  return encoding instanceof Ranged || encoding.isBoolean ? 2 : WORDS_SUSPECTED;
}

/**
 * Bound a guess by Bayes: reports multiply the odds of any answer against any other by at most e^epsilon, so a guess
 * that was right with probability p is right with at most e^epsilon p / (e^epsilon p + 1 - p).
 *
 * @param {number} answers p is one over this
 * @param {string} epsilon
 * @returns {Guess}
 */
export function guessAt(answers, epsilon) {
  const scale = 10 ** (Math.ceil(Math.log10(answers) - 1e-9) + 1);
  const share = 1 / (1 + (answers - 1) * Math.exp(-Number(epsilon)));
  return { scale, blind: Math.round(scale / answers), bound: Math.ceil(scale * share - 1e-9), share };
}

/** @param {Guess} guess */
export function cautionSentence({ share }) {
  return share >= NEARLY_CERTAIN ? word("report.caution") : null;
}

/**
 * What the reports so far tell, as a sentence.
 *
 * @param {Encoding} encoding
 * @param {string} spent
 */
export function spentSentence(encoding, spent) {
  const { bound, blind, scale } = guessAt(answersOf(encoding), spent);
  return word("report.spent", { bound: often(bound, scale), blind, epsilon: decimal(spent) });
}

/**
 * A value as a person reads it.
 *
 * @param {unknown} value
 */
export function valueText(value) {
  return value instanceof Uint8Array ? toHex(value) : String(value);
}

/**
 * A report in words: an answer, the answers that it stands for, or a place near a number. `raw` is how it travelled where
 * the words do not say that already, and `beside` what else there is to say.
 *
 * @param {Encoding} encoding
 * @param {Pick<Sent, "report" | "cohort">} sent
 * @returns {{ text: string, beside: string | null, raw: string | null }}
 */
export function reportWords(encoding, { report, cohort }) {
  if (encoding instanceof Ranged) return numberWords(encoding, Number(report));
  if (encoding.name === "categorical") return { text: valueText(readValue(report).value), beside: null, raw: null };
  const raw = String(report);
  if (encoding instanceof Unary || encoding instanceof LocalHash) {
    return { text: namesOf(encoding.named(raw).map((i) => valueText(encoding.values[i]))), beside: null, raw };
  }
  const beside = cohort === null ? null : word("report.group", { cohort: String(cohort) });
  return { text: encoding instanceof Bloom ? marksOf(encoding, raw) : raw, beside, raw };
}

/**
 * @param {Ranged} encoding
 * @param {number} report
 */
function numberWords(encoding, report) {
  const { low, high } = encoding;
  const beside = word("report.scale", { low: plainNumber(low), high: plainNumber(high) });
  if (encoding instanceof Numeric) {
    const end = report === low ? "report.lower" : "report.upper";
    return { text: word(end, { number: plainNumber(report) }), beside, raw: null };
  }
  const number = encoding.numberAt(report);
  const [where, said] =
    number < low
      ? ["report.below", plainNumber(low)]
      : number > high
        ? ["report.above", plainNumber(high)]
        : ["report.near", shortNumber(encoding, number)];
  return { text: word(where, { number: said }), beside, raw: String(report) };
}

/**
 * A number of a range with no more digits than its bins can tell apart.
 *
 * @param {Ranged} encoding
 * @param {number} number
 */
export function shortNumber({ low, high, step }, number) {
  const digits = Math.ceil(Math.log10(Math.max(-low, high)) - Math.log10(step)) + 1;
  return plainNumber(Number(number.toPrecision(Math.min(17, Math.max(2, digits)))));
}

/** @param {string[]} names */
function namesOf(names) {
  if (names.length === 0) return word("report.none");
  const named = names.slice(0, MOST_NAMED).join(", ");
  return names.length <= MOST_NAMED ? named : word("report.more", { named, number: names.length - MOST_NAMED });
}

/**
 * @param {Bloom} encoding
 * @param {string} report
 */
function marksOf({ bits, isBoolean }, report) {
  const set = [...atob(report)].reduce((sum, letter) => sum + onesIn(letter.charCodeAt(0)), 0);
  if (isBoolean) return word(set === 1 ? "report.yes" : "report.no");
  return word("report.marks", { all: bits, set });
}

/** @param {number} byte */
const onesIn = (byte) => byte.toString(2).replaceAll("0", "").length;

/** @param {number} number */
export const times = (number) => word("times", { number });

/**
 * @param {number} number
 * @param {number} scale
 */
export const often = (number, scale) => word("often", { number, scale });

export { count };
