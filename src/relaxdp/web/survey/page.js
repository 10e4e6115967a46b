/**
 * The parts of the page, by their names, and the view that says what is wrong. Everything that comes from outside enters as
 * text, and nothing here needs what an old browser lacks.
 */

const VIEWS = ["problem", "cleared", "limit", "question", "status"];

/**
 * @param {string} id
 * @returns {any} an element of survey.html
 */
export function part(id) {
  return document.getElementById(id);
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
    if (step.dataset.step === name) step.setAttribute("aria-current", "step");
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

/**
 * Make an element.
 *
 * @param {string} name
 * @param {Record<string, any>} [properties] `class` and what else the element has; texts are texts
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function made(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else element[key] = value;
  }
  element.append(...children);
  return element;
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
    part("problem-text").replaceChildren(...sentences.map((sentence) => made("p", { class: "notice" }, sentence)));
    part("problem-again").hidden = !perhapsLater;
    part("problem-new-tab").hidden = window.top === window;
    part("problem-link").href = location.href;
  }
}
