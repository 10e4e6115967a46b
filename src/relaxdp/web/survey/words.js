/** What the survey page says: plain sentences for limits, reports, states and refusals. Nothing touches the page. */

import { Amount, ZERO } from "../device/decimal.js";
import { Numeric } from "../device/encodings/numeric.js";
import { Ranged } from "../device/encodings/range.js";
import { RelaxdpError } from "../device/errors.js";
import { ONE } from "../device/threshold.js";
import { answersOf, count, guessAt, shortNumber, times, WORDS_SUSPECTED } from "../kit/reports.js";

/** @typedef {import("../device/encodings/registry.js").Encoding} Encoding */
/** @typedef {import("../device/state.js").Sent} Sent */
/** @typedef {import("../kit/reports.js").Guess} Guess */

/**
 * What a blind guess is, in words.
 *
 * @param {Encoding} encoding
 * @param {Guess} guess
 */
export function blindSentence(encoding, { blind, scale }) {
  const often = `${times(blind)} in ${count(scale)}`;
  if (encoding instanceof Ranged) {
    return `Somebody who guesses in which half of the range my number lies is right ${often} by luck alone.`;
  }
  if (encoding.values === null && answersOf(encoding) === WORDS_SUSPECTED) {
    return `Somebody suspects one particular answer of mine, and such a guess is right ${often}.`;
  }
  const { length } = encoding.values ?? [false, true];
  return `There are ${count(length)} possible answers, so somebody who just guesses mine is right ${often}.`;
}

/** @param {Guess} guess */
export function boundSentence({ bound, scale }) {
  return [
    "If they saw everything that this page ever sends for this survey, they would be right ",
    `at most ${times(bound)}`,
    ` in ${count(scale)}.`,
  ];
}

/**
 * @param {number} steps how many of all the campaign's levels the limit allows
 * @param {number} all
 */
export function stepsSentence(steps, all) {
  if (all === 1) return "This survey has one step, and it is this one.";
  if (steps === all) return `This allows all ${count(all)} steps of the survey.`;
  const some = steps === 1 ? "the first" : count(steps);
  return `This allows ${some} of the ${count(all)} steps that the survey may take.`;
}

/** What is said before the question is seen: which one it is, and whether it was answered before, would tell it. */
export const SERIES_AHEAD =
  "The question of this survey is asked for several dates. Each has a limit of its own, and what they cost adds up.";

/**
 * What is said before somebody takes part of what others will see; null where nothing is published.
 *
 * @param {number | null} least
 */
export function publishedSentence(least) {
  if (least === null) return null;
  const many = least.toLocaleString("en");
  return (
    `When it has ended, this survey is to be published once: counts of reports of at least ${many} people together, ` +
    "without anything that stands for a person. Who withdraws later stays counted there."
  );
}

/**
 * What all dates of a question cost together that this browser took part in; null where it is asked once.
 *
 * @param {Encoding} encoding
 * @param {string | undefined} date of this survey
 * @param {{ date: string, cost: string }[]} dates what each costs, this survey among them
 * @param {"may send" | "sent"} what
 */
export function seriesSentence(encoding, date, dates, what) {
  if (date === undefined) return null;
  const paid = dates.filter(({ cost }) => cost !== "0");
  const [last, ...before] = paid.map((each) => each.date).reverse();
  if (before.length === 0) {
    return `This question is asked for several dates, and this is ${date}. Each costs its own, and what they cost adds up.`;
  }
  const total = paid.reduce((sum, { cost }) => sum.plus(Amount.parse(cost)), ZERO);
  const { bound, scale } = guessAt(answersOf(encoding), String(total));
  return (
    `This question is asked for several dates: in this browser you take part in ${before.reverse().join(", ")} and ` +
    `${last}. Where your answer is the same, whoever saw everything that this page ${what} for all of them guesses it ` +
    `right at most ${times(bound)} in ${count(scale)}: together that is epsilon ${total}.`
  );
}

/**
 * What a report means, and how often it is the truth.
 *
 * @param {Encoding} encoding
 * @param {Sent} last
 */
