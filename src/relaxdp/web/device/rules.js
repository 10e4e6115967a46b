/**
 * What a device may send, and why it may refuse. Pure: no storage, no network, no clock, never a look at the answer.
 *
 * That no rule looks at the answer matters: a refusal that depended on it would tell of it, outside of every epsilon.
 */

import { least, most } from "./decimal.js";
import { RelaxdpError } from "./errors.js";
import { amount, leftIn, spentBy } from "./state.js";

/** @typedef {import("./offer.js").Level} Level */
/** @typedef {import("./offer.js").Offer} Offer */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Sent} Sent */
/** @typedef {import("./state.js").CampaignRecord} CampaignRecord */

const NOTHING = "Nothing was sent.";
const ENDED = {
  finished: "this campaign has finished",
  withdrawing: "this device has left the campaign",
  withdrawn: "this device has left the campaign",
  forgotten: "this device has forgotten its answer to this campaign",
};

/**
 * Return the level to report at now, null while there is nothing to do, or refuse.
 *
 * It is the highest open level that the person's consent and limit allow: a device may stay behind its campaign. Lower
 * levels are skipped, because the highest report of a device makes the others worthless.
 *
 * @param {State} state
 * @param {CampaignRecord} record
 * @param {Offer} offer
 * @returns {Level | null}
 */
export function nextLevel(state, record, offer) {
  checkSame(record, offer);
  checkActive(record);
  if (record.answered === null) {
    throw new RelaxdpError("answer_missing_error", `there is no answer to report yet. ${NOTHING}`);
  }
  if (offer.open.length === 0) return null;
  checkGrowth(record, offer.open[offer.open.length - 1]);
  const spent = spentBy(record);
  const largest = least(spent.plus(leftIn(state)), amount(record.consent));
  const allowed = offer.open.filter((level) => level.epsilon.compare(largest) <= 0);
  if (allowed.length === 0) throw tooMuch(state, record, offer.open[0]);
  const next = allowed[allowed.length - 1];
  // What this device has reported is more than what it may report now.
  if (next.epsilon.compare(spent) < 0) return null;
  checkGrowth(record, next);
  return next;
}

/**
 * Why not even the lowest open level can be reported at.
 *
 * @param {State} state
 * @param {CampaignRecord} record
 * @param {Level} lowest
 */
function tooMuch(state, record, { epsilon }) {
  if (epsilon.compare(amount(record.consent)) > 0) {
    return new RelaxdpError(
      "consent_error",
      `you agreed to an epsilon of at most ${record.consent} in this campaign, and ${epsilon} was asked for. ` +
        NOTHING,
      { consent: record.consent, epsilon: String(epsilon) },
    );
  }
  const spent = spentBy(record);
  const [left, limit, needed] = [leftIn(state), state.limit, most(epsilon, spent).minus(spent)].map(String);
  return new RelaxdpError(
    "budget_exceeded_error",
    `limit exceeded: ${left} left of ${limit}, this report needs ${needed}. ${NOTHING}`,
    { left, limit, needed },
  );
}

/**
 * Return the report that was written down for a level, if there is one: it is sent as it is, never drawn anew.
 *
 * @param {CampaignRecord} record
 * @param {Level} level
 * @returns {Sent | undefined}
 */
export function writtenAt(record, { epsilon, threshold }) {
  return record.sent.find((sent) => sent.epsilon === String(epsilon) && sent.threshold === String(threshold));
}

/**
 * Refuse a campaign that is no longer the one that was joined.
 *
 * @param {CampaignRecord} record
 * @param {Offer} offer
 */
export function checkSame(record, offer) {
  if (record.encoding !== offer.encoding.name || record.params !== offer.params) {
    const what = record.encoding !== offer.encoding.name ? "encoding" : "list of values (or their order)";
    throw new RelaxdpError(
      "values_changed_error",
      `the campaign's ${what} is not the one that was joined: the old answer does not fit it. ${NOTHING} ` +
        "A new question needs a new campaign.",
    );
  }
  if (record.question !== offer.question) {
    throw new RelaxdpError(
      "path_changed_error",
      "the campaign's question is not the one that was joined: the old answer is not an answer to it. " +
        `${NOTHING} A new question needs a new campaign.`,
    );
  }
}

/**
 * Refuse to go on with what is over.
 *
 * @param {CampaignRecord} record
 */
export function checkActive({ ended }) {
  if (ended !== null) throw new RelaxdpError("participation_error", `${ENDED[ended]}. ${NOTHING}`, { ended });
}

/**
 * What the person agrees to: all that the campaign will ever ask for, or less.
 *
 * @param {Offer} offer
 * @param {import("./decimal.js").Amount | null} upto
 */
export function consentTo(offer, upto) {
  return upto === null ? offer.largestEpsilon : least(upto, offer.largestEpsilon);
}

/**
 * @param {CampaignRecord} record
 * @param {Level} level
 */
function checkGrowth(record, { epsilon, threshold }) {
  const last = record.sent.at(-1);
  if (last === undefined) return;
  const fields = { last_epsilon: last.epsilon, epsilon: String(epsilon) };
  const order = epsilon.compare(amount(last.epsilon));
  if (order < 0) {
    throw new RelaxdpError(
      "level_error",
      `epsilon may only grow: this device is at ${last.epsilon} and ${epsilon} was asked for. ` +
        `A report cannot be taken back. ${NOTHING}`,
      fields,
    );
  }
  const lastThreshold = BigInt(last.threshold);
  if (threshold < lastThreshold || (order === 0 && threshold !== lastThreshold)) {
    throw new RelaxdpError(
      "level_error",
      `the threshold of epsilon ${epsilon} does not fit what was sent at ${last.epsilon}. ${NOTHING}`,
      fields,
    );
  }
}
