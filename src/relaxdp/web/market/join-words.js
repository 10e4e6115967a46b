/** What the page says to somebody who sells an answer of their own. Nothing touches the page. */

import { Amount } from "../device/decimal.js";
import { Ranged } from "../device/encodings/range.js";
import { answersOf, cautionSentence, count, guessAt, times } from "../kit/reports.js";
import { credits, people, shortEpsilon, toldBy } from "./words.js";

/** @typedef {import("./pool.js").Encoding} Encoding */

const MOST_POINTS = 4;

export const NOT_KEPT = "This page does not keep your answer, so it is not shown here.";
export const BLURRED =
  "Chance decides what is sent, so it may differ from your answer, and nobody can tell whether it does. Of many people " +
  "together it still shows how common each answer is.";
export const STAYS =
  "Your answer becomes one report in this browser. The answer, and the key that blurs it, stay here. What leaves is " +
  "the report, your limit and your least price.";
export const PROMISES = [
  "The platform knows which report is yours, and learns no more from it than your limit allows.",
  "Buyers see it under a random name, at the levels that they buy. However many pool what they bought, they learn no " +
    "more than the largest level sold.",
  "With the key you can raise your limit later. It is gone when this site’s data is cleared; your report then stays " +
    "as it is.",
];
export const LIMIT =
  "Your report is made at this level, and nothing above it is ever sold. You may raise it later, and never lower it. " +
  "Choose it before you think of your answer: a limit that depends on the answer tells of it.";
export const COST = "With a limit, here stands what it costs in privacy.";
export const LEAST =
  "You are in a sale only if it pays this much for one report; with 0, in every sale up to your limit. You may " +
  "change it at any time, but not because of your answer.";
export const ANSWER = "It stays here, and counts for good: that it changed would show, so another is refused later.";
export const AGAIN = "The same as before. This page did not keep it, only a tag that tells whether it is the same.";
export const BEGUN = "You began to join this pool before. Give the same answer as then.";
export const LOST = {
  title: "Begin anew?",
  text: [
    "The keys that this browser had kept for this account are gone, and do not come back.",
    "If a report of yours was sent to this pool before, a new one is a second report of one answer, and what both " +
      "tell adds up.",
  ],
  yes: "Begin anew",
};

/**
 * Return what a limit costs in privacy: three pieces, of which the second is the promise.
 *
 * @param {Encoding} encoding
 * @param {string} epsilon
 * @param {{ number: number, amount: Amount }} others what the other pools of this account cost
 */
export function costWords(encoding, epsilon, { number, amount }) {
  const guess = guessAt(answersOf(encoding), epsilon);
  const often = `${times(guess.blind)} in ${count(guess.scale)}`;
  const luck =
    encoding instanceof Ranged
      ? `Somebody who guesses in which half of the range your number lies is right ${often} by luck.`
      : `There are ${count(answersOf(encoding))} possible answers, so a blind guess at yours is right ${often}.`;
  const caution = cautionSentence(guess) === null ? "" : " That is close to saying your answer openly.";
  const pools = number === 1 ? "another pool" : `${count(number)} other pools`;
  const sum = amount.plus(Amount.parse(epsilon));
  const together = ` From this browser you are also in ${pools}; costs add up, to ε ${sum} for all together.`;
  const after = ` in ${count(guess.scale)}.${caution}${number === 0 ? "" : together}`;
  return [`${luck} Whoever sees your report is right `, `at most ${times(guess.bound)}`, after];
}

/**
 * Return what is asked before a report leaves.
 *
 * @param {{ title: string, encoding: Encoding }} pool
 * @param {{ epsilon: string, minimum: number, before: string | null }} asked `before` is the limit so far
 */
export function question({ title, encoding }, { epsilon, minimum, before }) {
  const { bound, blind, scale } = guessAt(answersOf(encoding), epsilon);
  const guess = `Whoever sees it guesses right at most ${times(bound)} in ${count(scale)}, instead of ${count(blind)}.`;
  const sales = minimum === 0 ? "" : ` that pays you at least ${credits(minimum)}`;
  const level = `ε ${shortEpsilon(epsilon)}`;
  return {
    title:
      before === null ? `Join “${title}” at ${level}?` : `Raise your limit from ε ${shortEpsilon(before)} to ${level}?`,
    text: [
      `One report at ${level} leaves this browser. ${guess}`,
      `You are in every sale up to your limit${sales}. A report cannot be taken back.`,
    ],
    yes: before === null ? `Join at ${level}` : `Raise to ${level}`,
    danger: false,
  };
}

/**
 * Return what one report brings.
 *
 * @param {import("../kit/wire.d.ts").Prices} prices
 */
export function pricesSentence(prices) {
  const { formula } = prices;
  const points = prices.points ?? [];
  if (typeof formula === "string") return `A sale at epsilon brings ${formula} credits for one report, rounded up.`;
  const last = points[points.length - 1];
  const some = points.length > MOST_POINTS ? [points[0], last] : points;
  const each = some.map(([epsilon, price]) => `${credits(price)} at ε ${shortEpsilon(epsilon)}`).join(", ");
  const between = points.length > 1 ? ", in between accordingly" : "";
  return `A sale brings ${each} for one report${between}. Nothing is sold above ε ${shortEpsilon(last[0])}.`;
}

/**
 * Return what buyers learn at a level, from those who sell there now.
 *
 * @param {import("../kit/wire.d.ts").Listing} listing
 * @param {string} epsilon
 */
export function learntSentence({ levels, encoding }, epsilon) {
  const level = levels.find((each) => each.epsilon === epsilon);
  if (level === undefined || !level.available) return "Nobody sells at this level yet.";
  const sell = level.objects === 1 ? "sells" : "sell";
  return `${people(level.objects)} ${sell} at this level now; together they tell ${toldBy(encoding, level.half_width)}.`;
}

/**
 * Return how a level is marked that whoever asks suggests; null for the others.
 *
 * @param {import("../kit/wire.d.ts").Listing} listing
 * @param {string} epsilon
 */
export function suggestion({ suggested, details }, epsilon) {
  if (suggested !== epsilon) return null;
  return details.source ? `suggested by ${details.source}` : "suggested by who asks";
}

/** @param {import("../kit/reports.js").Guess} guess */
export const guessSentence = ({ bound, blind, scale }) =>
  `From your report, a guess at your answer is right at most ${times(bound)} in ${count(scale)}, instead of ${count(blind)}.`;

/** @param {{ epsilon: string, minimum: number }} terms */
export function chosenSentence({ epsilon, minimum }) {
  return `You chose the limit ε ${shortEpsilon(epsilon)} and the least price ${credits(minimum)}.`;
}

/** @param {import("../kit/wire.d.ts").SellerListing} sale */
export function standingSentence({ loss_platform: limit, minimum }) {
  return `You are in this pool at ε ${shortEpsilon(limit)}, least price ${credits(minimum ?? 0)}.`;
}
