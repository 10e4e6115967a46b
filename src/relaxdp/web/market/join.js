/** Joining a pool: the part of its page that is for a single seller, before and after. */

import { missingParts } from "../device/missing.js";
import { ROOT } from "../kit/api.js";
import { confirmed, facts, h, notice, put } from "../kit/dom.js";
import { reportWords, spentSentence } from "../kit/reports.js";
import { whole } from "../kit/words.js";
import { joinForm, leastForm, raiseForm } from "./join-forms.js";
import * as words from "./join-words.js";
import { ELSEWHERE, Member, saleOf } from "./member.js";
import { credits, shown, tell } from "./words.js";

/** @typedef {import("./member.js").Standing} Standing */

const NOTHING = "Until then nothing is asked, and nothing is sent.";

/**
 * Return the part for a seller; null where a pool is over and this seller was not in it.
 *
 * @param {import("./session.js").Session} session
 * @param {any} listing
 * @param {(listing: any) => void} changed hears what the pool is after a change
 */
export async function joinPart(session, listing, changed) {
  const first = await saleOf(session.api, listing.id);
  const open = listing.state === "open";
  if (first === null && !open) return null;
  const element = h("section", { class: "card member", "aria-label": "Your own report", tabindex: -1 });
  const why = h("div", { class: "why" });
  const body = h("div", {});

  /** @param {any} sale */
  async function show(sale) {
    const draw = await drawn(sale); // before anything is replaced: no form stands below another one's heading
    put(element, sale === null ? h("h2", {}, "Sell an answer of your own") : income(sale), why, body);
    put(why, ...(sale === null ? promises() : []));
    draw();
  }

  /** @param {any} sale */
  async function drawn(sale) {
    const missing = missingParts();
    if (missing.length > 0) return () => put(body, ...[...missing, NOTHING].map((each) => notice(each, "warn")));
    try {
      const member = new Member(session, listing, ROOT.href);
      const standing = await member.look(sale);
      return () => forms(member, standing);
    } catch (problem) {
      return () => lost(sale, /** @type {Error} */ (problem));
    }
  }

  /**
   * @param {Member} member
   * @param {Standing} standing
   */
  function forms(member, standing) {
    const { pool } = member;
    const { sale, mine, sent } = standing;
    const deliver = async (/** @type {any} */ asked) => done(await member.deliver(asked));
    const reprice = async (/** @type {number} */ minimum) => done(await member.reprice(minimum));
    const { prices } = listing;
    if (mine && sent.length > 0) why.append(sentPart(pool.encoding, standing));
    if (sale === null) put(body, joinForm(pool, standing, { prices, send: deliver }));
    else if (!mine) put(body, notice(ELSEWHERE, "warn"));
    else if (open) put(body, raiseForm(pool, standing, deliver), leastForm(standing, { prices, send: reprice }));
    else put(body, h("p", {}, "The pool is closed: nothing more is sold, and what was sold stays sold."));
  }

  /** @param {any} sale */
  async function done(sale) {
    changed(sale.listing);
    await show(sale);
    element.focus(); // the form is another one now
    tell(words.standing(sale));
  }

  /**
   * Say that what this browser had kept cannot be used. Nothing begins anew by itself.
   *
   * @param {any} sale
   * @param {Error} problem
   */
  function lost(sale, problem) {
    const begin = async () => {
      if (!(await confirmed(words.LOST))) return;
      const member = new Member(session, listing, ROOT.href, { startOver: true });
      forms(member, await member.look(sale));
      body.querySelector("input, select")?.focus();
    };
    const way = h("button", { class: "danger", type: "button", onclick: begin }, "Begin anew …");
    put(body, notice(problem.message), sale === null && isLoss(problem) ? way : null);
  }

  await show(first);
  return element;
}

/** @param {any} problem */
const isLoss = ({ fields }) => ["cleared", "damaged", "went back"].includes(fields?.reason);

function promises() {
  return [h("p", {}, words.STAYS), h("ul", {}, ...words.PROMISES.map((each) => h("li", {}, each)))];
}

/** @param {any} sale */
function income(sale) {
  return h(
    "div",
    {},
    h("h2", {}, "Your own report"),
    h("p", {}, h("strong", {}, words.standing(sale))),
    facts([
      ["Income", credits(sale.income)],
      ["Buyers", whole(sale.buyers)],
      ["Loss against buyers", `ε ${shown(sale.loss_buyers)}`],
      ["Loss against the platform", `ε ${shown(sale.loss_platform)}`],
    ]),
  );
}

/**
 * Return all that left this browser.
 *
 * @param {import("./pool.js").Encoding} encoding
 * @param {Standing} standing
 */
function sentPart(encoding, { sent, spent }) {
  const rows = sent.map((each) => {
    const { text, bytes, beside } = reportWords(encoding, each);
    const level = `ε ${shown(each.epsilon)}${each.status === "sent" ? "" : ", not delivered"}`;
    const report = h(bytes ? "code" : "strong", { dir: "auto" }, text);
    return h("li", {}, report, beside === null ? "" : ` (${beside})`, ` at ${level}`);
  });
  const cost = h("p", {}, spentSentence(encoding, spent));
  return h("div", {}, h("h3", {}, "All that was sent of your answer"), h("ul", {}, ...rows), cost);
}
