/** Bloom: a word becomes the bits of a Bloom filter, each of them a randomized response. RAPPOR on the keyed path. */

import { concat, encode, lengthPrefixed, toBase64, u32, utf8 } from "../bytes.js";
import { RelaxdpError } from "../errors.js";
import { Path, Words } from "../path.js";
import { digest } from "../stream.js";
import { releaseThreshold } from "../threshold.js";
import { undeclared } from "./declared.js";
import { md5 } from "./md5.js";
import { packBits } from "./unary.js";

/** @typedef {import("../path.js").Where} Where */

const MOST = { bits: 65_536, hashes: 16, cohorts: 65_536 };
const SHAPE = /** @type {const} */ (["bits", "hashes", "cohorts"]);
const ALL_COHORTS = 2 ** 32 - 1;
const MOST_BYTE_BITS = 256;

/** How many bits, hashes and cohorts a Bloom filter has. One bit is a boolean: the answer itself, not hashed. */
export class Bloom {
  name = "bloom";
  /** @type {null} There is nothing to choose an answer from. */
  values = null;

  /** @param {{ bits: number, hashes: number, cohorts: number }} shape */
  constructor({ bits, hashes, cohorts }) {
    const shape = { bits, hashes, cohorts };
    for (const what of SHAPE) {
      const [number, most] = [shape[what], MOST[what]];
      if (!Number.isInteger(number) || number < 1 || number > most) {
        throw new RelaxdpError("shape_invalid", `the number of ${what} must be whole, from 1 to ${most}.`);
      }
    }
    if (bits === 1 && hashes !== 1) {
      throw new RelaxdpError("shape_invalid", "one bit is a boolean and has one hash.");
    }
    this.bits = bits;
    this.hashes = hashes;
    this.cohorts = cohorts;
  }

  /** Whether it is a single bit, whose answer is true or false. */
  get isBoolean() {
    return this.bits === 1;
  }

  /** How words are hashed follows from the number of bits: a byte cannot reach more than 256. */
  get hashName() {
    if (this.isBoolean) return "boolean";
    return this.bits <= MOST_BYTE_BITS ? "md5-bytes" : "sha512-words";
  }

  /**
   * The numbers of bits, hashes and cohorts, the cohort, and the name of the hash.
   *
   * @param {number} [cohort] left out where no cohort is meant
   */
  async params(cohort = ALL_COHORTS) {
    const numbers = [this.bits, this.hashes, this.cohorts, cohort].map(u32);
    return concat(...numbers, lengthPrefixed(utf8(this.hashName, "the name of the hash")));
  }

  /**
   * Two words differ in at most 2 h bits, and each of these gets an equal part of epsilon.
   *
   * @param {string} epsilon
   */
  threshold(epsilon) {
    return releaseThreshold(epsilon, 2, Math.min(2 * this.hashes, this.bits));
  }

  /**
   * Return an answer in the one form in which it is kept: letters in their composed form, booleans as words.
   *
   * @param {unknown} answer
   */
  keep(answer) {
    if (this.isBoolean) {
      const word = ["string", "boolean", "number"].includes(typeof answer) ? String(answer).toLowerCase() : "";
      if (word === "false" || word === "0") return "false";
      if (word === "true" || word === "1") return "true";
      throw undeclared("false or true");
    }
    if (typeof answer !== "string" || /\p{Surrogate}/u.test(answer)) throw undeclared("text");
    return answer.normalize("NFC");
  }

  /**
   * Return the bits that a word sets: one for each hash, perhaps the same bit twice.
   *
   * @param {string} word
   * @param {number} cohort
   * @returns {Promise<number[]>}
   */
  async bitsOf(word, cohort) {
    if (this.isBoolean) return word === "true" ? [0] : [];
    const number = new DataView(new ArrayBuffer(4));
    number.setUint32(0, cohort); // the highest byte first
    const message = concat(new Uint8Array(number.buffer), utf8(word, "the word"));
    if (this.bits <= MOST_BYTE_BITS)
      return Array.from(md5(message).subarray(0, this.hashes), (byte) => byte % this.bits);
    const words = new DataView((await digest("SHA-512", message)).buffer);
    return Array.from({ length: this.hashes }, (_, i) => words.getUint32(4 * i) % this.bits);
  }

  /**
   * Return the cohort of an object: drawn from its id alone, because it travels in the open.
   *
   * @param {Where} where
   * @returns {Promise<number>}
   */
  async cohortOf(where) {
    const what = { purpose: "cohort", encoding: this.name, alphabet: 2, params: await this.params() };
    const [word] = await (await Words.of(where, what)).pair(0, 0);
    return Number(word % BigInt(this.cohorts));
  }

  /**
   * Return the path of one object in its cohort, whose reports are packed bits.
   *
   * @param {Where & { truth: string }} of `truth` is a word, exactly as `keep` returns it
   * @returns {Promise<Path<Uint8Array>>}
   */
  async path({ truth, ...where }) {
    const cohort = await this.cohortOf(where);
    const what = { purpose: "path", encoding: this.name, alphabet: 2, params: await this.params(cohort) };
    const words = await Words.of(where, what, { truth: encode({ type: "text", value: truth }) });
    const truths = new Uint8Array(this.bits);
    for (const bit of await this.bitsOf(truth, cohort)) truths[bit] = 1;
    return new Path({ words, alphabet: 2, truths, threshold: (epsilon) => this.threshold(epsilon), report: packBits });
  }

  /**
   * Return the report as it travels, and the cohort beside it.
   *
   * @param {Where} where
   * @param {unknown} kept an answer that `keep` returned
   * @param {bigint} T
   */
  async draw(where, kept, T) {
    const path = await this.path({ ...where, truth: /** @type {string} */ (kept) });
    return { report: toBase64(await path.atThreshold(T)), cohort: await this.cohortOf(where) };
  }
}
