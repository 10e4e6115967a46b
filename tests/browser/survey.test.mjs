/** What the survey page says: bounds that are promises, sentences for every case, nothing that is not text. */

import assert from "node:assert/strict";
import test from "node:test";
import { Amount } from "../../src/relaxdp/web/device/decimal.js";
import { encodingOf } from "../../src/relaxdp/web/device/encodings/registry.js";
import { RelaxdpError } from "../../src/relaxdp/web/device/errors.js";
import { wholeOf } from "../../src/relaxdp/web/device/state.js";
import { preferred, speak } from "../../src/relaxdp/web/kit/language.js";
import { answersOf, guessAt, reportWords } from "../../src/relaxdp/web/kit/reports.js";
import { takeEnclosed } from "../../src/relaxdp/web/survey/enclosed.js";
import SEVERAL from "../../src/relaxdp/web/survey/several/words/en.js";
import { choicesOf, easiestGuess, togetherSentence } from "../../src/relaxdp/web/survey/several_limit.js";
import { nowSentence } from "../../src/relaxdp/web/survey/status.js";
import GERMAN from "../../src/relaxdp/web/survey/words/de.js";
import EN from "../../src/relaxdp/web/survey/words/en.js";
import * as words from "../../src/relaxdp/web/survey/words.js";

const ENGLISH = { ...EN, ...SEVERAL };
speak(preferred(["en-GB"]), ENGLISH);

const SNACKS = encodingOf({ name: "categorical", values: ["crisps", "fruit", "none"] });
const AGES = encodingOf({ name: "wave", range: [0, 120], options: { bins: 61, window: 16 } });
const BITS = encodingOf({ name: "unary-optimised", values: ["a", "b", "c", "d"] });

test("a bound is never below e^eps p / (e^eps p + 1 - p), and never above it by more than one in the scale", () => {
  for (const answers of [2, 3, 4, 7, 10, 11, 52, 100, 1000, 54321]) {
    for (const epsilon of ["0.0001", "0.1", "0.5", "1", "2.5", "8", "30", "800"]) {
      const { scale, blind, bound, share } = guessAt(answers, epsilon);
      const p = 1 / answers;
      const odds = Math.exp(Math.min(700, Number(epsilon)));
      const exact = (odds * p) / (odds * p + 1 - p);
      assert.ok(Math.abs(share - exact) < 1e-9);
      assert.ok(bound >= scale * exact - 1e-6 && bound < scale * exact + 1 && bound <= scale);
      assert.ok(blind <= bound && Math.abs(blind - scale * p) <= 0.5);
      assert.ok(scale * p >= 10 - 1e-9, "a blind guess is a number that says something");
    }
  }
});

test("with several questions a guess at any of them is bounded by the limit for all", () => {
  const epsilons = ["0.5", "1", "2"].map((epsilon) => ({ epsilon: Amount.parse(epsilon) }));
  const question = (id, encoding) => ({ id, offer: { encoding, levels: epsilons } });
  const two = encodingOf({ name: "categorical", values: ["canteen", "home"] });
  const offer = { questions: [question("diet", SNACKS), question("lunch", two), question("bits", BITS)] };
  const guesses = choicesOf(offer).map((choice) => [String(choice.limit), easiestGuess(offer, choice)]);
  const exact = (limit, answers) => Math.exp(limit) / (Math.exp(limit) + answers - 1);
  assert.deepEqual(
    guesses.map(([limit, { blind, bound }]) => [limit, blind, bound]),
    [
      ["0.5", 33, 46],
      ["1", 50, 74],
      ["1.5", 50, 82],
      ["3", 50, 96],
      ["6", 50, 100],
    ],
  );
  for (const [limit, { share, blind }] of guesses) {
    assert.ok(Math.abs(share - exact(Number(limit), blind === 33 ? 3 : 2)) < 1e-12);
  }
});

test("limit and cost of a question are those of all questions that it was joined with", () => {
  const joined = (consent, spent, survey) => ({ consent, sent: [{ epsilon: spent }], survey });
  const canteen = { address: "c", limit: "3" };
  const campaigns = [joined("1", "1", canteen), joined("2", "0.5", canteen), joined("4", "2", null), joined("7", "5")];
  assert.deepEqual(wholeOf({ campaigns }, campaigns[0]), { limit: "3", spent: "1.5" });
  assert.deepEqual(wholeOf({ campaigns }, campaigns[1]), { limit: "3", spent: "1.5" });
  assert.deepEqual(wholeOf({ campaigns }, campaigns[2]), { limit: "4", spent: "2" });
  assert.deepEqual(wholeOf({ campaigns }, campaigns[3]), { limit: "7", spent: "5" });
});

