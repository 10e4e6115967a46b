/**
 * A single seller's side of a pool: an answer and a key become one report, in this browser. Only the report leaves.
 *
 * The bytes are those of `relaxdp market join`: a pure function of key, pool, answer and level.
 */

import { concat, encode, toHex } from "../device/bytes.js";
import { Amount, ZERO } from "../device/decimal.js";
import { Bloom } from "../device/encodings/bloom.js";
import { encodingOf } from "../device/encodings/registry.js";
import { RelaxdpError } from "../device/errors.js";
import { derive } from "../device/stream.js";
import { fieldsOf, readValue } from "../device/typed.js";

const ATTRIBUTE = "answer";
const TAG_BYTES = 16;
const MOST_LEVELS = 100;

/** @typedef {Exclude<import("../device/encodings/registry.js").Encoding, Bloom>} Encoding */
/** @typedef {{ epsilon: string, threshold: string }} Level as it travels */

/** A pool, as its market describes it: its name, what it is about, and how an answer becomes a report. */
export class Pool {
  /**
   * Use `Pool.of`.
   *
   * @param {string} id
   * @param {string} title
   * @param {Encoding} encoding
   * @param {{ open: boolean, levels: Amount[] }} offer
   */
  constructor(id, title, encoding, { open, levels }) {
    this.id = id;
    this.title = title;
    this.encoding = encoding;
    this.open = open;
    this.levels = levels;
  }

  /**
   * Read a listing with suspicion: it must be the pool that was asked for, of an encoding that is known.
   *
   * @param {unknown} content
   * @param {string} asked
   */
  static of(content, asked) {
    const listing = fieldsOf(content);
    if (listing.id !== asked || listing.kind !== "pool") {
      throw refused("offer_error", "this is no pool: only pools are joined with a single answer.");
    }
    const encoding = encodingOf(listing.encoding);
    if (encoding === null || encoding instanceof Bloom) {
      throw refused("offer_error", "the pool's encoding or its values cannot be used by this version.");
    }
    return new Pool(asked, String(listing.title), encoding, {
      open: listing.state === "open",
      levels: levelsOf(listing.levels),
    });
  }

  /** What the encoding binds into every key, in hexadecimal: other values, or another order, are other parameters. */
  async params() {
    return toHex(await this.encoding.params());
  }

  /**
   * Return a level as it travels, or refuse one that the pool does not sell: its report must not leave in vain. Epsilons
   * with one threshold are one level.
   *
   * @param {string} epsilon
   * @returns {Level}
   */
  level(epsilon) {
    const exact = Amount.parse(epsilon);
    const threshold = this.encoding.threshold(String(exact));
    const above = this.levels.findIndex((level) => level.compare(exact) >= 0);
    const near = above < 0 ? this.levels.slice(-1) : this.levels.slice(Math.max(0, above - 1), above + 1);
    const level = near.find((each) => this.encoding.threshold(String(each)) === threshold);
    if (level === undefined) {
      throw refused(
        "level_error",
        `epsilon ${exact} is none of this pool's levels: the nearest are ${near.join(" and ")}.`,
      );
    }
    return { epsilon: String(level), threshold: String(threshold) };
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
 * @param {unknown} content
 * @returns {Amount[]}
 */
function levelsOf(content) {
  const read = Array.isArray(content) ? content.map((level) => Amount.fromText(fieldsOf(level).epsilon)) : [];
  const levels = read.filter((level) => level !== null);
  const ascend = levels.every((level, place) => level.compare(place === 0 ? ZERO : levels[place - 1]) > 0);
  if (levels.length === 0 || levels.length > MOST_LEVELS || levels.length < read.length || !ascend) {
    throw refused("offer_error", "the pool's levels cannot be read.");
  }
  return levels;
}

/**
 * @param {string} code
 * @param {string} sentence
 */
export function refused(code, sentence) {
  return new RelaxdpError(code, `${sentence} Nothing was sent.`);
}
