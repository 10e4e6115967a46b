/** Numeric: a number in a range becomes one bit, its lower or upper end, rounded at random once and for good. */

import { binary64, concat, encode, lengthPrefixed } from "../bytes.js";
import { RelaxdpError } from "../errors.js";
import { Path, Words } from "../path.js";
import { ONE, releaseThreshold } from "../threshold.js";
import { readValue, writeValue } from "../typed.js";
import { undeclared } from "./declared.js";

/** @typedef {import("../path.js").Where} Where */

const FUNCTION = new TextEncoder().encode("identity");
const LEAST_WIDTH = 1e-290;

/**
 * Return whether the kept word rounds a number up: word < floor(2^64 (number - low) / (high - low)), exactly.
 *
 * @param {bigint} word
 * @param {number} number
 * @param {number} low
 * @param {number} high
 */
export function roundsUp(word, number, low, high) {
  const [share, whole] = [exact(number) - exact(low), exact(high) - exact(low)];
  return word < (ONE * share) / whole;
}

/**
 * A binary64 number as a multiple of 2^-1074, of which every one is a whole multiple.
 *
 * @param {number} number
 * @returns {bigint}
 */
function exact(number) {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, number);
  const field = (bits.getUint32(0) >>> 20) & 0x7ff;
  const fraction = bits.getBigUint64(0) & (2n ** 52n - 1n);
  const size = field === 0 ? fraction : (fraction | (1n << 52n)) << BigInt(field - 1);
  return number < 0 ? -size : size;
}

/** A number from `low` to `high`; the mean over the objects is what can be estimated. */
export class Numeric {
  name = "numeric";
  /** @type {null} There is nothing to choose an answer from. */
  values = null;

  /**
   * @param {number} low
   * @param {number} high
   */
  constructor(low, high) {
    const width = high - low;
    if (!Number.isFinite(low) || !Number.isFinite(high) || !(width > LEAST_WIDTH && width < Infinity)) {
      throw new RelaxdpError("range_invalid", "the range must go from a lower to a higher number.");
    }
    this.low = low + 0;
    this.high = high + 0;
  }

  /** The range and the function's name. */
  async params() {
    return concat(binary64(this.low), binary64(this.high), lengthPrefixed(FUNCTION));
  }

  /** @param {string} epsilon */
  threshold(epsilon) {
    return releaseThreshold(epsilon, 2);
  }

  /**
   * Return an answer in the one form in which it is kept.
   *
   * @param {unknown} answer
   */
  keep(answer) {
    if (!this.#holds(answer)) throw undeclared(`a number from ${this.low} to ${this.high}`);
    return writeValue({ type: "number", value: /** @type {number} */ (answer) });
  }

  /**
   * Return the path of one object, whose reports are the ends of the range.
   *
   * @param {Where & { truth: number }} of
   * @returns {Promise<Path<number>>}
   */
  async path({ truth, ...where }) {
    if (!this.#holds(truth)) {
      throw new RelaxdpError("truth_invalid", "the truth must be a number within the range. Nothing was drawn.");
    }
    const message = { truth: encode({ type: "number", value: truth }) };
    const what = { purpose: "path", encoding: this.name, alphabet: 2, params: await this.params() };
    const [word] = await (await Words.of(where, { ...what, purpose: "round" }, message)).pair(0, 0);
    return new Path({
      words: await Words.of(where, what, message),
      alphabet: 2,
      truths: [roundsUp(word, truth, this.low, this.high) ? 1 : 0],
      threshold: (epsilon) => this.threshold(epsilon),
      report: ([code]) => (code === 1 ? this.high : this.low),
    });
  }

  /**
   * Return the report as it travels.
   *
   * @param {Where} where
   * @param {unknown} kept an answer that `keep` returned
   * @param {bigint} T
   */
  async draw(where, kept, T) {
    const path = await this.path({ ...where, truth: /** @type {number} */ (readValue(kept).value) });
    return { report: await path.atThreshold(T), cohort: null };
  }

  /** @param {unknown} number */
  #holds(number) {
    return typeof number === "number" && number >= this.low && number <= this.high; // so that NaN is outside
  }
}
