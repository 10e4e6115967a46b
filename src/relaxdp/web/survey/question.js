/** The question, and how it is answered. Nothing that is typed here leaves the page by itself. */

import { Ranged } from "../device/encodings/range.js";
import { h } from "../kit/dom.js";
import { UNREMEMBERED } from "../kit/form.js";
import { decimal, onLanguage, plainNumber, readNumber } from "../kit/language.js";
import { partOf } from "../kit/page.js";
import { answersOf, guessAt, often, valueText } from "../kit/reports.js";
import { complaint, onSubmit, part, say, show } from "./page.js";
import { problemWords, word } from "./words.js";

/** @typedef {import("../device/offer.js").Offer} Offer */

const MOST_BUTTONS = 20;
const MOST_LETTERS = 1000;
const questionForm = () => partOf("question-form", HTMLFormElement);
const first = () => /** @type {HTMLElement | null} */ (questionForm().querySelector("input, select"));

/** Radio buttons for a few values, a list for many, a field for numbers and for words. */
export class QuestionView {
  /** @type {() => unknown} what is answered; undefined where that is nothing */
  #answer = () => undefined;
  /** @type {(answer: unknown) => string | null} why it cannot be taken */
  #check = () => null;
  /** @type {{ offer: Offer, limit: string } | null} */
  #shown = null;
  /** @type {(() => void)[]} */
  #labels = [];

  /** @param {(value: unknown) => Promise<void>} keep */
  constructor(keep) {
    const complain = complaint("question-form", "question-problem");
    onLanguage(() => this.#say());
    onSubmit("question-form", async () => {
      const answer = this.#answer();
      if (this.#check(answer) !== null) return complain(() => this.#check(answer) ?? "", first());
      complain(null);
      try {
        await keep(answer);
        questionForm().reset();
      } catch (problem) {
        complain(() => problemWords(problem), first());
      }
    });
  }

  /**
   * @param {Offer} offer
   * @param {string} limit for all questions of the survey together
   */
  show(offer, limit) {
    const shown = show("question");
    const before = this.#shown?.offer.state;
    this.#shown = { offer, limit };
    if (shown) {
      this.#labels = [];
      say(part("question-text"), offer.question);
      part("question-input").replaceChildren(...this.#inputs(offer.encoding));
    }
    if (shown || before !== offer.state) this.#say();
  }

  #say() {
    if (this.#shown === null) return;
    const { offer, limit } = this.#shown;
    for (const label of this.#labels) label();
    const { bound, scale } = guessAt(answersOf(offer.encoding), limit);
    const sentence = word("question.limit", { often: often(bound, scale), epsilon: decimal(limit) });
    say(part("question-limit"), offer.state === "paused" ? `${sentence} ${word("question.paused")}` : sentence);
  }

  /**
   * Say something that is said again when the language changes.
   *
   * @param {HTMLElement} element
   * @param {() => string} text
   */
  #labelled(element, text) {
    const tell = () => say(element, text());
    this.#labels.push(tell);
    tell();
    return element;
  }

  /**
   * @param {import("../device/encodings/registry.js").Encoding} encoding
   * @returns {HTMLElement[]}
   */
  #inputs(encoding) {
    this.#check = (answer) => (answer === undefined || answer === "" ? word("question.missing") : null);
    if (encoding.values !== null) return this.#choices(encoding.values, encoding.values.map(valueText).map(always));
    if (encoding instanceof Ranged) return this.#number(encoding);
    if (encoding.isBoolean) {
      return this.#choices(["true", "false"], [() => word("question.yes"), () => word("question.no")]);
    }
    return this.#text();
  }

  /**
   * @param {unknown[]} values
   * @param {(() => string)[]} labels
   */
  #choices(values, labels) {
    if (values.length > MOST_BUTTONS) return this.#list(values, labels);
    this.#answer = () => {
      const choice = new FormData(questionForm()).get("choice");
      return choice === null ? undefined : values[Number(choice)];
    };
    return labels.map((label, i) =>
      h(
        "label",
        { class: "choice" },
        h("input", { type: "radio", name: "choice", value: String(i), autocomplete: "off" }),
        this.#labelled(h("span", { dir: "auto" }), label),
      ),
    );
  }

  /**
   * @param {unknown[]} values
   * @param {(() => string)[]} labels
   */
  #list(values, labels) {
    const nothing = this.#labelled(h("option", { value: "" }), () => word("question.choose"));
    const list = h("select", { id: "answer", autocomplete: "off" }, nothing);
    list.append(...labels.map((label, i) => h("option", { value: String(i) }, label())));
    this.#answer = () => (list.value === "" ? undefined : values[Number(list.value)]);
    return [this.#labelled(h("label", { for: "answer" }), () => word("question.answer")), list];
  }

  /** @param {Ranged} encoding */
  #number({ low, high }) {
    const ends = () => ({ low: plainNumber(low), high: plainNumber(high) });
    const field = h("input", { type: "text", id: "answer", inputmode: "decimal", ...UNREMEMBERED });
    const read = h("span", { class: "hint", "aria-live": "polite" });
    // A thousands separator here is a decimal mark there: what it was read as is said where it is written otherwise.
    const tell = () => {
      const number = readNumber(field.value);
      const text = plainNumber(number);
      say(read, Number.isNaN(number) || text === field.value.trim() ? null : word("question.read", { number: text }));
    };
    field.addEventListener("input", tell);
    this.#labels.push(tell);
    this.#answer = () => (field.value.trim() === "" ? undefined : readNumber(field.value));
    this.#check = (answer) => {
      if (answer === undefined) return word("question.missing");
      if (Number.isNaN(answer)) return word("question.notNumber");
      return Number(answer) < low || Number(answer) > high ? word("question.outside", ends()) : null;
    };
    return [this.#labelled(h("label", { for: "answer" }), () => word("question.number", ends())), field, read];
  }

  #text() {
    const field = h("input", { type: "text", id: "answer", maxlength: MOST_LETTERS, dir: "auto", ...UNREMEMBERED });
    this.#answer = () => field.value.trim();
    return [this.#labelled(h("label", { for: "answer" }), () => word("question.word")), field];
  }
}

/** @param {string} text */
const always = (text) => () => text;
