/** A new campaign: its question, its levels, and what to expect of them while they are chosen. */

import { h, notice } from "../kit/dom.js";
import { formPart, markField, markWrong } from "../kit/form.js";
import { sentenceOf } from "../kit/problem.js";
import { advicePart } from "./advice.js";
import { askedAgain, definitionOf, encodingChosen, levelsOf, wrongDefinition } from "./definition.js";
import { draftOf, dropDraft, keepDraft } from "./drafts.js";
import { fields } from "./fields.js";
import { logoOf } from "./logo.js";
import { previewPart } from "./preview.js";
import { stopsPart } from "./stops.js";

/** @typedef {import("../kit/api.js").Api} Api */

const TITLES = { new: "New campaign", again: "Ask again", copy: "New campaign, like another" };

/**
 * @param {Api} api
 * @param {HTMLElement} main
 * @param {{ again?: string, copy?: string }} [like] the campaign of a series whose question is asked for its next date,
 *   or the campaign that is taken as a pattern
 */
export async function showForm(api, main, { again, copy } = {}) {
  const page = location.hash;
  /** @type {import("../kit/wire.d.ts").OfferedEncodings} */
  const { encodings } = await api.ask("GET", "encodings");
  const [advice, preview, stops] = [advicePart(api), previewPart(), stopsPart()];
  const suggested = h("select", {}, h("option", { value: "" }, "none"));
  const picture = h("input", { type: "file", accept: "image/*", onchange: choosePicture });
  const parts = { advice: advice.element, preview: preview.element, stops: stops.element, suggested, picture };
  const form = formPart(fields(encodings, parts), {
    yes: "Create the campaign",
    primary: true,
    attributes: { class: "card form", oninput: typed, onchange: typed },
    check: wrongDefinition,
    work: async (data) => {
      /** @type {import("../kit/wire.d.ts").OperatorCampaign} */
      const campaign = await api.ask("POST", "campaigns", definitionOf(data));
      dropDraft();
      location.hash = `campaign/${campaign.id}`;
      return null;
    },
  });

  function changed() {
    stops.update(levelsOf(new FormData(form)));
    suggestLevels(suggested, levelsOf(new FormData(form)));
    const data = new FormData(form);
    const ticked = ["coloured", "publish"].filter((name) => data.has(name));
    const chosen = [data.get("kind"), data.get("advance"), encodingChosen(data), ...ticked];
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-for]"))) {
      part.hidden = !chosen.includes(part.dataset.for ?? null);
    }
    if (form.querySelector("[aria-invalid]") !== null) markWrong(form, wrongDefinition(data));
    advice.update(data);
    preview.update(data);
  }

  function typed() {
    changed();
    form.querySelector("[role=alert]")?.remove(); // it was of what stood here before
    keepDraft(page, new FormData(form));
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

  const pattern = again ?? copy;
  const draft = draftOf(page);
  if (draft === null && pattern !== undefined) fill(form, await known(api, pattern, again !== undefined));
  if (draft !== null) {
    stops.update(levelsOf(toData(draft)));
    suggestLevels(suggested, levelsOf(toData(draft)));
    fill(form, draft);
  }
  const title = again !== undefined ? TITLES.again : copy !== undefined ? TITLES.copy : TITLES.new;
  const kept = notice("What you had typed here was kept. ", "");
  kept.classList.add("row");
  kept.append(h("button", { type: "button", onclick: startOver }, "Start over"));
  function startOver() {
    dropDraft();
    showForm(api, main, { again, copy });
  }
  main.replaceChildren(h("h1", { tabindex: -1 }, title), draft === null ? "" : kept, form);
  changed();
}

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
 * Return what the form says of a campaign that there is.
 *
 * @param {Api} api
 * @param {string} pattern
 * @param {boolean} again whether it is asked for the next date of its series
 */
async function known(api, pattern, again) {
  /** @type {import("../kit/wire.d.ts").Campaigns} */
  const { campaigns } = await api.ask("GET", "campaigns");
  const campaign = campaigns.find(({ id }) => id === pattern);
  if (campaign === undefined) return {};
  const dates = campaigns.flatMap(({ series }) => (series?.name === campaign.series?.name ? [series?.date ?? ""] : []));
  const found = askedAgain(campaign, dates.sort().pop() ?? "");
  return again ? found : { ...found, series: "", date: "" };
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
    if (select instanceof HTMLSelectElement) suggestLevels(select, levelsOf(toData(known)));
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
  if (known.series || known.id || known.invitations) form.querySelector("details.more")?.setAttribute("open", "");
}
