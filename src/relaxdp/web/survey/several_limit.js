/** One limit for all questions of a survey, before any of them is seen. Nothing is chosen for the person. */

import { ZERO } from "../device/decimal.js";
import { divide, groupsOf } from "../device/survey.js";
import { boundPicture } from "../kit/bound.js";
import { h } from "../kit/dom.js";
import { listed, onLanguage } from "../kit/language.js";
import { partOf } from "../kit/page.js";
import { answersOf, cautionSentence, guessAt, often } from "../kit/reports.js";
import { complaint, onSubmit, part, say, show } from "./page.js";
import { learnsSentence, oddsAt, pieces, word } from "./words.js";

/** @typedef {import("../device/decimal.js").Amount} Amount */
/** @typedef {import("../device/survey.js").SurveyOffer} SurveyOffer */
/** @typedef {import("./introduced.js").Introduction} Introduction */
/** @typedef {{ number: number, amount: Amount }} Others what this browser agreed to elsewhere on this site */
/** @typedef {import("./introduced.js").Introduction["learns"]} Learns */

/** @typedef {{ offer: SurveyOffer, said: Introduction, learns: Learns[], others: Others }} Shown */

const MOST_CHOICES = 9;
const form = () => partOf("limit-form", HTMLFormElement);

/** @typedef {{ limit: Amount, given: Map<string, Amount> }} Choice what all may cost, and what each question gets of it */

/**
 * The limits to choose from: some of the questions at their first step, then all at their first, at their second, and so
 * on. At any limit between two of them some questions would go further than others.
 *
 * @param {SurveyOffer} offer
 * @returns {Choice[]}
 */
export function choicesOf({ questions }) {
  const levels = new Map(questions.map(({ id, offer }) => [id, offer.levels.map(({ epsilon }) => epsilon)]));
  const longest = Math.max(...[...levels.values()].map(({ length }) => length));
  const all = Array.from({ length: longest }, (_, step) =>
    [...levels.values()].map((own) => own[Math.min(step, own.length - 1)]).reduce((sum, part) => sum.plus(part), ZERO),
  );
  /** @type {Amount[]} */
  const some = [];
  for (const own of [...levels.values()].slice(0, -1)) some.push((some[some.length - 1] ?? ZERO).plus(own[0]));
  const limits = some.length + all.length > MOST_CHOICES ? all : [...some, ...all];
  const choices = limits.map((limit) => ({ limit, given: divide(levels, limit) }));
  return choices.filter(({ limit }, i) => i === 0 || choices[i - 1].limit.compare(limit) < 0);
}

/**
 * How good a guess becomes at the question with the fewest answers. Answers may depend on one another, so reports to all
 * questions tell something of each, and the whole limit counts.
 *
 * @param {SurveyOffer} offer
 * @param {Choice} choice
 */
export function easiestGuess({ questions }, { limit, given }) {
  const asked = questions.filter(({ id }) => given.has(id));
  return guessAt(Math.min(...asked.map(({ offer }) => answersOf(offer.encoding))), String(limit));
}

/** Shows what each limit means for both sides, and which questions are counted together. */
export class SeveralLimitView {
  /** @type {Shown | null} */
  #shown = null;
  /** @type {Choice[]} */
  #choices = [];

