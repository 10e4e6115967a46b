/** A form that asks for one thing. Where it is refused, the service's sentence stands at the form itself. */

import { h, notice } from "./dashboard-dom.js";
import { DECIMAL, mark } from "./dashboard-fields.js";

/**
 * @param {(Node | null)[]} fields
 * @param {{ yes: string, primary?: boolean, check?: (data: FormData) => Record<string, string>,
 *           work: (data: FormData) => Promise<Node | null> }} options
 *   `check` returns a sentence for each field that cannot be meant; `work` what is shown when it is done, or throws
 * @returns {any} the form
 */
export function formPart(fields, { yes, primary = false, check = () => ({}), work }) {
  const told = h("div", { "aria-live": "polite" });
  const button = h("button", { type: "submit", class: primary ? "primary" : null }, yes);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    told.replaceChildren();
    const first = mark(form, check(new FormData(form)));
    if (first !== null) {
      first.focus();
      return;
    }
    button.disabled = true;
    button.textContent = "One moment …";
    try {
      const done = await work(new FormData(form));
      if (done !== null) told.replaceChildren(done);
    } catch (refusal) {
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
    button.textContent = yes;
    button.disabled = false;
    if (document.activeElement === document.body && button.isConnected) button.focus(); // a disabled button loses it
  };
  const form = h("form", { novalidate: true, onsubmit: send }, ...fields, told, button);
  return form;
}

/**
 * @param {FormData} data
 * @param {string} name
 */
export const read = (data, name) => String(data.get(name) ?? "").trim();

/**
 * Return prices as they were typed: a formula, or a level and its price on each line. The service checks the rest.
 *
 * @param {string} text
 */
export function pricesOf(text) {
  if (text === "") throw new Error("What does a level cost? Write a level and its price on each line, or a formula. Nothing was sent.");
  if (/epsilon|precision|[*^+]|^[0-9.]+$/.test(text)) return { formula: text };
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return {
    points: lines.map((line) => {
      const found = /^([0-9]+(?:\.[0-9]+)?)[\s,;:=]+([0-9]+)$/.exec(line);
      if (found === null) throw new Error(`“${line}” is not a level and a price in whole credits, like 0.5 50. Nothing was sent.`);
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
  if (budget !== undefined && !(read(data, budget) === "" ? !needed : DECIMAL.test(read(data, budget)))) wrong[budget] = "A number above 0, like 4.";
  if (levels !== undefined && !(levelsOf(read(data, levels)) ?? []).every((level) => DECIMAL.test(level))) wrong[levels] = "Numbers above 0, like 0.1, 0.5, 1.";
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
export const pricesText = (prices) => prices.formula ?? (prices.points ?? []).map(([epsilon, price]) => `${epsilon} ${price}`).join("\n");
