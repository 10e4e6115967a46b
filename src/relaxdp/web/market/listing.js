/** One listing: its levels, and an order or an upgrade for a buyer. */

import { readValue } from "../device/typed.js";
import { attempt, confirmed, facts, h } from "../kit/dom.js";
import { tell } from "../kit/page.js";
import { whole } from "../kit/words.js";
import { formatMargin, formatMoney, formatSeller, makeRow, makeRows, makeTable, makeVerification } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").ListingView} Listing */
/** @typedef {import("../kit/wire.d.ts").OfferView} Offer */
/** @typedef {import("../kit/wire.d.ts").OrderView} Order */
/** @typedef {import("./main.js").Visitor} Visitor */

const MAX_VALUES = 12;

/**
 * @param {Visitor} visitor
 * @param {string} id
 */
export async function makeListing(visitor, id) {
  const { api, member } = visitor;
  /** @type {[Listing, import("../kit/wire.d.ts").MarketView, import("../kit/wire.d.ts").OrderViews]} */
  const [listing, market, { orders }] = await Promise.all([
    api.ask("GET", `market/listings/${encodeURIComponent(id)}`),
    api.ask("GET", "market"),
    member?.role === "buyer" ? api.ask("GET", "market/orders") : { orders: [] },
  ]);
  const request = orders.find((order) => order.listing === listing.id && order.state === "requested") ?? null;
  return [
    h("p", { class: "small" }, h("a", { href: "#" }, "All listings")),
    h("h1", { tabindex: -1 }, listing.title),
    h(
      "section",
      { class: "card" },
      listing.about === "" ? null : h("p", { class: "about" }, listing.about),
      facts([
        ["Seller", formatSeller(listing)],
        ["Orders are approved", listing.approval === "automatic" ? "automatically" : "by the seller"],
        ["Column", listing.column],
        ["Possible answers", formatAnswers(listing.mechanism)],
      ]),
    ),
    makeLevels(visitor, listing, request),
    makeVerification(market),
  ];
}

/** @param {Listing["mechanism"]} mechanism */
function formatAnswers({ values, range }) {
  if (Array.isArray(range)) return `${range[0]} to ${range[1]}`;
  if (!Array.isArray(values)) return null;
  const shown = values.slice(0, MAX_VALUES).map((value) => String(readValue(value).value));
  const more = values.length - shown.length;
  return shown.join(", ") + (more > 0 ? ` and ${whole(more)} more` : "");
}

/**
 * @param {Visitor} visitor
 * @param {Listing} listing
 * @param {Order | null} request the buyer's request that is open
 */
function makeLevels(visitor, listing, request) {
  if (listing.levels.length === 0) return h("p", { class: "card" }, "No level is published yet.");
  const isBuyer = visitor.member?.role === "buyer";
  const due = listing.owned === null ? [] : ["You pay"];
  const names = ["Epsilon", "Price", ...due, "Rows", "Margin of error", "Notes", ...(isBuyer ? ["Order"] : [])];
  const outcome = h("div", { "aria-live": "polite" });
  const ownedAt = listing.levels.findIndex(({ epsilon }) => epsilon === listing.owned);
  const rows = listing.levels.map((offer, at) =>
    makeRow(names, [
      offer.epsilon,
      formatMoney(offer.price, listing),
      ...due.map(() => (at > ownedAt ? formatMoney(offer.due, listing) : "–")),
      makeRows(offer),
      formatMargin(listing, offer),
      makeNotes(listing, offer),
      ...(isBuyer ? [makeAction(visitor, listing, offer, request, outcome)] : []),
    ]),
  );
  return h(
    "section",
    { class: "card", "aria-label": "Levels" },
    outcome,
    makeTable("A larger epsilon is more accurate, and less private for the individuals.", names, rows),
    h(
      "p",
      { class: "small muted" },
      "The margin of error is half the width of a 95 % confidence interval of a share or mean at worst. It follows " +
        "from rows and levels alone, never from answers.",
    ),
    listing.recommended === null
      ? h("p", { class: "small" }, "No level is accurate enough to recommend: the margins of error are too large.")
      : null,
    request === null
      ? null
      : h("p", {}, `You requested epsilon ${request.epsilon}. Wait for the approval, or withdraw the order first.`),
    visitor.member === null
      ? h("p", {}, h("a", { class: "button primary", href: `#sign-in/listing/${listing.id}` }, "Sign in to order"))
      : null,
  );
}

/**
 * @param {Listing} listing
 * @param {Offer} offer
 */
function makeNotes(listing, offer) {
  if (offer.epsilon === listing.recommended) return h("span", { class: "badge open" }, "recommended");
  if (offer.is_dominated) return "another level costs no more and is more accurate";
  return offer.is_useful ? null : "not accurate enough for most uses";
}

/**
 * @param {Visitor} visitor
 * @param {Listing} listing
 * @param {Offer} offer
 * @param {Order | null} request
 * @param {Element} outcome where an error is shown
 */
function makeAction({ api }, listing, offer, request, outcome) {
  const { owned, levels } = listing;
  const isUpgrade = owned !== null;
  const at = levels.indexOf(offer);
  const ownedAt = levels.findIndex(({ epsilon }) => epsilon === owned);
  const orders = (/** @type {string} */ words) => h("a", { href: "#orders" }, words);
  if (at === ownedAt) return orders("You have this level");
  if (at < ownedAt) return "You have a higher level";
  if (request !== null) return request.epsilon === offer.epsilon ? orders("Requested") : null;

  const verb = isUpgrade ? "Upgrade" : "Order";
  const money = formatMoney(offer.due, listing);
  async function order() {
    const cost = isUpgrade
      ? `Epsilon ${offer.epsilon} costs ${formatMoney(offer.price, listing)}. You have epsilon ${owned}, so you pay ` +
        `the difference: ${money}.`
      : `You order epsilon ${offer.epsilon} for ${money}.`;
    const approval =
      listing.approval === "automatic"
        ? "The order is approved at once, and cannot be withdrawn."
        : "The seller approves the order. You can withdraw it until then.";
    const title = `${verb} ${listing.title}?`;
    if (!(await confirmed({ title, text: [cost, approval], yes: `${verb} for ${money}`, danger: false }))) return;
    await attempt(outcome, async () => {
      /** @type {Order} */
      const made = await api.ask("POST", `market/listings/${listing.id}/orders`, {
        epsilon: offer.epsilon,
        upgrade: isUpgrade,
      });
      tell(`Order ${made.id} is ${made.state}.`);
      location.hash = "#orders";
    });
  }
  return h(
    "button",
    { type: "button", "aria-label": `${verb} epsilon ${offer.epsilon} …`, onclick: order },
    `${verb} …`,
  );
}
