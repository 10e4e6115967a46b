/** What a seller earns, and what it costs in privacy: against the buyers, and against the platform itself. */

import { facts, h, put } from "../kit/dom.js";
import { whole } from "../kit/words.js";
import { budgetBar, incomePart } from "./charts.js";
import { badges } from "./list.js";
import { statementPart } from "./statement.js";
import { stepsPart } from "./steps.js";
import { credits, shown } from "./words.js";

/**
 * @param {import("./session.js").Session} session
 * @param {HTMLElement} main
 */
export async function showSales(session, main) {
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
      "However many levels you sell to however many buyers, all of them together learn no more than the largest ε that was sold; the platform, which keeps what you delivered, no more than the largest ε that you delivered.",
    ),
    ...(listings.length > 0 ? listings.map((/** @type {any} */ each) => card(session, each)) : [empty()]),
    statementPart(session),
  );
}

/**
 * Return one listing as its seller sees it, kept current by what the seller does.
 *
 * @param {import("./session.js").Session} session
 * @param {any} first
 */
function card(session, first) {
  const { id, title, kind } = first.listing;
  const body = h("div", {});
  const state = h("p", { class: "row" });

  /** @param {any} sale */
  function update(sale) {
    state.replaceChildren(...badges(sale.listing), h("span", { class: "muted small code" }, id));
    put(
      body,
      facts([
        ["Income", credits(sale.income)],
        ["Buyers", whole(sale.buyers)],
        ["Loss against buyers", `ε ${shown(sale.loss_buyers)}`],
        ["Loss against the platform", `ε ${shown(sale.loss_platform)}`],
        ["Left of the budget", sale.left === null ? "no budget" : `ε ${shown(sale.left)}`],
        ["Least price", sale.minimum === null ? null : `${credits(sale.minimum)} for your report`],
      ]),
      budgetBar(sale),
      sale.delivered.length > 0
        ? h("div", { class: "columns" }, incomePart(sale), levelsOf(sale))
        : h("p", { class: "muted" }, "No level was delivered yet; until then only you see this."),
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

/** @param {any} listing a pool, whose page has the forms of its members */
function memberPart({ id, state }) {
  if (state !== "open") return null;
  return h(
    "p",
    {},
    h("a", { href: `#listing/${encodeURIComponent(id)}` }, "Raise your limit or change your least price"),
  );
}

/** @param {any} sale */
function levelsOf({ delivered, sold }) {
  const given = new Set(delivered.map((/** @type {any} */ level) => level.epsilon));
  const levels = [...new Set([...given, ...sold.map((/** @type {any} */ level) => level.epsilon)])].sort(
    (one, other) => Number(one) - Number(other),
  );
  const heads = ["ε", "Buyers", "Where it comes from"].map((each) => h("th", { scope: "col" }, each));
  const rows = levels.map((epsilon) => {
    const level = sold.find((/** @type {any} */ each) => each.epsilon === epsilon);
    const cells = [
      level === undefined ? "–" : whole(level.buyers),
      given.has(epsilon) ? "delivered" : origin(level.from),
    ];
    return h("tr", {}, h("th", { scope: "row" }, shown(epsilon)), ...cells.map((cell) => h("td", {}, cell)));
  });
  return h(
    "div",
    {},
    h("h3", {}, "Levels"),
    h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
  );
}

/** @param {[string | null, string] | null} from */
function origin(from) {
  if (from === null) return "delivered";
  const [lower, upper] = from;
  return lower === null ? `blurred from ε ${shown(upper)}` : `drawn between ε ${shown(lower)} and ${shown(upper)}`;
}

function empty() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "Nothing is listed yet"),
    h(
      "p",
      {},
      "List a file that relaxdp release wrote: buyers then choose among levels up to its own. Or sell one answer of your own, in a pool.",
    ),
    h(
      "p",
      { class: "row" },
      h("a", { class: "button primary", href: "#sell" }, "Sell a release"),
      h("a", { class: "button", href: "#" }, "Look for a pool"),
    ),
  );
}
