/** Numbers in a range: what all encodings of them share, and the rounding that a person keeps. */

import { binary64, concat, encode, lengthPrefixed } from "../bytes.js";
import { RelaxdpError } from "../errors.js";
import { Path, Words } from "../path.js";
import { ONE, releaseThreshold } from "../threshold.js";
import { readValue, writeValue } from "../typed.js";
import { undeclared } from "./declared.js";

/** @typedef {import("../path.js").Where} Where */

const LEAST_WIDTH = 1e-290;

/**
 * Return the bin to which a kept word rounds a number: floor(t), or one more where word < floor(2^64 (t - floor(t))),
 * exactly. t = (bins - 1) (number - low) / (high - low) says where among the bins it lies; two bins are the ends.
 *
 * @param {bigint} word
 * @param {number} number
 * @param {{ low: number, high: number, bins: number }} range
 * @returns {number}
 */
export function roundToBin(word, number, { low, high, bins }) {
  const whole = exact(high) - exact(low);
  const way = BigInt(bins - 1) * (exact(number) - exact(low));
  const up = word < (ONE * (way % whole)) / whole;
  return Number(way / whole) + (up ? 1 : 0);
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

/**
 * A number from `low` to `high`, rounded to one of the bins and spread over `window` places, of which one is reported.
 */
export class Ranged {
  name = "";
  /** @type {null} There is nothing to choose an answer from. */
  values = null;
  #clip;

  /**
   * @param {number} low
   * @param {number} high
   * @param {{ bins: number, window: number, clip?: boolean }} options with `clip`, numbers are put into the range first
   */
  constructor(low, high, { bins, window, clip = false }) {
    const width = high - low;
    if (!Number.isFinite(low) || !Number.isFinite(high) || !(width > LEAST_WIDTH && width < Infinity)) {
      throw new RelaxdpError("range_invalid", "the range must go from a lower to a higher number.");
    }
    this.low = low + 0;
    this.high = high + 0;
    this.bins = bins;
    this.window = window;
    this.#clip = clip;
  }

  /** How many places there are. */
  get alphabet() {
    return this.bins + this.window - 1;
  }

  /** How far two bins are apart. */
  get step() {
    return (this.high - this.low) / (this.bins - 1);
  }

  /** The range and the function's name. */
  async params() {
    const name = new TextEncoder().encode(this.#clip ? "clip" : "identity");
    return concat(binary64(this.low), binary64(this.high), lengthPrefixed(name));
  }

  /** @param {string} epsilon */
  threshold(epsilon) {
    return releaseThreshold(epsilon, this.alphabet, 1, this.window);
  }

  /**
   * Return what is reported for a place.
   *
   * @param {number} place
   */
  reported(place) {
    return place;
  }

  /**
   * Return the place that a report stands for.
   *
   * @param {number} report
   */
  placeOf(report) {
    return report;
  }

  /** The place in the middle of those that the lowest number leads to; the bins follow it. Some places lie before it. */
  get first() {
    return (this.window - 1) / 2;
  }

  /**
   * Return the number for which a place counts: the middle of those that lead there, perhaps a little beyond the range.
   *
   * @param {number} place
   */
  numberAt(place) {
    return this.low + this.step * (place - this.first);
  }

  /**
   * Return an answer in the one form in which it is kept.
   *
   * @param {unknown} answer
   */
  keep(answer) {
    if (!this.#takes(answer)) throw undeclared(`a number from ${this.low} to ${this.high}`);
    return writeValue({ type: "number", value: /** @type {number} */ (answer) });
  }

  /**
   * Return the path of one object.
   *
   * @param {Where & { truth: number }} of
   * @returns {Promise<Path<number>>}
   */
  async path({ truth, ...where }) {
    if (!this.#takes(truth)) {
      throw new RelaxdpError("truth_invalid", "the truth must be a number within the range. Nothing was drawn.");
    }
    const number = Math.min(Math.max(truth, this.low), this.high);
    const message = { truth: encode({ type: "number", value: number }) };
    const { name: encoding, alphabet } = this;
    const what = { purpose: "path", encoding, alphabet, params: await this.params() };
    const kept = async (/** @type {"round" | "coin"} */ purpose) =>
      (await (await Words.of(where, { ...what, purpose }, message)).pair(0, 0))[0];
    // The last bits of a word are exactly uniform. A window of one place has no offset, and nothing is drawn for it.
    const offset = this.window === 1 ? 0 : Number((await kept("coin")) & BigInt(this.window - 1));
    return new Path({
      words: await Words.of(where, what, message),
      alphabet,
      truths: [roundToBin(await kept("round"), number, this) + offset],
      threshold: (epsilon) => this.threshold(epsilon),
      report: ([place]) => this.reported(place),
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
  #takes(number) {
    if (typeof number !== "number") return false;
    return this.#clip ? Number.isFinite(number) : number >= this.low && number <= this.high; // so that NaN is outside
  }
}
