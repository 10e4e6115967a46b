/**
 * A single seller's side of a pool: an answer and a key become one report, in this browser. Only the report leaves.
 *
 * The bytes are those of `relaxdp market join`: a pure function of key, pool, answer and level.
 */

import { concat, encode, toHex } from "./bytes.js";
import { Amount } from "./decimal.js";
import { Bloom } from "./encodings/bloom.js";
import { encodingOf } from "./encodings/registry.js";
import { RelaxdpError } from "./errors.js";
import { derive } from "./stream.js";
import { readValue } from "./typed.js";

const ATTRIBUTE = "answer";
const TAG_BYTES = 16;

/** @typedef {Exclude<import("./encodings/registry.js").Encoding, Bloom>} Encoding */
/** @typedef {{ epsilon: string, threshold: string }} Level as it travels */

/** A pool, as its market describes it: its name, what it is about, and how an answer becomes a report. */
export class Pool {
  /**
   * Use `Pool.of`.
   *
   * @param {string} id
   * @param {string} title
   * @param {Encoding} encoding
   * @param {{ open: boolean, highest: Amount | null }} offer the level above which nothing has a price; null where a
   *   formula has no end
   */
  constructor(id, title, encoding, { open, highest }) {
    this.id = id;
    this.title = title;
    this.encoding = encoding;
    this.open = open;
    this.highest = highest;
  }

  /**
   * Read a listing with suspicion: it must be the pool that was asked for, of an encoding that is known.
   *
   * @param {any} listing
   * @param {string} asked
   */
  static of(listing, asked) {
    if (listing?.id !== asked || listing.kind !== "pool") {
      throw refused("offer_error", "this is no pool: only pools are joined with a single answer.");
    }
    const encoding = encodingOf(listing.encoding);
    if (encoding === null || encoding instanceof Bloom) {
      throw refused("offer_error", "the pool's encoding or its values cannot be used by this version.");
    }
    const last = listing.prices?.points?.at(-1);
    const highest = last === undefined ? null : Amount.parse(last[0]);
    return new Pool(asked, String(listing.title), encoding, { open: listing.state === "open", highest });
  }

  /** What the encoding binds into every key, in hexadecimal: other values, or another order, are other parameters. */
  async params() {
    return toHex(await this.encoding.params());
  }

  /**
   * Return a level as it travels, or refuse one at which nothing would be sold: its report must not leave in vain.
   *
   * @param {string} epsilon
   * @returns {Level}
   */
  level(epsilon) {
    const exact = Amount.parse(epsilon);
    if (this.highest !== null && exact.compare(this.highest) > 0) {
      throw refused("level_error", `the prices of this pool end at epsilon ${this.highest}, and ${exact} was given.`);
    }
    return { epsilon: String(exact), threshold: String(this.encoding.threshold(String(exact))) };
  }

  /**
   * Return what tells, to whoever has the key and to nobody else, whether an answer is the one that was given before.
   *
   * @param {unknown} kept an answer that the encoding's `keep` returned
   * @param {Uint8Array} key
   */
  async tag(kept, key) {
    const params = concat(await this.encoding.params(), encode(readValue(kept)));
    const context = { release: this.id, attribute: ATTRIBUTE, encoding: this.encoding.name, alphabet: 2, params };
    return toHex((await derive(key, { purpose: "fingerprint", ...context })).subarray(0, TAG_BYTES));
  }

  /**
   * Return the report as it travels: the same at every call.
   *
   * @param {unknown} kept
   * @param {Uint8Array} key
   * @param {Level} level
   * @returns {Promise<string | number>}
   */
  async report(kept, key, { threshold }) {
    const object = /** @type {const} */ ({ type: "text", value: this.id });
    const where = { key, release: this.id, attribute: ATTRIBUTE, object };
    const { report } = await this.encoding.draw(where, kept, BigInt(threshold));
    return /** @type {string | number} */ (report);
  }
}

/**
 * @param {string} code
 * @param {string} sentence
 */
export function refused(code, sentence) {
  return new RelaxdpError(code, `${sentence} Nothing was sent.`);
}