test("odds are rounded up, and too many are not written out", () => {
  assert.equal(words.oddsAt("1"), "2.72");
  assert.equal(words.oddsAt("3"), "20.1");
  assert.equal(words.oddsAt("5"), "149");
  assert.equal(words.oddsAt("2000"), "more than a million");
});

test("which questions can be joined is said of all of them, also by way of a third or by an invitation", () => {
  const said = (cross, invited = []) => {
    const questions = ["a", "b", "c"].map((id) => ({ id, offer: { needsInvitation: invited.includes(id) } }));
    return togetherSentence({ cross, questions });
  };
  const apart = /kept apart|not told/;
  const all = said([
    ["a", "b"],
    ["c", "b"],
  ]);
  assert.match(all, /^Questions 1, 2 and 3 are counted together/);
  assert.doesNotMatch(all, apart);
  assert.match(said([["a", "c"]]), /^Questions 1 and 3 are counted together.* All other questions are kept apart\.$/);
  assert.match(said([], ["a"]), apart);
  for (const cross of [[], [["a", "c"]]]) {
    assert.match(said(cross, ["a", "b"]), /Your invitation goes along .* could tell by it which reports/);
    assert.doesNotMatch(said(cross, ["a", "b"]), apart);
  }
});

test("what a blind guess is depends on the kind of question", () => {
  const numeric = encodingOf({ name: "numeric", range: [0, 120] });
  const bloom = encodingOf({ name: "bloom", options: { bits: 64, hashes: 2, cohorts: 8 } });
  const said = (encoding) => words.blindSentence(encoding, guessAt(answersOf(encoding), "1"));
  assert.match(said(SNACKS), /3 possible answers.* 33 times in 100/);
  assert.match(said(numeric), /which half of the range.* 50 times in 100/);
  assert.equal(said(AGES), said(numeric));
  assert.match(said(bloom), /suspects one particular answer.* 10 times in 1,000/);
});

test("a report is said in words, and how it travelled stands beside them", () => {
  const shown = (encoding, report, cohort = null) => reportWords(encoding, { report, cohort });
  assert.deepEqual(shown(SNACKS, "fruit"), { text: "fruit", beside: null, raw: null });
  assert.deepEqual(shown(BITS, "Cg=="), { text: "b, d", beside: null, raw: "Cg==" });
  assert.equal(shown(BITS, "AA==").text, "none of the answers");
  const many = encodingOf({ name: "unary-optimised", values: Array.from({ length: 40 }, (_, i) => i) });
  assert.match(shown(many, btoa("\xff\xff\xff\xff\xff")).text, /^0, 1, .* 19 and 20 more$/);
  const words = encodingOf({ name: "bloom", options: { bits: 16, hashes: 2, cohorts: 8 } });
  const marks = shown(words, btoa("\x07\x80"), 3);
  assert.equal(marks.text, "a pattern of 16 marks, of which 4 are set: very many words fit it");
  assert.equal(marks.beside, "in group 3, drawn at random");
  const yesNo = encodingOf({ name: "bloom", options: { bits: 1, hashes: 1, cohorts: 1 } });
  assert.equal(shown(yesNo, "AQ==", 0).text, "yes");
});

test("a hashed report stands for the answers of its bucket, and for no others", async () => {
  const values = Array.from({ length: 30 }, (_, i) => `v${i}`);
  for (const buckets of [4, 300]) {
    const hashed = encodingOf({ name: "local-hash", values, options: { buckets } });
    const where = { key: new Uint8Array(32).fill(7), release: "r", attribute: "answer" };
    for (const [i, value] of values.entries()) {
      const at = { ...where, object: { type: "text", value: `o${i}` } };
      const { report } = await hashed.draw(at, hashed.keep(value), 2n ** 64n - 1n); // nearly always the true bucket
      assert.ok(hashed.named(report).includes(i));
      assert.ok(hashed.named(report).length < values.length);
    }
  }
});

