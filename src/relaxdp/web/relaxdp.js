/**
 * Relaxed randomized response in the browser: the keyed path of one object, from its key to its reports.
 *
 * A report is a pure function of (key, object, truth, epsilon). Nothing is stored between releases, so a reload or a
 * retry can never draw twice at one level, and levels may be read in any order. The bytes are those of stream
 * version 1, which never change. Needs WebCrypto and BigInt, and nothing else.
 *
 * @module relaxdp
 */

/** @typedef {"integer" | "text" | "uuid" | "bytes" | "number"} Type */
/** @typedef {{ type: Type, value: bigint | number | string | Uint8Array }} Typed 7 and "7" are different objects */
/** @typedef {{ j: number, R: bigint, V: number }} Draw an accepted draw: the number of its block, position, value */

const ONE = 2n ** 64n;
const BLOCK = 16;
const KEY_BYTES = 32;
const SALT = new TextEncoder().encode("relaxdp stream 1");
const PURPOSES = ["path", "coin", "round", "seed", "cohort", "fingerprint", "blur", "bridge"];

/** Every refusal: `code` is for programs and is stable, `message` is a sentence that shows neither truth nor key. */
export class RelaxdpError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "RelaxdpError";
    this.code = code;
  }
}

// ---- The threshold of a level -------------------------------------------------------------------------------------

