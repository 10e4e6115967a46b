/** What a seller earns, and what it costs in privacy: against the buyers, and against the platform itself. */

import { facts, h, put, tableHead, tableRow } from "../kit/dom.js";
import { whole } from "../kit/words.js";
import { budgetBar, incomePart } from "./charts.js";
import { badges } from "./list.js";
import { statementPart } from "./statement.js";
import { stepsPart } from "./steps.js";
import { ALL_BUYERS, credits, MARKET_HOLDS, shortEpsilon, upTo } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */

/**
 * @param {import("./session.js").MarketSession} session
 * @param {HTMLElement} main
 */
export async function showSales(session, main) {
  /** @type {[import("../kit/wire.d.ts").Sales, void]} */
  const [{ listings, balance }] = await Promise.all([session.api.ask("GET", "market/sales"), session.refresh()]);
  main.replaceChildren(
    h(
      "div",
      { class: "row apart" },
      h("h1", { tabindex: -1 }, "My sales"),
      h("p", {}, "Balance: ", h("strong", {}, credits(balance))),
    ),
    h(
      "p",
      { class: "lead" },
      "However many levels you sell to however many buyers: all of them together learn no more than the largest ε that " +
        "was sold, and this market no more than the largest ε that you delivered.",
    ),
    ...(listings.length > 0 ? listings.map((each) => card(session, each)) : [nothingListed()]),
    statementPart(session),
  );
}

/**
 * Return one listing as its seller sees it, kept current by what the seller does.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {Sale} first
 */
function card(session, first) {
  const { id, title, kind } = first.listing;
  const body = h("div", {});
  const state = h("p", { class: "row" });

  /** @param {Sale} sale */
  function update(sale) {
    state.replaceChildren(...badges(sale.listing), h("span", { class: "muted small code" }, id));
    put(
      body,
      facts([
        ["Income", credits(sale.income)],
        ["Buyers", whole(sale.buyers)],
        [ALL_BUYERS, upTo(sale.loss_buyers)],
        [MARKET_HOLDS, upTo(sale.loss_platform)],
        ["Left of your budget", sale.left === null ? "no budget set" : `ε ${shortEpsilon(sale.left)}`],
        ["Least price", sale.minimum === null ? null : `${credits(sale.minimum)} for your report`],
      ]),
      budgetBar(sale),
      sale.delivered.length > 0
        ? h("div", { class: "columns" }, incomePart(sale), levelsTable(sale))
        : h("p", { class: "muted" }, "This is a draft that only you see. Deliver its file below, and it is on sale."),
    );
  }

  update(first);
  const steps = kind === "pool" ? memberPart(first.listing) : stepsPart(session, first, update);
  return h(
    "section",
    { class: "card campaign", "aria-label": title },
    h("h2", {}, h("a", { href: `#listing/${encodeURIComponent(id)}` }, title)),
    state,
    body,
    steps,
  );
}

/** @param {Listing} listing a pool, whose page has the forms of its members */
function memberPart({ id, state }) {
  if (state !== "open") return null;
  return h(
    "p",
    {},
    h("a", { href: `#listing/${encodeURIComponent(id)}` }, "Raise your limit or change your least price"),
  );
}

/** @param {Sale} sale */
function levelsTable({ delivered, sold }) {
  const given = new Set(delivered.map(({ epsilon }) => epsilon));
  const levels = [...new Set([...given, ...sold.map(({ epsilon }) => epsilon)])];
  levels.sort((one, other) => Number(one) - Number(other));
  const rows = levels.map((epsilon) => {
    const level = sold.find((each) => each.epsilon === epsilon);
    const buyers = level === undefined ? "–" : whole(level.buyers);
    return tableRow(shortEpsilon(epsilon), buyers, given.has(epsilon) ? "delivered" : origin(level?.from ?? null));
  });
  return h(
    "div",
    {},
    h("h3", {}, "Levels"),
    h("table", {}, tableHead("ε", "Buyers", "Where it comes from"), h("tbody", {}, ...rows)),
  );
}

/** @param {[string | null, string] | null} from */
function origin(from) {
  if (from === null) return "delivered";
  const [lower, upper] = from;
  return lower === null
    ? `blurred from ε ${shortEpsilon(upper)}`
    : `drawn between ε ${shortEpsilon(lower)} and ${shortEpsilon(upper)}`;
}

function nothingListed() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "Nothing is listed yet"),
    h(
      "p",
      {},
      "List a file that relaxdp release wrote: buyers then choose among levels up to its own. Or sell one answer of " +
        "your own, in a pool.",
    ),
    h(
      "p",
      { class: "row" },
      h("a", { class: "button primary", href: "#sell" }, "Sell a release"),
      h("a", { class: "button", href: "#" }, "Look for a pool"),
    ),
  );
}
