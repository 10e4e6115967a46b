// The encodings of the browser's module against the vectors shared with the Python package, and known hashes.

import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { Bloom, Categorical, LocalHash, Numeric, RelaxdpError, Unary, Wave, encodingOf, threshold } = await import(
  "../../src/relaxdp/web/device/relaxdp.js"
);
const { bucketOf } = await import("../../src/relaxdp/web/device/encodings/local_hash.js");
const { md5 } = await import("../../src/relaxdp/web/device/encodings/md5.js");
const { roundToBin } = await import("../../src/relaxdp/web/device/encodings/range.js");
const { readValue, writeValue } = await import("../../src/relaxdp/web/device/typed.js");

const LONG = process.env.RELAXDP_LONG === "1"; // make test-long
const ONE = 2n ** 64n;
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);
const WHERE = { key: KEY, release: "r", attribute: "a", object: { type: "text", value: "o" } };

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const code = (expected) => (error) => error instanceof RelaxdpError && error.code === expected;
const integers = (count) => Array.from({ length: count }, (_, value) => ({ type: "integer", value }));

/** Read a typed value of a file: integers and numbers are decimal text there, and bytes are hexadecimal. */
function typed({ type, value }) {
  if (type === "number") return { type, value: Number(value) };
  if (type === "bytes") return { type, value: unhex(value) };
  return { type, value };
}

async function vectors(name) {
  const { version, cases } = JSON.parse(await readFile(new URL(`../vectors/${name}`, import.meta.url), "utf8"));
  assert.equal(version, 1);
  return cases;
}

// ---- The vectors shared with the Python package

const MADE = {
  "unary-symmetric": (values) => new Unary(values, { optimised: false }),
  "unary-optimised": (values) => new Unary(values),
  "local-hash": (values, { buckets }) => new LocalHash(values, { buckets }),
};

test("every case of encodings-1.json", async () => {
  const cases = await vectors("encodings-1.json");
  assert.equal(cases.length, 90);
  for (const [index, { key, encoding, values, object, levels, ...rest }] of cases.entries()) {
    const made = MADE[encoding](values.map(typed), rest);
    assert.equal(made.name, encoding);
    const path = await made.path({ ...rest, key: unhex(key), object: typed(object) });
    for (const { epsilon, threshold: T, report } of levels) {
      assert.equal(String(made.threshold(epsilon)), T, `case ${index}: ${epsilon}`);
      assert.equal(hex(await path.at(epsilon)), report, `case ${index}: ${epsilon}`);
    }
  }
});

test("every case of bloom-numeric-1.json", async () => {
  const cases = await vectors("bloom-numeric-1.json");
  assert.equal(cases.length, 80);
  for (const [index, { key, encoding, object, levels, truth, ...rest }] of cases.entries()) {
    if (!LONG && index % 3 > 0) continue; // Chromium tries all of them each time
    const where = { key: unhex(key), release: rest.release, attribute: rest.attribute, object: typed(object) };
    const bloom = encoding === "bloom";
    const made = bloom ? new Bloom(rest) : new Numeric(Number(rest.low), Number(rest.high));
    const path = await made.path({ ...where, truth: bloom ? truth : Number(truth) });
    for (const { epsilon, threshold: T, report, cohort } of levels) {
      assert.equal(String(made.threshold(epsilon)), T, `case ${index}: ${epsilon}`);
      const read = await path.at(epsilon);
      assert.equal(bloom ? hex(read) : read, bloom ? report : Number(report), `case ${index}: ${epsilon}`);
      if (bloom) assert.equal(await made.cohortOf(where), cohort, `case ${index}`);
    }
  }
});

test("every case of wave-1.json", async () => {
  const cases = await vectors("wave-1.json");
  assert.equal(cases.length, 54);
  for (const [index, { key, object, low, high, levels, truth, ...rest }] of cases.entries()) {
    const made = new Wave(Number(low), Number(high), rest);
    const path = await made.path({ ...rest, key: unhex(key), object: typed(object), truth: Number(truth) });
    for (const { epsilon, threshold: T, report } of levels) {
      assert.equal(String(made.threshold(epsilon)), T, `case ${index}: ${epsilon}`);
      assert.equal(await path.at(epsilon), report, `case ${index}: ${epsilon}`);
    }
  }
});

// ---- Parts

