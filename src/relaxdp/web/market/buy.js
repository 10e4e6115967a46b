/**
 * Choosing one of a listing's levels, and buying it. The price is always the service's own, and nothing is charged before
 * the price, the purse and the difference were shown and agreed to.
 */

import { attempt, confirmed, facts, h, notice, put } from "../kit/dom.js";
import { field } from "../kit/form.js";
import { tell } from "../kit/page.js";
import { Problem, sentenceOf } from "../kit/problem.js";
import { ABSENT, answered, betterWords, credits, noDearer, onSale, shortEpsilon, toldBy } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").OfferedLevel} Level */
/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */
/** @typedef {import("../kit/wire.d.ts").Quote} Quote */

const PATIENCE = 120;
const HINTS = {
  release: "ε says how little the answers are blurred: the larger, the more it tells.",
  pool: "Whoever has a smaller limit of their own, or wants more credits, is not in the sale.",
};

/**
 * Return the levels to choose from, and at once what the chosen one costs and tells.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {Listing} listing
 * @param {(quote: Quote | null) => void} quoted hears every quote, and null where there is none
 */
export function levelPart(session, listing, quoted) {
  const steps = onSale(listing).map(({ epsilon }) => epsilon);
  const options = listing.levels.map((level) => option(level, listing.kind));
  const list = h("select", { autocomplete: "off" }, ...options);
  list.addEventListener("change", () => choose(list.value));
  const slider = h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, "aria-label": "Level" });
  slider.addEventListener("input", () => choose(steps[slider.valueAsNumber]));
  const place = h("div", { class: "quote", "aria-live": "polite" });
  const element = h("div", {}, field("epsilon", "Level (ε)", list, HINTS[listing.kind]), slider, place);
  let last = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} epsilon */
  async function ask(epsilon) {
    place.setAttribute("aria-busy", "true");
    try {
      /** @type {Quote} */
      const quote = await session.api.ask(
        "GET",
        `market/listings/${encodeURIComponent(listing.id)}/quote?${new URLSearchParams({ epsilon })}`,
      );
      if (last !== epsilon) return;
      put(place, quoteFacts(quote, listing), betterPart(quote, listing));
      quoted(quote);
    } catch (problem) {
      if (last !== epsilon) return;
      place.replaceChildren(notice(sentenceOf(problem), "warn"));
      quoted(null);
    } finally {
      if (last === epsilon) place.removeAttribute("aria-busy");
    }
  }

  /** @param {string} epsilon */
  function choose(epsilon) {
    last = epsilon;
    clearTimeout(timer);
    list.value = epsilon;
    slider.valueAsNumber = steps.indexOf(epsilon);
    slider.setAttribute("aria-valuetext", `ε ${epsilon}`);
    timer = setTimeout(ask, PATIENCE, epsilon);
  }
  return {
    element,
    choose,
    again: () => choose(last),
    /** @param {number} share of the axis of levels */
    near: (share) => choose(nearest(steps, share * Number(steps[steps.length - 1]))),
  };
}

/**
 * @param {Level} level
 * @param {Listing["kind"]} kind
 */
function option({ epsilon, price, available }, kind) {
  const cost = available ? credits(price) : ABSENT[kind];
  return h("option", { value: epsilon, disabled: !available }, `${shortEpsilon(epsilon)}: ${cost}`);
}

/**
 * @param {string[]} steps
 * @param {number} wanted
 */
function nearest(steps, wanted) {
  const far = (/** @type {string} */ step) => Math.abs(Number(step) - wanted);
  return steps.reduce((best, step) => (far(step) < far(best) ? step : best));
}

/**
 * @param {Quote} quote
 * @param {Listing} listing
 */
function quoteFacts(quote, listing) {
  const below = noDearer(listing, quote.epsilon);
  return facts([
    [
      `Price of ε ${shortEpsilon(quote.epsilon)}`,
      `${credits(quote.price)}${below === null ? "" : `, same as ε ${shortEpsilon(below)}`}`,
    ],
    ["What it tells", toldBy(listing.encoding, quote.half_width)],
    ["From", answered(listing, quote.objects)],
  ]);
}

