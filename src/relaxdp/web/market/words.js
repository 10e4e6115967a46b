/** Credits, levels and precision in words. An epsilon is the decimal text that it is, never a rounded number. */

import { measureOf, plural, whole } from "../kit/words.js";

/** @typedef {import("../kit/wire.d.ts").Encoding} Encoding */
/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").OfferedLevel} Level */

const LONG = 7;
const WIDEST_SHARE = 0.5;

export const POOLED = "However many buyers pool what they bought, they learn no more than the best of them.";
export const KINDS = { release: "data set", pool: "pool" };
export const ABSENT = { release: "not on sale yet", pool: "nobody sells it now" };
export const STATES = { open: "on sale", draft: "draft", closed: "closed" };
export const NOT_SAID = "not stated";

export const ALL_BUYERS = "All buyers together know";
export const MARKET_HOLDS = "This market holds";

/** @param {string} epsilon the largest level that somebody has; 0 where nobody has any */
export const upTo = (epsilon) => (epsilon === "0" ? "nothing" : `up to ε ${shortEpsilon(epsilon)}`);

/** @param {number} number */
export const credits = (number) => `${whole(number)} ${Math.abs(number) === 1 ? "credit" : "credits"}`;

/** @param {number} number of people in a pool */
export const people = (number) => (number === 1 ? "1 person" : `${whole(number)} people`);

/**
 * Return how many answers a listing holds, or would hold at a level.
 *
 * @param {Pick<Listing, "kind">} listing
 * @param {number} number
 */
export const answered = ({ kind }, number) => (kind === "pool" ? people(number) : plural(number, "answer"));

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
 * Return the level that stands there before somebody chooses: what is owned, or the cheapest that tells anything. One
 * for which another costs no more and tells no less is never proposed.
 *
 * @param {Listing} listing
 * @param {string | null} owned
 */
export function firstChoice(listing, owned) {
  const levels = onSale(listing);
  const mine = levels.find(({ epsilon }) => epsilon === owned);
  if (mine !== undefined) return mine.epsilon;
  const above = levels.filter(({ epsilon, better }) => better === null && Number(epsilon) > Number(owned ?? 0));
  const telling = above.filter((level) => tells(listing.encoding, level.half_width));
  const [first] = [telling, above, levels].filter((some) => some.length > 0);
  return first.reduce((best, level) => (level.price < best.price ? level : best)).epsilon;
}

/**
 * Return why a curve dips where a larger level costs less or tells less; null where none does.
 *
 * @param {Listing} listing
 */
export function dipWords(listing) {
  const levels = onSale(listing);
  const place = levels.findIndex((level, at) => at > 0 && isDip(levels[at - 1], level));
  if (place < 0) return null;
  const [below, above] = [levels[place - 1], levels[place]];
  return (
    `The curve dips at ε ${shortEpsilon(above.epsilon)}: ${people(above.objects)} sell there, and ` +
    `${whole(below.objects)} at ε ${shortEpsilon(below.epsilon)}. Everybody sets a limit of their own, so a larger ` +
    "level has fewer people in it. It may cost less, and tell less."
  );
}

/**
 * @param {Level} below
 * @param {Level} above
 */
const isDip = (below, above) =>
  above.objects < below.objects &&
  (above.price < below.price || Number(above.half_width) > Number(below.half_width) + 1e-12);

/** @param {Level | undefined} level */
export const betterWords = (level) =>
  level === undefined || level.better === null
    ? null
    : `ε ${shortEpsilon(level.better)} costs no more and tells no less.`;

/** @param {Level} level */
export const betterNote = ({ better }) => (better === null ? null : `ε ${shortEpsilon(better)} is the better buy`);

/**
 * Return the half-width at which nothing is known.
 *
 * @param {Encoding | null} encoding
 */
export const widest = (encoding) =>
  encoding?.range === undefined ? WIDEST_SHARE : (encoding.range[1] - encoding.range[0]) / 2;

/**
 * Return whether a level tells anything.
 *
 * @param {Encoding | null} encoding
 * @param {number | null} halfWidth
 */
export const tells = (encoding, halfWidth) => halfWidth !== null && encoding !== null && halfWidth < widest(encoding);

/**
 * Return how precise a level is.
 *
 * @param {Encoding | null} encoding
 * @param {number | null} halfWidth
 */
export function precision(encoding, halfWidth) {
  if (halfWidth === null || !tells(encoding, halfWidth)) return "nothing known";
  return measureOf(encoding).width(halfWidth).replaceAll(" ", "\u00a0");
}

/**
 * Return what a level tells, after a verb.
 *
 * @param {Encoding | null} encoding
 * @param {number | null} halfWidth
 */
export function toldBy(encoding, halfWidth) {
  if (!tells(encoding, halfWidth)) return "almost nothing";
  return `${measureOf(encoding).numeric ? "the mean" : "every share"} to ${precision(encoding, halfWidth)}`;
}

/**
 * Return the values or the range, short.
 *
 * @param {Encoding | null} encoding
 */
export function answers(encoding) {
  if (encoding === null) return null;
  if (encoding.range !== undefined) return `a number from ${encoding.range[0]} to ${encoding.range[1]}`;
  return encoding.values === undefined ? "one of many" : `one of ${whole(encoding.values.length)}`;
}
