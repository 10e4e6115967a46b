/** Declared values: what all encodings of a list of values share. */

import { concatAll, encode, u64 } from "../bytes.js";
import { RelaxdpError } from "../errors.js";
import { digest } from "../stream.js";
import { asType, writeValue } from "../typed.js";

/** @typedef {import("../bytes.js").Typed} Typed */

/**
 * Return what a declared list of values contributes to its keys: a digest of the values in their order.
 *
 * @param {Typed[]} values
 * @returns {Promise<Uint8Array>} 32 bytes
 */
export async function categoricalParams(values) {
  return digestOf(Array.from(values, encode));
}

/** @param {Uint8Array[]} encoded */
function digestOf(encoded) {
  return digest("SHA-256", concatAll([u64(BigInt(encoded.length)), ...encoded]));
}

/** A declared list of values, from which every object has one as its truth. */
export class Declared {
  #values;
  #encoded;
  /** @type {Map<string, number>} */
  #index;

  /** @param {Typed[]} values at least two, all different, all of one type; their order is part of every key */
  constructor(values) {
    if (!Array.isArray(values) || values.length < 2) {
      throw new RelaxdpError("values_invalid", "at least 2 values must be declared, as an array.");
    }
    this.#values = Array.from(values);
    this.#encoded = Array.from(values, encode);
    this.#index = new Map(this.#encoded.map((bytes, i) => [String(bytes), i]));
    if (new Set(values.map(({ type }) => type)).size > 1) {
      throw new RelaxdpError("values_invalid", `the ${values.length} declared values must all have one type.`);
    }
    if (this.#index.size < values.length) {
      throw new RelaxdpError("values_invalid", `the ${values.length} declared values must all be different.`);
    }
  }

  /** How many values were declared. */
  get size() {
    return this.#encoded.length;
  }

  /** The declared values, to choose an answer from. */
  get values() {
    return this.#values.map(({ value }) => value);
  }

  /** @returns {Promise<Uint8Array>} the digest of the ordered values */
  digest() {
    return digestOf(this.#encoded);
  }

  /** @param {number} code */
  written(code) {
    return writeValue(this.#values[code]);
  }

  /**
   * Return an answer in the one form in which it is kept.
   *
   * @param {unknown} answer
   */
  keep(answer) {
    const typed = asType(answer, this.#values[0].type);
    const index = typed === null ? undefined : this.#index.get(String(encode(typed)));
    if (index === undefined) throw undeclared(`one of the ${this.size} values of this campaign`);
    return this.written(index);
  }

  /**
   * @param {Typed} typed
   * @returns {number | undefined}
   */
  indexOf(typed) {
    return this.#index.get(String(encode(typed)));
  }

  /** @param {unknown} truth an index into the declared values */
  checkTruth(truth) {
    if (typeof truth !== "number" || !Number.isInteger(truth) || truth < 0 || truth >= this.size) {
      throw new RelaxdpError(
        "truth_invalid",
        `the truth must be the index of one of the ${this.size} declared values. Nothing was drawn.`,
      );
    }
  }
}

/** @param {string} asked what the answer should have been; the answer itself is not shown */
export function undeclared(asked) {
  return new RelaxdpError(
    "undeclared_value_error",
    `the answer is not ${asked}. Nothing was kept, and nothing was sent.`,
  );
}
