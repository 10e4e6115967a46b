/** What the survey page says: which of its sentences, and with what in them. Nothing touches the page. */

import { Bloom } from "../device/encodings/bloom.js";
import { Numeric } from "../device/encodings/numeric.js";
import { Ranged } from "../device/encodings/range.js";
import { RelaxdpError } from "../device/errors.js";
import { ONE } from "../device/threshold.js";
import { count, moment, word as spoken, pieces as spokenPieces } from "../kit/language.js";
import { answersOf, often, shortNumber, WORDS_SUSPECTED } from "../kit/reports.js";

/** @typedef {import("../device/encodings/registry.js").Encoding} Encoding */
/** @typedef {import("../device/state.js").Sent} Sent */
/** @typedef {import("../kit/reports.js").Guess} Guess */
/** @typedef {typeof import("./words/en.js").default & typeof import("./several/words/en.js").default} Own */
/** @typedef {keyof Own | keyof typeof import("../kit/words/en.js").default} Name */

export const word = /** @type {(name: Name, fields?: import("../kit/language.js").Fields) => string} */ (spoken);
export const pieces = /** @type {(name: Name, fields?: import("../kit/language.js").Fields) => (string | Node)[]} */ (
  spokenPieces
);

/** How often a blind guess is right, as a sentence, by what there is to guess.
 *
 * @param {Encoding} encoding
 * @param {Guess} guess
 */
export function blindSentence(encoding, { blind, scale }) {
  const right = often(blind, scale);
  if (encoding instanceof Ranged) return word("limit.blind.number", { often: right });
  if (encoding.values === null && answersOf(encoding) === WORDS_SUSPECTED) {
    return word("limit.blind.word", { often: right });
  }
  return word("limit.blind", { answers: (encoding.values ?? [false, true]).length, often: right });
}

/**
 * What a limit is called, by how far it lets the survey go.
 *
 * @param {number} place among the choices
 * @param {number} levels how many of them are steps of the survey
 */
export function limitName(place, levels) {
  if (place >= levels) return word("limit.beyond");
  if (levels === 1) return word("limit.only");
  if (place === 0) return word("limit.first");
  return place + 1 === levels
    ? word("limit.all", { all: levels })
    : word("limit.some", { step: place + 1, all: levels });
}

/**
 * What the survey can learn from people who choose a limit.
 *
 * @param {Encoding} encoding
 * @param {number} width how near the answer is to be known
 * @param {number | null} people null where no number of them suffices
 */
export function learnsSentence(encoding, width, people) {
  if (people === null) return word("limit.needs.never");
  const number = shortCount(people);
  if (encoding instanceof Ranged) {
    return word("limit.needs.number", { number, width: count(width, { maximumSignificantDigits: 2 }) });
  }
  return word("limit.needs.share", { number, width: count(100 * width, { maximumSignificantDigits: 2 }) });
}

/**
 * A number with two digits that count, rounded up: nobody needs more to choose.
 *
 * @param {number} number
 */
export function shortCount(number) {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(number)) - 1);
  return unit * Math.ceil(number / unit);
}

/**
 * What a report means, and how often it is the truth.
 *
 * @param {Encoding} encoding
 * @param {Pick<Sent, "threshold">} last
 */
export function meaningOf(encoding, { threshold }) {
  const retention = Number(BigInt(threshold)) / Number(ONE);
  if (encoding.name === "categorical") {
    return word("meaning.one", { right: Math.round(100 * (retention + (1 - retention) / answersOf(encoding))) });
  }
  if (encoding instanceof Numeric) return word("meaning.ends");
  if (encoding instanceof Ranged) {
    const { alphabet, window, step } = encoding;
    const near = Math.round(100 * (retention + ((1 - retention) * window) / alphabet));
    return word("meaning.place", { near, distance: shortNumber(encoding, (step * (window + 1)) / 2) });
  }
  return word(encoding instanceof Bloom ? "meaning.marks" : "meaning.several");
}

/**
 * What a campaign is doing, for somebody who has not answered; null while it takes answers.
 *
 * @param {string} state
 * @param {string | null} opens
 * @returns {{ title: string, sentence: string } | null}
 */
export function closedWords(state, opens) {
  if (state === "finished") return { title: word("closed.finished.title"), sentence: word("closed.finished") };
  if (state !== "waiting") return null;
  const sentence = opens === null ? word("closed.later") : word("closed.waiting", { when: moment(opens) });
  return { title: word("closed.waiting.title"), sentence };
}

/**
 * @param {NonNullable<import("../device/state.js").Ending>} ended
 * @param {boolean} anythingSent
 */
export function endedSentence(ended, anythingSent) {
  if (ended !== "withdrawn") return word(`ended.${ended}`);
  return `${word("ended.withdrawn")} ${word(anythingSent ? "ended.deleted" : "ended.none")}`;
}

/** What the device refuses, by its code. What stands nowhere here is a description that cannot be followed.
 *
 * @type {Partial<Record<string, Name>>}
 */
const REFUSALS = {
  unreachable_error: "problem.unreachable",
  undeclared_value_error: "problem.answer",
  value_invalid: "problem.answer",
  text_invalid: "problem.answer",
  path_changed_error: "problem.changed",
  values_changed_error: "problem.changed",
  level_error: "problem.changed",
  server_answer_error: "problem.server",
  device_file_error: "problem.kept",
  budget_error: "problem.kept",
  consent_error: "now.limit",
  budget_exceeded_error: "now.limit",
  participation_error: "problem.unknown",
  address_error: "problem.noSurvey",
};

/** What a server refuses, by its own code.
 *
 * @type {Partial<Record<string, Name>>}
 */
const SERVER_REFUSALS = {
  unknown_campaign: "problem.noSurvey",
  invitation_refused: "problem.invitation",
  device_withdrawn: "problem.withdrawn",
};

/**
 * A refusal for people.
 *
 * @param {unknown} problem
 * @returns {string}
 */
export function problemWords(problem) {
  if (!(problem instanceof RelaxdpError)) return word("problem.unknown");
  const { code, fields, message } = problem;
  if (code === "refused_by_server_error") {
    const known = SERVER_REFUSALS[String(fields.error)];
    if (known !== undefined) return word(known);
    return fields.status === 404 ? word("problem.noSurvey") : word("problem.refused", { message });
  }
  return word(REFUSALS[code] ?? "problem.offer");
}

/**
 * By how much odds grow at most, rounded up: it is a promise.
 *
 * @param {string} epsilon
 */
export function oddsAt(epsilon) {
  const factor = Math.exp(Number(epsilon));
  if (factor >= 1e6) return word("limit.million");
  const digits = factor < 10 ? 100 : factor < 100 ? 10 : 1;
  return count(Math.ceil(factor * digits - 1e-9) / digits);
}