test("a report of a number is said as a place on its scale", () => {
  const shown = (encoding, report) => reportWords(encoding, { report, cohort: null });
  const beside = "on a scale from 0 to 120";
  assert.deepEqual(shown(AGES, 30), { text: "near 45", beside, raw: "30" });
  assert.deepEqual(shown(AGES, 7), { text: "below 0", beside, raw: "7" });
  assert.deepEqual(shown(AGES, 75), { text: "above 120", beside, raw: "75" });
  const ends = encodingOf({ name: "numeric", range: [0, 120] });
  assert.deepEqual(shown(ends, 0), { text: "0, the lower end", beside, raw: null });
  assert.equal(shown(ends, 120).text, "120, the upper end");
  const near = (range, options, place) => shown(encodingOf({ name: "wave", range, options }), place).text;
  assert.equal(near([0, 1], { bins: 64, window: 1 }, 21), "near 0.333");
  assert.equal(near([1e15, 1e15 + 8], { bins: 9, window: 1 }, 3), "near 1,000,000,000,000,003");
  assert.equal(near([-1e300, 1e300], { bins: 1024, window: 1 }, 0), "near -1e+300");
  const meaning = words.meaningOf(AGES, { threshold: String(2n ** 63n) });
  assert.match(meaning, /about 61 report a place within 17 of their number/); // 1/2 + 1/2 * 16/76, and 2 * 17 / 2
});

test("what is going on is said in every state", () => {
  const level = (epsilon) => ({ epsilon, threshold: 1n });
  const levels = ["0.5", "1", "2"].map(level);
  const offer = (open, state = "open") => ({ levels, open: levels.slice(0, open), state, encoding: SNACKS });
  const details = (more) => ({ sent: [{ status: "sent" }], ended: null, spent: "0.5", consent: "2", ...more });
  const away = new RelaxdpError("unreachable_error", "x cannot be reached.");
  for (const [said, expected] of [
    [nowSentence(details({}), offer(1), null), /up to step 3/],
    [nowSentence(details({ consent: "0.7" }), offer(2), null), /gone on to step 2 without you/],
    [nowSentence(details({ spent: "2" }), offer(3), null), /the last step/],
    [nowSentence(details({}), offer(0, "paused"), null), /pauses\. Nothing is waiting/],
    [nowSentence(details({ sent: [] }), offer(0, "waiting"), null), /has not begun\. Your answer is kept here/],
    [nowSentence(details({ sent: [{ status: "written" }] }), offer(1), away), /waiting to be sent/],
    [nowSentence(details({}), null, away), /has been received/],
    [nowSentence(details({}), offer(1), new RelaxdpError("consent_error", "")), /more than your limit allows/],
    [nowSentence(details({ ended: "withdrawn" }), offer(1), null), /does not come back/],
    [nowSentence(details({ ended: "withdrawn", sent: [] }), offer(1), null), /Nothing had been sent/],
    [nowSentence(details({ ended: "withdrawing" }), offer(1), away), /does not know yet/],
    [nowSentence(details({ ended: "finished" }), offer(0, "finished"), null), /has finished/],
    [
      nowSentence(details({}), offer(1), new RelaxdpError("level_error", "epsilon may only grow.")),
      /not the same any more/,
    ],
  ]) {
    assert.match(said, expected);
  }
});

test("what the page encloses is taken once, and what cannot be read is not taken", () => {
  const pageWith = (content) => {
    let meta = { getAttribute: () => content, remove: () => (meta = null) };
    return { querySelector: () => meta };
  };
  const page = pageWith('{"tag":"\\"a\\"","content":{"id":"snacks"}}');
  assert.deepEqual(takeEnclosed(page), { tag: '"a"', content: { id: "snacks" } });
  assert.equal(takeEnclosed(page), null);
  for (const wrong of ["", "no JSON", "null", "[]", '{"tag":1,"content":{}}', '{"tag":"a"}', null]) {
    assert.equal(takeEnclosed(pageWith(wrong)), null);
  }
});

test("what the survey can learn is said with two digits that count", () => {
  assert.equal(words.shortCount(1), 1);
  assert.equal(words.shortCount(99), 99);
  assert.equal(words.shortCount(1234), 1300);
  assert.equal(words.shortCount(602858), 610_000);
  assert.match(words.learnsSentence(SNACKS, 0.05, 1234), /about 1,300 people .* within 5 percentage points/);
  assert.match(words.learnsSentence(AGES, 12, 1), /^1 person .* average to within 12/);
  assert.match(words.learnsSentence(SNACKS, 0.05, null), /too little to learn anything/);
});

test("the same in German, with its numbers", () => {
  speak(preferred(["de-DE"]), GERMAN);
  try {
    assert.equal(words.oddsAt("1"), "2,72");
    assert.match(words.learnsSentence(SNACKS, 0.025, 12_345), /etwa 13\.000 Menschen .* auf 2,5 Prozentpunkte/);
    assert.match(words.closedWords("waiting", "2999-01-01T12:00:00Z").sentence, /am 1\. Januar 2999/);
    assert.equal(reportWords(AGES, { report: 29, cohort: null }).text, "etwa 43");
  } finally {
    speak(preferred(["en-GB"]), ENGLISH);
  }
});
