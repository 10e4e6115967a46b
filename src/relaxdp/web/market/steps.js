/** What a seller can do with a listing: deliver a clearer level, price it, raise the budget, sell no more. */

import { confirmed, h, notice } from "../kit/dom.js";
import { field, formPart, read } from "../kit/form.js";
import { whole } from "../kit/words.js";
import { releasedIn } from "./parquet.js";
import { checkedTerms, levelsOf, pricesOf, pricesText } from "./terms.js";
import { shown, tell } from "./words.js";

const PARQUET = "application/vnd.apache.parquet";
const FILE =
  "The Parquet file that relaxdp release wrote. It holds reports and no answers, so it may be sent; your key stays with you.";

/**
 * @param {import("./session.js").Session} session
 * @param {any} sale
 * @param {(sale: any) => void} changed
 */
export function stepsPart(session, sale, changed) {
  const { id, state, prices } = sale.listing;
  const path = `market/listings/${encodeURIComponent(id)}`;
  const problem = h("div", { "aria-live": "polite" });

  /** @param {any} now */
  function seen(now) {
    changed(now);
    tell(`${now.listing.title}: delivered up to ε ${shown(now.loss_platform)}.`);
    return notice("Done.", "good");
  }

  const deliver = formPart([fileField(id)], {
    yes: "Deliver",
    primary: true,
    work: async (data) => seen(await delivered(session, path, data, id)),
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
    check: (data) => checkedTerms(data, { prices: `prices-${id}`, levels: `levels-${id}` }),
    work: async (data) => {
      const asked = { prices: pricesOf(read(data, `prices-${id}`)), levels: levelsOf(read(data, `levels-${id}`)) };
      return seen(await session.api.ask("POST", `${path}/prices`, asked));
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
      check: (data) => checkedTerms(data, { budget: `budget-${id}`, needed: true }),
      work: async (data) =>
        seen(await session.api.ask("POST", `${path}/budget`, { budget: read(data, `budget-${id}`) })),
    },
  );
  const close = h("button", { class: "danger", type: "button", onclick: shut }, "Sell no more …");

  async function shut() {
    problem.replaceChildren();
    if (!(await confirmed(CLOSE))) return;
    try {
      problem.replaceChildren(seen(await session.api.ask("POST", `${path}/close`)));
      close.disabled = true;
    } catch (refusal) {
      problem.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
  }

  if (state === "closed") return null;
  return h(
    "div",
    {},
    h(
      "details",
      { open: state === "draft" },
      h("summary", {}, state === "draft" ? "Deliver the file" : "Deliver a higher level"),
      h("div", { class: "reading" }, deliver),
    ),
    h(
      "details",
      {},
      h("summary", {}, "Prices, budget, end of the sale"),
      h("div", { class: "grid" }, price, budget),
      h("p", { class: "last" }, close),
      problem,
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
 * @param {import("./session.js").Session} session
 * @param {string} path
 * @param {FormData} data
 * @param {string} id
 */
export async function delivered(session, path, data, id) {
  const file = data.get(`file-${id}`);
  if (!(file instanceof File) || file.size === 0)
    throw new Error("Choose the released Parquet file. Nothing was delivered.");
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
  const element = field(`file-${id}`, "Released file", input, FILE);
  const wrong = element.querySelector(".wrong");
  const hint = element.querySelector(".hint");
  hint.setAttribute("aria-live", "polite");

  async function look() {
    wrong.textContent = "";
    hint.textContent = FILE;
    input.removeAttribute("aria-invalid");
    try {
      if (input.files.length === 0) return;
      const { column, epsilon, objects } = await releasedIn(input.files[0]);
      hint.textContent = `It holds “${column}” of ${whole(objects)} objects, released at ε ${shown(epsilon)}.`;
    } catch (refusal) {
      wrong.textContent = /** @type {Error} */ (refusal).message;
      input.setAttribute("aria-invalid", "true");
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
