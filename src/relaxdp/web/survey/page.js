/**
 * The parts of the page, by their names, and the view that says what is wrong. Everything that comes from outside enters as
 * text, and nothing here needs what an old browser lacks.
 */

import { h } from "../kit/dom.js";
import { onLanguage } from "../kit/language.js";
import { partOf } from "../kit/page.js";

const VIEWS = ["problem", "cleared", "invitation", "limit", "question", "status"];
const STEPS = ["limit", "question", "status"];

/**
 * Return a part of the page by its name.
 *
 * @param {string} id
 */
export const part = (id) => partOf(id, HTMLElement);

/**
 * The same for what can be typed into.
 *
 * @param {string} id
 */
export const input = (id) => partOf(id, HTMLInputElement);

/**
 * Send a form to nobody: hand it to the page, and let nobody press its button twice meanwhile.
 *
 * @param {string} id
 * @param {() => Promise<void>} work
 */
export function onSubmit(id, work) {
  const form = partOf(id, HTMLFormElement);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("button");
    button?.toggleAttribute("disabled", true);
    try {
      await work();
    } finally {
      button?.toggleAttribute("disabled", false);
    }
  });
}

/**
 * A place below a form's fields where it is said what has to be changed, until something is changed.
 *
 * @param {string} form
 * @param {string} place
 * @returns {(sentence: (() => string) | null, field?: HTMLElement | null) => void} says it, and takes the reader to the field
 */
export function complaint(form, place) {
  /** @type {(() => string) | null} */
  let current = null;
  const tell = (/** @type {(() => string) | null} */ sentence, /** @type {HTMLElement | null} */ field = null) => {
    current = sentence;
    say(part(place), sentence?.() ?? null);
    for (const each of part(form).querySelectorAll("input, select")) each.removeAttribute("aria-invalid");
    if (sentence === null || field === null) return;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", place);
    field.focus();
  };
  part(form).addEventListener("input", () => tell(null));
  onLanguage(() => say(part(place), current?.() ?? null));
  return tell;
}

/**
 * Show one of the views, and no other; the reader is taken there.
 *
 * @param {string} name
 * @returns {boolean} whether it was not shown before
 */
export function show(name) {
  part("loading").hidden = true;
  if (!part(name).hidden) return false;
  const first = VIEWS.every((view) => part(view).hidden);
  for (const view of VIEWS) part(view).hidden = view !== name;
  // Whoever has decided to take part has read who asks, and can open it again.
  part("intro-more").toggleAttribute("open", name !== "question" && name !== "status");
  part("intro-stays").hidden = name !== "limit" && name !== "invitation";
  const steps = part("steps");
  steps.hidden = !STEPS.includes(name);
  for (const step of steps.children) {
    if (step.getAttribute("data-step") === name) step.setAttribute("aria-current", "step");
    else step.removeAttribute("aria-current");
  }
  // Whoever opens the page begins at its top.
  if (!first) part(`${name}-title`).focus();
  return true;
}

/**
 * Set a text where it is another one: what is read aloud is read aloud once.
 *
 * @param {HTMLElement} element
 * @param {string | null} text hidden without one
 */
export function say(element, text) {
  if (element.textContent !== (text ?? "")) element.textContent = text ?? "";
  element.hidden = text === null;
}

/** @typedef {{ title: string, sentences: string[], perhapsLater?: boolean }} Said */

/** @type {(() => Said) | null} */
let composed = null;

/**
 * Show the view that says what is wrong.
 *
 * @param {() => Said} compose says it in the language of the moment
 */
export function showProblem(compose) {
  composed = compose;
  show("problem");
  sayProblem();
}

function sayProblem() {
  if (composed === null) return;
  const { title, sentences, perhapsLater = false } = composed();
  say(part("problem-title"), title);
  part("problem-text").replaceChildren(...sentences.map((sentence) => h("p", { class: "notice" }, sentence)));
  part("problem-again").hidden = !perhapsLater;
  part("problem-new-tab").hidden = window.top === window;
  partOf("problem-link", HTMLAnchorElement).href = location.href;
}

onLanguage(sayProblem);
