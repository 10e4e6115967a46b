/** Fields of forms: a label, a hint, and a place for the sentence that says what has to be changed. */

import { h } from "./dashboard-dom.js";

export const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
export const DECIMAL = /^[0-9]+(\.[0-9]+)?$/;

/**
 * Return an input with its label, a place for a sentence when it is wrong, and a hint.
 *
 * @param {string} name
 * @param {string} label
 * @param {any} input
 * @param {string} [hint]
 */
export function field(name, label, input, hint) {
  input.id = name;
  input.name = name;
  input.setAttribute("aria-describedby", `${name}-hint ${name}-wrong`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: name }, label),
    input,
    h("span", { class: "wrong", id: `${name}-wrong` }),
    h("span", { class: "hint", id: `${name}-hint` }, hint ?? ""),
  );
}

/**
 * Show what has to be changed, take away what was changed since, and return the first field that is wrong.
 *
 * @param {any} form
 * @param {Record<string, string>} wrong a sentence for each field that has to be changed
 * @returns {any} null where everything is right
 */
export function mark(form, wrong) {
  for (const input of form.elements) {
    const place = form.querySelector(`#${input.name}-wrong`);
    if (place === null || input.type === "radio") continue;
    place.textContent = wrong[input.name] ?? "";
    if (wrong[input.name]) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
  const first = form.querySelector("[aria-invalid]");
  first?.closest("details")?.setAttribute("open", "");
  return first;
}
