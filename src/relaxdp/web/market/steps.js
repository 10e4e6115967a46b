/** What a seller can do with a listing: deliver a clearer level, price it, raise the budget, sell no more. */

import { attempt, confirmed, h, notice } from "../kit/dom.js";
import { field, formPart, markField, textOf } from "../kit/form.js";
import { tell } from "../kit/page.js";
import { Problem, sentenceOf } from "../kit/problem.js";
import { plural } from "../kit/words.js";
import { releasedIn } from "./parquet.js";
import { levelsOf, pricesOf, pricesText, wrongTerms } from "./terms.js";
import { shortEpsilon } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */

const PARQUET = "application/vnd.apache.parquet";
const FILE =
  "The Parquet file that relaxdp release wrote. It holds reports and no answers, so it may be sent; your key stays " +
  "with you.";

/**
 * @param {import("./session.js").MarketSession} session
 * @param {Sale} sale
 * @param {(sale: Sale) => void} changed
 */
export function stepsPart(session, sale, changed) {
  const { id, state, prices } = sale.listing;
  const path = `market/listings/${encodeURIComponent(id)}`;
  const outcome = h("div", { "aria-live": "polite" });

  /** @param {Sale} now */
  function done(now) {
    changed(now);
    tell(`${now.listing.title}: delivered up to ε ${shortEpsilon(now.loss_platform)}.`);
    return notice("Done.", "good");
  }

  const deliverForm = formPart([fileField(id)], {
    yes: "Deliver",
    primary: true,
    work: async (data) => done(await deliver(session, path, data, id)),
  });
  const priced = field(
    `prices-${id}`,
    "Prices",
    pricesInput(pricesText(prices)),
    "What is on sale keeps its price; add lines for larger levels, or terms.",
  );
  const further = field(
    `levels-${id}`,
    "More levels (ε)",
    h("input", { autocomplete: "off" }),
    "Above what was delivered. Round ones come with the next file if left empty.",
  );
  const price = formPart([priced, further], {
    yes: "Extend the prices",
    check: (data) => wrongTerms(data, { prices: `prices-${id}`, levels: `levels-${id}` }),
    work: async (data) => {
      const terms = { prices: pricesOf(textOf(data, `prices-${id}`)), levels: levelsOf(textOf(data, `levels-${id}`)) };
      return done(await session.api.ask("POST", `${path}/prices`, terms));
    },
  });
  const budget = formPart(
    [
      field(
        `budget-${id}`,
        "Budget (ε)",
        h("input", { inputmode: "decimal", autocomplete: "off" }),
        "It may only grow.",
      ),
    ],
    {
      yes: "Raise the budget",
      check: (data) => wrongTerms(data, { budget: `budget-${id}`, needed: true }),
      work: async (data) =>
        done(await session.api.ask("POST", `${path}/budget`, { budget: textOf(data, `budget-${id}`) })),
    },
  );
  const close = h("button", { class: "danger", type: "button", onclick: shut }, "Sell no more …");

  async function shut() {
    if (!(await confirmed(CLOSE))) return;
    await attempt(outcome, async () => {
      outcome.replaceChildren(done(await session.api.ask("POST", `${path}/close`)));
      close.disabled = true;
    });
  }

  if (state === "closed") return null;
  return h(
    "div",
    {},
    h(
      "details",
      { open: state === "draft" },
      h("summary", {}, state === "draft" ? "Deliver the file" : "Deliver a higher level"),
      h("div", { class: "reading" }, deliverForm),
    ),
    h(
      "details",
      {},
      h("summary", {}, "Prices, budget, end of the sale"),
      h("div", { class: "grid" }, price, budget),
      h("p", { class: "last" }, close),
      outcome,
    ),
  );
}

const CLOSE = {
  title: "Sell no more of this?",
  text: [
    "Nobody can buy or upgrade any more. What was bought stays with its buyers.",
    "A closed listing cannot be opened again.",
  ],
  yes: "Sell no more",
};

/**
 * Send the chosen file, and return the listing as it is afterwards.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {string} path
 * @param {FormData} data
 * @param {string} id
 * @returns {Promise<Sale>}
 */
export async function deliver(session, path, data, id) {
  const file = data.get(`file-${id}`);
  if (!(file instanceof File) || file.size === 0)
    throw new Problem("Choose the released Parquet file. Nothing was delivered.");
  await releasedIn(file);
  return session.api.send(`${path}/deliveries`, file, PARQUET);
}

/**
 * Return the choice of a file, which says what it found in it before anything is sent.
 *
 * @param {string} id
 */
export function fileField(id) {
  const input = h("input", { type: "file", accept: ".parquet", onchange: look });
  const hint = h("span", { "aria-live": "polite" }, FILE);
  const element = field(`file-${id}`, "Released file", input, hint);

  async function look() {
    const file = input.files?.[0];
    markField(element, input, "");
    hint.textContent = FILE;
    try {
      if (file === undefined) return;
      const { column, epsilon, objects } = await releasedIn(file);
      hint.textContent = `It holds “${column}”, ${plural(objects, "answer")}, released at ε ${shortEpsilon(epsilon)}.`;
    } catch (problem) {
      markField(element, input, sentenceOf(problem));
    }
  }
  return element;
}

/** @param {string} [text] */
export function pricesInput(text = "") {
  const input = h("textarea", { rows: 4, class: "code" });
  input.value = text;
  return input;
}
