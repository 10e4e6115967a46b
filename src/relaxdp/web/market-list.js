/** What is on sale, and for whoever got a receipt, whether it is one. */

import { facts, h } from "./dashboard-dom.js";
import { whole } from "./dashboard-words.js";
import { receiptPart } from "./market-receipt.js";
import { answers, credits, KINDS, onSale, POOLED, shown, STATES, tells } from "./market-words.js";

/**
 * @param {import("./market-session.js").Session} session
 * @param {HTMLElement} main
 */
export async function showList(session, main) {
  const [{ listings }, owned] = await Promise.all([session.api.ask("GET", "market/listings"), ownedLevels(session)]);
  main.replaceChildren(
    h("h1", { tabindex: -1 }, "Market"),
    h(
      "p",
      { class: "lead" },
      "Here the same protected data is sold at many levels of privacy ε: a small ε is cheap and tells little, a larger one tells more, and an upgrade costs the difference. ",
      POOLED,
    ),
    listings.length > 0 ? h("div", { class: "grid" }, ...listings.map((/** @type {any} */ listing) => card(listing, owned.get(listing.id)))) : empty(),
    receiptPart(session),
  );
}

/**
 * Return the level that a buyer owns of each listing.
 *
 * @param {import("./market-session.js").Session} session
 * @returns {Promise<Map<string, string>>}
 */
export async function ownedLevels(session) {
  if (session.role !== "buyer") return new Map();
  const { purchases } = await session.api.ask("GET", "market/purchases");
  const owned = purchases.filter((/** @type {any} */ each) => each.state === "owned");
  return new Map(owned.map((/** @type {any} */ each) => [each.listing, each.epsilon]));
}

/**
 * @param {any} listing
 * @param {string | undefined} owned
 */
function card(listing, owned) {
  const levels = onSale(listing);
  const last = levels[levels.length - 1];
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: `#listing/${encodeURIComponent(listing.id)}` }, listing.title)),
    h("p", { class: "row" }, ...badges(listing), owned === undefined ? null : h("span", { class: "badge finished" }, `you own ε ${shown(owned)}`)),
    facts([
      ["Objects", whole(listing.objects)],
      [listing.encoding?.range === undefined ? "Values" : "Answers", answers(listing.encoding)],
      ["ε up to", listing.authorised === null ? "nothing yet" : shown(listing.authorised)],
      ["Price", last === undefined ? null : priceRange(levels)],
    ]),
    h("p", { class: "small muted" }, last === undefined ? "Nothing was delivered yet." : `ε ${shown(last.epsilon)} tells ${tells(listing.encoding, last.half_width)}.`),
  );
}

/** @param {any} listing */
export function badges(listing) {
  const state = listing.state === "draft" ? "waiting" : listing.state;
  return [
    h("span", { class: "badge" }, KINDS[/** @type {keyof KINDS} */ (listing.kind)]),
    h("span", { class: `badge ${state}` }, STATES[/** @type {keyof STATES} */ (listing.state)]),
  ];
}

/** @param {{ price: number }[]} levels fewer people may sell at a larger level of a pool, so the last is not always the largest */
function priceRange(levels) {
  const prices = levels.map(({ price }) => price);
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  return low === high ? credits(high) : `${whole(low)} to ${credits(high)}`;
}

function empty() {
  return h("div", { class: "card" }, h("h2", {}, "Nothing is on sale yet"), h("p", {}, "A seller lists a released file; the operator opens a pool for single reports. Both then appear here."));
}
