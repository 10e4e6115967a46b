/**
 * Relaxed randomized response in the browser: a device that keeps a person's answers and sends reports of them.
 *
 * A report is a pure function of (key, object, truth, epsilon): a reload, a retry or a second tab can never draw twice
 * at one level, and levels may be read in any order. The bytes are those of stream version 1, which never change. Needs
 * WebCrypto, BigInt and, to remember, IndexedDB (`missingParts` says what is not there), and nothing else.
 *
 * @module relaxdp
 */

export { encode } from "./bytes.js";
export { Client } from "./client.js";
export { Amount } from "./decimal.js";
export { Device } from "./device.js";
export { Bloom } from "./encodings/bloom.js";
export { Categorical } from "./encodings/categorical.js";
export { categoricalParams } from "./encodings/declared.js";
export { LocalHash } from "./encodings/local_hash.js";
export { Numeric } from "./encodings/numeric.js";
export { encodingOf } from "./encodings/registry.js";
export { Unary } from "./encodings/unary.js";
export { Wave } from "./encodings/wave.js";
export { RelaxdpError } from "./errors.js";
export { missingParts } from "./missing.js";
export { Participation } from "./participation.js";
export { accept } from "./path.js";
export { BrowserStorage, MemoryStorage } from "./storage.js";
export { cmac, derive } from "./stream.js";
export { threshold } from "./threshold.js";
