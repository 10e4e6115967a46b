// A survey of several questions, from what was typed: what is of one question, what is of all, and what cannot be meant.

import assert from "node:assert/strict";
import { test } from "node:test";

const { limitsOf, pairsOf, surveyOf, wrongSurvey } = await import("../../src/relaxdp/web/dashboard/several.js");
const { without } = await import("../../src/relaxdp/web/dashboard/questions.js");

const ALL = { levels: "0.1, 0.7", expected: "1000", advance: "operator", "encoding-choice": "auto" };
const FIRST = { question: "A?", kind: "choice", values: "a\nb", low: "", high: "" };
const SECOND = { "question-2": "B?", "kind-2": "choice", "values-2": "c\nd\ne", "low-2": "", "high-2": "" };
const THIRD = { "question-3": "C?", "kind-3": "number", "values-3": "", "low-3": "0", "high-3": "9" };

/** @param {...Record<string, string>} typed */
function dataOf(...typed) {
  const data = new FormData();
  for (const [name, value] of Object.entries(Object.assign({}, ...typed))) data.set(name, value);
  return data;
}

test("one introduction, and for each question its own answers and the same levels", () => {
  const more = {
    "encoding-number": "numeric",
    about: "All",
    coloured: "on",
    colour: "#112233",
  };
  const data = dataOf(ALL, FIRST, SECOND, THIRD, more, { id: "s", half_width: "2", "together-1-2": "on" });
  const levels = [{ epsilon: "0.1" }, { epsilon: "0.7" }];
  const aim = (/** @type {number} */ half) => ({ half_width: half, confidence_level: 0 });
  const same = { levels, invitations: false };
  assert.deepEqual(wrongSurvey(data), {});
  assert.deepEqual(surveyOf(data), {
    id: "s",
    about: "All",
    colour: "#112233",
    cross: [["s-1", "s-2"]],
    questions: [
      {
        ...same,
        id: "s-1",
        question: "A?",
        encoding: { name: "auto", options: {}, values: ["a", "b"] },
        target: aim(0.02),
      },
      {
        ...same,
        id: "s-2",
        question: "B?",
        encoding: { name: "auto", options: {}, values: ["c", "d", "e"] },
        target: aim(0.02),
      },
      { ...same, id: "s-3", question: "C?", encoding: { name: "numeric", options: {}, range: [0, 9] }, target: aim(2) },
    ],
  });
  assert.match(surveyOf(dataOf(ALL, FIRST, SECOND)).id, /^[0-9a-f]{16}$/);
});

test("limits add up exactly, and only answers to choose from are counted together", () => {
  assert.deepEqual(limitsOf(dataOf(ALL, FIRST)), ["0.1", "0.7"]);
  assert.deepEqual(limitsOf(dataOf(ALL, FIRST, SECOND, THIRD)), ["0.3", "2.1"]);
  assert.deepEqual(limitsOf(dataOf(ALL, FIRST, SECOND, { levels: "0, x, 1e5" })), []);
  assert.deepEqual(pairsOf(dataOf(ALL, FIRST, SECOND, THIRD)), [[1, 2]]);
});

test("a sentence stands at the field that is wrong", () => {
  const many = Array.from({ length: 201 }, (_, place) => `v${place}`).join("\n");
  const wrong = (/** @type {Record<string, string>} */ typed) =>
    Object.keys(wrongSurvey(dataOf(ALL, FIRST, SECOND, THIRD, typed)));
  assert.deepEqual(wrong({ "question-2": " " }), ["question-2"]);
  assert.deepEqual(wrong({ "values-2": "c" }), ["values-2"]);
  assert.deepEqual(wrong({ "high-3": "0" }), ["high-3"]);
  assert.deepEqual(wrong({ levels: "1, 1" }), ["levels"]);
  assert.deepEqual(wrong({ id: "a".repeat(61) }), ["id"]);
  assert.deepEqual(wrong({ "values-2": many }), []);
  assert.deepEqual(wrong({ "values-2": many, "together-1-2": "on" }), ["together-1-2"]);
  const questions = Array.from({ length: 6 }, (_, place) => {
    const fields = Object.entries(SECOND).map(([name, value]) => [name.replace("2", `${place + 2}`), value]);
    return Object.fromEntries(fields);
  });
  const data = dataOf(ALL, FIRST, ...questions);
  for (const [one, other] of pairsOf(data)) data.set(`together-${one}-${other}`, "on");
  assert.deepEqual(Object.keys(wrongSurvey(data)), ["together-6-7"]); // the last of 21
});

test("questions after one that is removed move up, and their pairs with them", () => {
  const pairs = { "together-1-2": "on", "together-1-3": "on", "together-2-3": "on" };
  assert.deepEqual(without(dataOf(ALL, FIRST, SECOND, THIRD, pairs), 2), {
    "question-2": "C?",
    "kind-2": "number",
    "values-2": "",
    "low-2": "0",
    "high-2": "9",
    "together-1-2": "on",
  });
});