  /** @param {(upto: string) => Promise<void>} choose */
  constructor(choose) {
    const complain = complaint("limit-form", "limit-wrong");
    form().addEventListener("input", () => this.#explain());
    onLanguage(() => this.#say());
    onSubmit("limit-form", async () => {
      const chosen = this.#chosen();
      if (chosen !== null) return choose(String(chosen.limit));
      complain(() => word("limit.missing"), form().querySelector("input"));
    });
  }

  /**
   * @param {SurveyOffer} offer
   * @param {Introduction} said
   * @param {Learns[]} learns how many people each question takes at each step
   * @param {Others} others
   */
  show(offer, said, learns, others) {
    if (!show("limit")) return;
    this.#shown = { offer, said, learns, others };
    this.#choices = choicesOf(offer);
    this.#say();
  }

  /** Whoever begins anew chooses anew. */
  forget() {
    form().reset();
  }

  #say() {
    if (this.#shown === null) return;
    const { offer } = this.#shown;
    const chosen = this.#place();
    say(part("limit-legend"), word("several.legend"));
    say(part("limit-guess"), word("several.lead", { number: offer.questions.length }));
    say(part("limit-together"), togetherSentence(offer));
    const least = offer.questions.map((each) => each.offer.publishedFrom ?? 0).filter(Boolean);
    say(part("limit-published"), least.length === 0 ? null : word("limit.published", { least: Math.min(...least) }));
    part("limit-choices").replaceChildren(...this.#choices.map((_, place) => this.#radio(place)));
    /** @type {HTMLInputElement | null} */
    const button = form().querySelector(`input[value="${chosen}"]`);
    if (button !== null) button.checked = true;
    this.#explain();
  }

  /** @param {string} id */
  #number(id) {
    return 1 + (this.#shown?.offer.questions.findIndex((each) => each.id === id) ?? 0);
  }

  #place() {
    const text = new FormData(form()).get("limit");
    return typeof text === "string" ? Number(text) : null;
  }

  #chosen() {
    const place = this.#place();
    return place === null ? null : this.#choices[place];
  }

  /** @param {number} place */
  #radio(place) {
    const choice = this.#choices[place];
    const { offer } = /** @type {Shown} */ (this.#shown);
    const guess = easiestGuess(offer, choice);
    const most = h("strong", {}, word("limit.most", { often: often(guess.bound, guess.scale) }));
    const learns = this.#learns(choice);
    return h(
      "label",
      { class: "option" },
      h("input", { type: "radio", name: "limit", value: place, autocomplete: "off" }),
      h(
        "span",
        { class: "option-body" },
        h(
          "span",
          { class: "option-name" },
          this.#name(choice),
          ...this.#marks(place).map((mark) => h("span", { class: "badge" }, mark)),
        ),
        boundPicture(guess),
        h(
          "span",
          { class: "side" },
          `${word("limit.you")} `,
          ...pieces("several.bound", { bound: most, blind: guess.blind }),
        ),
        learns === null ? null : h("span", { class: "side" }, `${word("limit.survey")} ${learns}`),
      ),
    );
  }

  /** @param {Choice} choice */
  #name({ given }) {
    const { offer } = /** @type {Shown} */ (this.#shown);
    const all = offer.questions.length;
    if (given.size < all) return word("several.some", { number: given.size, all });
    const stepOf = (/** @type {SurveyOffer["questions"][number]} */ each) =>
      each.offer.levels.findIndex(({ epsilon }) => epsilon === given.get(each.id)) + 1;
    const step = Math.max(...offer.questions.map(stepOf));
    const steps = Math.max(...offer.questions.map((each) => each.offer.levels.length));
    return step === steps ? word("several.clearest", { all }) : word("several.step", { all, step, steps });
  }

  /** @param {number} place */
  #marks(place) {
    const { said } = /** @type {Shown} */ (this.#shown);
    const { asker, suggested } = said;
    const marks = [];
    if (place === 0) marks.push(word("limit.private"));
    if (place === this.#choices.length - 1) marks.push(word("limit.clear"));
    if (suggested !== null && String(this.#choices[place].limit) === suggested) {
      marks.push(asker === null ? word("limit.suggestedPlain") : word("limit.suggested", { asker }));
    }
    return marks;
  }

  /**
   * What the survey can learn of the question that takes the most people.
   *
   * @param {Choice} choice
   */
  #learns({ given }) {
    const { offer, learns } = /** @type {Shown} */ (this.#shown);
    const needs = offer.questions.flatMap(({ id, offer: each }, i) => {
      const own = learns[i];
      const level = each.levels.findIndex(({ epsilon }) => epsilon === given.get(id));
      return own === null || level < 0 ? [] : [{ each, width: own.width, people: own.people[level] ?? null }];
    });
    if (needs.length === 0) return null;
    const rank = (/** @type {number | null} */ people) => people ?? Number.POSITIVE_INFINITY;
    const { each, width, people } = needs.reduce((a, b) => (rank(b.people) > rank(a.people) ? b : a));
    return learnsSentence(each.encoding, width, people);
  }

  /** Say what follows from what is chosen now. */
  #explain() {
    if (this.#shown === null) return;
    const { offer, others } = this.#shown;
    const chosen = this.#chosen();
    if (chosen === null) {
      say(part("limit-odds"), word("limit.odds.unchosen"));
      for (const id of ["limit-caution", "limit-others"]) say(part(id), null);
      part("limit-detail").replaceChildren();
      return;
    }
    const own = String(chosen.limit);
    say(part("limit-odds"), word("several.odds", { odds: oddsAt(own), epsilon: own }));
    say(part("limit-caution"), cautionSentence(easiestGuess(offer, chosen)));
    const total = String(others.amount.plus(chosen.limit));
    const { number } = others;
    say(part("limit-others"), number === 0 ? null : word("limit.others", { number, total, own }));
    const out = offer.questions.filter(({ id }) => !chosen.given.has(id)).map(({ id }) => String(this.#number(id)));
    const sentence = out.length === 0 ? null : word("several.out", { number: out.length, questions: listed(out) });
    part("limit-detail").replaceChildren(...(sentence === null ? [] : [h("p", { class: "notice" }, sentence)]));
  }
}

/**
 * Which questions can be joined, said before anybody takes part: also by way of a third, and by one invitation for all.
 *
 * @param {SurveyOffer} offer
 */
export function togetherSentence({ cross, questions }) {
  const groups = groupsOf(cross).map((group) =>
    questions.flatMap(({ id }, place) => (group.has(id) ? [String(place + 1)] : [])),
  );
  const sentences = groups.map((group) => word("several.together", { questions: listed(group) }));
  if (groups[0]?.length === questions.length) return sentences[0];
  const invited = questions.filter(({ offer }) => offer.needsInvitation).length > 1;
  const apart = groups.length === 0 ? "several.apart" : "several.others";
  return [...sentences, word(invited ? "several.invited" : apart)].join(" ");
}
