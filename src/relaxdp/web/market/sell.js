/** A new listing: what it is, prices, a budget, and the released file. */

import { h } from "../kit/dom.js";
import { field, formPart, NAME, textOf } from "../kit/form.js";
import { Problem, sentenceOf } from "../kit/problem.js";
import { releasedIn } from "./parquet.js";
import { deliver, fileField, pricesInput } from "./steps.js";
import { levelsOf, pricesOf, wrongTerms } from "./terms.js";

const SAID = ["description", "source", "collected", "method", "licence"];

/**
 * @param {import("./session.js").MarketSession} session
 * @param {HTMLElement} main
 */
export function showSell(session, main) {
  /** @type {string | null} */
  let draft = null; // a listing whose file was refused is not made a second time
  const form = formPart(
    [
      h("h2", {}, "What buyers read"),
      field("title", "Title", h("input", { autocomplete: "off", maxlength: 200 }), "What a buyer reads first."),
      field(
        "description",
        "Description",
        h("textarea", { rows: 3, maxlength: 2000 }),
        "What the answers are about, and what they are good for.",
      ),
      h(
        "div",
        { class: "pair" },
        field(
          "source",
          "Collected by",
          h("input", { autocomplete: "off", maxlength: 200 }),
          "Your organisation, or who did it.",
        ),
        field(
          "collected",
          "When",
          h("input", { autocomplete: "off", maxlength: 200 }),
          "The time that it tells of, like March to May 2026.",
        ),
      ),
      field(
        "method",
        "How it was collected",
        h("textarea", { rows: 2, maxlength: 2000 }),
        "From whom, and how they were chosen and asked.",
      ),
      field(
        "licence",
        "Licence",
        h("input", { autocomplete: "off", maxlength: 200 }),
        "What buyers may do with it: the name of a licence, like CC BY 4.0, or an https address.",
      ),
      h("h2", {}, "What is sold"),
      fileField("new"),
      field(
        "prices",
        "Prices",
        pricesInput("0.1 10\n1 100"),
        "A level ε and its price in credits on each line, straight lines between. Or a formula, like 10 + 90*epsilon.",
      ),
      field(
        "budget",
        "Budget (ε)",
        h("input", { inputmode: "decimal", autocomplete: "off" }),
        "What you will deliver at most, ever; it may be raised later. Leave it empty for none.",
      ),
      h(
        "details",
        {},
        h("summary", {}, "More"),
        field(
          "levels",
          "Levels (ε)",
          h("input", { autocomplete: "off" }),
          "What buyers choose from, like 0.1, 0.5, 1: at most 100. Round ones up to the level of your file if left " +
            "empty.",
        ),
        field(
          "id",
          "Name in addresses",
          h("input", { autocomplete: "off" }),
          "Small letters, digits and hyphens. A random one if left empty.",
        ),
      ),
    ],
    { yes: "Put it on sale", primary: true, check: wrongListing, work: sell },
  );

  /** @param {FormData} data */
  function wrongListing(data) {
    const file = data.get("file-new");
    const chosen = file instanceof File && file.size > 0 ? {} : { "file-new": "Choose the released Parquet file." };
    if (draft !== null) return chosen;
    return {
      ...chosen,
      ...wrongTerms(data, { prices: "prices", levels: "levels", budget: "budget" }),
      ...(textOf(data, "title") === "" ? { title: "A listing needs a title." } : {}),
      ...(textOf(data, "id") === "" || NAME.test(textOf(data, "id"))
        ? {}
        : { id: "Small letters, digits and hyphens, at most 64." }),
    };
  }

  /** @param {FormData} data */
  async function sell(data) {
    if (draft === null) {
      const terms = {
        prices: pricesOf(textOf(data, "prices")),
        levels: levelsOf(textOf(data, "levels")),
        budget: textOf(data, "budget") || null,
      };
      const said = SAID.map((name) => [name, textOf(data, name)]).filter(([, text]) => text !== "");
      const details = Object.fromEntries(said);
      const listing = { id: textOf(data, "id") || null, title: textOf(data, "title"), details, ...terms };
      await releasedIn(/** @type {File} */ (data.get("file-new")));
      /** @type {import("../kit/wire.d.ts").SellerListing} */
      const sale = await session.api.ask("POST", "market/listings", listing);
      draft = sale.listing.id;
      for (const each of form.querySelectorAll("input, textarea"))
        each.toggleAttribute("disabled", !each.id.startsWith("file-"));
    }
    try {
      await deliver(session, `market/listings/${encodeURIComponent(draft)}`, data, "new");
    } catch (problem) {
      const way = "The listing is a draft: choose another file here, or go on under “My sales”.";
      throw new Problem(`${sentenceOf(problem)} ${way}`);
    }
    location.hash = "sales";
    return null;
  }

  main.replaceChildren(
    h("h1", { tabindex: -1 }, "Sell a release"),
    h(
      "p",
      { class: "lead" },
      "Buyers choose among the levels of your listing, up to that of your file. To offer more later, relax the release " +
        "with the same key and deliver the new file.",
    ),
    h("section", { class: "card reading" }, form),
  );
}
