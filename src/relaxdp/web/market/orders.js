/** The orders of a buyer, or of the listings of a seller. */

import { attempt, confirmed, h, save } from "../kit/dom.js";
import { tell } from "../kit/page.js";
import { formatMoney, makeRow, makeTable, makeVerification } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").OrderView} Order */
/** @typedef {import("./main.js").Visitor} Visitor */

const BADGES = { requested: "waiting", approved: "open", withdrawn: "" };

/** @param {Visitor} visitor */
export async function makeOrders(visitor) {
  const { api, member } = visitor;
  const isBuyer = member?.role === "buyer";
  /** @type {[import("../kit/wire.d.ts").OrderViews, import("../kit/wire.d.ts").MarketView]} */
  const [{ orders }, market] = await Promise.all([api.ask("GET", "market/orders"), api.ask("GET", "market")]);
  const names = ["Order", "Listing", ...(isBuyer ? [] : ["Buyer"]), "Epsilon", "Due", "State", "Requested", "Actions"];
  const title = isBuyer ? "My orders" : "Orders";
  return [
    h("h1", { tabindex: -1 }, title),
    orders.length === 0
      ? h("p", { class: "card" }, isBuyer ? "You have no orders. Choose a level of a listing." : "There are no orders.")
      : h(
          "section",
          { class: "card", "aria-label": title },
          makeTable(
            "The newest first",
            names,
            orders.map((order) => makeOrderRow(visitor, names, order)),
          ),
        ),
    ...(isBuyer ? [makeVerification(market)] : []),
  ];
}

/**
 * @param {Visitor} visitor
 * @param {string[]} names
 * @param {Order} order
 * @returns {HTMLTableRowElement}
 */
function makeOrderRow(visitor, names, order) {
  const isBuyer = visitor.member?.role === "buyer";
  const row = makeRow(names, [
    h("span", { class: "code" }, order.id),
    h("a", { href: `#listing/${order.listing}` }, order.title),
    ...(isBuyer ? [] : [order.buyer]),
    order.epsilon,
    formatMoney(order.due, order) + (order.previous === null ? "" : " (upgrade)"),
    h("span", { class: `badge ${BADGES[order.state]}` }, order.state),
    h("time", { datetime: order.requested }, order.requested.slice(0, 10)),
    order.state === "approved" && isBuyer
      ? makeDownloads(visitor, order)
      : order.state === "requested"
        ? makeDecisions(visitor, order, isBuyer, replaceRow)
        : null,
  ]);

  /** @param {Order} changed */
  function replaceRow(changed) {
    const fresh = makeOrderRow(visitor, names, changed);
    row.replaceWith(fresh);
    fresh.focus();
    tell(`Order ${changed.id} is ${changed.state}.`);
  }
  return row;
}

/**
 * @param {Visitor} visitor
 * @param {Order} order
 */
function makeDownloads({ api }, order) {
  const outcome = h("div", { "aria-live": "polite" });
  const name = `${order.listing}-${order.epsilon}.parquet`;
  const button = (/** @type {string} */ words, /** @type {string} */ part, /** @type {string} */ file) =>
    h(
      "button",
      {
        type: "button",
        "aria-label": `${words} of order ${order.id}`,
        onclick: () => attempt(outcome, async () => save(await api.file(`market/orders/${order.id}/${part}`), file)),
      },
      words,
    );
  const buttons = [
    button("Download file", "file", name),
    button("Download receipt", "receipt", `${name}.receipt.json`),
  ];
  return h("div", {}, h("div", { class: "row" }, ...buttons), outcome);
}

/**
 * @param {Visitor} visitor
 * @param {Order} order
 * @param {boolean} isBuyer
 * @param {(order: Order) => void} changed
 */
function makeDecisions({ api }, order, isBuyer, changed) {
  const outcome = h("div", { "aria-live": "polite" });
  const what = `epsilon ${order.epsilon} of ${order.title} for ${formatMoney(order.due, order)}`;
  const button = (
    /** @type {"Approve" | "Withdraw"} */ verb,
    /** @type {string} */ text,
    /** @type {boolean} */ danger,
  ) => {
    async function decide() {
      if (!(await confirmed({ title: `${verb} order ${order.id}?`, text: [text], yes: verb, danger }))) return;
      const path = `market/orders/${order.id}/${verb.toLowerCase()}`;
      await attempt(outcome, async () => changed(await api.ask("POST", path)));
    }
    return h("button", { type: "button", "aria-label": `${verb} order ${order.id} …`, onclick: decide }, `${verb} …`);
  };
  const approve = button("Approve", `${order.buyer} gets ${what}. An approval cannot be taken back.`, false);
  const withdraw = button("Withdraw", `The order of ${what} ends. Nothing is delivered.`, true);
  return h("div", {}, h("div", { class: "row" }, isBuyer ? null : approve, withdraw), outcome);
}
