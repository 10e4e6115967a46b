/** Several questions of one survey: one limit, divided among them before any answer. */

import { SurveyAddress } from "./address.js";
import { least, most, ZERO } from "./decimal.js";
import { RelaxdpError } from "./errors.js";
import { readOffer } from "./offer.js";
import { amount, leftIn, mostBy, recordOf, spentBy } from "./state.js";
import { fieldsOf } from "./typed.js";

/** @typedef {import("./address.js").CampaignAddress} CampaignAddress */
/** @typedef {import("./decimal.js").Amount} Amount */
/** @typedef {import("./offer.js").Offer} Offer */

const MOST_QUESTIONS = 100;
const NOTHING = "Nothing was sent.";

/**
 * A question of a survey: a campaign of the same server.
 *
 * @typedef {{ id: string, address: CampaignAddress, offer: Offer }} Question
 */

/**
 * A survey as its server describes it now, found to be in order by itself.
 *
 * @typedef {object} SurveyOffer
 * @property {SurveyAddress} address
 * @property {Question[]} questions
 * @property {[string, string][]} cross the questions that are counted together, by their ids: the server learns which
 *   reports are one device's
 */

/**
 * How a limit is divided among the questions of a survey.
 *
 * @typedef {object} Division
 * @property {SurveyOffer} offer
 * @property {Amount} limit what was agreed to for all questions together
 * @property {Map<string, Amount>} given up to which epsilon each question may be reported, by its id
 * @property {Question[]} asked the questions that fit, in their order
 * @property {Question[]} leftOut those that do not: show them to the person before the first one is answered
 * @property {boolean} isNew whether this survey was not joined yet
 */

/**
 * Ask a server what a survey is.
 *
 * @param {import("./client.js").Client} client
 * @param {SurveyAddress} address
 */
export async function askSurvey(client, address) {
  return readSurvey(address, await client.ask(address, []));
}

/**
 * Read a description, or refuse it in one sentence.
 *
 * @param {SurveyAddress} address
 * @param {unknown} content
 * @returns {Promise<SurveyOffer>}
 */
export async function readSurvey(address, content) {
  const { id, questions, cross } = fieldsOf(content);
  if (id !== address.id) throw refused(`the server's answer does not describe the survey ${address.id}.`);
  if (!Array.isArray(questions) || questions.length === 0 || questions.length > MOST_QUESTIONS) {
    throw refused(`the survey must have from 1 to ${MOST_QUESTIONS} questions.`);
  }
  const names = questions.map((each) => fieldsOf(each).id).filter((name) => typeof name === "string");
  if (new Set(names).size < questions.length) {
    throw refused("two questions of the survey have the same id, or one has none.");
  }
  const read = names.map(async (name, place) => {
    const where = address.question(name);
    return { id: name, address: where, offer: await readOffer(where, questions[place]) };
  });
  return Object.freeze({ address, questions: await Promise.all(read), cross: readPairs(cross, names) });
}

/**
 * @param {unknown} content
 * @param {string[]} names
 * @returns {[string, string][]}
 */
function readPairs(content, names) {
  const isPair = (/** @type {unknown} */ pair) =>
    Array.isArray(pair) && pair.length === 2 && pair[0] !== pair[1] && pair.every((each) => names.includes(each));
  if (!Array.isArray(content) || !content.every(isPair)) {
    throw refused("the survey does not say which of its questions are counted together.");
  }
  return content;
}

/**
 * The questions that can be joined with one another, directly or by way of others: they share a pseudonym.
 *
 * @param {[string, string][]} cross
 * @returns {Set<string>[]}
 */
export function groupsOf(cross) {
  /** @type {Set<string>[]} */
  let groups = [];
  for (const pair of cross) {
    const joined = groups.filter((group) => pair.some((name) => group.has(name)));
    const others = groups.filter((group) => !joined.includes(group));
    groups = [...others, new Set([...joined.flatMap((group) => [...group]), ...pair])];
  }
  return groups;
}

/**
 * Return how the limit is divided, or was when the survey was joined. No answer is looked at.
 *
 * @param {import("./state.js").State} state
 * @param {SurveyOffer} offer
 * @param {Amount | null} agreed
 * @returns {Division}
 */