/**
 * @param {Quote} quote
 * @param {Listing} listing
 */
function betterPart(quote, { levels }) {
  const words = betterWords(levels.find(({ epsilon }) => epsilon === quote.epsilon));
  return words === null ? null : h("p", { class: "better" }, words);
}

/**
 * Return the button that buys or upgrades, and what it would cost.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {Listing} listing
 * @param {{ bought: (purchase: Purchase) => void, refused: () => void }} page hears how it ended
 */
export function buyPart(session, listing, { bought, refused }) {
  const sentence = h("p", { class: "due", "aria-live": "polite" });
  const refusal = h("div", {});
  const button = h("button", { class: "primary", type: "button", disabled: true, onclick: press }, "Buy");
  const element = h("div", { class: "buy" }, sentence, refusal, button);
  /** @type {Quote | null} */
  let shownQuote = null;

  /** @param {Quote | null} quote null while there is none */
  function update(quote) {
    if (quote?.epsilon !== shownQuote?.epsilon) refusal.replaceChildren(); // what was refused was another level
    shownQuote = quote;
    button.disabled = quote === null || !isMore(quote) || listing.state !== "open";
    button.textContent = quote !== null && quote.owned !== null ? "Upgrade …" : "Buy …";
    sentence.textContent = quote === null ? "" : dueSentence(quote, balance());
  }

  const balance = () => session.account?.balance ?? 0;

  async function press() {
    const quote = shownQuote;
    if (quote === null) return;
    const done = await attempt(refusal, async () => {
      await session.refresh(); // the purse may have been used in another tab
      const missing = quote.due - balance();
      if (missing > 0) {
        const purse = `you have ${credits(balance())}: ${credits(missing)} too few.`;
        throw new Problem(`This costs ${credits(quote.due)} and ${purse} Nothing was bought.`);
      }
      if (!(await confirmed(question(quote, listing, balance())))) return;
      button.disabled = true;
      const path = `market/listings/${encodeURIComponent(listing.id)}/${quote.owned === null ? "buy" : "upgrade"}`;
      /** @type {Purchase} */
      const purchase = await session.api.ask("POST", path, { epsilon: quote.epsilon, most: quote.due });
      tell(`You own ε ${purchase.epsilon} of ${listing.title} now.`);
      await session.refresh();
      bought(purchase);
    });
    if (done) return;
    button.disabled = false;
    refused(); // the price may be another one now
  }
  return { element, update };
}

/** @param {Quote} quote */
const isMore = ({ epsilon, owned }) => owned === null || Number(epsilon) > Number(owned);

/**
 * @param {Quote} quote
 * @param {number} balance
 */
function dueSentence(quote, balance) {
  const have = `You have ${credits(balance)}.`;
  const owned = `You own ε ${shortEpsilon(quote.owned ?? "")}`;
  if (!isMore(quote)) return `${owned}. Choose a larger level to upgrade.`;
  if (quote.owned === null) return `You pay ${credits(quote.due)}. ${have}`;
  return `${owned}, so you pay the difference: ${credits(quote.due)}. ${have}`;
}

/**
 * @param {Quote} quote
 * @param {Listing} listing
 * @param {number} balance
 */
function question(quote, listing, balance) {
  const upgrade = quote.owned !== null;
  const level = `ε ${shortEpsilon(quote.epsilon)}`;
  const purse = `You have ${credits(balance)}, and ${credits(balance - quote.due)} would be left.`;
  const price =
    quote.owned === null
      ? `It costs ${credits(quote.due)}.`
      : `${level} costs ${credits(quote.price)}. You paid for ε ${shortEpsilon(quote.owned)} already, so you pay the ` +
        `difference of ${credits(quote.due)}.`;
  return {
    title: `${upgrade ? "Upgrade to" : "Buy"} ${level} of “${listing.title}”?`,
    text: [`${price} ${purse}`, `It tells ${toldBy(listing.encoding, quote.half_width)} or better, 95 times in 100.`],
    yes: `${upgrade ? "Upgrade" : "Buy"} for ${credits(quote.due)}`,
    danger: false,
  };
}
