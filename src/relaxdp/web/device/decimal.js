/** Epsilon as a person wrote it: exact decimal numbers and their sums. A binary float never enters a limit. */

import { RelaxdpError } from "./errors.js";

const DECIMAL = /^\+?(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

// More digits than anybody writes by hand; these bound the work that a hostile text can cause.
const MOST_DIGITS = 60;
const LEAST_EXPONENT = -100n;
const LONGEST = 200;

/**
 * Read a decimal as digits * 10^scale; its first digit stands for 10^magnitude. Null for what is none.
 *
 * @param {string} text
 * @returns {{ digits: bigint, scale: bigint, magnitude: bigint, length: number } | null}
 */
export function readDecimal(text) {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const [, whole, fraction = "", exponent = "0"] = match;
  const digits = (whole + fraction).replace(/^0+/, "");
  const scale = BigInt(exponent) - BigInt(fraction.length);
  const magnitude = BigInt(digits.length - 1) + scale;
  return { digits: BigInt(digits || "0"), scale, magnitude, length: digits.length };
}

/** A number that is zero or more, exactly: `units` of 10^-places, without trailing zeros behind the point. */
export class Amount {
  /** @type {bigint} */
  #units;
  /** @type {number} */
  #places;

  /**
   * @param {bigint} units
   * @param {number} places
   */
  constructor(units, places) {
    while (places > 0 && units % 10n === 0n) {
      units /= 10n;
      places -= 1;
    }
    this.#units = units;
    this.#places = places;
  }

  /**
   * Read a positive number such as "0.5", or refuse it.
   *
   * @param {unknown} written text, because the number 0.1 is not one tenth
   * @param {string} [what] for the message
   * @param {string} [code]
   * @returns {Amount}
   */
  static parse(written, what = "epsilon", code = "epsilon_error") {
    const text = typeof written === "string" && written.length <= LONGEST ? written.trim() : "";
    const read = readDecimal(text);
    if (read === null || read.digits === 0n) {
      throw new RelaxdpError(code, `${what} must be a number greater than 0, given as text such as "0.5".`);
    }
    if (read.length > MOST_DIGITS || read.magnitude >= BigInt(MOST_DIGITS)) {
      throw new RelaxdpError(code, `${what} must have at most ${MOST_DIGITS} digits.`);
    }
    if (read.magnitude < LEAST_EXPONENT) throw new RelaxdpError(code, `${what} is too small to be realised.`);
    return read.scale < 0n
      ? new Amount(read.digits, Number(-read.scale))
      : new Amount(read.digits * 10n ** read.scale, 0);
  }

  /**
   * Read an amount in its one spelling, as it was written down; null for anything else.
   *
   * @param {unknown} text
   * @returns {Amount | null}
   */
  static fromText(text) {
    if (typeof text !== "string" || text.length > LONGEST || !/^\d+(?:\.\d+)?$/.test(text)) return null;
    const [whole, fraction = ""] = text.split(".");
    const amount = new Amount(BigInt(whole + fraction), fraction.length);
    return String(amount) === text ? amount : null;
  }

  /**
   * Return the sum.
   *
   * @param {Amount} other
   */
  plus(other) {
    const places = Math.max(this.#places, other.#places);
    return new Amount(this.#at(places) + other.#at(places), places);
  }

  /**
   * Return the difference, or refuse one below 0.
   *
   * @param {Amount} smaller
   */
  minus(smaller) {
    const places = Math.max(this.#places, smaller.#places);
    const units = this.#at(places) - smaller.#at(places);
    if (units < 0n) throw new RelaxdpError("epsilon_error", "an amount cannot be less than 0.");
    return new Amount(units, places);
  }

  /**
   * Return a negative number, 0 or a positive one, as this is less than, equal to or more than the other.
   *
   * @param {Amount} other
   */
  compare(other) {
    const places = Math.max(this.#places, other.#places);
    const [mine, theirs] = [this.#at(places), other.#at(places)];
    return mine < theirs ? -1 : mine > theirs ? 1 : 0;
  }

  /** The one spelling that files and servers use: 2.50 and 2.5 are the same level. */
  toString() {
    const digits = String(this.#units).padStart(this.#places + 1, "0");
    if (this.#places === 0) return digits;
    return `${digits.slice(0, -this.#places)}.${digits.slice(-this.#places)}`;
  }

  /** The same text in JSON: a number there would be rounded. */
  toJSON() {
    return this.toString();
  }

  /** @param {number} places */
  #at(places) {
    return this.#units * 10n ** BigInt(places - this.#places);
  }
}

export const ZERO = new Amount(0n, 0);

/**
 * @param {Amount} one
 * @param {Amount} other
 */
export function least(one, other) {
  return one.compare(other) <= 0 ? one : other;
}

/**
 * @param {Amount} one
 * @param {Amount} other
 */
export function most(one, other) {
  return one.compare(other) >= 0 ? one : other;
}
