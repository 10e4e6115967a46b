/** Levels as integers: the threshold of an epsilon, exact and rounded to the private side. */

import { readDecimal } from "./decimal.js";
import { RelaxdpError } from "./errors.js";

export const ONE = 2n ** 64n;

// Whoever crafts a decimal of a million digits could otherwise keep the loop of `threshold` busy for minutes.
const LONGEST_EPSILON = 1000;
const MOST_PARTS = 1000;

/**
 * Return the threshold of a level: T = 2^64 - ceil(2^64 * m / (e^(epsilon / parts) - 1 + m)), exactly. Where a truth is
 * spread over a window of several symbols at random, m / window stands in the place of m.
 *
 * Rounded down, so the guarantee that T realises never exceeds the epsilon that was asked for. The result is never
 * 2^64, which would be the bare truth; it is 0 where epsilon is too small to carry any information in 64 bits.
 *
 * @param {string} epsilon a decimal as a person wrote it, such as "0.1"; a binary float would be another number
 * @param {number | bigint} m how many values there are
 * @param {number} [parts] among how many symbols epsilon is divided: those in which two truths can differ
 * @param {number} [window] over how many values a truth is spread
 * @returns {bigint}
 */
export function threshold(epsilon, m, parts = 1, window = 1) {
  const size = alphabetSize(m);
  const { digits, scale, magnitude } = positiveDecimal(epsilon);
  if (!Number.isInteger(parts) || parts < 1 || parts > MOST_PARTS) {
    throw new RelaxdpError("parts_invalid", `epsilon is divided into 1 to ${MOST_PARTS} parts. Nothing was drawn.`);
  }
  if (!Number.isInteger(window) || window < 1 || BigInt(window) >= size) {
    throw new RelaxdpError("window_invalid", "a truth is spread over some of the values, not all. Nothing was drawn.");
  }
  // Two cut-offs keep the powers of ten small. Below 1e-20, e^epsilon - 1 is under m / (2^64 - 1) for every m above 1,
  // and that is where the first threshold begins.
  if (magnitude > 5n) return ONE - 1n;
  if (magnitude < -20n) return 0n;
  const numerator = scale < 0n ? digits : digits * 10n ** scale;
  const denominator = (scale < 0n ? 10n ** -scale : 1n) * BigInt(parts);
  // From ln(1 + m(2^64 - 1)) on, which is below 89 for every 64-bit m, all levels share the last threshold.
  if (numerator >= 89n * denominator) return ONE - 1n;
  // e^epsilon is irrational, so it lies on no boundary between two thresholds and the two ends agree in the end.
  for (let bits = 128n; ; bits *= 2n) {
    const [low, high] = expm1Bounds(numerator, denominator, bits);
    const lowest = thresholdOfOdds(low * BigInt(window), size, bits);
    if (lowest === thresholdOfOdds(high * BigInt(window), size, bits)) return lowest;
  }
}

/**
 * Return the threshold of a level that is to be released, which must tell at least something.
 *
 * @param {string} epsilon
 * @param {number | bigint} m
 * @param {number} [parts]
 * @param {number} [window]
 * @returns {bigint}
 */
export function releaseThreshold(epsilon, m, parts = 1, window = 1) {
  const level = threshold(epsilon, m, parts, window);
  if (level === 0n) {
    throw new RelaxdpError(
      "epsilon_too_small",
      "epsilon is too small: its threshold in 64 bits is 0. Nothing was drawn.",
    );
  }
  return level;
}

/**
 * The threshold where e^epsilon - 1, times the window, is the fixed-point number `expm1`; it grows with `expm1`.
 *
 * @param {bigint} expm1
 * @param {bigint} size
 * @param {bigint} bits
 */
function thresholdOfOdds(expm1, size, bits) {
  return ONE - ceilDivide((ONE * size) << bits, expm1 + (size << bits));
}

/**
 * Enclose e^x - 1 for x = numerator / denominator >= 0, in fixed point with `bits` binary places.
 *
 * Every term of the power series is positive, so rounding all of them down (up) bounds the sum from below (above).
 *
 * @param {bigint} numerator
 * @param {bigint} denominator
 * @param {bigint} bits
 * @returns {[bigint, bigint]}
 */
function expm1Bounds(numerator, denominator, bits) {
  const low = (numerator << bits) / denominator;
  const high = low + 1n;
  let [lowTerm, highTerm] = [low, high];
  let [lowSum, highSum] = [low, high];
  let k = 2n;
  while (highTerm > 1n || k << bits < 2n * high) {
    lowTerm = (lowTerm * low) / (k << bits);
    highTerm = ceilDivide(highTerm * high, k << bits);
    lowSum += lowTerm;
    highSum += highTerm;
    k += 1n;
  }
  // From here on each term is at most half of the one before, so all that is missing is at most the last term.
  return [lowSum, highSum + highTerm];
}

/** @param {unknown} text */
function positiveDecimal(text) {
  const read = typeof text === "string" && text.length <= LONGEST_EPSILON ? readDecimal(text) : null;
  if (read === null) {
    throw new RelaxdpError(
      "epsilon_invalid",
      `epsilon must be a positive decimal of at most ${LONGEST_EPSILON} characters, given as text. Nothing was drawn.`,
    );
  }
  if (read.digits === 0n) {
    throw new RelaxdpError("epsilon_invalid", "epsilon must be greater than 0. Nothing was drawn.");
  }
  return read;
}

/**
 * @param {number | bigint} m
 * @returns {bigint}
 */
export function alphabetSize(m) {
  const size = typeof m === "bigint" || Number.isSafeInteger(m) ? BigInt(m) : 0n;
  if (size < 2n || size >= ONE) {
    throw new RelaxdpError("alphabet_invalid", "the number of values must be whole and lie between 2 and 2^64 - 1.");
  }
  return size;
}

/**
 * @param {bigint} a
 * @param {bigint} b
 */
function ceilDivide(a, b) {
  return (a + b - 1n) / b;
}
