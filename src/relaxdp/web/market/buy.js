/** Buying and upgrading. Nothing is charged before the price, the purse and the difference were shown and agreed to. */

import { confirmed, h, notice } from "../kit/dom.js";
import { credits, shown, tell, tells } from "./words.js";

/**
 * @param {import("./session.js").Session} session
 * @param {any} listing
 * @param {{ bought: (purchase: any) => void, refused: () => void }} page hears how it ended
 */
export function buyPart(session, listing, { bought, refused }) {
  const words = h("p", { class: "due", "aria-live": "polite" });
  const problem = h("div", {});
  const button = h("button", { class: "primary", type: "button", disabled: true, onclick: press }, "Buy");
  const element = h("div", { class: "buy" }, words, problem, button);
  /** @type {any} */
  let shownQuote = null;

  /** @param {any} quote null while there is none */
  function update(quote) {
    if (quote?.epsilon !== shownQuote?.epsilon) problem.replaceChildren(); // what was refused was another level
    shownQuote = quote;
    const more = quote !== null && (quote.owned === null || Number(quote.epsilon) > Number(quote.owned));
    button.disabled = !more || listing.state !== "open";
    button.textContent = quote !== null && quote.owned !== null ? "Upgrade …" : "Buy …";
    words.textContent =
      quote === null
        ? ""
        : more
          ? due(quote, balance())
          : `You own ε ${shown(quote.owned)}. Choose a larger level to upgrade.`;
  }

  const balance = () => session.account?.balance ?? 0;

  async function press() {
    const quote = shownQuote;
    problem.replaceChildren();
    try {
      await session.refresh(); // the purse may have been used in another tab
      const missing = quote.due - balance();
      if (missing > 0)
        throw new Error(
          `This costs ${credits(quote.due)} and you have ${credits(balance())}: ${credits(missing)} too few. Nothing was bought.`,
        );
      if (!(await confirmed(question(quote, listing, balance())))) return;
      button.disabled = true;
      const way = quote.owned === null ? "buy" : "upgrade";
      const purchase = await session.api.ask("POST", `market/listings/${encodeURIComponent(listing.id)}/${way}`, {
        epsilon: quote.epsilon,
        most: quote.due,
      });
      tell(`You own ε ${purchase.epsilon} of ${listing.title} now.`);
      await session.refresh();
      bought(purchase);
    } catch (refusal) {
      problem.replaceChildren(notice(/** @type {Error} */ (refusal).message));
      button.disabled = false;
      refused(); // the price may be another one now
    }
  }
  return { element, update };
}

/**
 * @param {any} quote
 * @param {number} balance
 */
function due(quote, balance) {
  const have = `You have ${credits(balance)}.`;
  if (quote.owned === null) return `You pay ${credits(quote.due)}. ${have}`;
  return `You own ε ${shown(quote.owned)}, so you pay the difference: ${credits(quote.due)}. ${have}`;
}

/**
 * @param {any} quote
 * @param {any} listing
 * @param {number} balance
 */
function question(quote, listing, balance) {
  const upgrade = quote.owned !== null;
  const purse = `You have ${credits(balance)}, and ${credits(balance - quote.due)} would be left.`;
  const price = upgrade
    ? `ε ${shown(quote.epsilon)} costs ${credits(quote.price)}. You paid for ε ${shown(quote.owned)} already, so you pay the difference of ${credits(quote.due)}.`
    : `It costs ${credits(quote.due)}.`;
  return {
    title: `${upgrade ? "Upgrade to" : "Buy"} ε ${shown(quote.epsilon)} of “${listing.title}”?`,
    text: [`${price} ${purse}`, `It tells ${tells(listing.encoding, quote.half_width)} at worst, in 95 of 100 cases.`],
    yes: `${upgrade ? "Upgrade" : "Buy"} for ${credits(quote.due)}`,
    danger: false,
  };
}
