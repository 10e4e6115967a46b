/** The terms of a listing, as a seller types them: prices, levels and a budget. */

import { DECIMAL, read } from "../kit/form.js";

/**
 * Return prices as they were typed: a formula, or a level and its price on each line. The service checks the rest.
 *
 * @param {string} text
 */
export function pricesOf(text) {
  if (text === "")
    throw new Error(
      "What does a level cost? Write a level and its price on each line, or a formula. Nothing was sent.",
    );
  if (/epsilon|precision|[*^+]|^[0-9.]+$/.test(text)) return { formula: text };
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return {
    points: lines.map((line) => {
      const found = /^([0-9]+(?:\.[0-9]+)?)[\s,;:=]+([0-9]+)$/.exec(line);
      if (found === null)
        throw new Error(`“${line}” is not a level and a price in whole credits, like 0.5 50. Nothing was sent.`);
      return [found[1], Number(found[2])];
    }),
  };
}

/**
 * Return levels as they were typed, on one line or on several; null where there are none.
 *
 * @param {string} text
 */
export const levelsOf = (text) => (text === "" ? null : text.split(/[\s,;]+/).filter((level) => level !== ""));

/**
 * Return a sentence for prices that cannot be read, and for levels or a budget that are no numbers.
 *
 * @param {FormData} data
 * @param {{ prices?: string, levels?: string, budget?: string, needed?: boolean }} names of the fields; a budget may be left out unless it is needed
 * @returns {Record<string, string>}
 */
export function checkedTerms(data, { prices, levels, budget, needed = false }) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (budget !== undefined && !(read(data, budget) === "" ? !needed : DECIMAL.test(read(data, budget))))
    wrong[budget] = "A number above 0, like 4.";
  if (levels !== undefined && !(levelsOf(read(data, levels)) ?? []).every((level) => DECIMAL.test(level)))
    wrong[levels] = "Numbers above 0, like 0.1, 0.5, 1.";
  try {
    if (prices !== undefined) pricesOf(read(data, prices));
  } catch (problem) {
    wrong[/** @type {string} */ (prices)] = /** @type {Error} */ (problem).message;
  }
  return wrong;
}

/**
 * Return prices as a person would type them.
 *
 * @param {{ points?: [string, number][], formula?: string }} prices
 */
export const pricesText = (prices) =>
  prices.formula ?? (prices.points ?? []).map(([epsilon, price]) => `${epsilon} ${price}`).join("\n");
