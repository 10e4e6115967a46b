/** Credits, levels and precision in words. An epsilon is the decimal text that it is, never a rounded number. */

import { measureOf, whole } from "../kit/words.js";

const LONG = 7;
const WIDEST_SHARE = 0.5;

export const POOLED = "However many buyers pool what they bought, they learn no more than the best of them.";
export const KINDS = { release: "release", pool: "pool" };
export const ABSENT = { release: "not on sale yet", pool: "nobody sells it now" };
export const STATES = { open: "on sale", draft: "draft", closed: "closed" };

/** @param {number} number */
export const credits = (number) => `${whole(number)} ${Math.abs(number) === 1 ? "credit" : "credits"}`;

/**
 * Return an epsilon for the eye: long ones are cut, which is said.
 *
 * @param {string} epsilon
 */
export const shown = (epsilon) => (epsilon.length > LONG ? `${epsilon.slice(0, LONG - 1)}…` : epsilon);

/** @typedef {{ epsilon: string, price: number, each: number | null, objects: number, half_width: number | null, available: boolean }} Level */

/**
 * Return the levels that can be bought now.
 *
 * @param {{ levels: Level[] }} listing
 */
export const onSale = ({ levels }) => levels.filter(({ available }) => available);

/**
 * Return the level below that costs as much; null where there is none.
 *
 * @param {{ levels: Level[] }} listing
 * @param {string} epsilon
 */
export function noDearer({ levels }, epsilon) {
  const place = levels.findIndex((level) => level.epsilon === epsilon);
  const [below, level] = [levels[place - 1], levels[place]];
  return place > 0 && (level.each ?? level.price) === (below.each ?? below.price) ? below.epsilon : null;
}

/**
 * Return the half-width at which nothing is known.
 *
 * @param {any} encoding
 */
export const widest = (encoding) =>
  encoding?.range === undefined ? WIDEST_SHARE : (encoding.range[1] - encoding.range[0]) / 2;

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
