/** The fields of the form for a campaign, in the order in which one thinks: question, precision, people, course. */

import { h } from "../kit/dom.js";
import { field } from "../kit/form.js";
import { optionField } from "./definition.js";
import { ownField } from "./several.js";

/** @typedef {import("../kit/wire.d.ts").OfferedEncoding} OfferedEncoding */

// What the form calls the two kinds of answers, and what encodings are declared by.
const DOMAINS = { choice: "values", number: "range" };

/**
 * @param {OfferedEncoding[]} encodings
 * @param {{ advice: HTMLElement, questions: HTMLElement, together: HTMLElement, preview: HTMLElement,
 *           suggested: HTMLSelectElement, picture: HTMLInputElement }} parts
 *   which change with what is typed; the advice stands beside the fields, or after those that it depends on where
 *   there is no room
 */
export function fields(encodings, { advice, questions, together, preview, suggested, picture }) {
  return [
    ...questionFields(1),
    questions,
    together,
    ...precisionFields(),
    advice,
    introductionFields(suggested, picture),
    preview,
    ...courseFields(),
    moreFields(encodings),
  ];
}

/** @param {number} place of the question, counted from 1 */
export function questionFields(place) {
  const own = (/** @type {string} */ name) => ownField(name, place);
  return [
    field(
      own("question"),
      "Question",
      h("textarea", { rows: 2, maxlength: 2000 }),
      "As people will read it. It cannot be changed later.",
    ),
    h(
      "fieldset",
      {},
      h("legend", {}, "Kind of answer"),
      choice(own("kind"), "choice", "One of several answers", true),
      choice(own("kind"), "number", "A number, of which the mean is estimated"),
    ),
    h(
      "div",
      { "data-for": own("choice") },
      field(
        own("values"),
        "Possible answers",
        h("textarea", { rows: 5 }),
        "One on each line. Have one for everybody, like “other” or “I’d rather not say”.",
      ),
    ),
    h(
      "div",
      { class: "pair", "data-for": own("number") },
      field(own("low"), "Smallest", h("input", { inputmode: "decimal" })),
      field(own("high"), "Largest", h("input", { inputmode: "decimal" })),
    ),
  ];
}

function precisionFields() {
  return [
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
  ];
}

/**
 * @param {HTMLSelectElement} suggested
 * @param {HTMLInputElement} picture
 */
function introductionFields(suggested, picture) {
  return h(
    "fieldset",
    {},
    h("legend", {}, "Who asks, and why"),
    h(
      "p",
      { class: "hint" },
      "People read this first. All of it may be left out, and none of it can be changed later.",
    ),
    field("asker", "Who asks", h("input", { maxlength: 200 }), "Your organisation, as people know it."),
    field("about", "What about", h("input", { maxlength: 200 }), "In one line; the question comes later."),
    field("purpose", "What for", h("textarea", { rows: 2, maxlength: 4000 }), "What you will do with the result."),
    h(
      "div",
      { class: "pair" },
      field("contact", "Contact", h("input", { maxlength: 200 }), "An address or a telephone number."),
      field("privacy_notice", "Privacy notice", h("input", { maxlength: 4000 }), "Its https address, or its text."),
    ),
    h(
      "div",
      { class: "pair" },
      field("picture", "Logo", picture, "A small picture; a large one is made smaller."),
      h(
        "div",
        {},
        tick("coloured", "A colour of your own"),
        h(
          "div",
          { "data-for": "coloured" },
          field("colour", "Colour", h("input", { type: "color", value: "#1a56b0" })),
        ),
      ),
    ),
    h("input", { type: "hidden", name: "logo" }),
    field(
      "suggested",
      "Limit that you suggest",
      suggested,
      "It is marked as your suggestion. People choose for themselves.",
    ),
  );
}

function courseFields() {
  return [
    h(
      "fieldset",
      {},
      h("legend", {}, "When to relax, and when it ends"),
      choice("advance", "operator", "It relaxes when I say so", true),
      choice("advance", "devices", "By itself, when enough devices have reported at a level"),
      h("div", { "data-for": "devices" }, field("devices", "Enough devices", h("input", { inputmode: "numeric" }))),
      field("closes", "Closes", h("input", { type: "datetime-local" }), "At your local time. Left empty, you end it."),
    ),
    h(
      "fieldset",
      {},
      h("legend", {}, "Results for everybody"),
      tick("publish", "Publish the result once, when the campaign has ended by itself"),
      h(
        "div",
        { "data-for": "publish" },
        field(
          "least",
          "Fewest devices at a level",
          h("input", { inputmode: "numeric", value: "1000" }),
          "Levels with fewer are left out: the more people stand together, the less is told of each. It then relaxes and ends by itself.",
        ),
        tick("shows_results", "Show the published result to those who took part"),
      ),
    ),
  ];
}

/** @param {OfferedEncoding[]} encodings */
function moreFields(encodings) {
  return h(
    "details",
    { class: "more" },
    h("summary", {}, "More"),
    field(
      "id",
      "Name in addresses",
      h("input", { autocomplete: "off" }),
      "Small letters, digits and hyphens. A random one if left empty.",
    ),
    ...Object.entries(DOMAINS).map(([kind, domain]) =>
      encodingFields(
        kind,
        encodings.filter((each) => each.domain === domain),
      ),
    ),
    field(
      "confidence",
      "How sure the intervals are",
      h("select", {}, ...["95", "90", "99"].map((each) => h("option", { value: each }, `${each} %`))),
    ),
    tick("invitations", "Only invited people may take part"),
  );
}

/**
 * What shows the encodings of a kind of answer: there is a question of that kind.
 *
 * @param {string} kind
 */
export const blurredFor = (kind) => `blurred-${kind}`;

/**
 * The encodings of one kind of answer, and whatever each of them wants to know.
 *
 * @param {string} kind
 * @param {OfferedEncoding[]} encodings
 */
function encodingFields(kind, encodings) {
  const words = (/** @type {OfferedEncoding} */ each) => `${each.name}: ${each.meaning}`;
  return h(
    "div",
    { "data-for": blurredFor(kind) },
    field(
      `encoding-${kind}`,
      "How answers are blurred",
      h(
        "select",
        {},
        h("option", { value: "auto" }, "the best way for these answers"),
        ...encodings.map((each) => h("option", { value: each.name }, words(each))),
      ),
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

/**
 * @param {string} name
 * @param {string} label
 */
function tick(name, label) {
  return h("label", { class: "choice" }, h("input", { type: "checkbox", name }), label);
}