export function divided(state, offer, agreed) {
  const { address, questions } = offer;
  const known = new Map(
    questions.flatMap(({ id, address: where }) => {
      const record = recordOf(state, String(where));
      return record === undefined ? [] : [/** @type {const} */ ([id, record])];
    }),
  );
  const records = [...known.values()];
  const allLevels = sum(questions.map(({ offer: { levels } }) => levels[levels.length - 1].epsilon));
  const limit = agreed === null ? allLevels : least(agreed, allLevels);
  // Also of questions that the server does not name any more: what was agreed to was for the survey, once.
  const before = state.campaigns.find(({ survey }) => survey?.address === String(address))?.survey ?? null;
  if (before === null && records.some(({ survey }) => survey)) {
    throw new RelaxdpError(
      "consent_error",
      "a question of this survey was joined with another survey already. Nothing was changed.",
    );
  }
  const taken = sum(records.map(mostBy));
  const division = (/** @type {Amount} */ whole, /** @type {Map<string, Amount>} */ given) => ({
    offer,
    limit: whole,
    given,
    asked: questions.filter(({ id }) => given.has(id)),
    leftOut: questions.filter(({ id }) => !given.has(id)),
    isNew: before === null,
  });
  const kept = [...known].map(([id, record]) => /** @type {const} */ ([id, mostBy(record)]));
  if (before === null && taken.compare(limit) <= 0) {
    // What was joined by itself keeps what it has; the device's own limit holds over everything.
    const free = leftIn(state).plus(sum(records.map(spentBy)));
    const whole = least(limit, most(free, taken));
    const levels = questions.filter(({ id }) => !known.has(id)).map((each) => epsilonsOf(each.id, each.offer));
    return division(limit, new Map([...divide(new Map(levels), whole.minus(taken)), ...kept]));
  }
  const told = before === null ? taken : amount(before.limit);
  if (before === null || (agreed !== null && limit.compare(told) !== 0)) {
    throw new RelaxdpError(
      "consent_error",
      `questions of this survey were joined up to an epsilon of ${told} already. Nothing was changed.`,
      { consent: String(told) },
    );
  }
  return division(told, new Map(kept));
}

/**
 * @param {string} id
 * @param {Offer} offer
 * @returns {[string, Amount[]]}
 */
const epsilonsOf = (id, { levels }) => [id, levels.map(({ epsilon }) => epsilon)];

/**
 * Return up to which of its levels each question may be reported: level by level, in order, while there is room. A
 * question whose first level does not fit is left out.
 *
 * @param {Map<string, Amount[]>} levels
 * @param {Amount} limit
 */
export function divide(levels, limit) {
  /** @type {Map<string, Amount>} */
  const given = new Map();
  let left = limit;
  const longest = Math.max(0, ...[...levels.values()].map(({ length }) => length));
  for (let place = 0; place < longest; place += 1) {
    for (const [id, epsilons] of levels) {
      const before = given.get(id) ?? ZERO;
      if (place >= epsilons.length || (place > 0 && before !== epsilons[place - 1])) continue;
      const more = epsilons[place].minus(before);
      if (more.compare(left) > 0) continue;
      given.set(id, epsilons[place]);
      left = left.minus(more);
    }
  }
  return given;
}

/**
 * Refuse a survey of which not one question fits.
 *
 * @param {import("./state.js").State} state
 * @param {Division} division
 */
export function checkSome(state, { asked, leftOut, limit }) {
  if (asked.length > 0) return;
  const left = String(least(limit, leftIn(state)));
  const needed = String(leftOut.map(({ offer }) => offer.levels[0].epsilon).reduce(least));
  throw new RelaxdpError(
    "budget_exceeded_error",
    `limit exceeded: ${left} left of ${state.limit}, this report needs ${needed}. ${NOTHING}`,
    { left, limit: state.limit, needed },
  );
}

/** @param {Amount[]} amounts */
const sum = (amounts) => amounts.reduce((total, part) => total.plus(part), ZERO);

/** @param {string} sentence */
function refused(sentence) {
  return new RelaxdpError("offer_error", `${sentence} ${NOTHING}`);
}
