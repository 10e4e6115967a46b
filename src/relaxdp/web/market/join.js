/** Joining a pool: the part of its page that is for a single seller, before and after. */

import { RelaxdpError } from "../device/errors.js";
import { missingParts } from "../device/missing.js";
import { ROOT } from "../kit/api.js";
import { confirmed, facts, h, notice, put } from "../kit/dom.js";
import { tell } from "../kit/page.js";
import { sentenceOf } from "../kit/problem.js";
import { reportWords, spentSentence, valueText } from "../kit/reports.js";
import { scalePicture } from "../kit/scale.js";
import { whole } from "../kit/words.js";
import { joinSteps, leastForm, raiseForm } from "./join-forms.js";
import * as words from "./join-words.js";
import { ELSEWHERE, Member, saleOf } from "./member.js";
import { ALL_BUYERS, credits, MARKET_HOLDS, shortEpsilon, upTo } from "./words.js";

/** @typedef {import("./member.js").Standing} Standing */
/** @typedef {import("./member.js").Delivery} Delivery */
/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */

const NOTHING = "Until then nothing is asked, and nothing is sent.";

/**
 * Return the part for a seller; null where a pool is over and this seller was not in it.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {Listing} listing
 * @param {{ changed: (listing: Listing) => void, asked: () => void }} page hears what the pool is after a change, and
 *   that the question is shown
 */
export async function joinPart(session, listing, { changed, asked }) {
  const first = await saleOf(session.api, listing.id);
  const open = listing.state === "open";
  if (first === null && !open) return null;
  const element = h("section", { class: "card member", "aria-label": "Your own report", tabindex: -1 });
  const why = h("div", { class: "why" });
  const body = h("div", {});
  /** @type {unknown} */
  let given = null;

  /** @param {Sale | null} sale */
  async function show(sale) {
    const draw = await drawn(sale); // before anything is replaced: no form stands below another one's heading
    put(element, sale === null ? h("h2", {}, "Sell an answer of your own") : income(sale), why, body);
    put(why, ...(sale === null ? promises() : []));
    draw();
  }

  /** @param {Sale | null} sale */
  async function drawn(sale) {
    const missing = missingParts();
    if (missing.length > 0) return () => put(body, ...[...missing, NOTHING].map((each) => notice(each, "warn")));
    try {
      const member = new Member(session, listing, ROOT.href);
      const standing = await member.look(sale);
      return () => forms(member, standing);
    } catch (problem) {
      return () => lost(sale, problem);
    }
  }

  /**
   * @param {Member} member
   * @param {Standing} standing
   */
  function forms(member, standing) {
    const { pool } = member;
    const { sale, mine, sent, others } = standing;
    const deliver = async (/** @type {Delivery} */ delivery) => {
      const sale = await member.deliver(delivery);
      given = delivery.answer; // shown while this page is open, and kept nowhere
      await done(sale);
    };
    const reprice = async (/** @type {number} */ minimum) => done(await member.reprice(minimum));
    const { prices } = listing;
    if (mine && sent.length > 0) why.append(sentPart(pool.encoding, standing, given));
    if (sale === null) put(body, joinSteps(pool, listing, standing, { asks: asked, send: deliver }));
    else if (!mine) put(body, notice(ELSEWHERE, "warn"));
    else if (open) put(body, raiseForm(pool, sale, others, deliver), leastForm(sale, { prices, send: reprice }));
    else put(body, h("p", {}, "The pool is closed: nothing more is sold, and what was sold stays sold."));
  }

  /** @param {Sale} sale */
  async function done(sale) {
    changed(sale.listing);
    await show(sale);
    element.focus(); // the form is another one now
    tell(words.standingSentence(sale));
  }

  /**
   * Say that what this browser had kept cannot be used. Nothing begins anew by itself.
   *
   * @param {Sale | null} sale
   * @param {unknown} problem
   */
  function lost(sale, problem) {
    const begin = async () => {
      if (!(await confirmed(words.LOST))) return;
      const member = new Member(session, listing, ROOT.href, { startOver: true });
      forms(member, await member.look(sale));
      /** @type {HTMLElement | null} */
      const first = body.querySelector("input, select");
      first?.focus();
    };
    const way = h("button", { class: "danger", type: "button", onclick: begin }, "Begin anew …");
    put(body, notice(sentenceOf(problem)), sale === null && isLoss(problem) ? way : null);
  }

  await show(first);
  return element;
}

/** @param {unknown} problem */
const isLoss = (problem) =>
  problem instanceof RelaxdpError && ["cleared", "damaged", "went back"].includes(String(problem.fields.reason));

function promises() {
  const more = h("ul", {}, ...words.PROMISES.map((each) => h("li", {}, each)));
  return [h("p", {}, words.STAYS), h("details", {}, h("summary", {}, "What is promised to you"), more)];
}

/** @param {Sale} sale */
function income(sale) {
  return h(
    "div",
    {},
    h("h2", {}, "Your own report"),
    h("p", {}, h("strong", {}, words.standingSentence(sale))),
    facts([
      ["Income", credits(sale.income)],
      ["Buyers", whole(sale.buyers)],
      [ALL_BUYERS, upTo(sale.loss_buyers)],
      [MARKET_HOLDS, upTo(sale.loss_platform)],
    ]),
  );
}

/**
 * Return all that left this browser.
 *
 * @param {import("./pool.js").Encoding} encoding
 * @param {Standing} standing
 * @param {unknown} given the answer, while it is known here
 */
function sentPart(encoding, { sent, spent }, given) {
  const rows = sent.map((each) => {
    const { text, beside } = reportWords(encoding, each);
    const level = `ε ${shortEpsilon(each.epsilon)}${each.status === "sent" ? "" : ", not delivered"}`;
    const report = h("span", { dir: "auto" }, text);
    return h(
      "li",
      {},
      report,
      beside === null ? "" : ` (${beside})`,
      ` at ${level}`,
      scalePicture(encoding, each.report),
    );
  });
  const cost = h("p", {}, spentSentence(encoding, spent));
  return h(
    "div",
    {},
    h("h3", {}, "Your answer, only here"),
    given === null
      ? h("p", { class: "muted" }, words.NOT_KEPT)
      : h("p", { class: "own", dir: "auto" }, h("strong", {}, valueText(given))),
    h("h3", {}, "What was sent, blurred on purpose"),
    h("ul", { class: "sent" }, ...rows),
    h("p", { class: "small" }, words.BLURRED),
    cost,
  );
}
