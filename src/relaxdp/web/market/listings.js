/** What is for sale. */

import { h } from "../kit/dom.js";
import { formatMargin, formatMoney, formatSeller, makeRow, makeTable } from "./words.js";

const NAMES = ["Listing", "Seller", "Levels", "Largest epsilon", "Price", "Margin of error"];

/** @param {import("./main.js").Visitor} visitor */
export async function makeListings({ api }) {
  /** @type {import("../kit/wire.d.ts").ListingViews} */
  const { listings } = await api.ask("GET", "market/listings");
  const lead =
    "Each listing is a column of protected data at several levels. A small epsilon is cheap and has a large margin of " +
    "error; an upgrade to a larger one costs the difference.";
  return [
    h("h1", { tabindex: -1 }, "Market"),
    h("p", { class: "lead" }, lead),
    listings.length === 0
      ? h("p", { class: "card" }, "Nothing is for sale yet. Sellers publish levels with relaxdp market publish.")
      : h(
          "div",
          { class: "card" },
          makeTable("Price and margin of error are those of the largest epsilon.", NAMES, listings.map(makeListingRow)),
        ),
  ];
}

/** @param {import("../kit/wire.d.ts").ListingView} listing */
function makeListingRow(listing) {
  const best = listing.levels[listing.levels.length - 1];
  const details =
    best === undefined
      ? ["–", "–", "–"]
      : [best.epsilon, formatMoney(best.price, listing), formatMargin(listing, best)];
  return makeRow(NAMES, [
    h("a", { href: `#listing/${listing.id}` }, listing.title),
    formatSeller(listing),
    listing.levels.length,
    ...details,
  ]);
}
