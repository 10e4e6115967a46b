/** What is on sale, and for whoever got a receipt, whether it is one. */

import { attempt, facts, h, notice } from "../kit/dom.js";
import { Problem } from "../kit/problem.js";
import { whole } from "../kit/words.js";
import { answered, answers, credits, KINDS, onSale, POOLED, STATES, shortEpsilon, toldBy } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */

const LARGEST_RECEIPT = 100_000;
const HOLDS = {
  owned: "It holds.",
  upgraded: "It was upgraded since, and a later receipt holds.",
  refunded: "It was paid back since.",
};

/**
 * @param {import("./session.js").MarketSession} session
 * @param {HTMLElement} main
 */
export async function showList(session, main) {
  const { api } = session;
  /** @type {[import("../kit/wire.d.ts").Listings, Map<string, Purchase>]} */
  const [{ listings }, owned] = await Promise.all([api.ask("GET", "market/listings"), ownedOf(session)]);
  main.replaceChildren(
    h("h1", { tabindex: -1 }, "Market"),
    h(
      "p",
      { class: "lead" },
      "Here the same protected data is sold at many levels of privacy ε: a small ε is cheap and tells little, a larger " +
        "one tells more, and an upgrade costs the difference. ",
      POOLED,
    ),
    listings.length > 0
      ? h("div", { class: "grid" }, ...listings.map((listing) => card(listing, owned.get(listing.id))))
      : nothingOnSale(session.role),
    receiptPart(session),
  );
}

/**
 * Return what a buyer owns of each listing.
 *
 * @param {import("./session.js").MarketSession} session
 * @returns {Promise<Map<string, Purchase>>}
 */
export async function ownedOf(session) {
  if (session.role !== "buyer") return new Map();
  /** @type {import("../kit/wire.d.ts").Purchases} */
  const { purchases } = await session.api.ask("GET", "market/purchases");
  const owned = purchases.filter(({ state }) => state === "owned");
  return new Map(owned.map((purchase) => [purchase.listing, purchase]));
}

/**
 * @param {Listing} listing
 * @param {Purchase | undefined} owned
 */
function card(listing, owned) {
  const levels = onSale(listing);
  const last = levels[levels.length - 1];
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: `#listing/${encodeURIComponent(listing.id)}` }, listing.title)),
    h(
      "p",
      { class: "row" },
      ...badges(listing),
      owned === undefined ? null : h("span", { class: "badge finished" }, `you own ε ${shortEpsilon(owned.epsilon)}`),
    ),
    listing.details.description ? h("p", { class: "said short" }, listing.details.description) : null,
    facts([
      ["Sold by", listing.seller ?? "many people"],
      ["Size", listing.objects === 0 ? "nothing yet" : answered(listing, listing.objects)],
      ["When", listing.details.collected ?? null],
      ["Each answer", answers(listing.encoding)],
      ["Price", last === undefined ? null : priceRange(levels)],
    ]),
    h(
      "p",
      { class: "small muted" },
      last === undefined
        ? nothingYet(listing)
        : `The clearest level, ε ${shortEpsilon(last.epsilon)}, tells ${toldBy(listing.encoding, last.half_width)}.`,
    ),
  );
}

/** @param {Listing} listing */
export function badges(listing) {
  const state = listing.state === "draft" ? "waiting" : listing.state;
  return [
    h("span", { class: "badge" }, KINDS[listing.kind]),
    h("span", { class: `badge ${state}` }, STATES[listing.state]),
  ];
}

/** @param {{ price: number }[]} levels fewer people may sell at a larger level of a pool: the last may not be the dearest */
function priceRange(levels) {
  const prices = levels.map(({ price }) => price);
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  return low === high ? credits(high) : `${whole(low)} to ${credits(high)}`;
}

/** @param {Listing} listing */
const nothingYet = ({ kind }) =>
  kind === "pool" ? "Nobody has joined yet: sellers join with one answer each." : "Nothing was delivered yet.";

/** @param {string | null} role */
function nothingOnSale(role) {
  /** @type {Record<string, [string, import("../kit/dom.js").Child]>} */
  const ways = {
    seller: ["Be the first: put a released file on sale.", h("a", { class: "button primary", href: "#sell" }, "Sell")],
    operator: [
      "Make accounts for sellers and buyers. Sellers then list released files; a pool for single answers is opened with relaxdp market pool.",
      h("a", { class: "button primary", href: "#accounts" }, "Make accounts"),
    ],
    buyer: ["Sellers list released files here. Come back later.", null],
  };
  const [words, way] = ways[role ?? ""] ?? [
    "Sellers list released files here, and the operator opens pools for single answers. Whoever sells or runs this market signs in.",
    h("a", { class: "button", href: "#sign-in" }, "Sign in"),
  ];
  return h("div", { class: "card" }, h("h2", {}, "Nothing is on sale yet"), h("p", {}, words), way);
}

/**
 * Say whether a receipt was signed by this market, and whether it still holds. Anybody may ask.
 *
 * @param {import("./session.js").MarketSession} session
 */
function receiptPart(session) {
  const file = h("input", { id: "receipt-file", type: "file", accept: "application/json,.json", onchange: check });
  const outcome = h("div", { class: "answer-room", "aria-live": "polite" });

  async function check() {
    const chosen = file.files?.[0];
    if (chosen === undefined) return;
    await attempt(outcome, async () => {
      if (chosen.size > LARGEST_RECEIPT) throw new Problem("This file is too large for a receipt. Nothing was sent.");
      const { receipt, signature } = readReceipt(await chosen.text());
      /** @type {import("../kit/wire.d.ts").Verified} */
      const { state } = await session.api.ask("POST", "market/receipts/verify", { receipt, signature });
      const { number, epsilon, listing, buyer } = receipt;
      const what = `purchase ${number}, ε ${epsilon} of ${listing}, for ${buyer}`;
      outcome.replaceChildren(notice(`This market signed it: ${what}. ${HOLDS[state]}`, "good"));
    });
    file.value = ""; // so that the same file can be chosen again
  }

  return h(
    "details",
    { class: "card receipt" },
    h("summary", {}, "Check a receipt"),
    h("p", {}, "A receipt names what was bought and the fingerprint of its file, and the market has signed it."),
    h("div", { class: "field" }, h("label", { for: "receipt-file" }, "Receipt (JSON)"), file),
    outcome,
  );
}

/**
 * @param {string} text
 * @returns {{ receipt: Record<string, unknown>, signature: string }}
 */
function readReceipt(text) {
  try {
    const { receipt, signature } = JSON.parse(text);
    if (typeof receipt === "object" && receipt !== null && typeof signature === "string") return { receipt, signature };
  } catch {
    // It is not even JSON; the sentence is the same.
  }
  throw new Problem("This file is no receipt of a market: it has no receipt and no signature in it. Nothing was sent.");
}
