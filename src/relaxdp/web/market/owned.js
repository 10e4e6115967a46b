/** What a buyer owns: files, receipts, what was paid, and how far an upgrade could go. */

import { facts, h, notice, put, save } from "../kit/dom.js";
import { moment, whole } from "../kit/words.js";
import { statementPart } from "./statement.js";
import { credits, POOLED, shown } from "./words.js";

const ENDED = { upgraded: "upgraded", refunded: "paid back" };

/**
 * @param {import("./session.js").Session} session
 * @param {HTMLElement} main
 */
export async function showOwned(session, main) {
  const [{ purchases, balance }] = await Promise.all([session.api.ask("GET", "market/purchases"), session.refresh()]);
  const owned = purchases.filter((/** @type {any} */ each) => each.state === "owned");
  const ended = purchases.filter((/** @type {any} */ each) => each.state !== "owned");
  put(
    main,
    h(
      "div",
      { class: "row apart" },
      h("h1", { tabindex: -1 }, "What I own"),
      h("p", {}, "Balance: ", h("strong", {}, credits(balance))),
    ),
    h("p", { class: "lead" }, POOLED),
    owned.length > 0
      ? h("div", { class: "grid" }, ...owned.map((/** @type {any} */ each) => card(session, each)))
      : empty(),
    ended.length > 0 ? earlier(ended) : null,
    statementPart(session),
  );
}

/**
 * @param {import("./session.js").Session} session
 * @param {any} purchase
 */
function card(session, purchase) {
  const address = `#listing/${encodeURIComponent(purchase.listing)}`;
  const further = purchase.authorised !== null && Number(purchase.authorised) > Number(purchase.epsilon);
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: address }, purchase.title)),
    facts([
      ["Level", `ε ${shown(purchase.epsilon)}`],
      [
        "Paid",
        purchase.paid === purchase.price
          ? credits(purchase.paid)
          : `${whole(purchase.paid)} of ${credits(purchase.price)}`,
      ],
      ["Objects", whole(purchase.objects)],
      ["Bought", moment(purchase.issued)],
    ]),
    filesOf(session, purchase),
    h(
      "p",
      { class: "small muted" },
      further
        ? h("a", { href: address }, `Upgrade, up to ε ${shown(purchase.authorised)}`)
        : "This is the clearest level on sale.",
    ),
  );
}

/**
 * Return the buttons that fetch the data and the receipt of a purchase.
 *
 * @param {import("./session.js").Session} session
 * @param {any} purchase
 */
export function filesOf(session, purchase) {
  const problem = h("div", {});
  const path = `market/purchases/${purchase.number}`;
  const name = `${purchase.listing}-${purchase.epsilon}`;

  /**
   * @param {HTMLButtonElement} button
   * @param {() => Promise<void>} work
   */
  async function fetched(button, work) {
    problem.replaceChildren();
    button.disabled = true;
    try {
      await work();
    } catch (refusal) {
      problem.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
    button.disabled = false;
    button.focus();
  }

  const data = h(
    "button",
    {
      type: "button",
      onclick: () => fetched(data, async () => save(await session.api.file(`${path}/data`), `${name}.parquet`)),
    },
    "Download data",
  );
  const receipt = h(
    "button",
    { type: "button", "aria-label": "Download receipt", onclick: () => fetched(receipt, signed) },
    "Receipt",
  );
  const signed = async () => {
    const text = JSON.stringify(await session.api.ask("GET", `${path}/receipt`), null, 2);
    save(new Blob([text], { type: "application/json" }), `${name}-receipt.json`);
  };
  return h("div", { class: "files" }, h("div", { class: "row" }, data, receipt), problem);
}

/** @param {any[]} purchases */
function earlier(purchases) {
  const heads = ["Listing", "ε", "Paid", "What became of it"].map((each) => h("th", { scope: "col" }, each));
  const rows = purchases.map((each) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, each.title),
      h("td", {}, shown(each.epsilon)),
      h("td", {}, whole(each.paid)),
      h("td", {}, ENDED[/** @type {keyof ENDED} */ (each.state)] ?? each.state),
    ),
  );
  return h(
    "details",
    { class: "card" },
    h("summary", {}, "Earlier purchases"),
    h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
  );
}

function empty() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "Nothing yet"),
    h("p", {}, "Choose a listing, look at what each level costs and tells, and buy one."),
    h("a", { class: "button primary", href: "#" }, "See the listings"),
  );
}
