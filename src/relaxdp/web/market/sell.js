/** A new listing: a title, prices, a budget, and the released file. */

import { h } from "../kit/dom.js";
import { field, formPart, NAME, read } from "../kit/form.js";
import { releasedIn } from "./parquet.js";
import { delivered, fileField, pricesInput } from "./steps.js";
import { checkedTerms, levelsOf, pricesOf } from "./terms.js";

/**
 * @param {import("./session.js").Session} session
 * @param {HTMLElement} main
 */
export function showSell(session, main) {
  /** @type {string | null} */
  let draft = null; // a listing whose file was refused is not made a second time
  const form = formPart(
    [
      field("title", "Title", h("input", { autocomplete: "off", maxlength: 200 }), "What a buyer reads first."),
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
          "What buyers choose from, like 0.1, 0.5, 1: at most 100. Round ones up to the level of your file if left empty.",
        ),
        field(
          "id",
          "Name in addresses",
          h("input", { autocomplete: "off" }),
          "Small letters, digits and hyphens. A random one if left empty.",
        ),
      ),
    ],
    { yes: "Put it on sale", primary: true, check, work },
  );

  /** @param {FormData} data */
  function check(data) {
    const file = data.get("file-new");
    const chosen = file instanceof File && file.size > 0 ? {} : { "file-new": "Choose the released Parquet file." };
    if (draft !== null) return chosen;
    return {
      ...chosen,
      ...checkedTerms(data, { prices: "prices", levels: "levels", budget: "budget" }),
      ...(read(data, "title") === "" ? { title: "A listing needs a title." } : {}),
      ...(read(data, "id") === "" || NAME.test(read(data, "id"))
        ? {}
        : { id: "Small letters, digits and hyphens, at most 64." }),
    };
  }

  /** @param {FormData} data */
  async function work(data) {
    if (draft === null) {
      const terms = {
        prices: pricesOf(read(data, "prices")),
        levels: levelsOf(read(data, "levels")),
        budget: read(data, "budget") || null,
      };
      const asked = { id: read(data, "id") || null, title: read(data, "title"), ...terms };
      await releasedIn(/** @type {File} */ (data.get("file-new")));
      draft = String((await session.api.ask("POST", "market/listings", asked)).listing.id);
      for (const name of ["title", "prices", "levels", "budget", "id"]) form.elements[name].disabled = true;
    }
    try {
      await delivered(session, `market/listings/${encodeURIComponent(draft)}`, data, "new");
    } catch (refusal) {
      throw new Error(
        `${/** @type {Error} */ (refusal).message} The listing is a draft: choose another file here, or go on under “My sales”.`,
      );
    }
    location.hash = "sales";
    return null;
  }

  main.replaceChildren(
    h("h1", { tabindex: -1 }, "Sell a release"),
    h(
      "p",
      { class: "lead" },
      "Buyers choose among the levels of your listing, up to that of your file. To offer more later, relax the release with the same key and deliver the new file.",
    ),
    h("section", { class: "card reading" }, form),
  );
}
