/** What reports tell of one person, in words: how good a guess becomes, and what a report says. Nothing touches a page. */

import { toHex } from "../device/bytes.js";
import { Numeric } from "../device/encodings/numeric.js";
import { Ranged } from "../device/encodings/range.js";
import { readValue } from "../device/typed.js";

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
  return share >= NEARLY_CERTAIN
    ? "With this limit, the clearest report would be close to saying my answer openly."
    : null;
}

/**
 * What the reports so far tell, as a sentence.
 *
 * @param {Encoding} encoding
 * @param {string} spent
 */
export function spentSentence(encoding, spent) {
  const { bound, blind, scale } = guessAt(answersOf(encoding), spent);
  return (
    `Whoever saw all of this guesses right at most ${times(bound)} in ${count(scale)}, instead of ${count(blind)}. ` +
    `That is what it cost: epsilon ${spent}.`
  );
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
 * A report as it travelled: a label or a number, or else its bytes. A place is said as the number that it is near.
 *
 * @param {Encoding} encoding
 * @param {Sent} sent
 * @returns {{ text: string, bytes: boolean, beside: string | null }}
 */
export function reportWords(encoding, { report, cohort }) {
  const beside = cohort === null ? null : `group ${cohort}, drawn at random`;
  if (encoding instanceof Ranged) return { ...numberWords(encoding, Number(report)), bytes: false };
  if (encoding.name === "categorical") return { text: valueText(readValue(report).value), bytes: false, beside };
  return { text: String(report), bytes: true, beside: beside ?? namedBy(encoding, String(report)) };
}

/**
 * @param {Ranged} encoding
 * @param {number} report
 */
function numberWords(encoding, report) {
  const { low, high } = encoding;
  const scale = `a scale from ${low} to ${high}`;
  if (encoding instanceof Numeric) {
    return { text: String(report), beside: `the ${report === low ? "lower" : "upper"} end of ${scale}` };
  }
  const number = encoding.numberAt(report);
  const where =
    number < low ? `below ${low}` : number > high ? `above ${high}` : `near ${shortNumber(encoding, number)}`;
  return { text: where, beside: `sent as place ${report}, on ${scale}` };
}

/**
 * A number of a range with no more digits than its bins can tell apart.
 *
 * @param {Ranged} encoding
 * @param {number} number
 */
export function shortNumber({ low, high, step }, number) {
  const digits = Math.ceil(Math.log10(Math.max(-low, high)) - Math.log10(step)) + 1;
  return String(Number(number.toPrecision(Math.min(17, Math.max(2, digits)))));
}

/**
 * The values whose bits are set in a row of bits, the lowest bit of each byte first; null where they would be too many.
 *
 * @param {Encoding} encoding
 * @param {string} report
 */
function namedBy({ name, values }, report) {
  if (!name.startsWith("unary-") || values === null || values.length > MOST_NAMED) return null;
  const bytes = Uint8Array.from(atob(report), (letter) => letter.charCodeAt(0));
  const named = values.filter((_, i) => (bytes[i >> 3] >> (i & 7)) & 1).map(valueText);
  return named.length === 0 ? "which names none of the answers" : `which names: ${named.join(", ")}`;
}

/** @param {number} number */
export function times(number) {
  return number === 1 ? "1 time" : `${count(number)} times`;
}

/** @param {number} number */
export function count(number) {
  return number.toLocaleString("en-GB");
}
