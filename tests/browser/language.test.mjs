/** Languages: every one says everything, and numbers are read and written as its readers do. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

import * as language from "../../src/relaxdp/web/kit/language.js";

const WEB = new URL("../../src/relaxdp/web/", import.meta.url);
const ROOMS = ["kit", "survey", "survey/several"];
const fileOf = async (room, name) => (await import(new URL(`${room}/words/${name}.js`, WEB))).default;
/** All that a room says in a language: the kit is there in English in any case, and several questions come beside. */
const wordsOf = async (room, name) => ({
  ...(name === "en" && room !== "survey/several" ? await fileOf("kit", "en") : {}),
  ...(await fileOf(room, name)),
});
const placesIn = (text) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort().join(" ");
/** Every wording of a sentence has the places of the others, but for a number that may be said in a word. */
const shape = (wording) =>
  typeof wording === "string" ? placesIn(wording) : `plural ${placesIn(`${wording.one} ${wording.other}`)}`;

for (const room of ROOMS) {
  test(`all languages of ${room} have the same sentences with the same places`, async () => {
    const files = readdirSync(new URL(`${room}/words/`, WEB)).sort();
    assert.deepEqual(
      files,
      Object.keys(language.LANGUAGES)
        .map((name) => `${name}.js`)
        .sort(),
    );
    const english = await wordsOf(room, "en");
    for (const name of Object.keys(language.LANGUAGES)) {
      const words = await wordsOf(room, name);
      assert.deepEqual(Object.keys(words), Object.keys(english), `${name} has other names, or in another order`);
      for (const [key, wording] of Object.entries(words)) {
        assert.equal(shape(wording), shape(english[key]), `${name}: ${key}`);
        for (const text of typeof wording === "string" ? [wording] : Object.values(wording)) {
          assert.equal(text, text.trim());
          assert.ok(text.length > 0);
        }
      }
    }
    const german = await wordsOf(room, "de");
    const same = Object.keys(english).filter((key) => JSON.stringify(english[key]) === JSON.stringify(german[key]));
    assert.deepEqual(same, [], "nothing was left in English");
  });
}

test("what a page names is there, and everything that is there is used", async () => {
  const words = { ...(await wordsOf("survey", "en")), ...(await fileOf("survey/several", "en")) };
  const page = readFileSync(new URL("survey/page.html", WEB), "utf-8");
  const named = [...page.matchAll(/data-word(?:-label)?="([^"]*)"/g)].map(([, name]) => name);
  assert.ok(named.length > 40);
  for (const name of named) assert.ok(Object.hasOwn(words, name), name);
  const scripts = ["survey", "kit"].flatMap((room) =>
    readdirSync(new URL(`${room}/`, WEB))
      .filter((file) => file.endsWith(".js"))
      .map((file) => readFileSync(new URL(`${room}/${file}`, WEB), "utf-8")),
  );
  const used = `${page}${scripts.join("")}`;
  // These are put together from a name that a device gives.
  const made = /^(missing|ended)\./;
  const idle = Object.keys(words).filter((name) => !made.test(name) && !used.includes(`"${name}"`));
  assert.deepEqual(idle, []);
});

test("a browser's first language that is known is taken, unless the reader chose another", () => {
  const chosen = (wanted, kept) => Object.values(language.preferred(wanted, kept)).join(" ");
  assert.equal(chosen(["de-AT", "en"]), "de de-AT");
  assert.equal(chosen(["fr-FR", "en-US", "de"]), "en en-US");
  assert.equal(chosen(["fr"]), "en en-GB");
  assert.equal(chosen([]), "en en-GB");
  assert.equal(chosen(["en-US", "de-CH"], "de"), "de de-CH");
  assert.equal(chosen(["en-US"], "de"), "de de-DE");
  assert.equal(chosen(["de"], "<nonsense>"), "de de-DE");
});

test("sentences have their fields, plurals and numbers", async () => {
  language.speak(language.preferred(["en-GB"]), {
    devices: { one: "{number} device", other: "{number} devices" },
    a: "{b}!",
  });
  assert.equal(language.word("devices", { number: 1 }), "1 device");
  assert.equal(language.word("devices", { number: 0 }), "0 devices");
  assert.equal(language.word("devices", { number: 12_345 }), "12,345 devices");
  assert.equal(language.word("a", { b: "{c}" }), "{c}!", "what is put in is not read again");
  assert.throws(() => language.word("missing"), TypeError);
  assert.throws(() => language.word("a"), TypeError);
  let told = 0;
  language.onLanguage(() => {
    told += 1;
  });
  language.speak(language.preferred(["de-DE"]), await wordsOf("kit", "de"));
  assert.equal(told, 1);
  assert.equal(language.word("often", { number: 1234, scale: 10_000 }), "1.234 von 10.000 Mal");
});

test("numbers are read and written as in the language", async () => {
  const cases = {
    "en-GB": [
      ["7.5", 7.5],
      ["7,5", 7.5],
      ["1,500", 1500],
      ["1,500.25", 1500.25],
      ["-3", -3],
      ["−3", -3],
      [".5", 0.5],
    ],
    "de-DE": [
      ["7,5", 7.5],
      ["7.5", 7.5],
      ["1.500", 1500],
      ["1.500,25", 1500.25],
      ["-3", -3],
      ["1 500", 1500],
      ["1e3", 1000],
    ],
  };
  const none = ["", " ", "seven", "1.2.3", "1,2,3", "7,5,", "0x10", "Infinity", "NaN", "--1", "1e", "1.5000,2,1"];
  for (const [locale, known] of Object.entries(cases)) {
    language.speak(language.preferred([locale]), await wordsOf("kit", locale.slice(0, 2)));
    for (const [text, number] of known) assert.equal(language.readNumber(text), number, `${locale}: ${text}`);
    for (const text of none) assert.ok(Number.isNaN(language.readNumber(text)), `${locale}: ${text}`);
    for (const number of [0, 7.5, -0.1, 2026, 12_345.678, 1e15 + 3, 0.000001, 1 / 3]) {
      assert.equal(language.readNumber(language.plainNumber(number)), number, `${locale}: ${number}`);
    }
  }
  assert.equal(language.plainNumber(12_345.5), "12.345,5");
  assert.equal(language.plainNumber(2026), "2026");
  assert.equal(language.plainNumber(-1e300), "-1e+300");
});
