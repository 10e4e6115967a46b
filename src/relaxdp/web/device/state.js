/** What a device remembers: its limit, and for every campaign its answer, its key and exactly what was sent. */

import { toHex } from "./bytes.js";
import { Amount, most, ZERO } from "./decimal.js";
import { digest } from "./stream.js";

const FORMAT = "relaxdp browser device 1";
const STATUSES = ["written", "sent", "refused"];
const ENDINGS = [null, "finished", "withdrawing", "withdrawn", "forgotten"];

/** @typedef {"finished" | "withdrawing" | "withdrawn" | "forgotten"} Ending */

/**
 * One report, as it left the device or was about to: there is nothing else that the server learned.
 *
 * @typedef {object} Sent
 * @property {string} epsilon
 * @property {string} threshold
 * @property {import("./typed.js").Written} report as it travels: a label, a number, or packed bytes in base64
 * @property {string} time
 * @property {"written" | "sent" | "refused"} status `written` before it leaves, `sent` when the server acknowledged it
 * @property {number | null} cohort the public cohort of a device that reports a Bloom filter
 */

/**
 * One campaign of a device.
 *
 * @typedef {object} CampaignRecord
 * @property {string} address
 * @property {string} question
 * @property {string} encoding
 * @property {string} params
 * @property {string} device the random pseudonym that the device has in this campaign, in questions of its survey that
 *   are counted together with it, and in no other
 * @property {string | null} key the secret of this campaign's path; null when it is over for this device
 * @property {string} consent the largest epsilon that the person agreed to when joining
 * @property {string} joined
 * @property {unknown} answer as the encoding keeps it
 * @property {string | null} answered
 * @property {string | null} invitation
 * @property {Sent[]} sent
 * @property {Ending | null} ended
 * @property {{ address: string, limit: string } | null} [survey] the survey with which it was joined, and the limit that
 *   was set for all of its questions together; none where it was joined by itself, and its survey not yet
 */

/**
 * Everything that a device keeps. Every change is another state with a higher revision.
 *
 * @typedef {{ limit: string, revision: number, campaigns: CampaignRecord[] }} State
 */

/**
 * What a campaign has cost: its largest level, from the moment when a report was written down.
 *
 * @param {CampaignRecord} record
 */
export function spentBy(record) {
  return record.sent.map(({ epsilon }) => amount(epsilon)).reduce(most, ZERO);
}

/**
 * What a campaign can still come to cost: what was agreed to, or what it has cost if it is over.
 *
 * @param {CampaignRecord} record
 */
export function mostBy(record) {
  return record.ended === null ? amount(record.consent) : spentBy(record);
}

/**
 * The limit of a campaign and its cost so far, both with the other questions of the survey that it was joined with.
 *
 * @param {State} state
 * @param {CampaignRecord} record
 */
export function wholeOf({ campaigns }, record) {
  const { survey, consent } = record;
  const all = survey ? campaigns.filter((each) => each.survey?.address === survey.address) : [record];
  return { limit: survey?.limit ?? consent, spent: String(spentIn({ campaigns: all })) };
}

/**
 * What all campaigns together have cost: they are different paths, so they add up.
 *
 * @param {Pick<State, "campaigns">} state
 */
export function spentIn({ campaigns }) {
  return campaigns.map(spentBy).reduce((total, part) => total.plus(part), ZERO);
}

/**
 * What may still be spent.
 *
 * @param {State} state
 */
export function leftIn(state) {
  return amount(state.limit).minus(spentIn(state));
}

/**
 * @param {State} state
 * @param {string} address
 */
export function recordOf(state, address) {
  return state.campaigns.find((record) => record.address === address);
}

/**
 * Return the state in which one campaign is as given.
 *
 * @param {State} state
 * @param {CampaignRecord} record
 * @returns {State}
 */
export function withRecord(state, record) {
  const known = recordOf(state, record.address) !== undefined;
  const campaigns = known
    ? state.campaigns.map((each) => (each.address === record.address ? record : each))
    : [...state.campaigns, record];
  return { ...state, campaigns, revision: state.revision + 1 };
}

/**
 * Return the record of a campaign that is over: answer and key are erased, what was sent stays.
 *
 * Whoever is withdrawing may need the invitation for that, and has it no longer than until the server knows.
 *
 * @param {CampaignRecord} record
 * @param {Ending} ended
 * @returns {CampaignRecord}
 */
export function over(record, ended) {
  const invitation = ended === "withdrawing" ? record.invitation : null;
  return { ...record, key: null, answer: null, invitation, ended };
}

/**
 * Return a state as it is stored, with what tells an intact text from a damaged one.
 *
 * @param {State} state
 */
export async function dumps({ limit, revision, campaigns }) {
  const content = { format: FORMAT, limit, revision, campaigns };
  return JSON.stringify({ ...content, check: await checksum(content) });
}

/**
 * Return the state, or null for what is none.
 *
 * @param {string} text
 * @returns {Promise<State | null>}
 */
export async function loads(text) {
  try {
    const { check, ...content } = JSON.parse(text);
    /** @type {State & { format: unknown }} */
    const { format, limit, revision, campaigns } = content;
    if (format !== FORMAT || check !== (await checksum(content))) return null;
    const state = { limit, revision, campaigns };
    const addresses = new Set(campaigns.map(({ address }) => address));
    // Whatever happened to it: a state that says more was spent than allowed must not be followed by a report.
    leftIn(state);
    const sound = Number.isSafeInteger(revision) && addresses.size === campaigns.length && campaigns.every(isSound);
    return sound ? state : null;
  } catch {
    return null;
  }
}

/** @param {CampaignRecord} record */
function isSound({ device, key, consent, sent, ended }) {
  return (
    /^[0-9a-f]{32}$/.test(device) &&
    (key === null || /^[0-9a-f]{64}$/.test(key)) &&
    Amount.fromText(consent) !== null &&
    ENDINGS.includes(ended) &&
    sent.every(({ status, threshold }) => STATUSES.includes(status) && /^[1-9]\d{0,19}$/.test(threshold))
  );
}

/**
 * An amount as this module wrote it down.
 *
 * @param {string} text
 */
export function amount(text) {
  const read = Amount.fromText(text);
  if (read === null) throw new TypeError("this is not an amount");
  return read;
}

/**
 * No protection against its owner.
 *
 * @param {unknown} content
 */
async function checksum(content) {
  return toHex(await digest("SHA-256", new TextEncoder().encode(JSON.stringify(content))));
}