test("md5 agrees with RFC 1321, and with another implementation at every length around its blocks", () => {
  const digests = {
    "": "d41d8cd98f00b204e9800998ecf8427e",
    a: "0cc175b9c0f1b6a831c399e269772661",
    abc: "900150983cd24fb0d6963f7d28e17f72",
    "message digest": "f96b697d7cb7938d525a2f31aaf161d0",
    abcdefghijklmnopqrstuvwxyz: "c3fcd3d76192e4007dfb496cca67e13b",
    ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789: "d174ab98d277d9f5a5611c2c9f419d9f",
    ["1234567890".repeat(8)]: "57edf4a22be3c955ac49da2e2107b67a",
  };
  for (const [text, digest] of Object.entries(digests)) assert.equal(hex(md5(Buffer.from(text))), digest, text);
  for (let length = 0; length < 200; length += 1) {
    const message = Uint8Array.from({ length }, (_, i) => (i * 37 + length) & 255);
    assert.equal(hex(md5(message)), createHash("md5").update(message).digest("hex"), `${length} bytes`);
  }
});

test("the bits of a word are those of Google's client", async () => {
  assert.deepEqual(await new Bloom({ bits: 128, hashes: 2, cohorts: 64 }).bitsOf("hello", 5), [96, 14]);
  assert.deepEqual(await new Bloom({ bits: 1, hashes: 1, cohorts: 1 }).bitsOf("true", 0), [0]);
  assert.deepEqual(await new Bloom({ bits: 1, hashes: 1, cohorts: 1 }).bitsOf("false", 0), []);
});

test("epsilon is divided among symbols exactly, as if it had been written divided", () => {
  for (const [whole, parts, part] of [
    ["2", 2, "1"],
    ["4.4", 4, "1.1"],
    ["0.32", 32, "0.01"],
    ["177", 2, "88.5"],
  ]) {
    assert.equal(threshold(whole, 2, parts), threshold(part, 2), `${whole} / ${parts}`);
  }
  assert.equal(threshold("178", 2, 2), ONE - 1n);
  assert.equal(threshold("9e999999", 2, 32), ONE - 1n);
  // A third of 1 is no decimal number: it lies between its neighbours of 30 digits.
  const third = "3".repeat(30);
  assert.ok(threshold(`0.${third}`, 2) <= threshold("1", 2, 3));
  assert.ok(threshold("1", 2, 3) <= threshold(`0.${third.slice(1)}4`, 2));
  for (const parts of [0, -1, 1.5, "2", NaN, 1001])
    assert.throws(() => threshold("1", 2, parts), code("parts_invalid"));
});

test("a number is rounded up below its exact share of all words, and not at it", () => {
  const cases = [
    [0, 0, 120, 2, 0, 0n],
    [120, 0, 120, 2, 1, 0n],
    [60, 0, 120, 2, 0, ONE / 2n],
    [0.1, 0, 1, 2, 0, 1844674407370955264n], // floor(2^64 * binary64 0.1), which is no tenth
    [-1e300, -1e300, 1e300, 2, 0, 0n],
    [5e-324, 0, 1, 2, 0, 0n],
    [1, 0, 3, 2, 0, ONE / 3n],
    [1, 0, 3, 3, 0, (2n * ONE) / 3n],
    [2, 0, 3, 3, 1, ONE / 3n],
    [3, 0, 3, 1024, 1023, 0n],
    [-5, -7, 1, 9, 2, 0n],
    [0.3, 0, 1, 11, 2, ONE - 2n ** 11n], // binary64 0.3 lies below three tenths, by less than 2^-54
  ];
  for (const [number, low, high, bins, bin, boundary] of cases) {
    const rounded = (word) => roundToBin(word, number, { low, high, bins });
    const said = `${number} of ${low} .. ${high}, ${bins} bins`;
    if (boundary > 0n) assert.equal(rounded(boundary - 1n), bin + 1, said);
    for (const word of [boundary, ONE - 1n]) assert.equal(rounded(word), bin, said);
    assert.equal(rounded(0n), bin + (boundary > 0n ? 1 : 0), said);
  }
});

test("a truth that is spread over a window has its threshold from a fraction, and all places for it do not", () => {
  assert.equal(threshold("2", 95, 1, 32), 12594542084283495627n); // as in wave-1.json
  assert.equal(threshold("1", 8, 1, 4), threshold("1", 2));
  assert.ok(threshold("1", 95) < threshold("1", 95, 1, 32));
  assert.equal(threshold("5.4e-20", 1025, 1, 1024), 0n);
  assert.equal(threshold("5.5e-20", 1025, 1, 1024), 1n);
  for (const window of [0, -1, 1.5, "2", NaN, 95, 96])
    assert.throws(() => threshold("1", 95, 1, window), code("window_invalid"));
});

