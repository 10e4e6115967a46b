/** The second view: the question, and how it is answered. Nothing that is typed here leaves the page by itself. */

import { answersOf, count, guessAt, times, valueText } from "../kit/reports.js";
import { made, part, say, show } from "./page.js";
import { problemWords } from "./words.js";

/** @typedef {import("../device/offer.js").Offer} Offer */

const MOST_BUTTONS = 20;
const MOST_LETTERS = 1000;

// Spelling services and form memories of browsers would learn the answer.
const UNREMEMBERED = { autocomplete: "off", spellcheck: false, autocapitalize: "off", translate: false };

/** Radio buttons for a few values, a list for many, a field for numbers and for words. */
export class QuestionView {
  /** @type {() => unknown} */
  #answer = () => undefined;

  /** @param {(value: unknown) => Promise<void>} keep */
  constructor(keep) {
    part("question-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = event.submitter ?? part("question-form").querySelector("button");
      button.disabled = true;
      say(part("question-problem"), null);
      try {
        await keep(this.#answer());
        part("question-form").reset();
      } catch (problem) {
        say(part("question-problem"), problemWords(problem));
      }
      button.disabled = false;
    });
  }

  /**
   * @param {Offer} offer
   * @param {string} consent
   */
  show(offer, consent) {
    if (!show("question")) return;
    say(part("question-text"), offer.question);
    const { bound, scale } = guessAt(answersOf(offer.encoding), consent);
    say(
      part("question-limit"),
      `Your limit was set before you saw the question and stays as it is: a guess is right at most ` +
        `${times(bound)} in ${count(scale)} (epsilon ${consent}).` +
        (offer.state === "paused" ? " The survey pauses now: your report is sent when it goes on." : ""),
    );
    part("question-input").replaceChildren(...this.#inputs(offer.encoding));
  }

  /**
   * @param {import("../device/encodings/registry.js").Encoding} encoding
   * @returns {HTMLElement[]}
   */
  #inputs(encoding) {
    if (encoding.values !== null) return this.#choices(encoding.values, encoding.values.map(valueText));
    if (encoding.name === "numeric") return this.#number(encoding);
    if ("isBoolean" in encoding && encoding.isBoolean) return this.#choices(["true", "false"], ["Yes", "No"]);
    return this.#text();
  }

  /**
   * @param {any[]} values
   * @param {string[]} labels
   */
  #choices(values, labels) {
    if (values.length > MOST_BUTTONS) return this.#list(values, labels);
    this.#answer = () => values[Number(part("question-form").elements.namedItem("choice").value)];
    return labels.map((label, i) =>
      made(
        "label",
        { class: "choice" },
        made("input", { type: "radio", name: "choice", value: String(i), required: true, autocomplete: "off" }),
        made("span", { dir: "auto" }, label),
      ),
    );
  }

  /**
   * @param {any[]} values
   * @param {string[]} labels
   */
  #list(values, labels) {
    const list = made(
      "select",
      { id: "answer", required: true, autocomplete: "off" },
      made("option", { value: "" }, "Choose …"),
    );
    list.append(...labels.map((label, i) => made("option", { value: String(i) }, label)));
    this.#answer = () => values[Number(list.value)];
    return [made("label", { htmlFor: "answer" }, "My answer"), list];
  }

  /** @param {any} encoding */
  #number({ low, high }) {
    const field = made("input", {
      type: "number",
      id: "answer",
      required: true,
      step: "any",
      inputMode: "decimal",
      ...UNREMEMBERED,
    });
    [field.min, field.max] = [String(low), String(high)];
    this.#answer = () => field.valueAsNumber;
    return [made("label", { htmlFor: "answer" }, `A number from ${low} to ${high}`), field];
  }

  #text() {
    const field = made("input", {
      type: "text",
      id: "answer",
      required: true,
      maxLength: MOST_LETTERS,
      dir: "auto",
      ...UNREMEMBERED,
    });
    this.#answer = () => field.value.trim();
    return [made("label", { htmlFor: "answer" }, "My answer, in a word"), field];
  }
}
