/** The exact bytes of ids, values and numbers in stream version 1 (docs/stream.md), and how bytes are written. */

import { RelaxdpError } from "./errors.js";

/** @typedef {"integer" | "text" | "uuid" | "bytes" | "number"} Type */
/** @typedef {{ type: Type, value: bigint | number | string | Uint8Array }} Typed 7 and "7" are different objects */

export const BLOCK = 16;

const LONE_SURROGATE = /\p{Surrogate}/u;
const INTEGER = /^(?:0|-?[1-9]\d{0,19})$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * For each type, how a value becomes a tag and a payload.
 *
 * @type {Map<string, (value: unknown) => [number, Uint8Array]>}
 */
const PAYLOADS = new Map([
  ["integer", integerPayload],
  ["text", (value) => [3, utf8(value, "a text value")]],
  ["uuid", uuidPayload],
  ["bytes", bytesPayload],
  ["number", numberPayload],
]);

/**
 * Return the bytes of one value: tag, length, payload, and zeros up to whole blocks.
 *
 * No two values share their bytes, so no two objects share their noise. The refused value is never shown: it may be
 * the truth.
 *
 * @param {Typed} typed
 * @returns {Uint8Array}
 */
export function encode(typed) {
  const payloadOf = PAYLOADS.get(typed?.type);
  if (payloadOf === undefined) {
    throw new RelaxdpError("value_invalid", `a value needs one of the types ${[...PAYLOADS.keys()].join(", ")}.`);
  }
  const [tag, payload] = payloadOf(typed.value);
  const bytes = concat(Uint8Array.of(tag, 0, 0, 0), u32(payload.length), payload);
  return concat(bytes, new Uint8Array(-bytes.length & (BLOCK - 1)));
}

/**
 * @param {unknown} value
 * @returns {[number, Uint8Array]}
 */
function integerPayload(value) {
  const integer = wholeOf(value);
  if (integer === null || integer < -(2n ** 63n) || integer >= 2n ** 64n) {
    throw new RelaxdpError(
      "value_invalid",
      "an integer must be exact, without leading zeros, and lie between -2^63 and 2^64 - 1.",
    );
  }
  return [integer < 2n ** 63n ? 1 : 2, u64(integer)];
}

/**
 * @param {unknown} value
 * @returns {bigint | null} null for what is no exact integer
 */
function wholeOf(value) {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  return typeof value === "string" && INTEGER.test(value) ? BigInt(value) : null;
}

/**
 * @param {unknown} value
 * @returns {[number, Uint8Array]}
 */
function uuidPayload(value) {
  if (typeof value !== "string" || !UUID.test(value)) {
    throw new RelaxdpError("value_invalid", "a UUID must be written as 32 hexadecimal digits in groups of 8-4-4-4-12.");
  }
  return [4, fromHex(value.replaceAll("-", ""))];
}

/**
 * @param {unknown} value
 * @returns {[number, Uint8Array]}
 */
function bytesPayload(value) {
  return [5, requireBytes(value, "a value of type bytes")];
}

/**
 * @param {unknown} value
 * @returns {[number, Uint8Array]}
 */
function numberPayload(value) {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (
    typeof number !== "number" ||
    !Number.isFinite(number) ||
    (typeof value === "bigint" && BigInt(number) !== value)
  ) {
    throw new RelaxdpError("value_invalid", "a number must be finite, and an integer must be exact as a binary64.");
  }
  return [6, binary64(number)];
}

/**
 * @param {number} number
 * @returns {Uint8Array}
 */
export function binary64(number) {
  const bytes = new Uint8Array(8);
  // Adding +0 turns -0 into +0 and changes no other number.
  new DataView(bytes.buffer).setFloat64(0, number + 0, true);
  return bytes;
}

let warned = false;

/**
 * UTF-8 exactly as given. A lone surrogate is refused: TextEncoder would quietly make another character of it.
 *
 * @param {unknown} text
 * @param {string} what for the message
 * @returns {Uint8Array}
 */
export function utf8(text, what) {
  if (typeof text !== "string" || LONE_SURROGATE.test(text)) {
    throw new RelaxdpError("text_invalid", `${what} must be well-formed text, and half of a surrogate pair is not.`);
  }
  if (!warned && text !== text.normalize("NFC")) {
    warned = true;
    console.warn("relaxdp: a text is not in Unicode form NFC; the same letters in another form get other noise.");
  }
  return new TextEncoder().encode(text);
}

/**
 * @param {unknown} value
 * @param {string} what for the message
 * @returns {Uint8Array}
 */
export function requireBytes(value, what) {
  if (value instanceof Uint8Array) return value;
  throw new RelaxdpError("value_invalid", `${what} must be a Uint8Array.`);
}

/** @param {number} value */
export function u32(value) {
  // DataView would wrap around in silence, and two messages could then be one.
  if (value > 0xffff_ffff) throw new RelaxdpError("value_invalid", "a length or a counter does not fit into 32 bits.");
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/**
 * Little-endian; a negative number becomes its two's complement.
 *
 * @param {bigint} value
 */
export function u64(value) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

/** @param {Uint8Array} bytes */
export function lengthPrefixed(bytes) {
  return concat(u32(bytes.length), bytes);
}

/** @param {...Uint8Array} parts */
export function concat(...parts) {
  return concatAll(parts);
}

/**
 * The same for so many parts that they could not be arguments of a call.
 *
 * @param {Uint8Array[]} parts
 */
export function concatAll(parts) {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

/** @param {Uint8Array} bytes */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {string} text an even number of hexadecimal digits */
export function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** @param {string} text as `toBase64` returns it */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