export function meaningOf(encoding, { threshold }) {
  const retention = Number(BigInt(threshold)) / Number(ONE);
  if (encoding.name === "categorical") {
    const right = Math.round(100 * (retention + (1 - retention) / answersOf(encoding)));
    return (
      `Each report is one of the possible answers. Chance decides whether it is the true one: of a hundred people at ` +
      `your last step about ${right} report their own answer, and nobody can tell which. Reports of many people ` +
      `together still show how common each answer is.`
    );
  }
  if (encoding instanceof Numeric) {
    return (
      "Each report is one end of the range, never the number itself. Large numbers report the upper end a little " +
      "more often, and chance does the rest. Only the average over many people can be worked out."
    );
  }
  if (encoding instanceof Ranged) {
    const { alphabet, window, step } = encoding;
    const near = Math.round(100 * (retention + ((1 - retention) * window) / alphabet));
    return (
      `Each report is a place on the scale, never the number itself. Chance decides how far away it is: of a hundred ` +
      `people at your last step about ${near} report a place within ${shortNumber(encoding, (step * (window + 1)) / 2)} ` +
      `of their number, the others any place, and nobody can tell which. Reports of many people together show the ` +
      `average, and how the numbers are spread.`
    );
  }
  return (
    "Each report is a row of bits, written here as letters. Chance has turned over many of them: they fit answers " +
    "that are not yours, and may not fit yours. Added up over many people, the bits show how common each answer is."
  );
}

/**
 * What a campaign is doing, for somebody who has not answered; null while it takes answers.
 *
 * @param {string} state
 * @param {{ opens: string | null }} times
 */
export function closedSentence(state, { opens }) {
  if (state === "finished") return "This survey has finished and takes no more answers. Thank you for coming by.";
  if (state === "waiting") {
    const when = opens === null ? "later" : `on ${moment(opens)}`;
    return `This survey has not begun: it opens ${when}. Nothing was asked, and nothing was sent.`;
  }
  return null;
}

const ENDINGS = {
  finished: "The survey has finished. Your answer and its key were erased in this browser; nothing more will be sent.",
  forgotten: "You stopped here. Your answer and its key were erased in this browser; nothing more will be sent.",
  withdrawn: "You have withdrawn. Your answer and its key were erased in this browser.",
  withdrawing:
    "You have withdrawn, and your answer and its key were erased in this browser. The server does not know yet: this " +
    "page tells it as soon as that is possible. Please leave the page open, or come back.",
};

/**
 * @param {NonNullable<import("../device/state.js").Ending>} ended
 * @param {boolean} anythingSent
 */
export function endedSentence(ended, anythingSent) {
  if (ended !== "withdrawn") return ENDINGS[ended];
  const gone = anythingSent
    ? "The server deleted your reports. The privacy that they cost does not come back: what was seen cannot be unseen."
    : "Nothing had been sent.";
  return `${ENDINGS.withdrawn} ${gone}`;
}

/**
 * A refusal for people. What the module says is precise and stays; a few of its words are not everybody's.
 *
 * @param {unknown} problem
 * @returns {string}
 */
export function problemWords(problem) {
  if (!(problem instanceof RelaxdpError)) return "Something went wrong that this page does not know. Nothing was sent.";
  const { code, fields, message } = problem;
  if (code === "refused_by_server_error") {
    if (fields.error === "unknown_campaign" || fields.status === 404) {
      return "There is no survey at this address. Perhaps a letter of it is missing.";
    }
    if (fields.error === "invitation_refused") {
      return "The server does not know this invitation, or it was used already. Nothing was counted.";
    }
    if (fields.error === "device_withdrawn")
      return "The server says that this browser has withdrawn. Nothing was counted.";
  }
  if (code === "unreachable_error") return "The server cannot be reached at the moment.";
  if (code === "undeclared_value_error") return "This is not one of the possible answers. Nothing was kept or sent.";
  return message.slice(0, 1).toUpperCase() + message.slice(1);
}

/** @param {string} time */
export function moment(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  return date.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
}

/**
 * By how much odds grow at most, rounded up: it is a promise.
 *
 * @param {string} epsilon
 */
export function oddsAt(epsilon) {
  const factor = Math.exp(Number(epsilon));
  if (factor >= 1e6) return "more than a million";
  const digits = factor < 10 ? 100 : factor < 100 ? 10 : 1;
  return count(Math.ceil(factor * digits - 1e-9) / digits);
}
