/** Keys and words: HKDF-SHA256 and AES-256-CMAC from the pieces that WebCrypto offers (docs/stream.md). */

import { BLOCK, concat, lengthPrefixed, requireBytes, u64, utf8 } from "./bytes.js";
import { RelaxdpError } from "./errors.js";
import { alphabetSize } from "./threshold.js";

/**
 * @typedef {{ purpose: string, release: string, attribute: string, encoding: string, alphabet: number | bigint,
 *             params: Uint8Array }} Context everything that two mechanisms must not share
 */

const KEY_BYTES = 32;
const SALT = new TextEncoder().encode("relaxdp stream 1");
const PURPOSES = ["path", "coin", "round", "seed", "cohort", "fingerprint"];

/**
 * Derive the key of one purpose: HKDF-SHA256 over everything that two mechanisms must not share.
 *
 * Written as HKDF's two HMACs, because some WebCrypto implementations refuse an `info` above 1024 bytes, which long
 * names reach. One hash is all the output that is needed, so there is a single round of expansion.
 *
 * @param {Uint8Array} key 32 bytes
 * @param {Context} context
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
  const tags = await Tags.after(key, message.subarray(0, -BLOCK));
  return tags.of(message.subarray(-BLOCK));
}

/**
 * AES-CMAC of messages that differ in their last block alone, all of them whole blocks.
 *
 * The blocks before it are absorbed once. The state that they leave and CMAC's first subkey (whole blocks need no
 * other) are both XORed into the last block, which is what CBC does with its initial vector.
 */
export class Tags {
  #key;
  #mask;

  /**
   * @param {CryptoKey} key
   * @param {Uint8Array} mask
   */
  constructor(key, mask) {
    this.#key = key;
    this.#mask = mask;
  }

  /**
   * @param {Uint8Array} bytes the key
   * @param {Uint8Array} prefix whole blocks, perhaps none
   */
  static async after(bytes, prefix) {
    const key = await subtle().importKey("raw", unshared(bytes), "AES-CBC", false, ["encrypt"]);
    const zeros = new Uint8Array(BLOCK);
    const subkey = doubled(await lastCipherBlock(key, zeros, zeros));
    const state = prefix.length === 0 ? zeros : await lastCipherBlock(key, zeros, prefix);
    return new Tags(
      key,
      subkey.map((byte, i) => byte ^ state[i]),
    );
  }

  /** @param {Uint8Array} last the last block */
  of(last) {
    return lastCipherBlock(this.#key, this.#mask, last);
  }
}

/**
 * The last block of CBC. WebCrypto always appends a block of padding, which is dropped.
 *
 * @param {CryptoKey} key
 * @param {Uint8Array} iv
 * @param {Uint8Array} message
 */
async function lastCipherBlock(key, iv, message) {
  const cipher = await subtle().encrypt({ name: "AES-CBC", iv: unshared(iv) }, key, unshared(message));
  return new Uint8Array(cipher.slice(message.length - BLOCK, message.length));
}

/**
 * Multiply by x in the field of 2^128 elements, without a branch that depends on the key.
 *
 * @param {Uint8Array} block
 */
function doubled(block) {
  const shifted = block.map((byte, i) => (byte << 1) | ((block[i + 1] ?? 0) >> 7));
  shifted[BLOCK - 1] ^= (block[0] >> 7) * 0x87;
  return shifted;
}

/**
 * @param {Uint8Array} key
 * @param {Uint8Array} message
 */
async function hmac(key, message) {
  const imported = await subtle().importKey("raw", unshared(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle().sign("HMAC", imported, unshared(message)));
}

/** @param {unknown} key */
function requireKey(key) {
  if (!(key instanceof Uint8Array) || key.length !== KEY_BYTES) {
    throw new RelaxdpError("key_invalid", `the key must be a Uint8Array of ${KEY_BYTES} bytes. Nothing was drawn.`);
  }
}

/**
 * @param {"SHA-256" | "SHA-512"} name
 * @param {Uint8Array} message
 */
export async function digest(name, message) {
  return new Uint8Array(await subtle().digest(name, unshared(message)));
}

/**
 * WebCrypto takes no memory that threads share, and says so itself; what we are given is not of that kind.
 *
 * @param {Uint8Array} bytes
 */
const unshared = (bytes) => /** @type {Uint8Array<ArrayBuffer>} */ (bytes);

/**
 * Looked up at each call, so that the module can be loaded where WebCrypto comes later or not at all.
 *
 * @returns {SubtleCrypto}
 */
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
