/** One listing: what it is, what each level costs and tells, and how to get one. */

import { readValue } from "../device/typed.js";
import { facts, h, put } from "../kit/dom.js";
import { valueText } from "../kit/reports.js";
import { whole } from "../kit/words.js";
import { buyPart, levelPart } from "./buy.js";
import { curvePart } from "./charts.js";
import { joinPart } from "./join.js";
import { badges, ownedOf } from "./list.js";
import { filesPart } from "./owned.js";
import { previewPart, toldPart } from "./told.js";
import { answered, answers, firstChoice, NOT_SAID, onSale, POOLED, shortEpsilon } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */
/** @typedef {import("./session.js").MarketSession} Session */

const MOST_VALUES = 12;
const UNKNOWN = "known when a file was delivered";
const JOINING = "That changes when somebody joins the pool.";
const DELIVERING = "That changes when its seller delivers a file.";

/**
 * @param {Session} session
 * @param {HTMLElement} main
 * @param {string} id
 */
export async function showListing(session, main, id) {
  /** @type {[Listing, Map<string, Purchase>]} */
  const [listing, owned] = await Promise.all([
    session.api.ask("GET", `market/listings/${encodeURIComponent(id)}`),
    ownedOf(session),
  ]);
  const top = h("section", { class: "card", "aria-label": "What it is" });
  const offer = h("div", {});
  // Whoever may join reads what can be answered after the limit.
  let veiled = listing.kind === "pool" && listing.state === "open" && session.role === "seller";

  /** @param {Listing} now */
  function update(now) {
    put(top, h("p", { class: "row" }, ...badges(now)), ...about(now, veiled));
    put(
      offer,
      onSale(now).length === 0
        ? h(
            "p",
            { class: "notice" },
            now.authorised === null
              ? `Nothing was delivered yet, so nothing can be bought. ${now.kind === "pool" ? JOINING : DELIVERING}`
              : "Nobody sells at these prices now, so nothing can be bought. Come back when more people have joined.",
          )
        : levelsPart(session, now, owned.get(now.id) ?? null),
    );
  }

  const unveiled = (/** @type {Listing} */ now) => {
    veiled = false;
    update(now);
  };
  const page = { changed: unveiled, asked: () => unveiled(listing) };
  update(listing);
  const join = listing.kind === "pool" && session.role === "seller" ? await joinPart(session, listing, page) : null;
  put(
    main,
    h("p", { class: "small" }, h("a", { href: "#" }, "All listings")),
    h("h1", { tabindex: -1 }, listing.title),
    top,
    join,
    join === null ? offer : h("details", { class: "card" }, h("summary", {}, "What buyers see and pay"), offer),
  );
}

/**
 * @param {Session} session
 * @param {Listing} listing
 * @param {Purchase | null} owned
 */
function levelsPart(session, listing, owned) {
  const news = h("div", { tabindex: -1 });
  const told = h("div", {});
  const chart = curvePart(listing, (share) => level.near(share));
  const buy = session.role === "buyer" ? buyPart(session, listing, { bought, refused: () => level.again() }) : null;
  const preview = previewPart(listing);
  const level = levelPart(session, listing, (quote) => {
    chart.choose(quote);
    buy?.update(quote);
    preview.update(quote);
  });

  /** @param {Purchase} purchase */
  function bought(purchase) {
    own(purchase);
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

  /** @param {Purchase} purchase */
  function own(purchase) {
    chart.own(purchase.epsilon);
    put(told, toldPart(session, purchase, `What your ε ${shortEpsilon(purchase.epsilon)} tells`));
  }

  if (owned !== null) own(owned);
  level.choose(firstChoice(listing, owned?.epsilon ?? null));
  return h(
    "div",
    { class: "columns offer" },
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
    session.role === "seller" ? null : h("section", { class: "card answers" }, told, preview.element),
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

/**
 * Return what a listing says of itself, and what is known of it.
 *
 * @param {Listing} listing
 * @param {boolean} veiled whether the possible answers are not to be read yet
 */
function about({ id, kind, seller, objects, encoding, authorised, details }, veiled) {
  const values = (encoding?.values ?? []).map((value) => valueText(readValue(value).value));
  const rest = values.length > MOST_VALUES ? ` and ${whole(values.length - MOST_VALUES)} more` : "";
  const shown = values.length > 0 ? `: ${values.slice(0, MOST_VALUES).join(", ")}${rest}` : "";
  return [
    h(
      "p",
      { class: details.description ? "said" : "said muted" },
      details.description ?? (kind === "pool" ? "Nobody says what it is for." : "Its seller has not described it."),
    ),
    facts([
      ["Sold by", seller ?? "many people, one answer each"],
      [kind === "pool" ? "Asked by" : "Collected by", said(details.source)],
      ["When", kind === "pool" ? (details.collected ?? null) : said(details.collected)],
      ["Size", answered({ kind }, objects)],
    ]),
    h(
      "dl",
      { class: "lines" },
      ...(kind === "pool" && !details.method ? [] : line("How it was collected", said(details.method))),
      ...line("Licence", licence(details.licence)),
      ...(veiled ? [] : line("Possible answers", encoding === null ? UNKNOWN : `${answers(encoding)}${shown}`)),
    ),
    h(
      "details",
      {},
      h("summary", {}, "For programs"),
      facts([
        ["Name in addresses", h("code", {}, id)],
        ["Blurred as", encoding?.name ?? null],
        ["Levels up to", authorised === null ? "nothing yet" : `ε ${shortEpsilon(authorised)}`],
      ]),
    ),
  ];
}

/** @param {string | null | undefined} text */
const said = (text) => text ?? h("span", { class: "muted" }, NOT_SAID);

/**
 * @param {string} name
 * @param {import("../kit/dom.js").Child} text
 */
const line = (name, text) => [h("dt", {}, name), h("dd", {}, text)];

/** @param {string | null | undefined} text the name of a licence, or where it stands */
function licence(text) {
  if (!text?.startsWith("https://") || !URL.canParse(text)) return said(text);
  return h("a", { href: text, rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer" }, text);
}
