/** The forms of a pool's member. The answer is read from its form, made into a report, and forgotten. */

import { Amount } from "../device/decimal.js";
import { confirmed, h } from "../kit/dom.js";
import { field, formPart, textOf, UNREMEMBERED } from "../kit/form.js";
import { valueText } from "../kit/reports.js";
import * as words from "./join-words.js";
import { shortEpsilon } from "./words.js";

/** @typedef {import("./pool.js").Pool} Pool */
/** @typedef {import("../kit/form.js").Wrong} Wrong */
/** @typedef {import("../kit/wire.d.ts").Prices} Prices */
/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */
/** @typedef {import("./member.js").Standing} Standing */
/** @typedef {import("./member.js").Delivery} Delivery */

/**
 * @param {Pool} pool
 * @param {Standing} standing
 * @param {{ prices: Prices, send: (delivery: Delivery) => Promise<void> }} page
 */
export function joinForm(pool, { sent, others }, { prices, send }) {
  return formPart(
    [
      limitField("limit", pool, { others, hint: words.LIMIT, before: null }),
      field("least", "Your least price (credits)", leastInput("0"), `${words.LEAST} ${words.pricesSentence(prices)}`),
      answerField("answer", pool.encoding, sent.length > 0 ? words.BEGUN : words.ANSWER),
    ],
    {
      yes: "Join …",
      primary: true,
      check: (data) => ({
        ...limitWrong(data, "limit"),
        ...leastWrong(data, "least"),
        ...answerWrong(data, "answer", pool.encoding),
      }),
      work: async (data) => {
        const terms = { epsilon: textOf(data, "limit"), minimum: Number(textOf(data, "least")) };
        if (!(await confirmed(words.question(pool, { ...terms, before: null })))) return null;
        await send({ ...terms, answer: answerOf(data, "answer", pool.encoding) });
        return null;
      },
    },
  );
}

/**
 * @param {Pool} pool
 * @param {Sale} sale
 * @param {Standing["others"]} others
 * @param {(delivery: Delivery) => Promise<void>} send
 */
export function raiseForm(pool, sale, others, send) {
  const before = sale.loss_platform;
  const minimum = sale.minimum ?? 0;
  if (higherLevels(pool, before).length === 0) return null;
  const hint = `More than ε ${shortEpsilon(before)}. All your reports here together cost the largest limit, not the sum.`;
  const form = formPart(
    [limitField("higher", pool, { others, hint, before }), answerField("same", pool.encoding, words.AGAIN)],
    {
      yes: "Raise …",
      check: (data) => ({ ...limitWrong(data, "higher"), ...answerWrong(data, "same", pool.encoding) }),
      work: async (data) => {
        const terms = { epsilon: textOf(data, "higher"), minimum };
        if (!(await confirmed(words.question(pool, { ...terms, before })))) return null;
        await send({ ...terms, answer: answerOf(data, "same", pool.encoding) });
        return null;
      },
    },
  );
  return h("details", {}, h("summary", {}, "Raise your limit"), form);
}

/**
 * @param {Sale} sale
 * @param {{ prices: Prices, send: (minimum: number) => Promise<void> }} page
 */
export function leastForm(sale, { prices, send }) {
  const hint = `${words.LEAST} ${words.pricesSentence(prices)}`;
  const form = formPart([field("price", "Your least price (credits)", leastInput(String(sale.minimum ?? 0)), hint)], {
    yes: "Change the least price",
    check: (data) => leastWrong(data, "price"),
    work: async (data) => {
      await send(Number(textOf(data, "price")));
      return null;
    },
  });
  return h("details", {}, h("summary", {}, "Change your least price"), form);
}

/**
 * Return a limit to choose, which says at once what it costs in privacy.
 *
 * @param {string} name
 * @param {Pool} pool
 * @param {{ others: Standing["others"], hint: string, before: string | null }} options `before` is the limit so far
 */
function limitField(name, pool, { others, hint, before }) {
  const options = higherLevels(pool, before).map((level) => h("option", { value: String(level) }, String(level)));
  const input = h(
    "select",
    { autocomplete: "off", onchange: explain },
    h("option", { value: "" }, "Choose …"),
    ...options,
  );
  const cost = h("p", { class: "cost", "aria-live": "polite" }, words.COST);

  function explain() {
    const [luck, promise, after] =
      input.value === "" ? [words.COST, "", ""] : words.costWords(pool.encoding, input.value, others);
    cost.replaceChildren(luck, h("strong", {}, promise), after);
  }
  return h("div", {}, field(name, "Your limit (ε)", input, hint), cost);
}

/**
 * Return the levels that a limit may become: a report cannot be taken back.
 *
 * @param {Pool} pool
 * @param {string | null} before
 */
const higherLevels = ({ levels }, before) =>
  levels.filter((level) => before === null || level.compare(Amount.parse(before)) > 0);

/** @param {string} text */
const leastInput = (text) => h("input", { inputmode: "numeric", autocomplete: "off", value: text });

/**
 * @param {string} name
 * @param {Pool["encoding"]} encoding
 * @param {string} hint
 */
function answerField(name, encoding, hint) {
  if (encoding.values === null) {
    const [low, high] = [encoding.low, encoding.high];
    const kind = { type: "number", step: "any", min: low, max: high, inputmode: "decimal" };
    return field(name, `Your answer, a number from ${low} to ${high}`, h("input", { ...kind, ...UNREMEMBERED }), hint);
  }
  const options = encoding.values.map((value, place) => h("option", { value: String(place) }, valueText(value)));
  const list = h("select", UNREMEMBERED, h("option", { value: "" }, "Choose …"), ...options);
  return field(name, "Your answer", list, hint);
}

/**
 * @param {FormData} data
 * @param {string} name
 * @param {Pool["encoding"]} encoding
 * @returns {unknown}
 */
function answerOf(data, name, encoding) {
  const number = Number(textOf(data, name));
  return encoding.values === null ? number : encoding.values[number];
}

/**
 * @param {FormData} data
 * @param {string} name
 * @param {Pool["encoding"]} encoding
 * @returns {Wrong}
 */
function answerWrong(data, name, encoding) {
  const text = textOf(data, name);
  if (encoding.values !== null) return text === "" ? { [name]: "Choose your answer." } : {};
  const inside = text !== "" && Number(text) >= encoding.low && Number(text) <= encoding.high;
  return inside ? {} : { [name]: `A number from ${encoding.low} to ${encoding.high}.` };
}

/**
 * @param {FormData} data
 * @param {string} name
 * @returns {Wrong}
 */
function limitWrong(data, name) {
  return textOf(data, name) === "" ? { [name]: "Choose your limit." } : {};
}

/**
 * @param {FormData} data
 * @param {string} name
 * @returns {Wrong}
 */
function leastWrong(data, name) {
  return /^[0-9]{1,15}$/.test(textOf(data, name)) ? {} : { [name]: "A whole number of credits, 0 or more." };
}
