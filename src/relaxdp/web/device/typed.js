/** Values as JSON carries them: text and small integers as they are, everything else with its kind. */

import { encode, fromHex, toHex } from "./bytes.js";
import { RelaxdpError } from "./errors.js";

/** @typedef {import("./bytes.js").Typed} Typed */
/** @typedef {string | number | Record<string, string>} Written */

const HEX_NUMBER = /^(-?)0x([01])\.([0-9a-f]{1,13})p([+-]\d{1,4})$/;
const MANTISSA_DIGITS = 13;

/**
 * Return the fields of what a stranger wrote, each of them of any kind; none where it is no object.
 *
 * @param {unknown} content
 * @returns {Partial<Record<string, unknown>>}
 */
export function fieldsOf(content) {
  return typeof content === "object" && content !== null ? { ...content } : {};
}

/**
 * Return the value that a server or a file wrote.
 *
 * @param {unknown} written
 * @returns {Typed}
 */
export function readValue(written) {
  const typed = read(written);
  encode(typed); // refuses what has no bytes
  return typed;
}

/**
 * @param {unknown} written
 * @returns {Typed}
 */
function read(written) {
  if (typeof written === "string") return { type: "text", value: written };
  if (typeof written === "number" && Number.isSafeInteger(written)) return { type: "integer", value: written + 0 };
  const entries = typeof written === "object" && written !== null ? Object.entries(written) : [];
  const [kind, text] = entries[0] ?? [];
  if (entries.length === 1 && typeof text === "string") {
    if (kind === "integer") return plainInteger(text);
    if (kind === "uuid") return { type: "uuid", value: text.toLowerCase() };
    if (kind === "bytes" && /^(?:[0-9a-f]{2})*$/.test(text)) return { type: "bytes", value: fromHex(text) };
    if (kind === "number") return { type: "number", value: fromHexNumber(text) };
  }
  throw new RelaxdpError("value_invalid", "a value is written in a way that this version does not know.");
}

/** @param {string} text */
function plainInteger(text) {
  encode({ type: "integer", value: text });
  const value = BigInt(text);
  return /** @type {Typed} */ ({ type: "integer", value: isSafe(value) ? Number(value) : value });
}

/**
 * Return a value as it travels.
 *
 * @param {Typed} typed
 * @returns {Written}
 */
export function writeValue({ type, value }) {
  if (type === "text") return /** @type {string} */ (value);
  if (type === "integer") {
    const whole = BigInt(/** @type {bigint | number | string} */ (value));
    return isSafe(whole) ? Number(whole) : { integer: String(whole) };
  }
  if (type === "bytes") return { bytes: toHex(/** @type {Uint8Array} */ (value)) };
  if (type === "number") return { number: toHexNumber(/** @type {number} */ (value)) };
  return { uuid: String(value).toLowerCase() };
}

/**
 * Return what a person's program gives as an answer, with the type that the declared values have; null for what cannot
 * be of that type. A number is not its text.
 *
 * @param {unknown} answer
 * @param {import("./bytes.js").Type} type
 * @returns {Typed | null}
 */
export function asType(answer, type) {
  const fits = {
    text: typeof answer === "string",
    uuid: typeof answer === "string",
    integer: typeof answer === "bigint" || Number.isSafeInteger(answer),
    number: typeof answer === "number",
    bytes: answer instanceof Uint8Array,
  }[type];
  const typed = /** @type {Typed} */ ({ type, value: answer });
  try {
    encode(typed);
  } catch {
    return null;
  }
  return fits ? typed : null;
}

/** @param {bigint} whole */
function isSafe(whole) {
  return whole < 2n ** 53n && whole > -(2n ** 53n);
}

/**
 * Write a binary64 number in hexadecimal, exactly, as Python's `float.hex` does.
 *
 * @param {number} number
 */
function toHexNumber(number) {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, number + 0);
  const field = (bits.getUint32(0) >>> 20) & 0x7ff;
  const fraction = bits.getBigUint64(0) & (2n ** 52n - 1n);
  const sign = number < 0 ? "-" : "";
  if (number === 0) return "0x0.0p+0";
  const exponent = field === 0 ? -1022 : field - 1023;
  const digits = fraction.toString(16).padStart(MANTISSA_DIGITS, "0");
  return `${sign}0x${field === 0 ? 0 : 1}.${digits}p${exponent < 0 ? "" : "+"}${exponent}`;
}

/** @param {string} text */
function fromHexNumber(text) {
  const match = HEX_NUMBER.exec(text);
  if (match === null) throw new RelaxdpError("value_invalid", "a number is not written as expected.");
  const [, sign, whole, fraction, exponent] = match;
  const mantissa = parseInt(whole + fraction.padEnd(MANTISSA_DIGITS, "0"), 16);
  // Exact: what `float.hex` writes has no digit below 2^-1074, and what is too large becomes infinite and is refused.
  const number = mantissa * 2 ** Math.max(Number(exponent) - 52, -1074);
  return (sign === "-" ? -number : number) + 0;
}
