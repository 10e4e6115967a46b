/** The first view: the person's own limit, before the question is seen. */

import { h } from "../kit/dom.js";
import { answersOf, cautionSentence, count, guessAt } from "../kit/reports.js";
import { input, onSubmit, part, say, show } from "./page.js";
import * as words from "./words.js";

/** @typedef {import("../device/decimal.js").Amount} Amount */
/** @typedef {import("../device/offer.js").Offer} Offer */

/** The slider stands at one of the campaign's levels: reports are made at these and at nothing between. */
export class LimitView {
  /** @type {Offer | null} */
  #offer = null;
  /** @type {Amount[]} */
  #choices = [];
  /** @type {{ number: number, amount: Amount } | null} */
  #others = null;

  /** @param {(chosen: { upto: string, invitation: string | null }) => Promise<void>} choose */
  constructor(choose) {
    input("limit-slider").addEventListener("input", () => this.#explain());
    onSubmit("limit-form", () =>
      choose({ upto: String(this.#chosen()), invitation: input("limit-invitation").value.trim() || null }),
    );
  }

  /**
   * @param {Offer} offer
   * @param {{ number: number, amount: Amount }} others what this browser agreed to in other surveys of this site
   * @param {string | null} invitation
   */
  show(offer, others, invitation) {
    if (!show("limit")) return;
    this.#offer = offer;
    this.#others = others;
    const levels = offer.levels.map(({ epsilon }) => epsilon);
    const { largestEpsilon } = offer;
    this.#choices = levels[levels.length - 1].compare(largestEpsilon) < 0 ? [...levels, largestEpsilon] : levels;
    const slider = input("limit-slider");
    slider.max = String(this.#choices.length - 1);
    slider.value = "0"; // the most private choice is the one that nobody has to make
    say(part("limit-series"), offer.series === null ? null : words.SERIES_AHEAD);
    say(part("limit-published"), words.publishedSentence(offer.publishedFrom));
    part("limit-chooser").hidden = this.#choices.length === 1;
    part("limit-invited").hidden = !offer.needsInvitation;
    input("limit-invitation").required = offer.needsInvitation;
    input("limit-invitation").value = invitation ?? "";
    this.#explain();
  }

  #chosen() {
    return this.#choices[Number(input("limit-slider").value)];
  }

  #explain() {
    const offer = /** @type {Offer} */ (this.#offer);
    const chosen = this.#chosen();
    const guess = guessAt(answersOf(offer.encoding), String(chosen));
    const [before, bound, after] = words.boundSentence(guess);
    say(part("limit-guess"), words.blindSentence(offer.encoding, guess));
    part("limit-bound").replaceChildren(before, h("strong", {}, bound), after);
    say(part("limit-caution"), cautionSentence(guess));
    const allowed = offer.levels.filter(({ epsilon }) => epsilon.compare(chosen) <= 0).length;
    say(part("limit-steps"), words.stepsSentence(allowed, offer.levels.length));
    say(part("limit-odds"), words.oddsAt(String(chosen)));
    say(part("limit-epsilon"), String(chosen));
    say(part("limit-others"), this.#together(chosen));
    for (const [kind, number] of /** @type {const} */ ([
      ["guess", guess.blind],
      ["more", guess.bound],
    ])) {
      document.querySelector(`#limit-picture .${kind}`)?.setAttribute("width", String((100 * number) / guess.scale));
    }
    input("limit-slider").setAttribute("aria-valuetext", `${bound}${after}`);
  }

  /** @param {Amount} chosen */
  #together(chosen) {
    const { number, amount } = /** @type {{ number: number, amount: Amount }} */ (this.#others);
    if (number === 0) return null;
    const surveys = number === 1 ? "another survey" : `${count(number)} other surveys`;
    return (
      `In this browser you also took part in ${surveys} of this site. Limits add up: together they are then epsilon ` +
      `${amount.plus(chosen)}, of which ${chosen} for this one.`
    );
  }
}