test("a place counts for the number in the middle of those that lead there", () => {
  const wave = new Wave(0, 120, { bins: 61, window: 4 });
  assert.deepEqual(
    [0, 1, 2, 63].map((place) => wave.numberAt(wave.placeOf(place))),
    [-3, -1, 1, 123],
  );
  const ends = new Numeric(0, 120);
  assert.deepEqual(
    [0, 1].map((place) => ends.numberAt(place)),
    [0, 120],
  );
  assert.deepEqual(
    [0, 1].map((place) => ends.placeOf(ends.reported(place))),
    [0, 1],
  );
});

test("local hashing spreads values evenly, as its formula says", () => {
  // p = 2^31 - 1 buckets are the affine map itself: a = 1, b = 0 leaves the point.
  assert.equal(bucketOf(1n, 0, 2 ** 31 - 1), Number(506952122n ** 5n % (2n ** 31n - 1n)));
  assert.equal(bucketOf(0n, 12345, 7), 0, "a = 0 and b = 0");
  assert.equal(bucketOf((2n ** 31n - 2n) << 32n, 3, 7), 6, "b = p - 1 lies in the last bucket");
  assert.equal(bucketOf(ONE - 1n, 3, 7), 0, "2^31 - 1 is 0 modulo p");
});

test("what is refused", async () => {
  for (const buckets of [1, 0, 65_537, 2.5, "4", undefined, true]) {
    assert.throws(() => new LocalHash(integers(3), { buckets }), code("values_invalid"));
  }
  for (const [low, high] of [
    [1, 1],
    [2, 1],
    [NaN, 1],
    [0, Infinity],
    [-1e308, 1e308],
    [0, 1e-300],
    ["0", 1],
  ]) {
    assert.throws(() => new Numeric(low, high), code("range_invalid"), `${low} .. ${high}`);
  }
  for (const [bins, window] of [
    [1, 1],
    [1025, 1],
    [64, 0],
    [64, 3],
    [64, 2048],
    [2.5, 4],
    ["64", 4],
    [64, true],
    [64, undefined],
  ]) {
    assert.throws(() => new Wave(0, 1, { bins, window }), code("shape_invalid"), `${bins}, ${window}`);
  }
  assert.throws(() => new Wave(1, 0, { bins: 64, window: 4 }), code("range_invalid"));
  for (const [bits, hashes, cohorts] of [
    [0, 1, 1],
    [65_537, 1, 1],
    [8, 17, 1],
    [8, 1, 0],
    [1, 2, 1],
    [8, 1.5, 1],
    ["8", 1, 1],
  ]) {
    assert.throws(() => new Bloom({ bits, hashes, cohorts }), code("shape_invalid"));
  }
  for (const made of [
    new Unary(integers(3)),
    new LocalHash(integers(3), { buckets: 4 }),
    new Categorical(integers(3)),
  ]) {
    for (const truth of [3, -1, 0.5, "1", null]) {
      await assert.rejects(made.path({ ...WHERE, truth }), code("truth_invalid"));
    }
    assert.throws(() => made.threshold("1e-30"), code("epsilon_too_small"));
  }
  const wave = { bins: 64, window: 16 };
  for (const truth of [121, -1, NaN, "5", null]) {
    await assert.rejects(new Numeric(0, 120).path({ ...WHERE, truth }), code("truth_invalid"));
    await assert.rejects(new Wave(0, 120, wave).path({ ...WHERE, truth }), code("truth_invalid"));
  }
  await assert.rejects(new Wave(0, 120, { ...wave, clip: true }).path({ ...WHERE, truth: NaN }), code("truth_invalid"));
});

test("values travel in one form, and come back as what they were", () => {
  for (const written of [
    "",
    "7",
    7,
    -3,
    { integer: "9223372036854775808" },
    { integer: "-9007199254740993" },
    { bytes: "00ff" },
    { bytes: "" },
    { uuid: "00112233-4455-6677-8899-aabbccddeeff" },
    { number: "0x1.999999999999ap-4" },
    { number: "-0x1.8000000000000p+1" },
    { number: "0x0.0p+0" },
    { number: "0x0.0000000000001p-1022" },
    { number: "0x1.fffffffffffffp+1023" },
  ]) {
    assert.deepEqual(writeValue(readValue(written)), written);
  }
  assert.equal(readValue({ number: "0x1.8p+1" }).value, 3);
  for (const written of [
    null,
    true,
    1.5,
    2 ** 53,
    [],
    {},
    { integer: 5 },
    { integer: "05" },
    { integer: "1", uuid: "2" },
    { bytes: "0" },
    { bytes: "0g" },
    { number: "0x1p+1024" },
    { number: "0x1.0p+1024" },
    { number: "nan" },
    { uuid: "5" },
    { psychic: "x" },
    "\ud800",
  ]) {
    assert.throws(() => readValue(written), RelaxdpError, JSON.stringify(written));
  }
});

