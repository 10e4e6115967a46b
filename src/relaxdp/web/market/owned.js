/** What a buyer owns: files, receipts, what was paid, and how far an upgrade could go. */

import { attempt, facts, h, put, save, tableHead, tableRow } from "../kit/dom.js";
import { moment, whole } from "../kit/words.js";
import { statementPart } from "./statement.js";
import { credits, POOLED, shortEpsilon } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */

const ENDED = { owned: "", upgraded: "upgraded", refunded: "paid back" };

/**
 * @param {import("./session.js").MarketSession} session
 * @param {HTMLElement} main
 */
export async function showOwned(session, main) {
  /** @type {[import("../kit/wire.d.ts").Purchases, void]} */
  const [{ purchases, balance }] = await Promise.all([session.api.ask("GET", "market/purchases"), session.refresh()]);
  const owned = purchases.filter(({ state }) => state === "owned");
  const ended = purchases.filter(({ state }) => state !== "owned");
  put(
    main,
    h(
      "div",
      { class: "row apart" },
      h("h1", { tabindex: -1 }, "What I own"),
      h("p", {}, "Balance: ", h("strong", {}, credits(balance))),
    ),
    h("p", { class: "lead" }, POOLED),
    owned.length > 0 ? h("div", { class: "grid" }, ...owned.map((each) => card(session, each))) : nothingOwned(),
    ended.length > 0 ? earlierPart(ended) : null,
    statementPart(session),
  );
}

/**
 * @param {import("./session.js").MarketSession} session
 * @param {Purchase} purchase
 */
function card(session, purchase) {
  const address = `#listing/${encodeURIComponent(purchase.listing)}`;
  const { authorised, paid, price } = purchase;
  const further = authorised !== null && Number(authorised) > Number(purchase.epsilon);
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: address }, purchase.title)),
    facts([
      ["Level", `ε ${shortEpsilon(purchase.epsilon)}`],
      ["Paid", paid === price ? credits(paid) : `${whole(paid)} of ${credits(price)}`],
      ["Objects", whole(purchase.objects)],
      ["Bought", moment(purchase.issued)],
    ]),
    filesPart(session, purchase),
    h(
      "p",
      { class: "small muted" },
      further
        ? h("a", { href: address }, `Upgrade, up to ε ${shortEpsilon(authorised)}`)
        : "This is the clearest level on sale.",
    ),
  );
}

/**
 * Return the buttons that fetch the data and the receipt of a purchase.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {Purchase} purchase
 */
export function filesPart(session, purchase) {
  const refusal = h("div", {});
  const path = `market/purchases/${purchase.number}`;
  const name = `${purchase.listing}-${purchase.epsilon}`;

  /**
   * @param {string} label
   * @param {string} text
   * @param {() => Promise<void>} work
   */
  function fileButton(label, text, work) {
    const button = h("button", { type: "button", "aria-label": label }, text);
    button.addEventListener("click", async () => {
      button.disabled = true;
      await attempt(refusal, work);
      button.disabled = false;
      button.focus();
    });
    return button;
  }

  const saveData = async () => save(await session.api.file(`${path}/data`), `${name}.parquet`);
  const saveReceipt = async () => {
    const text = JSON.stringify(await session.api.ask("GET", `${path}/receipt`), null, 2);
    save(new Blob([text], { type: "application/json" }), `${name}-receipt.json`);
  };
  const data = fileButton("Download data", "Download data", saveData);
  const receipt = fileButton("Download receipt", "Receipt", saveReceipt);
  return h("div", { class: "files" }, h("div", { class: "row" }, data, receipt), refusal);
}

/** @param {Purchase[]} purchases */
function earlierPart(purchases) {
  const head = tableHead("Listing", "ε", "Paid", "What became of it");
  const rows = purchases.map(({ title, epsilon, paid, state }) =>
    tableRow(title, shortEpsilon(epsilon), whole(paid), ENDED[state]),
  );
  return h(
    "details",
    { class: "card" },
    h("summary", {}, "Earlier purchases"),
    h("table", {}, head, h("tbody", {}, ...rows)),
  );
}

function nothingOwned() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "Nothing yet"),
    h("p", {}, "Choose a listing, look at what each level costs and tells, and buy one."),
    h("a", { class: "button primary", href: "#" }, "See the listings"),
  );
}
