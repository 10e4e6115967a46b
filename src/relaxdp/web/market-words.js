/** Credits, levels and precision in words. An epsilon is the decimal text that it is, never a rounded number. */

import { roundStep } from "./dashboard-charts.js";
import { DECIMAL } from "./dashboard-fields.js";
import { measureOf, whole } from "./dashboard-words.js";

const STEPS = 100;
const LONG = 7;
const WIDEST_SHARE = 0.5;

export const POOLED = "However many buyers pool what they bought, they learn no more than the best of them.";
export const KINDS = { release: "release", pool: "pool" };
export const STATES = { open: "on sale", draft: "draft", closed: "closed" };

/** @param {number} number */
export const credits = (number) => `${whole(number)} ${Math.abs(number) === 1 ? "credit" : "credits"}`;

/**
 * Return an epsilon for the eye: long ones are cut, which is said.
 *
 * @param {string} epsilon
 */
export const shown = (epsilon) => (epsilon.length > LONG ? `${epsilon.slice(0, LONG - 1)}…` : epsilon);

/** @param {string} text */
export const isEpsilon = (text) => DECIMAL.test(text) && Number(text) > 0;

/**
 * Return the levels that a slider offers: round ones, and last the largest that is on sale.
 *
 * @param {string} authorised
 */
export function stepsOf(authorised) {
  const most = Number(authorised);
  const size = roundStep(most / STEPS);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  const number = Math.ceil(most / size - 1e-9);
  return Array.from({ length: number }, (_, place) => (place === number - 1 ? authorised : decimal((place + 1) * size, digits)));
}

/**
 * @param {number} value
 * @param {number} digits
 */
const decimal = (value, digits) => String(Number(value.toFixed(digits)));

/**
 * Return the half-width at which nothing is known.
 *
 * @param {any} encoding
 */
export const widest = (encoding) => (encoding?.range === undefined ? WIDEST_SHARE : (encoding.range[1] - encoding.range[0]) / 2);

/**
 * Return how precise a level is.
 *
 * @param {any} encoding
 * @param {number | null} halfWidth
 */
export function precision(encoding, halfWidth) {
  if (halfWidth === null || encoding === null || halfWidth >= widest(encoding)) return "nothing known";
  return measureOf(encoding).width(halfWidth).replaceAll(" ", "\u00a0");
}

/**
 * Return what a level tells, after a verb.
 *
 * @param {any} encoding
 * @param {number | null} halfWidth
 */
export function tells(encoding, halfWidth) {
  if (halfWidth === null || encoding === null || halfWidth >= widest(encoding)) return "almost nothing";
  return `${measureOf(encoding).numeric ? "the mean" : "every share"} to ${precision(encoding, halfWidth)}`;
}

/**
 * Return the values or the range, short.
 *
 * @param {any} encoding
 */
export function answers(encoding) {
  if (encoding === null) return null;
  if (encoding.range !== undefined) return `numbers from ${encoding.range[0]} to ${encoding.range[1]}`;
  return encoding.values === undefined ? encoding.name : whole(encoding.values.length);
}

/**
 * Say something to whoever does not see it.
 *
 * @param {string} sentence
 */
export function tell(sentence) {
  const place = document.getElementById("told");
  if (place !== null) place.textContent = sentence;
}