test("answers are kept in one form, or refused without being shown", () => {
  const boolean = new Bloom({ bits: 1, hashes: 1, cohorts: 1 });
  for (const yes of ["true", "TRUE", "1", 1, true]) assert.equal(boolean.keep(yes), "true");
  for (const no of ["false", "0", 0, false]) assert.equal(boolean.keep(no), "false");
  const word = new Bloom({ bits: 8, hashes: 1, cohorts: 1 });
  assert.equal(word.keep("Ka\u0308se"), "K\u00e4se");
  const numbers = new Numeric(0, 120);
  assert.deepEqual(numbers.keep(41), { number: "0x1.4800000000000p+5" });
  assert.deepEqual(numbers.keep(-0), { number: "0x0.0p+0" });
  const declared = new Unary([7, 8].map((value) => ({ type: "integer", value })));
  assert.equal(declared.keep(7), 7);
  assert.equal(declared.keep(8n), 8);
  const refusals = [
    [boolean, ["", "yes", 2, null, undefined, [], {}, [true]]],
    [word, [5, null, undefined, [], {}, true, "\ud800"]],
    [numbers, ["41", 121, -1, NaN, null, undefined, [], {}, true, 41n]],
    [new Wave(0, 120, { bins: 64, window: 16 }), ["41", 121, -1, NaN, null, undefined, [], {}, true, 41n]],
    [declared, ["7", 9, 7.5, null, undefined, [], {}, true, { integer: "7" }]],
  ];
  for (const [encoding, answers] of refusals) {
    for (const answer of answers) assert.throws(() => encoding.keep(answer), code("undeclared_value_error"));
  }
});

test("an encoding is made of a description, or there is none", () => {
  const values = ["a", "b"];
  const good = [
    { name: "categorical", values },
    { name: "unary-optimised", values, options: {} },
    { name: "unary-symmetric", values, options: null },
    { name: "local-hash", values, options: { buckets: 4 } },
    { name: "numeric", range: [0, 1] },
    { name: "wave", range: [0, 1], options: { window: 16, bins: 64 } },
    { name: "bloom", options: { bits: 8, hashes: 1, cohorts: 1 } },
  ];
  for (const description of good) assert.equal(encodingOf(description)?.name, description.name);
  const bad = [
    null,
    undefined,
    5,
    "categorical",
    [],
    {},
    { name: "auto", values },
    { name: "__proto__", values },
    { name: ["categorical"], values },
    { name: "categorical" },
    { name: "categorical", values: ["a"] },
    { name: "categorical", values: ["a", "a"] },
    { name: "categorical", values: ["a", 1] },
    { name: "categorical", values: "ab" },
    { name: "categorical", values: ["a", 1.5] },
    { name: "categorical", values: ["a", "e\u0301"] },
    { name: "categorical", values, options: { buckets: 4 } },
    { name: "local-hash", values },
    { name: "local-hash", values, options: { buckets: true } },
    { name: "local-hash", values, options: { buckets: 4, more: 1 } },
    { name: "numeric" },
    { name: "numeric", range: [0] },
    { name: "numeric", range: [0, 1, 2] },
    { name: "numeric", range: ["0", 1] },
    { name: "numeric", range: [false, true] },
    { name: "wave", range: [0, 1] },
    { name: "wave", range: [0, 1], options: { bins: 64 } },
    { name: "wave", range: [0, 1], options: { bins: 64, window: 12 } },
    { name: "wave", range: [0, 1], options: { bins: 64, window: 16, clip: true } },
    { name: "wave", options: { bins: 64, window: 16 } },
    { name: "bloom" },
    { name: "bloom", options: { bits: 8, hashes: 1 } },
    { name: "bloom", options: { bits: 8, hashes: 1, cohorts: 1, cohort: 0 } },
  ];
  for (const description of bad) assert.equal(encodingOf(description), null, JSON.stringify(description));
});

test("many values, and many bits", async () => {
  const many = new Unary(integers(200_000));
  assert.equal((await many.params()).length, 32);
  const path = await new Unary(integers(1024), { optimised: false }).path({ ...WHERE, truth: 7 });
  assert.equal((await path.at("0.1")).length, 128);
});
