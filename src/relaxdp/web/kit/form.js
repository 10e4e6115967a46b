/** Forms: fields with a label, a hint and a place for what has to be changed, and what happens when one is sent. */

import { attempt, h } from "./dom.js";

export const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
export const DECIMAL = /^[0-9]+(\.[0-9]+)?$/;

// Spelling services and form memories of browsers would learn an answer that is typed.
export const UNREMEMBERED = { autocomplete: "off", spellcheck: "false", autocapitalize: "off", translate: "no" };

const WRONG = "[aria-invalid], [data-wrong]";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Input */
/** @typedef {Partial<Record<string, string>>} Wrong a sentence for each field that has to be changed, by its name */

/**
 * Return an input with its label, a place for a sentence when it is wrong, and a hint.
 *
 * @param {string} name
 * @param {string} label
 * @param {Input} input
 * @param {...(Node | string)} hint
 */
export function field(name, label, input, ...hint) {
  input.id = name;
  input.name = name;
  input.setAttribute("aria-describedby", `${name}-hint ${name}-wrong`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: name }, label),
    input,
    h("span", { class: "wrong", id: `${name}-wrong` }),
    h("span", { class: "hint", id: `${name}-hint` }, ...hint),
  );
}

/**
 * Return what was typed into a field.
 *
 * @param {FormData} data
 * @param {string} name
 */
export const textOf = (data, name) => String(data.get(name) ?? "").trim();

/**
 * Return numbers as they were typed, on one line or on several.
 *
 * @param {string} text
 */
export const splitLevels = (text) => text.split(/[\s,;]+/).filter((level) => level !== "");

/**
 * Show what has to be changed, take away what was changed since, and return the first field that is wrong.
 *
 * @param {HTMLFormElement} form
 * @param {Wrong} wrong
 * @returns {HTMLElement | null} null where everything is right
 */
export function markWrong(form, wrong) {
  for (const input of /** @type {NodeListOf<Input>} */ (form.querySelectorAll("input, select, textarea"))) {
    markField(form, input, wrong[input.name] ?? "");
  }
  /** @type {HTMLElement | null} */
  const first = form.querySelector(WRONG);
  first?.closest("details")?.setAttribute("open", "");
  return first;
}

/**
 * Say what has to be changed in one field, or that nothing has to be any more.
 *
 * @param {Element} around the field, or its form
 * @param {Input} input
 * @param {string} sentence
 */
export function markField(around, input, sentence) {
  const place = around.querySelector(`#${input.name}-wrong`);
  if (place === null) return;
  place.textContent = sentence;
  const mark = input.type === "radio" ? "data-wrong" : "aria-invalid"; // what is wrong is the choice, not one button of it
  if (sentence === "") input.removeAttribute(mark);
  else input.setAttribute(mark, "true");
}

/**
 * Return a form that asks for one thing. Where it is refused, the sentence stands at the form itself.
 *
 * @param {(Node | null)[]} fields
 * @param {{ yes: string, primary?: boolean, check?: (data: FormData) => Wrong,
 *           work: (data: FormData) => Promise<Node | null>,
 *           attributes?: import("./dom.js").Attributes, place?: HTMLElement | null }} options
 *   `check` returns a sentence for each field that cannot be meant; `work` what is shown when it is done, or throws;
 *   `place` is where that is shown, if it is not above the button
 */
export function formPart(fields, { yes, primary = false, check = () => ({}), work, attributes = {}, place = null }) {
  const outcome = place ?? h("div", { "aria-live": "polite" });
  const button = h("button", { type: "submit", class: primary ? "primary" : null }, yes);
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    outcome.replaceChildren();
    const first = markWrong(form, check(new FormData(form)));
    if (first !== null) {
      first.focus();
      return;
    }
    const said = button.textContent; // a form may say more precisely what it will do
    button.disabled = true;
    button.textContent = "One moment …";
    await attempt(outcome, async () => {
      const done = await work(new FormData(form));
      if (done !== null) outcome.replaceChildren(done);
    });
    button.textContent = said;
    button.disabled = false;
    if (document.activeElement === document.body && button.isConnected) button.focus(); // a disabled button loses it
  };
  // What was said of a field goes when the field is right; nobody is corrected before something was sent.
  const corrected = (/** @type {Event} */ { target }) => {
    const input = /** @type {Input} */ (target);
    if (outcome.querySelector("[role=alert]") !== null) outcome.replaceChildren();
    if (!input.matches(WRONG)) return;
    const sentence = check(new FormData(form))[input.name] ?? "";
    for (const each of /** @type {NodeListOf<Input>} */ (form.querySelectorAll(WRONG)))
      if (each.name === input.name) markField(form, each, sentence);
  };
  const inside = place === null ? [...fields, outcome, button] : [...fields, button];
  const form = h("form", { novalidate: true, onsubmit: send, oninput: corrected, ...attributes }, ...inside);
  return form;
}
