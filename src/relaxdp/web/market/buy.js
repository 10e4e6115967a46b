/** Buying and upgrading. Nothing is charged before the price, the purse and the difference were shown and agreed to. */

import { attempt, confirmed, h } from "../kit/dom.js";
import { tell } from "../kit/page.js";
import { Problem } from "../kit/problem.js";
import { credits, shortEpsilon, toldBy } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */
/** @typedef {import("../kit/wire.d.ts").Quote} Quote */

/**
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
    text: [`${price} ${purse}`, `It tells ${toldBy(listing.encoding, quote.half_width)} at worst, in 95 of 100 cases.`],
    yes: `${upgrade ? "Upgrade" : "Buy"} for ${credits(quote.due)}`,
    danger: false,
  };
}
