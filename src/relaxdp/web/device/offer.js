/** What a server says of a campaign, read by somebody who does not trust it. */

import { toHex } from "./bytes.js";
import { Amount } from "./decimal.js";
import { encodingOf } from "./encodings/registry.js";
import { RelaxdpError } from "./errors.js";
import { ONE } from "./threshold.js";
import { fieldsOf } from "./typed.js";

/** The attribute of every campaign's path. */
export const ATTRIBUTE = "answer";

const MOST_LEVELS = 1000;
const MOST_QUESTION = 2000;
const STATES = ["waiting", "open", "paused", "finished"];

/** @typedef {{ epsilon: Amount, threshold: bigint }} Level */

/**
 * A campaign as its server describes it now, found to be in order by itself. Whether it is what the person answered,
 * and whether it may be followed, is for rules.js to say.
 *
 * @typedef {object} Offer
 * @property {string} question
 * @property {import("./encodings/registry.js").Encoding} encoding
 * @property {string} params what the encoding binds into its keys, in hexadecimal
 * @property {Level[]} levels
 * @property {Level[]} open the levels that take reports now, the lowest first
 * @property {string} state
 * @property {Amount} largestEpsilon no level of this campaign will ever be above it
 * @property {boolean} needsInvitation
 * @property {number | null} publishedFrom with how many devices of a level it is published when it has ended; null: never
 */

/**
 * Read a description, or refuse it in one sentence.
 *
 * @param {import("./address.js").CampaignAddress} address
 * @param {unknown} content
 * @returns {Promise<Offer>}
 */
export async function readOffer(address, content) {
  const fields = fieldsOf(content);
  if (fields.id !== address.id) {
    throw refused(`the server's answer does not describe the campaign ${address.id}.`);
  }
  if (fields.release !== address.id || fields.attribute !== ATTRIBUTE) {
    throw refused(
      "the campaign asks for reports under another release name or attribute, which would be another path.",
    );
  }
  const { question, state } = fields;
  if (typeof question !== "string" || question === "" || [...question].length > MOST_QUESTION) {
    throw refused(`the campaign has no question, or one of more than ${MOST_QUESTION} letters.`);
  }
  if (typeof state !== "string" || !STATES.includes(state))
    throw refused("the campaign is in a state that this version does not know.");
  const encoding = encodingOf(fields.encoding);
  if (encoding === null) throw refused("the campaign's encoding or its values cannot be used by this version.");
  const levels = readLevels(fields.levels, encoding);
  return Object.freeze({
    question,
    encoding,
    params: toHex(await encoding.params()),
    levels,
    open: state === "open" ? readOpen(fields.open_level, levels) : [],
    state,
    largestEpsilon: readLargest(fields.largest_epsilon, levels),
    needsInvitation: fields.needs_invitation === true,
    publishedFrom: readLeast(fieldsOf(fields.publish).least),
  });
}

/**
 * @param {unknown} content
 * @param {import("./encodings/registry.js").Encoding} encoding
 * @returns {Level[]}
 */
function readLevels(content, encoding) {
  if (!Array.isArray(content) || content.length === 0 || content.length > MOST_LEVELS) {
    throw refused(`the campaign must have from 1 to ${MOST_LEVELS} levels.`);
  }
  const levels = content.map(readLevel);
  for (const [i, level] of levels.entries()) {
    const before = levels[i - 1];
    if (before && (level.epsilon.compare(before.epsilon) <= 0 || level.threshold < before.threshold)) {
      throw new RelaxdpError(
        "level_error",
        "the campaign's levels do not grow. A report cannot be taken back. Nothing was sent.",
      );
    }
  }
  for (const level of levels) checkThreshold(level, encoding);
  return levels;
}

/**
 * Read a level in its one spelling: two spellings of one level would be two levels for the server.
 *
 * @param {unknown} content
 * @returns {Level}
 */
function readLevel(content) {
  const { epsilon: written, threshold: whole } = fieldsOf(content);
  const epsilon = readEpsilon(written);
  if (epsilon === null || String(epsilon) !== written) {
    throw refused("a level of the campaign is not written as a plain epsilon.");
  }
  if (typeof whole !== "string" || !/^[1-9]\d{0,19}$/.test(whole) || BigInt(whole) >= ONE) {
    throw refused("a level of the campaign has a threshold that is none.");
  }
  return { epsilon, threshold: BigInt(whole) };
}

/**
 * Refuse a threshold that reveals more than its epsilon. A smaller one is more private, and fine.
 *
 * @param {Level} level
 * @param {import("./encodings/registry.js").Encoding} encoding
 */
function checkThreshold({ epsilon, threshold }, encoding) {
  let largest = 0n;
  try {
    largest = encoding.threshold(String(epsilon));
  } catch {
    // Too small to be realised: no threshold is small enough.
  }
  if (threshold > largest) {
    throw new RelaxdpError(
      "level_error",
      `the threshold of epsilon ${epsilon} is larger than that epsilon allows: reports would tell more than what was ` +
        "agreed to. Nothing was sent.",
      { epsilon: String(epsilon) },
    );
  }
}

/**
 * @param {unknown} content
 * @param {Level[]} levels
 */
function readLargest(content, levels) {
  const largest = readEpsilon(content);
  if (largest === null || largest.compare(levels[levels.length - 1].epsilon) < 0) {
    throw refused("the campaign does not say truthfully what its largest epsilon is.");
  }
  return largest;
}

/**
 * @param {unknown} content
 * @param {Level[]} levels
 */
function readOpen(content, levels) {
  if (content === null || content === undefined) return [];
  if (typeof content !== "number" || !Number.isInteger(content) || content < 0 || content >= levels.length) {
    throw refused("the campaign is open at a level that it does not have.");
  }
  return levels.slice(0, content + 1);
}

/**
 * Nothing follows from it: it is what the server says that it will do.
 *
 * @param {unknown} content
 * @returns {number | null}
 */
function readLeast(content) {
  return typeof content === "number" && Number.isSafeInteger(content) && content > 0 ? content : null;
}

/** @param {unknown} content */
function readEpsilon(content) {
  try {
    return Amount.parse(content);
  } catch {
    return null;
  }
}

/** @param {string} sentence */
function refused(sentence) {
  return new RelaxdpError("offer_error", `${sentence} Nothing was sent.`);
}
