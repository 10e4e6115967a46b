/** Unary: one bit for each declared value. Symmetric (SUE, basic RAPPOR) and optimised (OUE). */

import { fromBase64, toBase64 } from "../bytes.js";
import { Path, Words } from "../path.js";
import { releaseThreshold } from "../threshold.js";
import { readValue } from "../typed.js";
import { Declared } from "./declared.js";

/** @typedef {import("../bytes.js").Typed} Typed */
/** @typedef {import("../path.js").Where} Where */

/**
 * Pack bits, eight to a byte, the lowest first; what is left of the last byte is zero.
 *
 * @param {number[]} bits
 * @returns {Uint8Array}
 */
export function packBits(bits) {
  const packed = new Uint8Array(Math.ceil(bits.length / 8));
  for (const [i, bit] of bits.entries()) packed[i >> 3] |= bit << (i & 7);
  return packed;
}

/** A row of bits, each of which is blurred and relaxed on its own. */
export class Unary extends Declared {
  #optimised;

  /**
   * @param {Typed[]} values
   * @param {{ optimised?: boolean }} [options]
   */
  constructor(values, { optimised = true } = {}) {
    super(values);
    this.#optimised = optimised;
    this.name = optimised ? "unary-optimised" : "unary-symmetric";
  }

  /** What is bound into every key beside the names: the digest of the ordered values. */
  params() {
    return this.digest();
  }

  /**
   * Symmetric bits get one half of epsilon each, because two truths differ in two of them.
   *
   * @param {string} epsilon
   */
  threshold(epsilon) {
    return releaseThreshold(epsilon, 2, this.#optimised ? 1 : 2);
  }

  /**
   * Return the path of one object, whose reports are packed bits.
   *
   * @param {Where & { truth: number }} of `truth` is an index into the declared values
   * @returns {Promise<Path<Uint8Array>>}
   */
  async path({ truth, ...where }) {
    this.checkTruth(truth);
    const what = { purpose: "path", encoding: this.name, alphabet: 2, params: await this.params() };
    const words = await Words.of(where, what, { index: truth });
    const truths = new Uint8Array(this.size);
    truths[truth] = this.#optimised ? await coin(where, what, truth) : 1;
    return new Path({ words, alphabet: 2, truths, threshold: (epsilon) => this.threshold(epsilon), report: packBits });
  }

  /**
   * Return the places of the values whose bits are set in a report as it travels: those that it stands for.
   *
   * @param {string} report
   */
  named(report) {
    const bytes = fromBase64(report);
    return Array.from({ length: this.size }, (_, i) => i).filter((i) => (bytes[i >> 3] >> (i & 7)) & 1);
  }

  /**
   * Return the report as it travels.
   *
   * @param {Where} where
   * @param {unknown} kept an answer that `keep` returned
   * @param {bigint} T
   */
  async draw(where, kept, T) {
    const path = await this.path({ ...where, truth: /** @type {number} */ (this.indexOf(readValue(kept))) });
    return { report: toBase64(await path.atThreshold(T)), cohort: null };
  }
}

/**
 * The kept fair coin with which the truth's bit is ANDed: tossed anew at each level it would break the guarantee.
 *
 * @param {Where} where
 * @param {import("../path.js").What} what
 * @param {number} truth
 */
async function coin(where, what, truth) {
  const words = await Words.of(where, { ...what, purpose: "coin" }, { index: truth });
  const [word] = await words.pair(truth, 0);
  return Number(word & 1n);
}
