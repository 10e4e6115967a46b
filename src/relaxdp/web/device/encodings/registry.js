/** Encodings by their names, as a campaign describes them. */

import { fieldsOf, readValue } from "../typed.js";
import { Bloom } from "./bloom.js";
import { Categorical } from "./categorical.js";
import { LocalHash } from "./local_hash.js";
import { Numeric } from "./numeric.js";
import { Unary } from "./unary.js";
import { Wave } from "./wave.js";

/** @typedef {Categorical | Unary | LocalHash | Numeric | Wave | Bloom} Encoding */

/**
 * What a description by a stranger has. Each encoding checks its numbers itself.
 *
 * @typedef {{ values?: unknown, range?: unknown, options: Record<string, any> }} Description
 */

/**
 * For each name, which options there must be and no others, and how it is made of a description by a stranger: that
 * throws whatever it likes where it is none.
 *
 * @type {Map<unknown, { options: string[], make: (description: Description) => Encoding }>}
 */
const ENCODINGS = new Map([
  ["categorical", { options: [], make: ({ values }) => new Categorical(declared(values)) }],
  ["unary-symmetric", { options: [], make: ({ values }) => new Unary(declared(values), { optimised: false }) }],
  ["unary-optimised", { options: [], make: ({ values }) => new Unary(declared(values)) }],
  [
    "local-hash",
    {
      options: ["buckets"],
      make: ({ values, options }) => new LocalHash(declared(values), { buckets: options.buckets }),
    },
  ],
  ["numeric", { options: [], make: ({ range }) => new Numeric(...ends(range)) }],
  [
    "wave",
    {
      options: ["bins", "window"],
      make: ({ range, options: { bins, window } }) => new Wave(...ends(range), { bins, window }),
    },
  ],
  [
    "bloom",
    {
      options: ["bits", "cohorts", "hashes"],
      make: ({ options: { bits, cohorts, hashes } }) => new Bloom({ bits, cohorts, hashes }),
    },
  ],
]);

/**
 * Return the encoding that a description names, or null where this version cannot use it.
 *
 * @param {unknown} description
 * @returns {Encoding | null}
 */
export function encodingOf(description) {
  const { name, options: written, ...rest } = fieldsOf(description);
  const known = ENCODINGS.get(name);
  const options = fieldsOf(written);
  if (known === undefined || Object.keys(options).sort().join() !== known.options.join()) return null;
  try {
    return known.make({ ...rest, options });
  } catch {
    return null;
  }
}

/** @param {unknown} values */
function declared(values) {
  if (!Array.isArray(values)) throw new TypeError();
  const read = values.map(readValue);
  // Two spellings of one letter look alike to the person and are different values.
  if (read.some(({ type, value }) => type === "text" && value !== String(value).normalize("NFC")))
    throw new TypeError();
  return read;
}

/**
 * @param {unknown} range
 * @returns {[number, number]}
 */
function ends(range) {
  if (!Array.isArray(range) || range.length !== 2 || !range.every((end) => typeof end === "number"))
    throw new TypeError();
  return [range[0], range[1]];
}
