/** Amounts, levels and tables. Amounts and levels are decimal text, and are shown as they are. */

import { copyPart } from "../kit/copy.js";
import { h } from "../kit/dom.js";
import { measureOf, whole } from "../kit/words.js";

/** @typedef {import("../kit/wire.d.ts").ListingView} Listing */
/** @typedef {import("../kit/wire.d.ts").OfferView} Offer */
/** @typedef {import("../kit/dom.js").Child} Child */

/**
 * @param {string} amount
 * @param {{ currency: string }} listing or order
 */
export const formatMoney = (amount, { currency }) => `${amount}\u00a0${currency}`;

/** @param {Pick<Listing, "seller">} listing */
export const formatSeller = ({ seller }) => seller || "a pool of individuals";

/**
 * @param {Listing} listing
 * @param {Offer} offer
 */
export const formatMargin = ({ mechanism }, { margin }) =>
  margin === null ? "unknown" : measureOf(mechanism).width(margin).replaceAll(" ", "\u00a0");

/** @param {Offer} offer */
export function makeRows({ epsilon, rows, rows_by_level: levels }) {
  const below = rows - (levels[epsilon] ?? 0);
  return h("div", {}, whole(rows), below === 0 ? null : h("small", {}, `${whole(below)} at a lower level`));
}

/**
 * Return a table. On a phone each row is a block, in which each cell has the name of its column.
 *
 * @param {string} caption
 * @param {string[]} names of the columns; the first cell of a row is its heading
 * @param {HTMLTableRowElement[]} rows
 */
export const makeTable = (caption, names, rows) =>
  h(
    "table",
    { class: "market" },
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows),
  );

/**
 * Return a row of such a table.
 *
 * @param {string[]} names
 * @param {Child[]} cells
 */
export const makeRow = (names, cells) =>
  h(
    "tr",
    { tabindex: -1 },
    ...cells.map((cell, at) =>
      at === 0
        ? h("th", { scope: "row", "data-name": names[at] }, cell)
        : h("td", { "data-name": names[at] }, h("div", {}, cell)),
    ),
  );

/**
 * Return how to verify a file without the market.
 *
 * @param {import("../kit/wire.d.ts").MarketView} market
 */
export const makeVerification = (market) =>
  h(
    "section",
    { class: "card" },
    h("h2", {}, "Verify a file"),
    h(
      "p",
      {},
      "The market signs a receipt for each order that is approved. Save the receipt in the same folder as the file, " +
        "and verify both without a network: ",
      h("code", {}, "relaxdp market verify FILE --public-key KEY"),
    ),
    copyPart("Public key of the receipts", market.public_key),
  );
