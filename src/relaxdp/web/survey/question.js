/** The second view: the question, and how it is answered. Nothing that is typed here leaves the page by itself. */

import { Ranged } from "../device/encodings/range.js";
import { h } from "../kit/dom.js";
import { UNREMEMBERED } from "../kit/form.js";
import { partOf } from "../kit/page.js";
import { answersOf, count, guessAt, times, valueText } from "../kit/reports.js";
import { onSubmit, part, say, show } from "./page.js";
import { problemWords, seriesSentence } from "./words.js";

/** @typedef {import("../device/offer.js").Offer} Offer */

const MOST_BUTTONS = 20;
const MOST_LETTERS = 1000;
const questionForm = () => partOf("question-form", HTMLFormElement);

/** Radio buttons for a few values, a list for many, a field for numbers and for words. */
export class QuestionView {
  /** @type {() => unknown} */
  #answer = () => undefined;

  /** @param {(value: unknown) => Promise<void>} keep */
  constructor(keep) {
    onSubmit("question-form", async () => {
      say(part("question-problem"), null);
      try {
        await keep(this.#answer());
        questionForm().reset();
      } catch (problem) {
        say(part("question-problem"), problemWords(problem));
      }
    });
  }

  /**
   * @param {Offer} offer
   * @param {string} consent
   * @param {import("../device/participation.js").DateCost[]} dates of its series that this browser joined
   */
  show(offer, consent, dates) {
    if (!show("question")) return;
    say(part("question-text"), offer.question);
    const { bound, scale } = guessAt(answersOf(offer.encoding), consent);
    say(
      part("question-limit"),
      `Your limit was set before you saw the question and stays as it is: a guess is right at most ` +
        `${times(bound)} in ${count(scale)} (epsilon ${consent}).` +
        (offer.state === "paused" ? " The survey pauses now: your report is sent when it goes on." : ""),
    );
    const costs = dates.map(({ date, most }) => ({ date, cost: most }));
    say(part("question-series"), seriesSentence(offer.encoding, offer.series?.date, costs, "may send"));
    part("question-input").replaceChildren(...this.#inputs(offer.encoding));
  }

  /**
   * @param {import("../device/encodings/registry.js").Encoding} encoding
   * @returns {HTMLElement[]}
   */
  #inputs(encoding) {
    if (encoding.values !== null) return this.#choices(encoding.values, encoding.values.map(valueText));
    if (encoding instanceof Ranged) return this.#number(encoding);
    if (encoding.isBoolean) return this.#choices(["true", "false"], ["Yes", "No"]);
    return this.#text();
  }

  /**
   * @param {unknown[]} values
   * @param {string[]} labels
   */
  #choices(values, labels) {
    if (values.length > MOST_BUTTONS) return this.#list(values, labels);
    this.#answer = () => values[Number(new FormData(questionForm()).get("choice"))];
    return labels.map((label, i) =>
      h(
        "label",
        { class: "choice" },
        h("input", { type: "radio", name: "choice", value: String(i), required: true, autocomplete: "off" }),
        h("span", { dir: "auto" }, label),
      ),
    );
  }

  /**
   * @param {unknown[]} values
   * @param {string[]} labels
   */
  #list(values, labels) {
    const list = h(
      "select",
      { id: "answer", required: true, autocomplete: "off" },
      h("option", { value: "" }, "Choose …"),
    );
    list.append(...labels.map((label, i) => h("option", { value: String(i) }, label)));
    this.#answer = () => values[Number(list.value)];
    return [h("label", { for: "answer" }, "My answer"), list];
  }

  /** @param {Ranged} encoding */
  #number({ low, high }) {
    const field = h("input", {
      type: "number",
      id: "answer",
      required: true,
      step: "any",
      inputmode: "decimal",
      min: low,
      max: high,
      ...UNREMEMBERED,
    });
    this.#answer = () => field.valueAsNumber;
    return [h("label", { for: "answer" }, `A number from ${low} to ${high}`), field];
  }

  #text() {
    const field = h("input", {
      type: "text",
      id: "answer",
      required: true,
      maxlength: MOST_LETTERS,
      dir: "auto",
      ...UNREMEMBERED,
    });
    this.#answer = () => field.value.trim();
    return [h("label", { for: "answer" }, "My answer, in a word"), field];
  }
}
