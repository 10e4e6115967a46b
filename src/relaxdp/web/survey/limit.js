/** The person's own limit, before the question is seen. Nothing is chosen for them. */

import { boundPicture } from "../kit/bound.js";
import { h } from "../kit/dom.js";
import { decimal, onLanguage } from "../kit/language.js";
import { partOf } from "../kit/page.js";
import { answersOf, cautionSentence, guessAt, often } from "../kit/reports.js";
import { complaint, onSubmit, part, say, show } from "./page.js";
import { blindSentence, learnsSentence, limitName, oddsAt, pieces, word } from "./words.js";

/** @typedef {import("../device/decimal.js").Amount} Amount */
/** @typedef {import("../device/offer.js").Offer} Offer */
/** @typedef {import("./introduced.js").Introduction} Introduction */
/** @typedef {{ offer: Offer, said: Introduction, others: { number: number, amount: Amount } }} Shown */

const MOST_BUTTONS = 7;
const form = () => partOf("limit-form", HTMLFormElement);

/** A choice for each of the campaign's levels: reports are made at these and at nothing between. */
export class LimitView {
  /** @type {Shown | null} */
  #shown = null;
  /** @type {Amount[]} */
  #choices = [];

  /** @param {(upto: string) => Promise<void>} choose */
  constructor(choose) {
    const complain = complaint("limit-form", "limit-wrong");
    form().addEventListener("input", () => this.#explain());
    onLanguage(() => this.#say());
    onSubmit("limit-form", async () => {
      const chosen = this.#chosen();
      if (chosen !== null) return choose(String(chosen));
      complain(() => word("limit.missing"), form().querySelector("input, select"));
    });
  }

  /**
   * @param {Offer} offer
   * @param {Introduction} said
   * @param {{ number: number, amount: Amount }} others what this browser agreed to in other surveys of this site
   */
  show(offer, said, others) {
    if (!show("limit")) return;
    this.#shown = { offer, said, others };
    const levels = offer.levels.map(({ epsilon }) => epsilon);
    const { largestEpsilon } = offer;
    this.#choices = levels[levels.length - 1].compare(largestEpsilon) < 0 ? [...levels, largestEpsilon] : levels;
    this.#say();
  }

  /** Whoever begins anew chooses anew. */
  forget() {
    form().reset();
  }

  /** Say everything, anew where the language changed; what was chosen stays so. */
  #say() {
    if (this.#shown === null) return;
    const { offer } = this.#shown;
    const chosen = this.#place();
    const least = offer.publishedFrom;
    say(part("limit-published"), least === null ? null : word("limit.published", { least }));
    say(part("limit-guess"), blindSentence(offer.encoding, this.#guess(0)));
    const single = this.#choices.length === 1;
    say(part("limit-legend"), single ? word("limit.single") : word("limit.legend"));
    const many = this.#choices.length > MOST_BUTTONS;
    const options = single
      ? [this.#option(0, null)]
      : many
        ? [this.#list()]
        : this.#choices.map((_, i) => this.#radio(i));
    part("limit-choices").replaceChildren(...options);
    if (chosen !== null && !single) this.#choose(chosen);
    this.#explain();
  }

  /** @param {number} place */
  #guess(place) {
    const { offer } = /** @type {Shown} */ (this.#shown);
    return guessAt(answersOf(offer.encoding), String(this.#choices[place]));
  }

  /** @returns {number | null} which of the choices */
  #place() {
    if (this.#choices.length === 1) return 0;
    const text = new FormData(form()).get("limit");
    return typeof text === "string" && text !== "" ? Number(text) : null;
  }

  #chosen() {
    const place = this.#place();
    return place === null ? null : this.#choices[place];
  }

  /** @param {number} place */
  #choose(place) {
    const list = form().querySelector("select");
    if (list !== null) list.value = String(place);
    /** @type {HTMLInputElement | null} */
    const button = form().querySelector(`input[value="${place}"]`);
    if (button !== null) button.checked = true;
  }

  /** @param {number} place */
  #radio(place) {
    const button = h("input", { type: "radio", name: "limit", value: place, autocomplete: "off" });
    return h("label", { class: "option" }, button, this.#option(place, this.#marks(place)));
  }

  #list() {
    const { offer } = /** @type {Shown} */ (this.#shown);
    const options = this.#choices.map((_, place) => {
      const { bound, scale } = this.#guess(place);
      const marks = this.#marks(place).join(", ");
      const name = `${limitName(place, offer.levels.length)}${marks === "" ? "" : ` (${marks})`}`;
      return h("option", { value: place }, `${name}: ${word("limit.most", { often: often(bound, scale) })}`);
    });
    return h(
      "div",
      { class: "field" },
      h("label", { for: "limit-list" }, word("limit.list")),
      h(
        "select",
        { id: "limit-list", name: "limit", autocomplete: "off" },
        h("option", { value: "" }, word("limit.choose")),
        ...options,
      ),
    );
  }

  /** @param {number} place */
  #marks(place) {
    const { said } = /** @type {Shown} */ (this.#shown);
    const { asker, suggested } = said;
    const marks = [];
    if (place === 0) marks.push(word("limit.private"));
    if (place === this.#choices.length - 1) marks.push(word("limit.clear"));
    if (suggested !== null && String(this.#choices[place]) === suggested) {
      marks.push(asker === null ? word("limit.suggestedPlain") : word("limit.suggested", { asker }));
    }
    return marks;
  }

  /**
   * What a choice means for both sides.
   *
   * @param {number} place
   * @param {string[] | null} marks null where there is nothing to choose
   */
  #option(place, marks) {
    const { offer, said } = /** @type {Shown} */ (this.#shown);
    const guess = this.#guess(place);
    const most = h("strong", {}, word("limit.most", { often: often(guess.bound, guess.scale) }));
    const level = Math.min(place, offer.levels.length - 1);
    const learns = said.learns;
    return h(
      "span",
      { class: "option-body" },
      h(
        "span",
        { class: "option-name" },
        limitName(place, offer.levels.length),
        ...(marks ?? []).map((mark) => h("span", { class: "badge" }, mark)),
      ),
      boundPicture(guess),
      h(
        "span",
        { class: "side" },
        `${word("limit.you")} `,
        ...pieces("limit.bound", { bound: most, blind: guess.blind }),
      ),
      learns === null
        ? null
        : h(
            "span",
            { class: "side" },
            `${word("limit.survey")} ${learnsSentence(offer.encoding, learns.width, learns.people[level] ?? null)}`,
          ),
    );
  }

  /** Say what follows from what is chosen now. */
  #explain() {
    if (this.#shown === null) return;
    const { number, amount } = this.#shown.others;
    const place = this.#place();
    const chosen = this.#chosen();
    if (place === null || chosen === null) {
      say(part("limit-odds"), word("limit.odds.unchosen"));
      for (const id of ["limit-caution", "limit-others"]) say(part(id), null);
      return;
    }
    const own = String(chosen);
    say(part("limit-odds"), word("limit.odds", { odds: oddsAt(own), epsilon: decimal(own) }));
    say(part("limit-caution"), cautionSentence(this.#guess(place)));
    const total = decimal(String(amount.plus(chosen)));
    say(part("limit-others"), number === 0 ? null : word("limit.others", { number, total, own: decimal(own) }));
    const detail = part("limit-detail");
    const many = form().querySelector("select") !== null;
    detail.replaceChildren(...(many ? [this.#option(place, this.#marks(place))] : []));
  }
}
