/** From what a person typed about several questions to a survey of them, with a sentence for whatever cannot be meant. */

import { Amount, ZERO } from "../device/decimal.js";
import { DECIMAL, NAME, textOf } from "../kit/form.js";
import { definitionOf, INTRODUCTION, levelsOf, valuesOf, wrongDefinition } from "./definition.js";

/** @typedef {import("../kit/form.js").Wrong} Wrong */

export const MOST_QUESTIONS = 20;
const MOST_PAIRS = 20;
const MOST_CELLS = 400;
const LONGEST = 20; // digits of a level that are worth adding up
const LONGEST_NAME = 60; // questions are called after their survey, with a number behind
// What each question has for itself. Everything else that the form asks is of all questions.
const OWN = ["question", "kind", "values", "low", "high"];

/**
 * The name under which the form asks something about one question, counted from 1.
 *
 * @param {string} name
 * @param {number} place
 */
export const ownField = (name, place) => (place === 1 ? name : `${name}-${place}`);

/**
 * The name under which the form asks whether two questions are counted together.
 *
 * @param {number} one
 * @param {number} other
 */
export const pairField = (one, other) => `together-${one}-${other}`;

/**
 * Return the places of all questions, counted from 1.
 *
 * @param {FormData} data
 */
export function placesOf(data) {
  const places = [1];
  while (data.has(ownField("question", places.length + 1))) places.push(places.length + 1);
  return places;
}

/**
 * Return what was typed about one question, as if the form asked that one alone.
 *
 * @param {FormData} data
 * @param {number} place
 */
export function questionAt(data, place) {
  const found = new FormData();
  for (const [name, value] of data) found.append(name, value);
  for (const name of OWN) found.set(name, textOf(data, ownField(name, place)));
  return found;
}

/**
 * Return the pairs of questions that can be counted together: those with answers to choose from.
 *
 * @param {FormData} data
 * @returns {[number, number][]}
 */
export function pairsOf(data) {
  const places = placesOf(data).filter((place) => textOf(data, ownField("kind", place)) === "choice");
  return places.flatMap((one, first) =>
    places.slice(first + 1).map((other) => /** @type {[number, number]} */ ([one, other])),
  );
}

/** @param {FormData} data */
const chosenPairs = (data) => pairsOf(data).filter((pair) => data.has(pairField(...pair)));

/**
 * Return the limits that suffice for all questions, level by level.
 *
 * @param {FormData} data
 */
export function limitsOf(data) {
  const places = placesOf(data);
  if (places.length === 1) return levelsOf(data);
  const levels = levelsOf(data).filter((level) => DECIMAL.test(level) && Number(level) > 0 && level.length <= LONGEST);
  return levels.map((level) => places.reduce((sum) => sum.plus(Amount.parse(level)), ZERO).toString());
}

/**
 * Return a sentence for each field that has to be changed. The service checks everything again.
 *
 * @param {FormData} data
 * @returns {Wrong}
 */
export function wrongSurvey(data) {
  const places = placesOf(data);
  if (places.length === 1) return wrongDefinition(data);
  /** @type {Wrong} */
  const wrong = {};
  for (const place of places) {
    const question = questionAt(data, place);
    for (const [name, sentence] of Object.entries(wrongDefinition(question)))
      wrong[OWN.includes(name) ? ownField(name, place) : name] ??= sentence;
    if (textOf(question, "question") === "") wrong[ownField("question", place)] = "Write the question, or remove it.";
  }
  const name = textOf(data, "id");
  if (NAME.test(name) && name.length > LONGEST_NAME) wrong.id = `At most ${LONGEST_NAME} letters, digits and hyphens.`;
  const pairs = chosenPairs(data);
  for (const [one, other] of pairs) {
    const cells = valuesOf(questionAt(data, one)).length * valuesOf(questionAt(data, other)).length;
    if (cells > MOST_CELLS)
      wrong[pairField(one, other)] = `Their table would have ${cells} cells, and ${MOST_CELLS} are the most.`;
  }
  if (pairs.length > MOST_PAIRS) wrong[pairField(...pairs[MOST_PAIRS])] = `At most ${MOST_PAIRS} pairs.`;
  return wrong;
}

/**
 * Return the survey that is created: one introduction, and a campaign for each question.
 *
 * @param {FormData} data of several questions
 */
export function surveyOf(data) {
  const name = textOf(data, "id") || randomName();
  const id = (/** @type {number} */ place) => `${name}-${place}`;
  /** @type {Record<string, unknown>} */
  const survey = { id: name, cross: chosenPairs(data).map((pair) => pair.map(id)) };
  survey.questions = placesOf(data).map((place) => {
    const question = definitionOf(questionAt(data, place));
    for (const each of [...INTRODUCTION, "colour", "shows_results"]) {
      if (each in question) survey[each] = question[each];
      delete question[each];
    }
    return { ...question, id: id(place) };
  });
  return survey;
}

/** The questions of a pair are named by their ids, so that a survey without a name gets one here. */
const randomName = () =>
  [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
