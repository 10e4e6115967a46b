/** What a seller sold, and how to publish levels. */

import { ROOT } from "../kit/api.js";
import { copyPart } from "../kit/copy.js";
import { h } from "../kit/dom.js";
import { plural } from "../kit/words.js";
import { makeRow, makeTable } from "./words.js";

const COLUMNS = ["Listing", "Release", "Column", "Sold", "Largest sold", "Held by the market", "Open requests"];
const KEYS = ["Key", "Towards all buyers", "Towards the market"];

/** @param {import("./main.js").Visitor} visitor */
export async function makeSell({ api }) {
  /** @type {import("../kit/wire.d.ts").Sales} */
  const { columns, vaults } = await api.ask("GET", "market/sales");
  return [
    h("h1", { tabindex: -1 }, "Sell"),
    ...(columns.length === 0 ? [] : makeSales(columns, vaults)),
    makePublish(),
  ];
}

/**
 * @param {import("../kit/wire.d.ts").ColumnSales[]} columns
 * @param {import("../kit/wire.d.ts").VaultSales[]} vaults
 */
function makeSales(columns, vaults) {
  const rows = columns.map((each) =>
    makeRow(COLUMNS, [
      h("a", { href: `#listing/${each.listing}` }, each.listing),
      each.release,
      each.column,
      each.sold.map(({ epsilon, buyers }) => `${epsilon}: ${plural(buyers, "buyer")}`).join(", ") || "–",
      each.largest_sold,
      each.held,
      each.open_requests === 0 ? "0" : h("a", { href: "#orders" }, each.open_requests),
    ]),
  );
  const sums = vaults.map((each) =>
    makeRow(KEYS, [h("span", { class: "code" }, each.key_fingerprint), each.largest_sold, each.held]),
  );
  return [
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Sold levels"),
      makeTable("Levels are values of epsilon.", COLUMNS, rows),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Privacy loss"),
      h(
        "p",
        {},
        "The largest sold levels of all columns that were released with one key add up. The sum is the privacy loss " +
          "(epsilon) of an individual towards all buyers together, whatever they share.",
      ),
      makeTable("Sums for each key", KEYS, sums),
    ),
  ];
}

function makePublish() {
  const command = `relaxdp market publish NAME --levels 0.1=10,0.5=60,1=160 --currency EUR --server ${ROOT}`;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Publish levels"),
    h(
      "p",
      {},
      "Levels are made on your machine from your vault, and the key never leaves it. NAME is the name of the release. " +
        "Put your token into the environment variable ",
      h("code", {}, "RELAXDP_TOKEN"),
      ", or name a file with ",
      h("code", {}, "--token-file"),
      ".",
    ),
    copyPart("Command", command, { lines: true }),
  );
}