const DECIMAL = /^\+?(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

// Whoever crafts a decimal of a million digits could otherwise keep the loop of `threshold` busy for minutes.
const LONGEST_EPSILON = 1000;

/**
 * Return the threshold of a level: T = 2^64 - ceil(2^64 * m / (e^epsilon - 1 + m)), exactly.
 *
 * Rounded down, so the guarantee that T realises never exceeds the epsilon that was asked for. The result is never
 * 2^64, which would be the bare truth; it is 0 where epsilon is too small to carry any information in 64 bits.
 *
 * @param {string} epsilon a decimal as a person wrote it, such as "0.1"; a binary float would be another number
 * @param {number | bigint} m how many values there are
 * @returns {bigint}
 */
export function threshold(epsilon, m) {
  const size = alphabetSize(m);
  const { digits, scale, magnitude } = parseDecimal(epsilon);
  // From ln(1 + m(2^64 - 1)) on, which is below 89 for every 64-bit m, all levels share the last threshold.
  if (magnitude >= 2n) return ONE - 1n;
  // Below 1e-20, e^epsilon - 1 is under m / (2^64 - 1) even for m = 2, and that is where the first threshold begins.
  if (magnitude < -20n) return 0n;
  const numerator = scale < 0n ? digits : digits * 10n ** scale;
  const denominator = scale < 0n ? 10n ** -scale : 1n;
  // e^epsilon is irrational, so it lies on no boundary between two thresholds and the two ends agree in the end.
  for (let bits = 128n; ; bits *= 2n) {
    const [low, high] = expm1Bounds(numerator, denominator, bits);
    const lowest = thresholdOfOdds(low, size, bits);
    if (lowest === thresholdOfOdds(high, size, bits)) return lowest;
  }
}

/** The threshold where e^epsilon - 1 is the fixed-point number `expm1`; it grows with `expm1`. */
function thresholdOfOdds(expm1, size, bits) {
  return ONE - ceilDivide((ONE * size) << bits, expm1 + (size << bits));
}

/**
 * Enclose e^x - 1 for x = numerator / denominator >= 0, in fixed point with `bits` binary places.
 *
 * Every term of the power series is positive, so rounding all of them down (up) bounds the sum from below (above).
 */
function expm1Bounds(numerator, denominator, bits) {
  const low = (numerator << bits) / denominator;
  const high = low + 1n;
  let [lowTerm, highTerm] = [low, high];
  let [lowSum, highSum] = [low, high];
  let k = 2n;
  while (highTerm > 1n || k << bits < 2n * high) {
    lowTerm = (lowTerm * low) / (k << bits);
    highTerm = ceilDivide(highTerm * high, k << bits);
    lowSum += lowTerm;
    highSum += highTerm;
    k += 1n;
  }
  // From here on each term is at most half of the one before, so all that is missing is at most the last term.
  return [lowSum, highSum + highTerm];
}

/** Read a positive decimal as digits * 10^scale; its first digit stands for 10^magnitude. */
function parseDecimal(text) {
  const match = typeof text === "string" && text.length <= LONGEST_EPSILON ? DECIMAL.exec(text) : null;
  if (match === null) {
    throw new RelaxdpError(
      "epsilon_invalid",
      `epsilon must be a positive decimal of at most ${LONGEST_EPSILON} characters, given as text. Nothing was drawn.`,
    );
  }
  const [, whole, fraction = "", exponent = "0"] = match;
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") throw new RelaxdpError("epsilon_invalid", "epsilon must be greater than 0. Nothing was drawn.");
  const scale = BigInt(exponent) - BigInt(fraction.length);
  return { digits: BigInt(digits), scale, magnitude: BigInt(digits.length - 1) + scale };
}

/** @returns {bigint} */
function alphabetSize(m) {
  const size = typeof m === "bigint" || Number.isSafeInteger(m) ? BigInt(m) : 0n;
  if (size < 2n || size >= ONE) {
    throw new RelaxdpError("alphabet_invalid", "the number of values must be whole and lie between 2 and 2^64 - 1.");
  }
  return size;
}

function ceilDivide(a, b) {
  return (a + b - 1n) / b;
}

// ---- Bytes --------------------------------------------------------------------------------------------------------

const LONE_SURROGATE = /\p{Surrogate}/u;
const INTEGER = /^(?:0|-?[1-9]\d{0,19})$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** For each type, how a value becomes a tag and a payload. */
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

function integerPayload(value) {
  const written = typeof value === "string" && INTEGER.test(value);
  const exact = written || typeof value === "bigint" || Number.isSafeInteger(value);
  if (!exact || BigInt(value) < -(2n ** 63n) || BigInt(value) >= ONE) {
    throw new RelaxdpError(
      "value_invalid",
      "an integer must be exact, without leading zeros, and lie between -2^63 and 2^64 - 1.",
    );
  }
  const integer = BigInt(value);
  return [integer < 2n ** 63n ? 1 : 2, u64(integer)];
}

function uuidPayload(value) {
  if (typeof value !== "string" || !UUID.test(value)) {
    throw new RelaxdpError("value_invalid", "a UUID must be written as 32 hexadecimal digits in groups of 8-4-4-4-12.");
  }
  return [4, Uint8Array.from(value.replaceAll("-", "").match(/../g), (pair) => parseInt(pair, 16))];
}

function bytesPayload(value) {
  requireBytes(value, "a value of type bytes");
  return [5, value];
}

function numberPayload(value) {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (!Number.isFinite(number) || (typeof value === "bigint" && BigInt(number) !== value)) {
    throw new RelaxdpError("value_invalid", "a number must be finite, and an integer must be exact as a binary64.");
  }
  const payload = new Uint8Array(8);
  // Adding +0 turns -0 into +0 and changes no other number.
  new DataView(payload.buffer).setFloat64(0, number + 0, true);
  return [6, payload];
}

let warned = false;

/** UTF-8 exactly as given. A lone surrogate is refused: TextEncoder would quietly make another character of it. */
function utf8(text, what) {
  if (typeof text !== "string" || LONE_SURROGATE.test(text)) {
    throw new RelaxdpError("text_invalid", `${what} must be well-formed text, and half of a surrogate pair is not.`);
  }
  if (!warned && text !== text.normalize("NFC")) {
    warned = true;
    console.warn("relaxdp: a text is not in Unicode form NFC; the same letters in another form get other noise.");
  }
  return new TextEncoder().encode(text);
}

function requireBytes(value, what) {
  if (!(value instanceof Uint8Array)) throw new RelaxdpError("value_invalid", `${what} must be a Uint8Array.`);
}

function u32(value) {
  // DataView would wrap around in silence, and two messages could then be one.
  if (value > 0xffff_ffff) throw new RelaxdpError("value_invalid", "a length or a counter does not fit into 32 bits.");
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** Little-endian; a negative number becomes its two's complement. */
function u64(value) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

function lengthPrefixed(bytes) {
  return concat(u32(bytes.length), bytes);
}

function concat(...parts) {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

// ---- Keys and AES-CMAC --------------------------------------------------------------------------------------------

/**
 * Derive the key of one purpose: HKDF-SHA256 over everything that two mechanisms must not share.
 *
 * Written as HKDF's two HMACs, because some WebCrypto implementations refuse an `info` above 1024 bytes, which long
 * names reach. One hash is all the output that is needed, so there is a single round of expansion.
 *
 * @param {Uint8Array} key 32 bytes
 * @param {{ purpose: string, release: string, attribute: string, encoding: string, alphabet: number | bigint,
 *           params: Uint8Array }} context
 * @returns {Promise<Uint8Array>} 32 bytes
 */
export async function derive(key, { purpose, release, attribute, encoding, alphabet, params }) {
  requireKey(key);
  requireBytes(params, "the parameters");
  if (!PURPOSES.includes(purpose)) {
    throw new RelaxdpError("purpose_invalid", `the purpose must be one of ${PURPOSES.join(", ")}.`);
  }
  const names = [
    utf8(purpose, "the purpose"),
    utf8(release, "the release"),
    utf8(attribute, "the attribute"),
    utf8(encoding, "the encoding"),
  ];
  const info = concat(...names.map(lengthPrefixed), u64(alphabetSize(alphabet)), lengthPrefixed(params));
  const extracted = await hmac(SALT, key);
  return hmac(extracted, concat(info, Uint8Array.of(1)));
}

/**
 * Return AES-256-CMAC of a message of whole blocks.
 *
 * @param {Uint8Array} key 32 bytes
 * @param {Uint8Array} message
 * @returns {Promise<Uint8Array>} 16 bytes
 */
export async function cmac(key, message) {
  requireKey(key);
  requireBytes(message, "the message");
  if (message.length === 0 || message.length % BLOCK !== 0) {
    throw new RelaxdpError("message_invalid", "the message must be one or more whole blocks of 16 bytes.");
  }
  return (await Cmac.withKey(key)).tag(message);
}

/** AES-CMAC for whole blocks, which need only the first of its two subkeys. */
class Cmac {
  #key;
  #subkey;

  constructor(key, subkey) {
    this.#key = key;
    this.#subkey = subkey;
  }

  static async withKey(bytes) {
    const key = await subtle().importKey("raw", bytes, "AES-CBC", false, ["encrypt"]);
    return new Cmac(key, doubled(await lastCipherBlock(key, new Uint8Array(BLOCK))));
  }

  tag(message) {
    const masked = message.slice();
    const last = masked.length - BLOCK;
    this.#subkey.forEach((byte, i) => (masked[last + i] ^= byte));
    return lastCipherBlock(this.#key, masked);
  }
}

/** The CBC-MAC. WebCrypto always appends a block of padding, which is dropped. */
async function lastCipherBlock(key, message) {
  const cipher = await subtle().encrypt({ name: "AES-CBC", iv: new Uint8Array(BLOCK) }, key, message);
  return new Uint8Array(cipher, message.length - BLOCK, BLOCK).slice();
}

/** Multiply by x in the field of 2^128 elements, without a branch that depends on the key. */
function doubled(block) {
  const shifted = block.map((byte, i) => (byte << 1) | ((block[i + 1] ?? 0) >> 7));
  shifted[BLOCK - 1] ^= (block[0] >> 7) * 0x87;
  return shifted;
}

async function hmac(key, message) {
  const imported = await subtle().importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle().sign("HMAC", imported, message));
}

function requireKey(key) {
  if (!(key instanceof Uint8Array) || key.length !== KEY_BYTES) {
    throw new RelaxdpError("key_invalid", `the key must be a Uint8Array of ${KEY_BYTES} bytes. Nothing was drawn.`);
  }
}

/** Looked up at each call, so that the module can be loaded where WebCrypto comes later or not at all. */
function subtle() {
  const found = globalThis.crypto?.subtle;
  if (found === undefined) {
    throw new RelaxdpError(
      "crypto_missing",
      "WebCrypto is missing: a browser offers it on https pages only. Nothing was drawn.",
    );
  }
  return found;
}

// ---- The path -----------------------------------------------------------------------------------------------------

// Enough for most reports in one go; a call to WebCrypto costs more than the blocks that are drawn in vain.
const BATCH = 16;

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

/** The whole future of one object. Obtained from `Categorical.path`; shows neither key nor truth when printed. */
class Path {
  #mac;
  #message;
  #truth;
  #size;
  /** @type {Promise<DataView[]>[]} Promises, so that levels read at the same time share their blocks. */
  #batches = [];

  constructor({ mac, message, truth, size }) {
    this.#mac = mac;
    this.#message = message;
    this.#truth = truth;
    this.#size = size;
  }

  /**
   * Return the report at a level, as an index into the declared values.
   *
   * @param {string} epsilon
   * @returns {Promise<number>}
   */
  async at(epsilon) {
    const level = threshold(epsilon, this.#size);
    if (level === 0n) {
      throw new RelaxdpError(
        "epsilon_too_small",
        "epsilon is too small: its threshold in 64 bits is 0. Nothing was drawn.",
      );
    }
    return this.atThreshold(level);
  }

  /**
   * @param {bigint} T from 1 to 2^64 - 1
   * @returns {Promise<number>}
   */
  async atThreshold(T) {
    const draws = await this.draws(T);
    // The last draw is the one that fell below T; the one before it, if any, stands at this level.
    return draws.at(-2)?.V ?? this.#truth;
  }

  /**
   * Return the accepted draws down to the first position below T. They give the truth away: for tests only.
   *
   * @param {bigint} T from 1 to 2^64 - 1
   * @returns {Promise<Draw[]>}
   */
  async draws(T) {
    if (typeof T !== "bigint" || T < 1n || T >= ONE) {
      throw new RelaxdpError(
        "threshold_invalid",
        "a threshold must be a BigInt from 1 to 2^64 - 1. Nothing was drawn.",
      );
    }
    const draws = [];
    let n = ONE;
    // T is at least 1, so a position of 0 ends the loop and n never becomes 0.
    for (let j = 0; n >= T; j += 1) {
      const block = await this.#block(j);
      const pair = accept(block.getBigUint64(0, true), block.getBigUint64(8, true), n, this.#size);
      if (pair === null) continue;
      draws.push({ j, R: pair.R, V: Number(pair.V) });
      n = pair.R;
    }
    return draws;
  }

  async #block(j) {
    const first = j - (j % BATCH);
    this.#batches[first / BATCH] ??= Promise.all(Array.from({ length: BATCH }, (_, i) => this.#compute(first + i)));
    return (await this.#batches[first / BATCH])[j - first];
  }

  async #compute(j) {
    const tag = await this.#mac.tag(concat(this.#message, u32(j)));
    return new DataView(tag.buffer);
  }
}

// ---- The categorical encoding -------------------------------------------------------------------------------------

/**
 * Return what a declared list of values contributes to its keys: a digest of the values in their order.
 *
 * @param {Typed[]} values
 * @returns {Promise<Uint8Array>} 32 bytes
 */
export async function categoricalParams(values) {
  return digestOf(Array.from(values, encode));
}

async function digestOf(encoded) {
  return new Uint8Array(await subtle().digest("SHA-256", concat(u64(BigInt(encoded.length)), ...encoded)));
}

/** A declared list of values, from which every object has one as its truth. */
export class Categorical {
  #encoded;

  /** @param {Typed[]} values at least two, all different, all of one type; their order is part of every key */
  constructor(values) {
    if (!Array.isArray(values) || values.length < 2) {
      throw new RelaxdpError("values_invalid", "at least 2 values must be declared, as an array.");
    }
    this.#encoded = Array.from(values, encode);
    if (new Set(values.map(({ type }) => type)).size > 1) {
      throw new RelaxdpError("values_invalid", `the ${values.length} declared values must all have one type.`);
    }
    if (new Set(this.#encoded.map(String)).size < values.length) {
      throw new RelaxdpError("values_invalid", `the ${values.length} declared values must all be different.`);
    }
  }

  /** How many values were declared. */
  get size() {
    return this.#encoded.length;
  }

  /**
   * Return the path of one object. The object must name one person only, and keep its truth: a changed truth is
   * another path, and that it changed would show.
   *
   * @param {{ key: Uint8Array, release: string, attribute: string, object: Typed, truth: number }} of
   *        `truth` is an index into the declared values
   * @returns {Promise<Path>}
   */
  async path({ key, release, attribute, object, truth }) {
    if (!Number.isInteger(truth) || truth < 0 || truth >= this.size) {
      throw new RelaxdpError(
        "truth_invalid",
        `the truth must be the index of one of the ${this.size} declared values. Nothing was drawn.`,
      );
    }
    if (object?.type === "number") {
      throw new RelaxdpError(
        "object_invalid",
        "a floating-point number cannot name an object: use an integer or text. Nothing was drawn.",
      );
    }
    const symbol = u32(0);
    const message = concat(encode(object), u64(BigInt(truth)), symbol);
    const context = { purpose: "path", release, attribute, encoding: "categorical", alphabet: this.size };
    const derived = await derive(key, { ...context, params: await digestOf(this.#encoded) });
    return new Path({ mac: await Cmac.withKey(derived), message, truth, size: BigInt(this.size) });
  }
}
