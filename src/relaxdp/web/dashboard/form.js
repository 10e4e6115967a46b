/** A new campaign: its question, its levels, and what to expect of them while they are chosen. */

import { h } from "../kit/dom.js";
import { field, formPart, markWrong } from "../kit/form.js";
import { advicePart } from "./advice.js";
import { askedAgain, definitionOf, encodingChosen, optionField, wrongDefinition } from "./definition.js";

/** @typedef {import("../kit/wire.d.ts").OfferedEncoding} OfferedEncoding */

// What the form calls the two kinds of answers, and what encodings are declared by.
const DOMAINS = { choice: "values", number: "range" };

/**
 * @param {import("../kit/api.js").Api} api
 * @param {HTMLElement} main
 * @param {string} [again] the campaign of a series whose question is asked for its next date
 */
export async function showForm(api, main, again) {
  /** @type {import("../kit/wire.d.ts").OfferedEncodings} */
  const { encodings } = await api.ask("GET", "encodings");
  const advice = advicePart(api);
  const form = formPart(fields(advice.element, encodings), {
    yes: "Create the campaign",
    primary: true,
    attributes: { class: "card form", oninput: changed },
    check: wrongDefinition,
    work: async (data) => {
      /** @type {import("../kit/wire.d.ts").OperatorCampaign} */
      const campaign = await api.ask("POST", "campaigns", definitionOf(data));
      location.hash = `campaign/${campaign.id}`;
      return null;
    },
  });

  function changed() {
    const data = new FormData(form);
    const chosen = [data.get("kind"), data.get("advance"), encodingChosen(data)];
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-for]"))) {
      part.hidden = !chosen.includes(part.dataset.for ?? null);
    }
    if (form.querySelector("[aria-invalid]") !== null) markWrong(form, wrongDefinition(data));
    advice.update(data);
  }

  if (again !== undefined) {
    /** @type {import("../kit/wire.d.ts").Campaigns} */
    const { campaigns } = await api.ask("GET", "campaigns");
    const campaign = campaigns.find(({ id }) => id === again);
    const dates = campaigns.flatMap(({ series }) =>
      series?.name === campaign?.series?.name ? [series?.date ?? ""] : [],
    );
    if (campaign !== undefined) fill(form, askedAgain(campaign, dates.sort().pop() ?? ""), campaign.needs_invitation);
  }
  main.replaceChildren(h("h1", { tabindex: -1 }, again === undefined ? "New campaign" : "Ask again"), form);
  changed();
}

/**
 * Write into a form what is known already; what it has no field for stays out.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, string>} known
 * @param {boolean} invited
 */
function fill(form, known, invited) {
  for (const [name, value] of Object.entries(known)) {
    const input = form.elements.namedItem(name);
    if (input === null || !("value" in input)) continue;
    input.value = value;
    if (input instanceof HTMLSelectElement && input.selectedIndex < 0) input.selectedIndex = 0;
  }
  const invitations = form.elements.namedItem("invitations");
  if (invitations instanceof HTMLInputElement) invitations.checked = invited;
  form.querySelector("details")?.setAttribute("open", "");
}

/**
 * @param {HTMLElement} advice stands beside the fields, or after those that it depends on where there is no room
 * @param {OfferedEncoding[]} encodings
 */
function fields(advice, encodings) {
  return [
    field(
      "question",
      "Question",
      h("textarea", { rows: 2, maxlength: 2000 }),
      "As people will read it. It cannot be changed later.",
    ),
    h(
      "fieldset",
      {},
      h("legend", {}, "Kind of answer"),
      choice("kind", "choice", "One of several answers", true),
      choice("kind", "number", "A number, of which the mean is estimated"),
    ),
    h(
      "div",
      { "data-for": "choice" },
      field(
        "values",
        "Possible answers",
        h("textarea", { rows: 5 }),
        "One on each line. Have one for everybody, like “other” or “I’d rather not say”.",
      ),
    ),
    h(
      "div",
      { class: "pair", "data-for": "number" },
      field("low", "Smallest", h("input", { inputmode: "decimal" })),
      field("high", "Largest", h("input", { inputmode: "decimal" })),
    ),
    field(
      "levels",
      "Levels (ε)",
      h("input", { value: "0.25, 0.5, 1, 2", autocomplete: "off" }),
      "From very private to clear, each larger than the one before. The last one is what a person can lose at most.",
    ),
    h(
      "div",
      { class: "pair" },
      field("expected", "Devices you expect", h("input", { inputmode: "numeric", value: "10000" })),
      field(
        "half_width",
        "Precise enough at ±",
        h("input", { inputmode: "decimal" }),
        "In percentage points, or in the units of the number. Leave it empty to decide yourself.",
      ),
    ),
    advice,
    h(
      "fieldset",
      {},
      h("legend", {}, "When to relax"),
      choice("advance", "operator", "When I say so", true),
      choice("advance", "devices", "By itself, when enough devices have reported at a level"),
      h("div", { "data-for": "devices" }, field("devices", "Enough devices", h("input", { inputmode: "numeric" }))),
    ),
    h(
      "details",
      {},
      h("summary", {}, "More"),
      field(
        "id",
        "Name in addresses",
        h("input", { autocomplete: "off" }),
        "Small letters, digits and hyphens. A random one if left empty.",
      ),
      h(
        "div",
        { class: "pair" },
        field(
          "series",
          "Series",
          h("input", { autocomplete: "off" }),
          "The name of a question that you ask again, like smoking. All its dates have the same answers.",
        ),
        field("date", "Date in the series", h("input", { autocomplete: "off" }), "Like 2027."),
      ),
      ...Object.entries(DOMAINS).map(([kind, domain]) =>
        encodingFields(
          kind,
          encodings.filter((each) => each.domain === domain),
        ),
      ),
      h(
        "div",
        { class: "pair" },
        field(
          "confidence",
          "Confidence",
          h("select", {}, ...["95", "90", "99"].map((each) => h("option", { value: each }, `${each} %`))),
        ),
        field("closes", "Closes", h("input", { type: "datetime-local" }), "At your local time."),
      ),
      h(
        "label",
        { class: "choice" },
        h("input", { type: "checkbox", name: "invitations" }),
        "Only invited devices may take part",
      ),
    ),
  ];
}

/**
 * The encodings of one kind of answer, and whatever each of them wants to know.
 *
 * @param {string} kind
 * @param {OfferedEncoding[]} encodings
 */
function encodingFields(kind, encodings) {
  const words = (/** @type {OfferedEncoding} */ each) =>
    `${each.name}: ${each.meaning}${each.browsers ? "" : " (not in browsers)"}`;
  return h(
    "div",
    { "data-for": kind },
    field(
      `encoding-${kind}`,
      "Encoding",
      h(
        "select",
        {},
        h("option", { value: "auto" }, "the best one for these answers"),
        ...encodings.map((each) => h("option", { value: each.name }, words(each))),
      ),
      "How an answer becomes a report.",
    ),
    ...encodings.map((each) =>
      h(
        "div",
        { "data-for": each.name },
        ...each.options.map((option) =>
          field(
            optionField(each.name, option.name),
            `${option.name[0].toUpperCase()}${option.name.slice(1)}`,
            h("input", { inputmode: "numeric", autocomplete: "off" }),
            `${option.meaning} From ${option.least} to ${option.most}.`,
            option.is_planned ? " Left empty, the last level decides." : "",
          ),
        ),
      ),
    ),
  );
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} label
 * @param {boolean} [checked]
 */
function choice(name, value, label, checked = false) {
  return h("label", { class: "choice" }, h("input", { type: "radio", name, value, checked }), label);
}
