/** One listing: what it is, what each level costs and tells, and how to get one. */

import { readValue } from "../device/typed.js";
import { facts, h, put } from "../kit/dom.js";
import { valueText } from "../kit/reports.js";
import { whole } from "../kit/words.js";
import { buyPart, levelPart } from "./buy.js";
import { curvePart } from "./charts.js";
import { joinPart } from "./join.js";
import { badges, ownedLevels } from "./list.js";
import { filesPart } from "./owned.js";
import { answers, onSale, POOLED, shortEpsilon } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */
/** @typedef {import("./session.js").MarketSession} Session */

const MOST_VALUES = 12;

/**
 * @param {Session} session
 * @param {HTMLElement} main
 * @param {string} id
 */
export async function showListing(session, main, id) {
  /** @type {[Listing, Map<string, string>]} */
  const [listing, owned] = await Promise.all([
    session.api.ask("GET", `market/listings/${encodeURIComponent(id)}`),
    ownedLevels(session),
  ]);
  const top = h("section", { class: "card", "aria-label": "What it is" });
  const offer = h("div", {});

  /** @param {Listing} now */
  function update(now) {
    put(top, h("p", { class: "row" }, ...badges(now), h("span", { class: "muted small code" }, now.id)), about(now));
    put(
      offer,
      onSale(now).length === 0
        ? h(
            "p",
            { class: "notice" },
            now.authorised === null
              ? "Nothing was delivered yet, so nothing can be bought."
              : "Nobody sells at these prices now, so nothing can be bought.",
          )
        : levelsPart(session, now, owned.get(now.id) ?? null),
    );
  }

  update(listing);
  const join = listing.kind === "pool" && session.role === "seller" ? await joinPart(session, listing, update) : null;
  put(
    main,
    h("p", { class: "small" }, h("a", { href: "#" }, "All listings")),
    h("h1", { tabindex: -1 }, listing.title),
    top,
    join,
    offer,
  );
}

/**
 * @param {Session} session
 * @param {Listing} listing
 * @param {string | null} owned
 */
function levelsPart(session, listing, owned) {
  const news = h("div", { tabindex: -1 });
  const chart = curvePart(listing, (share) => level.near(share));
  const buy = session.role === "buyer" ? buyPart(session, listing, { bought, refused: () => level.again() }) : null;
  const level = levelPart(session, listing, (quote) => {
    chart.choose(quote);
    buy?.update(quote);
  });

  /** @param {Purchase} purchase */
  function bought(purchase) {
    chart.own(purchase.epsilon);
    level.again();
    put(
      news,
      h(
        "div",
        { class: "notice good" },
        h(
          "p",
          {},
          `You own ε ${shortEpsilon(purchase.epsilon)} now. What you bought stays yours, and `,
          h("a", { href: "#owned" }, "is kept here"),
          ".",
        ),
        filesPart(session, purchase),
      ),
    );
    news.focus(); // the button that was pressed may be off now
  }

  chart.own(owned);
  level.near(owned === null ? 0.5 : 1);
  return h(
    "div",
    { class: "columns" },
    chart.element,
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Choose a level"),
      level.element,
      buy === null ? visitorPart(session, listing) : buy.element,
      news,
      h("p", { class: "small muted" }, POOLED),
    ),
  );
}

/**
 * @param {Session} session
 * @param {Listing} listing
 */
function visitorPart({ role }, listing) {
  const way = listing.kind === "pool" && listing.state === "open" ? "Sign in to buy or to join" : "Sign in to buy";
  if (role === null)
    return h(
      "p",
      { class: "buy" },
      h("a", { class: "button primary", href: `#sign-in/${encodeURIComponent(listing.id)}` }, way),
    );
  return h(
    "p",
    { class: "buy muted" },
    `You are signed in as ${role === "operator" ? "the operator" : "a seller"}; buyers can buy this.`,
  );
}

/** @param {Listing} listing */
function about({ seller, objects, encoding, authorised }) {
  const values = (encoding?.values ?? []).map((value) => valueText(readValue(value).value));
  const rest = values.length > MOST_VALUES ? ` and ${whole(values.length - MOST_VALUES)} more` : "";
  return h(
    "div",
    {},
    facts([
      ["Sold by", seller ?? "many people, each one report"],
      ["Objects", whole(objects)],
      [encoding?.range === undefined ? "Values" : "Answers", answers(encoding)],
      ["Encoding", encoding?.name ?? null],
      ["ε up to", authorised === null ? "nothing yet" : shortEpsilon(authorised)],
    ]),
    values.length > 0
      ? h("p", { class: "small muted" }, `Values: ${values.slice(0, MOST_VALUES).join(", ")}${rest}.`)
      : null,
  );
}
