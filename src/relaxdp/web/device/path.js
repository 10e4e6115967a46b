/** One object's truth -> its report at every level: the walk down the keyed path, for one symbol or for many. */

import { BLOCK, concat, encode } from "./bytes.js";
import { RelaxdpError } from "./errors.js";
import { derive, Tags } from "./stream.js";
import { ONE } from "./threshold.js";

/** @typedef {import("./bytes.js").Typed} Typed */
/** @typedef {{ j: number, R: bigint, V: number }} Draw an accepted draw: the number of its block, position, value */
/** @typedef {{ purpose: string, encoding: string, alphabet: number, params: Uint8Array }} What */
/** @typedef {{ key: Uint8Array, release: string, attribute: string, object: Typed }} Where */

// How many blocks are asked for at once: enough to keep WebCrypto busy, few enough for a small memory.
const TOGETHER = 512;

/**
 * Return the position and value of a pair of words, or null if the pair is refused.
 *
 * Refusing the words beyond the last whole multiple of `n` and of `m` makes both remainders exactly uniform. `one` is
 * the number of words, so that a test can go through all pairs of a small word.
 *
 * @param {bigint} u position word
 * @param {bigint} v value word
 * @param {bigint} n the position will be below n
 * @param {bigint} m the value will be below m
 * @param {bigint} [one]
 * @returns {{ R: bigint, V: bigint } | null}
 */
export function accept(u, v, n, m, one = ONE) {
  if (u > one - 1n - (one % n) || v > one - 1n - (one % m)) return null;
  return { R: u % n, V: v % m };
}

/**
 * The words of one object under one purpose. What is kept for good (a coin, a seed) is the first word of block 0.
 *
 * Positions and values come in pairs; the message ends in the index of the truth, the symbol and the block's number.
 */
export class Words {
  #tags;
  #index;

  /**
   * @param {Tags} tags
   * @param {number} index of the truth, 0 where it has none
   */
  constructor(tags, index) {
    this.#tags = tags;
    this.#index = index;
  }

  /**
   * @param {Where} where
   * @param {What} what
   * @param {{ truth?: Uint8Array, index?: number }} [message] the bytes of a truth that has no index, or its index
   */
  static async of({ key, release, attribute, object }, what, { truth = new Uint8Array(0), index = 0 } = {}) {
    const prefix = concat(objectBytes(object), truth);
    return new Words(await Tags.after(await derive(key, { ...what, release, attribute }), prefix), index);
  }

  /**
   * @param {number} symbol
   * @param {number} j
   * @returns {Promise<[bigint, bigint]>} position word and value word
   */
  async pair(symbol, j) {
    // The counters would wrap around in silence; no path comes near, and no encoding has so many symbols.
    if (symbol > 0xffff_ffff || j > 0xffff_ffff) throw new RelaxdpError("value_invalid", "a counter has no 32 bits.");
    const last = new DataView(new ArrayBuffer(BLOCK));
    last.setBigUint64(0, BigInt(this.#index), true);
    last.setUint32(8, symbol, true);
    last.setUint32(12, j, true);
    const block = new DataView((await this.#tags.of(new Uint8Array(last.buffer))).buffer);
    return [block.getBigUint64(0, true), block.getBigUint64(8, true)];
  }
}

/**
 * @param {Typed} object
 * @returns {Uint8Array}
 */
function objectBytes(object) {
  if (object?.type === "number") {
    throw new RelaxdpError(
      "object_invalid",
      "a floating-point number cannot name an object: use an integer or text. Nothing was drawn.",
    );
  }
  return encode(object);
}

/** The walk of one symbol: where it is, and what it would report there. */
class Walk {
  /** @type {Draw[]} */
  draws = [];
  j = 0;
  n = ONE;

  /**
   * @param {number} symbol
   * @param {number} truth
   */
  constructor(symbol, truth) {
    this.symbol = symbol;
    /** The report at every threshold between the last position and the one before. */
    this.code = truth;
  }

  /**
   * Go on by one block. Returns whether the walk goes on: it ends when a position falls below T.
   *
   * @param {[bigint, bigint]} pair
   * @param {bigint} m
   * @param {bigint} T at least 1, so that a position of 0 ends the walk and n never becomes 0
   */
  step([u, v], m, T) {
    const draw = accept(u, v, this.n, m);
    this.j += 1;
    if (draw === null) return true;
    this.draws.push({ j: this.j - 1, R: draw.R, V: Number(draw.V) });
    this.n = draw.R;
    if (draw.R < T) return false;
    this.code = Number(draw.V);
    return true;
  }
}

/**
 * The whole future of one object. Obtained from the `path` of an encoding; shows neither key nor truth when printed.
 *
 * Every reading draws the words anew: nothing is kept that an interrupted reading could leave half done.
 *
 * @template Report
 */
export class Path {
  #words;
  #alphabet;
  #truths;
  #threshold;
  #report;

  /**
   * @param {{ words: Words, alphabet: number, truths: ArrayLike<number>, threshold: (epsilon: string) => bigint,
   *           report: (codes: number[]) => Report }} parts
   */
  constructor({ words, alphabet, truths, threshold, report }) {
    this.#words = words;
    this.#alphabet = BigInt(alphabet);
    this.#truths = truths;
    this.#threshold = threshold;
    this.#report = report;
  }

  /**
   * Return the report at a level: always the same one.
   *
   * @param {string} epsilon
   * @returns {Promise<Report>}
   */
  async at(epsilon) {
    return this.atThreshold(this.#threshold(epsilon));
  }

  /**
   * Return the report at a threshold that somebody else named. Whether it is allowed is the caller's to check.
   *
   * @param {bigint} T from 1 to 2^64 - 1
   * @returns {Promise<Report>}
   */
  async atThreshold(T) {
    const walks = Array.from(this.#truths, (truth, symbol) => new Walk(symbol, truth));
    await this.#walk(walks, T);
    return this.#report(walks.map((walk) => walk.code));
  }

  /**
   * Return the accepted draws of a symbol down to the first position below T. They give the truth away: for tests only.
   *
   * @param {bigint} T from 1 to 2^64 - 1
   * @param {number} [symbol]
   * @returns {Promise<Draw[]>}
   */
  async draws(T, symbol = 0) {
    const walk = new Walk(symbol, this.#truths[symbol]);
    await this.#walk([walk], T);
    return walk.draws;
  }

  /**
   * @param {Walk[]} walks
   * @param {bigint} T
   */
  async #walk(walks, T) {
    if (typeof T !== "bigint" || T < 1n || T >= ONE) {
      throw new RelaxdpError(
        "threshold_invalid",
        "a threshold must be a BigInt from 1 to 2^64 - 1. Nothing was drawn.",
      );
    }
    for (let start = 0; start < walks.length; start += TOGETHER) {
      let going = walks.slice(start, start + TOGETHER);
      while (going.length > 0) {
        const pairs = await Promise.all(going.map((walk) => this.#words.pair(walk.symbol, walk.j)));
        going = going.filter((walk, i) => walk.step(pairs[i], this.#alphabet, T));
      }
    }
  }
}
