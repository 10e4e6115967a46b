/** Credits, levels and precision in words. An epsilon is the decimal text that it is, never a rounded number. */

import { measureOf, whole } from "../kit/words.js";

/** @typedef {import("../kit/wire.d.ts").Encoding} Encoding */
/** @typedef {import("../kit/wire.d.ts").Listing} Listing */

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
export const shortEpsilon = (epsilon) => (epsilon.length > LONG ? `${epsilon.slice(0, LONG - 1)}…` : epsilon);

/**
 * Return the levels that can be bought now.
 *
 * @param {Listing} listing
 */
export const onSale = ({ levels }) => levels.filter(({ available }) => available);

/**
 * Return the level below that costs as much; null where there is none.
 *
 * @param {Listing} listing
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
 * @param {Encoding | null} encoding
 */
export const widest = (encoding) =>
  encoding?.range === undefined ? WIDEST_SHARE : (encoding.range[1] - encoding.range[0]) / 2;

/**
 * Return how precise a level is.
 *
 * @param {Encoding | null} encoding
 * @param {number | null} halfWidth
 */
export function precision(encoding, halfWidth) {
  if (halfWidth === null || encoding === null || halfWidth >= widest(encoding)) return "nothing known";
  return measureOf(encoding).width(halfWidth).replaceAll(" ", "\u00a0");
}

/**
 * Return what a level tells, after a verb.
 *
 * @param {Encoding | null} encoding
 * @param {number | null} halfWidth
 */
export function toldBy(encoding, halfWidth) {
  if (halfWidth === null || encoding === null || halfWidth >= widest(encoding)) return "almost nothing";
  return `${measureOf(encoding).numeric ? "the mean" : "every share"} to ${precision(encoding, halfWidth)}`;
}

/**
 * Return the values or the range, short.
 *
 * @param {Encoding | null} encoding
 */
export function answers(encoding) {
  if (encoding === null) return null;
  if (encoding.range !== undefined) return `numbers from ${encoding.range[0]} to ${encoding.range[1]}`;
  return encoding.values === undefined ? encoding.name : whole(encoding.values.length);
}
