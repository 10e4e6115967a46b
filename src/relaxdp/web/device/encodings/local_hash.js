/** Local hashing (OLH): a value becomes one of g buckets, by a hash whose seed is public and the object's own. */

import { concat, fromBase64, lengthPrefixed, toBase64, u64 } from "../bytes.js";
import { RelaxdpError } from "../errors.js";
import { Path, Words } from "../path.js";
import { releaseThreshold } from "../threshold.js";
import { readValue } from "../typed.js";
import { Declared } from "./declared.js";

/** @typedef {import("../bytes.js").Typed} Typed */
/** @typedef {import("../path.js").Where} Where */

const MOST_BUCKETS = 65_536;
const HASH = new TextEncoder().encode("mersenne31");
const PRIME = 2n ** 31n - 1n;
const SHIFT = 506_952_122n;

/**
 * Return the bucket of the value with this index, under this seed.
 *
 * @param {bigint} seed
 * @param {number} index
 * @param {number} buckets
 * @returns {number}
 */
export function bucketOf(seed, index, buckets) {
  const slope = (seed % 2n ** 31n) % PRIME;
  const height = ((seed >> 32n) % 2n ** 31n) % PRIME;
  const point = (BigInt(index) + SHIFT) ** 5n % PRIME;
  return Number((((slope * point + height) % PRIME) * BigInt(buckets)) / PRIME);
}

/** A report is a seed, which says nothing of the truth, and a bucket: a categorical report with g values. */
export class LocalHash extends Declared {
  name = "local-hash";
  #buckets;

  /**
   * @param {Typed[]} values
   * @param {{ buckets: number }} options
   */
  constructor(values, { buckets }) {
    super(values);
    if (!Number.isInteger(buckets) || buckets < 2 || buckets > MOST_BUCKETS) {
      throw new RelaxdpError("values_invalid", `the number of buckets must be whole, from 2 to ${MOST_BUCKETS}.`);
    }
    this.#buckets = buckets;
  }

  /** The number of buckets, the name of the hash, and the digest of the ordered values. */
  async params() {
    return concat(u64(BigInt(this.#buckets)), lengthPrefixed(HASH), await this.digest());
  }

  /**
   * The threshold of an epsilon, rounded to the private side.
   *
   * @param {string} epsilon
   */
  threshold(epsilon) {
    return releaseThreshold(epsilon, this.#buckets);
  }

  /**
   * Return the path of one object, whose reports are the seed and a bucket, packed.
   *
   * @param {Where & { truth: number }} of `truth` is an index into the declared values
   * @returns {Promise<Path<Uint8Array>>}
   */
  async path({ truth, ...where }) {
    this.checkTruth(truth);
    const alphabet = this.#buckets;
    const what = { purpose: "path", encoding: this.name, alphabet, params: await this.params() };
    const [seed] = await (await Words.of(where, { ...what, purpose: "seed" })).pair(0, 0);
    return new Path({
      words: await Words.of(where, what, { index: truth }),
      alphabet,
      truths: [bucketOf(seed, truth, alphabet)],
      threshold: (epsilon) => this.threshold(epsilon),
      report: ([bucket]) => concat(u64(seed), u64(BigInt(bucket)).subarray(0, alphabet > 256 ? 2 : 1)),
    });
  }

  /**
   * Return the places of the values that fall into the bucket of a report as it travels: those that it stands for.
   *
   * @param {string} report
   */
  named(report) {
    const bytes = fromBase64(report);
    const seed = new DataView(bytes.buffer).getBigUint64(0, true);
    const bucket = bytes[8] + 256 * (bytes[9] ?? 0);
    return Array.from({ length: this.size }, (_, i) => i).filter((i) => bucketOf(seed, i, this.#buckets) === bucket);
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
