/**
 * What this browser or this page lacks, in plain words. It imports nothing and uses nothing new, so that it runs where
 * the rest does not.
 */

/**
 * @typedef {{ crypto?: { subtle?: unknown }, isSecureContext?: boolean, BigInt?: unknown, fetch?: unknown,
 *             AbortController?: unknown, indexedDB?: unknown }} Scope
 */

/** @typedef {"https" | "crypto" | "bigint" | "fetch" | "storage"} Missing */

/** @type {Record<Missing, string>} */
var SENTENCES = {
  https:
    "This page came over plain http from another machine, where browsers do not lend their cryptography: " +
    "without it no answer can be protected. Ask for an address that begins with https://, or open the page " +
    "on the machine that it comes from, at http://localhost.",
  crypto: "This browser has no WebCrypto, without which no answer can be protected. A current browser has it.",
  bigint: "This browser cannot compute with large whole numbers (BigInt). A current browser can.",
  fetch: "This browser cannot send reports the way this page does (fetch). A current browser can.",
  storage:
    "This browser keeps nothing for this page (IndexedDB is missing or blocked), and an answer must be written " +
    "down before it is sent. Allow this site to keep data, or leave the private window.",
};

/**
 * Return one sentence for each part that is missing; none where everything is there.
 *
 * @param {Scope} [scope] the window, or what stands for it in a test
 * @returns {string[]}
 */
export function missingParts(scope) {
  return missingNames(scope).map((name) => SENTENCES[name]);
}

/**
 * Return the parts that are missing, by their names, for pages that have words of their own.
 *
 * @param {Scope} [scope]
 * @returns {Missing[]}
 */
export function missingNames(scope) {
  /** @type {Scope} */
  var found = scope || globalThis;
  /** @type {Missing[]} */
  var names = [];
  if (!found.crypto || !found.crypto.subtle) names.push(found.isSecureContext === false ? "https" : "crypto");
  if (typeof found.BigInt !== "function") names.push("bigint");
  if (typeof found.fetch !== "function" || typeof found.AbortController !== "function") names.push("fetch");
  if (!storageOf(found)) names.push("storage");
  return names;
}

/** @param {Scope} scope */
function storageOf(scope) {
  try {
    return scope.indexedDB;
  } catch (blocked) {
    return null;
  }
}
