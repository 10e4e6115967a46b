/** More questions than one in the form: each is added below the one before, and two can be counted together. */

import { h, put } from "../kit/dom.js";
import { textOf } from "../kit/form.js";
import { tell } from "../kit/page.js";
import { questionFields } from "./fields.js";
import { limitsOf, MOST_QUESTIONS, ownField, pairField, pairsOf, placesOf } from "./several.js";

const LONGEST = 60; // letters of a question where two stand beside each other

/** @param {(kept: Record<string, string>) => void} refill writes into the form what is known already */
export function questionsPart(refill) {
  const list = h("div", {});
  const add = h("button", { type: "button", onclick: addOne }, "Add another question");
  const cost = h("p", { class: "hint", "aria-live": "polite" });
  const element = h("div", { class: "several" }, list, h("p", {}, add), cost);
  const pairs = h("div", { class: "pairs" });
  const together = h(
    "fieldset",
    { class: "together" },
    h("legend", {}, "Count two questions together"),
    h(
      "p",
      { class: "hint" },
      "You get a table with a row for each answer to one and a column for each answer to the other. People are told " +
        "before they answer. It cannot be asked for later: the reports to all other questions cannot be joined. " +
        "Such a table is less precise than either question.",
    ),
    pairs,
  );
  let shown = "";

  /** @param {number} count of questions, with the first */
  function grow(count) {
    while (list.children.length + 1 < Math.min(count, MOST_QUESTIONS)) {
      const place = list.children.length + 2;
      const remove = h("button", { type: "button", onclick: () => removeOne(place) }, `Remove question ${place}`);
      list.append(
        h("fieldset", {}, h("legend", {}, `Question ${place}`), ...questionFields(place), h("p", {}, remove)),
      );
    }
  }

  function addOne() {
    grow(list.children.length + 2);
    changed();
    focusOn(list.children.length + 1);
  }

  /** @param {number} removed */
  function removeOne(removed) {
    const form = element.closest("form");
    if (form === null) return;
    const kept = without(new FormData(form), removed);
    const count = list.children.length;
    list.replaceChildren();
    grow(count);
    for (const box of pairs.querySelectorAll("input")) box.checked = false;
    refill(kept);
    changed();
    tell(`Question ${removed} was removed.`);
    if (list.children.length === 0) add.focus();
    else focusOn(Math.min(removed, list.children.length + 1));
  }

  /** @param {number} place */
  function focusOn(place) {
    /** @type {HTMLElement | null} */
    const question = list.querySelector(`[name="${ownField("question", place)}"]`);
    question?.focus();
  }

  const changed = () => element.dispatchEvent(new Event("input", { bubbles: true }));

  /** @param {FormData} data */
  function update(data) {
    const count = placesOf(data).length;
    add.hidden = count >= MOST_QUESTIONS;
    const last = limitsOf(data).pop();
    cost.textContent =
      count === 1
        ? "Several questions are one survey: people set one limit for all of them."
        : "All questions have the levels, dates and ways of blurring below. What they cost a person adds up" +
          (last === undefined ? "." : `: whoever answers all ${count} up to the last level gives away ε ${last}.`);
    const possible = pairsOf(data);
    together.hidden = possible.length === 0;
    const names = possible.map(([one, other]) => `${called(data, one)} – with – ${called(data, other)}`);
    if (names.join("\n") === shown) return;
    shown = names.join("\n");
    put(pairs, ...possible.map((pair, place) => pairChoice(data, pair, names[place])));
  }
  return { element, together, update };
}

/**
 * @param {FormData} data
 * @param {[number, number]} pair
 * @param {string} words
 */
function pairChoice(data, pair, words) {
  const name = pairField(...pair);
  const box = h("input", { type: "checkbox", name, checked: data.has(name), "aria-describedby": `${name}-wrong` });
  return h("div", {}, h("label", { class: "choice" }, box, words), h("span", { class: "wrong", id: `${name}-wrong` }));
}

/**
 * @param {FormData} data
 * @param {number} place
 */
function called(data, place) {
  const letters = [...textOf(data, ownField("question", place))];
  const text = letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : letters.join("");
  return text === "" ? `question ${place}` : `${place}. ${text}`;
}

/**
 * Return what the form says without one question: those after it move up, and so do their pairs.
 *
 * @param {FormData} data
 * @param {number} removed
 * @returns {Record<string, string>}
 */
export function without(data, removed) {
  /** @type {Record<string, string>} */
  const kept = {};
  const moved = (/** @type {string} */ place) => (Number(place) > removed ? Number(place) - 1 : Number(place));
  for (const [name, value] of data) {
    const [, own, place] = /^(question|kind|values|low|high)-(\d+)$/.exec(name) ?? [];
    const [, one, other] = /^together-(\d+)-(\d+)$/.exec(name) ?? [];
    if ([place, one, other].includes(String(removed)) || typeof value !== "string") continue;
    if (place !== undefined) kept[ownField(own, moved(place))] = value;
    else if (one !== undefined) kept[pairField(moved(one), moved(other))] = value;
  }
  return kept;
}
