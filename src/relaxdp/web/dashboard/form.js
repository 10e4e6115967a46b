/** A new campaign: its question, its levels, and what to expect of them while they are chosen. */

import { h } from "../kit/dom.js";
import { field, formPart, markWrong } from "../kit/form.js";
import { advicePart } from "./advice.js";
import { definitionOf, wrongDefinition } from "./definition.js";

const ENCODINGS = [
  ["auto", "the best one for these answers"],
  ["categorical", "categorical: the report is one of the answers"],
  ["unary-optimised", "unary-optimised: a bit for each answer"],
  ["unary-symmetric", "unary-symmetric: a bit for each answer"],
  ["local-hash", "local-hash: short, for very many answers"],
];

/**
 * @param {import("../kit/api.js").Api} api
 * @param {HTMLElement} main
 */
export function showForm(api, main) {
  const advice = advicePart(api);
  const form = formPart(fields(advice.element), {
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
    const chosen = [data.get("kind"), data.get("advance")];
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-for]"))) {
      part.hidden = !chosen.includes(part.dataset.for ?? null);
    }
    if (form.querySelector("[aria-invalid]") !== null) markWrong(form, wrongDefinition(data));
    advice.update(data);
  }

  main.replaceChildren(h("h1", { tabindex: -1 }, "New campaign"), form);
  changed();
}

/** @param {HTMLElement} advice stands beside the fields, or after those that it depends on where there is no room */
function fields(advice) {
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
      field(
        "encoding",
        "Encoding",
        h("select", {}, ...ENCODINGS.map(([name, words]) => h("option", { value: name }, words))),
        "How an answer becomes a report.",
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
 * @param {string} name
 * @param {string} value
 * @param {string} label
 * @param {boolean} [checked]
 */
function choice(name, value, label, checked = false) {
  return h("label", { class: "choice" }, h("input", { type: "radio", name, value, checked }), label);
}
