/** What a buyer owns: files, receipts, what was paid, and how far an upgrade could go. */

import { copyPart } from "../kit/copy.js";
import { attempt, facts, h, put, save, tableHead, tableRow } from "../kit/dom.js";
import { moment, whole } from "../kit/words.js";
import { statementPart } from "./statement.js";
import { toldPart } from "./told.js";
import { credits, POOLED, shortEpsilon } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */
/** @typedef {import("./session.js").MarketSession} Session */

const ENDED = { owned: "", upgraded: "upgraded", refunded: "paid back" };
const KEPT =
  "Keep the receipt beside the file: it is signed, and proves to anybody what you bought and which file that was. You " +
  "can save it again here at any time.";

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
    owned.length > 0 ? h("div", { class: "grid wide" }, ...owned.map((each) => card(session, each))) : nothingOwned(),
    ended.length > 0 ? earlierPart(session, ended) : null,
    statementPart(session),
  );
}

/**
 * @param {Session} session
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
      ["Answers", whole(purchase.objects)],
      ["Bought", moment(purchase.issued)],
    ]),
    toldPart(session, purchase),
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
 * Return the buttons that fetch the data and the receipt of a purchase, and what the receipt says.
 *
 * @param {Session} session
 * @param {Purchase} purchase
 */
export function filesPart(session, purchase) {
  const refusal = h("div", {});
  const path = `market/purchases/${purchase.number}`;
  const saveData = async () => save(await session.api.file(`${path}/data`), `${nameOf(purchase)}.parquet`);
  return h(
    "div",
    { class: "files" },
    h(
      "div",
      { class: "row" },
      fileButton(refusal, "Download data", saveData),
      fileButton(refusal, "Save receipt", () => saveReceipt(session, purchase)),
    ),
    refusal,
    h(
      "details",
      {},
      h("summary", {}, "What the receipt says"),
      facts([
        ["Purchase", whole(purchase.number)],
        ["Level", `ε ${purchase.epsilon}`],
        ["Paid", credits(purchase.paid)],
        ["When", moment(purchase.issued)],
      ]),
      copyPart("Fingerprint of the file (SHA-256)", purchase.digest),
      h("p", { class: "small muted" }, KEPT),
    ),
  );
}

/** @param {Purchase} purchase */
const nameOf = ({ listing, epsilon }) => `${listing}-${epsilon}`;

/**
 * @param {Session} session
 * @param {Purchase} purchase
 */
async function saveReceipt(session, purchase) {
  const text = JSON.stringify(await session.api.ask("GET", `market/purchases/${purchase.number}/receipt`), null, 2);
  save(new Blob([text], { type: "application/json" }), `${nameOf(purchase)}-receipt.json`);
}

/**
 * @param {HTMLElement} refusal
 * @param {string} text
 * @param {() => Promise<void>} work
 * @param {import("../kit/dom.js").Attributes} [attributes]
 */
function fileButton(refusal, text, work, attributes = {}) {
  const button = h("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    await attempt(refusal, work);
    button.disabled = false;
    button.focus();
  });
  return button;
}

/**
 * @param {Session} session
 * @param {Purchase[]} purchases
 */
function earlierPart(session, purchases) {
  const refusal = h("div", {});
  const rows = purchases.map((purchase) => {
    const { number, title, epsilon, paid, state } = purchase;
    const label = { class: "quiet", "aria-label": `Save the receipt of purchase ${number}` };
    const receipt = fileButton(refusal, "Save", () => saveReceipt(session, purchase), label);
    const row = tableRow(title, whole(paid), receipt);
    row.cells[0].append(h("span", { class: "hint" }, `ε ${shortEpsilon(epsilon)}, ${ENDED[state]}`));
    return row;
  });
  return h(
    "details",
    { class: "card" },
    h("summary", {}, "Earlier purchases"),
    refusal,
    h("table", { class: "people" }, tableHead("Listing", "Paid", "Receipt"), h("tbody", {}, ...rows)),
  );
}

function nothingOwned() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "Nothing yet"),
    h(
      "p",
      {},
      "Choose a listing, look at what each level costs and tells, and buy one. Files and receipts are then kept here.",
    ),
    h("a", { class: "button primary", href: "#" }, "See the listings"),
  );
}
