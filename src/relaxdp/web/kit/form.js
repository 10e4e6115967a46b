/** Forms: fields with a label, a hint and a place for what has to be changed, and what happens when one is sent. */

import { h, notice } from "./dom.js";

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

/**
 * Return a form that asks for one thing. Where it is refused, the service's sentence stands at the form itself.
 *
 * @param {(Node | null)[]} fields
 * @param {{ yes: string, primary?: boolean, check?: (data: FormData) => Record<string, string>,
 *           work: (data: FormData) => Promise<Node | null> }} options
 *   `check` returns a sentence for each field that cannot be meant; `work` what is shown when it is done, or throws
 * @returns {any} the form
 */
export function formPart(fields, { yes, primary = false, check = () => ({}), work }) {
  const told = h("div", { "aria-live": "polite" });
  const button = h("button", { type: "submit", class: primary ? "primary" : null }, yes);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    told.replaceChildren();
    const first = mark(form, check(new FormData(form)));
    if (first !== null) {
      first.focus();
      return;
    }
    button.disabled = true;
    button.textContent = "One moment …";
    try {
      const done = await work(new FormData(form));
      if (done !== null) told.replaceChildren(done);
    } catch (refusal) {
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
    button.textContent = yes;
    button.disabled = false;
    if (document.activeElement === document.body && button.isConnected) button.focus(); // a disabled button loses it
  };
  const form = h("form", { novalidate: true, onsubmit: send }, ...fields, told, button);
  return form;
}

/**
 * Return what was typed into a field.
 *
 * @param {FormData} data
 * @param {string} name
 */
export const read = (data, name) => String(data.get(name) ?? "").trim();
