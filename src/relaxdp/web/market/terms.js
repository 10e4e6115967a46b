/** The terms of a listing, as a seller types them: prices, levels and a budget. */

import { DECIMAL, splitLevels, textOf } from "../kit/form.js";
import { Problem, sentenceOf } from "../kit/problem.js";

/** @typedef {import("../kit/wire.d.ts").Prices} Prices */
/** @typedef {import("../kit/form.js").Wrong} Wrong */

/**
 * Return prices as they were typed: a formula, or a level and its price on each line. The service checks the rest.
 *
 * @param {string} text
 * @returns {Prices}
 */
export function pricesOf(text) {
  if (text === "") {
    throw new Problem(
      "What does a level cost? Write a level and its price on each line, or a formula. Nothing was sent.",
    );
  }
  if (/epsilon|precision|[*^+]|^[0-9.]+$/.test(text)) return { formula: text };
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return {
    points: lines.map((line) => {
      const match = /^([0-9]+(?:\.[0-9]+)?)[\s,;:=]+([0-9]+)$/.exec(line);
      if (match === null)
        throw new Problem(`“${line}” is not a level and a price in whole credits, like 0.5 50. Nothing was sent.`);
      return [match[1], Number(match[2])];
    }),
  };
}

/**
 * Return levels as they were typed, on one line or on several; null where there are none.
 *
 * @param {string} text
 */
export const levelsOf = (text) => (text === "" ? null : splitLevels(text));

/**
 * Return a sentence for prices that cannot be read, and for levels or a budget that are no numbers.
 *
 * @param {FormData} data
 * @param {{ prices?: string, levels?: string, budget?: string, needed?: boolean }} names of the fields; a budget may be
 *   left out unless it is needed
 * @returns {Wrong}
 */
export function wrongTerms(data, { prices, levels, budget, needed = false }) {
  /** @type {Wrong} */
  const wrong = {};
  if (budget !== undefined && !(textOf(data, budget) === "" ? !needed : DECIMAL.test(textOf(data, budget))))
    wrong[budget] = "A number above 0, like 4.";
  if (levels !== undefined && !(levelsOf(textOf(data, levels)) ?? []).every((level) => DECIMAL.test(level)))
    wrong[levels] = "Numbers above 0, like 0.1, 0.5, 1.";
  if (prices === undefined) return wrong;
  try {
    pricesOf(textOf(data, prices));
  } catch (problem) {
    wrong[prices] = sentenceOf(problem);
  }
  return wrong;
}

/**
 * Return prices as a person would type them.
 *
 * @param {Prices} prices
 */
export const pricesText = (prices) =>
  prices.formula ?? (prices.points ?? []).map(([epsilon, price]) => `${epsilon} ${price}`).join("\n");
