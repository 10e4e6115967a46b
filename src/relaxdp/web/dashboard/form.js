/** A new campaign, or a survey of several questions: what is asked, its levels, and what to expect of them while they are chosen. */

import { h } from "../kit/dom.js";
import { formPart, markField, markWrong } from "../kit/form.js";
import { sentenceOf } from "../kit/problem.js";
import { advicePart } from "./advice.js";
import { definitionOf, encodingChosen, fieldsOf } from "./definition.js";
import { blurredFor, fields } from "./fields.js";
import { logoOf } from "./logo.js";
import { previewPart } from "./preview.js";
import { questionsPart } from "./questions.js";
import { limitsOf, ownField, placesOf, questionAt, surveyOf, wrongSurvey } from "./several.js";

/** @typedef {import("../kit/api.js").Api} Api */

/**
 * @param {Api} api
 * @param {HTMLElement} main
 * @param {string} [copy] the campaign that is taken as a pattern
 */
export async function showForm(api, main, copy) {
  /** @type {import("../kit/wire.d.ts").OfferedEncodings} */
  const { encodings } = await api.ask("GET", "encodings");
  const [advice, preview] = [advicePart(api), previewPart()];
  const questions = questionsPart((kept) => fill(form, kept));
  let place = 1; // the question that was written at last: the advice is for it
  const suggested = h("select", {}, h("option", { value: "" }, "none"));
  const picture = h("input", { type: "file", accept: "image/*", onchange: choosePicture });
  const parts = {
    advice: advice.element,
    questions: questions.element,
    together: questions.together,
    preview: preview.element,
    suggested,
    picture,
  };
  const form = formPart(fields(encodings, parts), {
    yes: "Create the campaign",
    primary: true,
    attributes: { class: "card form", oninput: typed, onchange: typed },
    check: wrongSurvey,
    work: async (data) => {
      const several = placesOf(data).length > 1;
      /** @type {import("../kit/wire.d.ts").OperatorCampaign | import("../kit/wire.d.ts").OperatorSurvey} */
      const made = several
        ? await api.ask("POST", "surveys", surveyOf(data))
        : await api.ask("POST", "campaigns", definitionOf(data));
      location.hash = `${several ? "survey" : "campaign"}/${made.id}`;
      return null;
    },
  });

  function changed() {
    suggestLevels(suggested, limitsOf(new FormData(form)));
    questions.update(new FormData(form));
    const data = new FormData(form);
    const places = placesOf(data);
    const kinds = places.map((each) => String(data.get(ownField("kind", each))));
    const ticked = ["coloured", "publish"].filter((name) => data.has(name));
    const chosen = [
      data.get("advance"),
      ...places.map((each) => ownField(kinds[each - 1], each)),
      ...kinds.map(blurredFor),
      ...places.map((each) => encodingChosen(questionAt(data, each))),
      ...ticked,
    ];
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-for]"))) {
      part.hidden = !chosen.includes(part.dataset.for ?? null);
    }
    if (form.querySelector("[aria-invalid]") !== null) markWrong(form, wrongSurvey(data));
    place = Math.min(place, places.length);
    advice.update(questionAt(data, place), place, places.length);
    button.textContent = places.length > 1 ? "Create the survey" : "Create the campaign";
    preview.update(data);
  }

  const button = partIn(form);

  /** @param {Event} [event] */
  function typed(event) {
    const named = event?.target instanceof Element ? (event.target.getAttribute("name") ?? "") : "";
    const [, written] = /^(?:question|kind|values|low|high)-?(\d*)$/.exec(named) ?? [];
    if (written !== undefined) place = Number(written || 1);
    changed();
    form.querySelector("[role=alert]")?.remove(); // it was of what stood here before
  }

  async function choosePicture() {
    const [file] = picture.files ?? [];
    try {
      fill(form, { logo: file === undefined ? "" : await logoOf(file) });
      markField(form, picture, "");
    } catch (problem) {
      markField(form, picture, sentenceOf(problem));
    }
    typed();
  }

  if (copy !== undefined) fill(form, fieldsOf(await api.ask("GET", `campaigns/${encodeURIComponent(copy)}/status`)));
  const title = copy === undefined ? "New campaign" : "New campaign, like another";
  main.replaceChildren(h("h1", { tabindex: -1 }, title), form);
  changed();
}

/** @param {HTMLFormElement} form */
const partIn = (form) => /** @type {HTMLButtonElement} */ (form.querySelector("button[type=submit]"));

/** @param {Record<string, string>} fields */
function toData(fields) {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
}

/**
 * Offer the levels as what may be suggested.
 *
 * @param {HTMLSelectElement} suggested
 * @param {string[]} levels
 */
function suggestLevels(suggested, levels) {
  const offered = ["", ...new Set(levels)];
  if ([...suggested.options].map(({ value }) => value).join() === offered.join()) return;
  const chosen = suggested.value;
  suggested.replaceChildren(...offered.map((value) => h("option", { value }, value === "" ? "none" : `ε ${value}`)));
  suggested.value = offered.includes(chosen) ? chosen : "";
}

/**
 * Write into a form what is known already; what it has no field for stays out.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, string>} known
 */
function fill(form, known) {
  if (known.levels !== undefined) {
    const select = form.elements.namedItem("suggested");
    if (select instanceof HTMLSelectElement) suggestLevels(select, limitsOf(toData(known)));
  }
  for (const [name, value] of Object.entries(known)) {
    const input = form.elements.namedItem(name);
    if (input instanceof HTMLInputElement && input.type === "checkbox") input.checked = value !== "";
    else if (input instanceof HTMLInputElement && input.type === "file") continue;
    else if (input !== null && "value" in input) {
      input.value = value;
      if (input instanceof HTMLSelectElement && input.selectedIndex < 0) input.selectedIndex = 0;
    }
  }
  if (known.invitations) form.querySelector("details.more")?.setAttribute("open", "");
}
