/**
 * The parts of the page, by their names, and the view that says what is wrong. Everything that comes from outside enters as
 * text, and nothing here needs what an old browser lacks.
 */

import { h } from "../kit/dom.js";
import { partOf } from "../kit/page.js";

const VIEWS = ["problem", "cleared", "limit", "question", "status"];

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
  const steps = part("steps");
  steps.hidden = name === "problem" || name === "cleared";
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

/** The view that says what is wrong. */
export class ProblemView {
  /**
   * What this browser or this connection lacks.
   *
   * @param {string[]} missing
   */
  missing(missing) {
    this.sentences([...missing, "Until then nothing is asked, and nothing is sent."]);
    say(part("problem-title"), "Something is needed first");
  }

  /**
   * @param {string[]} sentences
   * @param {boolean} [perhapsLater] whether it is worth trying again
   * @param {string} [title]
   */
  sentences(sentences, perhapsLater = false, title = "This does not work yet") {
    show("problem");
    say(part("problem-title"), title);
    part("problem-text").replaceChildren(...sentences.map((sentence) => h("p", { class: "notice" }, sentence)));
    part("problem-again").hidden = !perhapsLater;
    part("problem-new-tab").hidden = window.top === window;
    partOf("problem-link", HTMLAnchorElement).href = location.href;
  }
}
