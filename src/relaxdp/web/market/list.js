/** What is on sale, and for whoever got a receipt, whether it is one. */

import { facts, h, notice } from "../kit/dom.js";
import { whole } from "../kit/words.js";
import { answers, credits, KINDS, onSale, POOLED, STATES, shown, tells } from "./words.js";

const LARGEST_RECEIPT = 100_000;
const HOLDS = {
  owned: "It holds.",
  upgraded: "It was upgraded since, and a later receipt holds.",
  refunded: "It was paid back since.",
};

/**
 * @param {import("./session.js").Session} session
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
    listings.length > 0
      ? h(
          "div",
          { class: "grid" },
          ...listings.map((/** @type {any} */ listing) => card(listing, owned.get(listing.id))),
        )
      : empty(),
    receiptPart(session),
  );
}

/**
 * Return the level that a buyer owns of each listing.
 *
 * @param {import("./session.js").Session} session
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
    h(
      "p",
      { class: "row" },
      ...badges(listing),
      owned === undefined ? null : h("span", { class: "badge finished" }, `you own ε ${shown(owned)}`),
    ),
    facts([
      ["Objects", whole(listing.objects)],
      [listing.encoding?.range === undefined ? "Values" : "Answers", answers(listing.encoding)],
      ["ε up to", listing.authorised === null ? "nothing yet" : shown(listing.authorised)],
      ["Price", last === undefined ? null : priceRange(levels)],
    ]),
    h(
      "p",
      { class: "small muted" },
      last === undefined
        ? "Nothing was delivered yet."
        : `ε ${shown(last.epsilon)} tells ${tells(listing.encoding, last.half_width)}.`,
    ),
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
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "Nothing is on sale yet"),
    h("p", {}, "A seller lists a released file; the operator opens a pool for single reports. Both then appear here."),
  );
}

/**
 * Say whether a receipt was signed by this market, and whether it still holds. Anybody may ask.
 *
 * @param {import("./session.js").Session} session
 */
function receiptPart(session) {
  const file = h("input", { id: "receipt-file", type: "file", accept: "application/json,.json", onchange: check });
  const told = h("div", { class: "answer-room", "aria-live": "polite" });

  async function check() {
    const chosen = file.files[0];
    if (chosen === undefined) return;
    try {
      if (chosen.size > LARGEST_RECEIPT) throw new Error("This file is too large for a receipt. Nothing was sent.");
      const { receipt, signature } = readReceipt(await chosen.text());
      const { state } = await session.api.ask("POST", "market/receipts/verify", { receipt, signature });
      const holds = HOLDS[/** @type {keyof HOLDS} */ (state)] ?? state;
      told.replaceChildren(
        notice(
          `This market signed it: purchase ${receipt.number}, ε ${receipt.epsilon} of ${receipt.listing}, for ${receipt.buyer}. ${holds}`,
          "good",
        ),
      );
    } catch (refusal) {
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
    file.value = ""; // so that the same file can be chosen again
  }

  return h(
    "details",
    { class: "card receipt" },
    h("summary", {}, "Check a receipt"),
    h("p", {}, "A receipt names what was bought and the fingerprint of its file, and the market has signed it."),
    h("div", { class: "field" }, h("label", { for: "receipt-file" }, "Receipt (JSON)"), file),
    told,
  );
}

/** @param {string} text */
function readReceipt(text) {
  try {
    const { receipt, signature } = JSON.parse(text);
    if (typeof receipt === "object" && receipt !== null && typeof signature === "string") return { receipt, signature };
  } catch {
    // It is not even JSON; the sentence is the same.
  }
  throw new Error("This file is no receipt of a market: it has no receipt and no signature in it. Nothing was sent.");
}
