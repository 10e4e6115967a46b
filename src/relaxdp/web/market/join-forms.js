/** The forms of a pool's member. The answer is read from its form, made into a report, and forgotten. */

import { Amount } from "../device/decimal.js";
import { boundPicture } from "../kit/bound.js";
import { confirmed, h, notice, put } from "../kit/dom.js";
import { field, formPart, textOf, UNREMEMBERED } from "../kit/form.js";
import { answersOf, guessAt, valueText } from "../kit/reports.js";
import * as words from "./join-words.js";
import { shortEpsilon } from "./words.js";

/** @typedef {import("./pool.js").Pool} Pool */
/** @typedef {import("../kit/form.js").Wrong} Wrong */
/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").Prices} Prices */
/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */
/** @typedef {import("./member.js").Standing} Standing */
/** @typedef {import("./member.js").Delivery} Delivery */

const LIMIT = "Your limit (ε)";
const MOST_BUTTONS = 7;

/**
 * Return the way into a pool, in the order of a survey: the limit, then the question. What is asked and what can be
 * answered is not shown before: a limit that depends on the answer tells of it.
 *
 * @param {Pool} pool
 * @param {Listing} listing
 * @param {Standing} standing
 * @param {{ asks: () => void, send: (delivery: Delivery) => Promise<void> }} page `asks` hears that the question is shown
 */
export function joinSteps(pool, listing, { sent, others }, { asks, send }) {
  const element = h("div", {});
  const limits = formPart(
    [
      limitField("limit", pool, listing, { others, hint: words.LIMIT, before: null }),
      field(
        "least",
        "Your least price (credits)",
        leastInput("0"),
        `${words.LEAST} ${words.pricesSentence(listing.prices)}`,
      ),
    ],
    {
      yes: "Go on to the question",
      primary: true,
      check: (data) => ({ ...limitWrong(data, "limit"), ...leastWrong(data, "least") }),
      work: async (data) => {
        ask({ epsilon: textOf(data, "limit"), minimum: Number(textOf(data, "least")) });
        return null;
      },
    },
  );

  /** @param {{ epsilon: string, minimum: number }} terms that were chosen before the question was seen */
  function ask(terms) {
    const heading = h("h3", { class: "asked", tabindex: -1 }, listing.question ?? listing.title);
    const form = formPart([answerField("answer", pool.encoding, sent.length > 0 ? words.BEGUN : words.ANSWER)], {
      yes: "Join …",
      primary: true,
      check: (data) => answerWrong(data, "answer", pool.encoding),
      work: async (data) => {
        if (!(await confirmed(words.question(pool, { ...terms, before: null })))) return null;
        await send({ ...terms, answer: answerOf(data, "answer", pool.encoding) });
        return null;
      },
    });
    put(element, stepsList(1), heading, h("p", { class: "muted" }, words.chosenSentence(terms)), form);
    asks();
    heading.focus();
  }

  put(element, stepsList(0), sent.length > 0 ? notice(words.BEGUN, "warn") : null, limits);
  return element;
}

/** @param {number} now */
function stepsList(now) {
  const names = ["Your limit", "The question", "What was sent"];
  const items = names.map((name, place) => h("li", { "aria-current": place === now ? "step" : null }, name));
  return h("ol", { class: "steps" }, ...items);
}

/**
 * @param {Pool} pool
 * @param {Sale} sale
 * @param {Standing["others"]} others
 * @param {(delivery: Delivery) => Promise<void>} send
 */
export function raiseForm(pool, sale, others, send) {
  const { listing } = sale;
  const before = sale.loss_platform;
  const minimum = sale.minimum ?? 0;
  if (higherLevels(pool, before).length === 0) return null;
  const hint = `More than ε ${shortEpsilon(before)}. All your reports here together cost the largest limit, not the sum.`;
  const form = formPart(
    [limitField("higher", pool, listing, { others, hint, before }), answerField("same", pool.encoding, words.AGAIN)],
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
 * Return a limit to choose, which says at once what it means for both sides: how good a guess becomes, and what buyers
 * learn. None is chosen beforehand; the one that whoever asks suggests is marked as that.
 *
 * @param {string} name
 * @param {Pool} pool
 * @param {Listing} listing
 * @param {{ others: Standing["others"], hint: string, before: string | null }} options `before` is the limit so far
 */
function limitField(name, pool, listing, { others, hint, before }) {
  const levels = higherLevels(pool, before).map(String);
  const cost = h("p", { class: "cost", "aria-live": "polite" }, words.COST);
  const explain = (/** @type {string} */ epsilon) => {
    const [luck, promise, after] =
      epsilon === "" ? [words.COST, "", ""] : words.costWords(pool.encoding, epsilon, others);
    const learnt = epsilon === "" ? "" : ` ${words.learntSentence(listing, epsilon)}`;
    cost.replaceChildren(luck, h("strong", {}, promise), after, learnt);
  };
  const choice = before !== null || levels.length > MOST_BUTTONS ? limitList : limitButtons;
  return h("div", {}, choice(name, levels, { pool, listing, hint, explain }), cost);
}

/** @typedef {{ pool: Pool, listing: Listing, hint: string, explain: (epsilon: string) => void }} Choice */

/**
 * @param {string} name
 * @param {string[]} levels
 * @param {Choice} choice
 */
function limitList(name, levels, { listing, hint, explain }) {
  const input = h(
    "select",
    { autocomplete: "off", onchange: changed },
    h("option", { value: "" }, "Choose …"),
    ...levels.map((level) => {
      const mark = words.suggestion(listing, level);
      return h("option", { value: level }, mark === null ? level : `${level} (${mark})`);
    }),
  );
  function changed() {
    explain(input.value);
  }
  return field(name, LIMIT, input, hint);
}

/**
 * @param {string} name
 * @param {string[]} levels
 * @param {Choice} choice
 */
function limitButtons(name, levels, { pool, listing, hint, explain }) {
  const buttons = levels.map((level) => {
    const input = { type: "radio", name, value: level, autocomplete: "off", onchange: () => explain(level) };
    const guess = guessAt(answersOf(pool.encoding), level);
    const mark = words.suggestion(listing, level);
    return h(
      "label",
      { class: "option" },
      h("input", input),
      h(
        "span",
        { class: "option-body" },
        h("span", { class: "option-name" }, `ε ${level}`, mark === null ? null : h("span", { class: "badge" }, mark)),
        boundPicture(guess),
        h("span", { class: "side" }, words.guessSentence(guess)),
      ),
    );
  });
  return h(
    "fieldset",
    { class: "limits", "aria-describedby": `${name}-hint ${name}-wrong` },
    h("legend", {}, LIMIT),
    h("span", { class: "hint", id: `${name}-hint` }, hint),
    ...buttons,
    h("span", { class: "wrong", id: `${name}-wrong` }),
  );
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
