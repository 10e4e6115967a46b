// The browser's client against published vectors, exact edge cases and the vectors shared with the Python package.
// Run with: node --test tests/browser/

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { inspect } from "node:util";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { Categorical, RelaxdpError, accept, categoricalParams, cmac, derive, encode, threshold } = await import(
  "../../src/relaxdp/web/device/relaxdp.js"
);

const ONE = 2n ** 64n;
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const texts = (...values) => values.map((value) => ({ type: "text", value }));
const integers = (...values) => values.map((value) => ({ type: "integer", value }));
const refusal =
  (code, sentence = /\.$/) =>
  (error) => {
    assert.ok(error instanceof RelaxdpError, inspect(error));
    assert.equal(error.code, code);
    assert.match(error.message, sentence);
    return true;
  };

// ---- AES-CMAC: the AES-256 examples of NIST SP 800-38B whose messages are whole blocks

const NIST_KEY = unhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
const NIST_MESSAGE = unhex(
  "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51" +
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
);

test("cmac agrees with NIST SP 800-38B", async () => {
  assert.equal(hex(await cmac(NIST_KEY, NIST_MESSAGE.slice(0, 16))), "28a7023f452e8f82bd4bf28d8c37c35c");
  assert.equal(hex(await cmac(NIST_KEY, NIST_MESSAGE)), "e1992190549f6ed5696a2c056c315410");
});

test("cmac refuses what is not whole blocks, and leaves its message alone", async () => {
  for (const length of [0, 1, 15, 17, 40]) {
    await assert.rejects(cmac(NIST_KEY, NIST_MESSAGE.slice(0, length)), refusal("message_invalid"));
  }
  await assert.rejects(cmac(NIST_KEY, "sixteen letters!"), refusal("value_invalid"));
  const message = NIST_MESSAGE.slice();
  await cmac(NIST_KEY, message);
  assert.deepEqual(message, NIST_MESSAGE);
});

// ---- The three vectors of the specification of the stream

const EPSILONS = ["0.1", "0.5", "1", "2"];

const VECTORS = [
  {
    values: texts("flu", "covid", "none"),
    names: { release: "survey-2026", attribute: "diagnosis" },
    object: { type: "text", value: "patient-17" },
    truth: 1,
    derived: "bedbf120422778e8e3cb56749fa90af0db7d61ab382a83b76efd0d9e01be4d0d",
    message: "030000000a00000070617469656e742d3137000000000000000000000000000001000000000000000000000000000000",
    block: "5a675c54515cd823bd1868331e42c690",
    path: [
      [0, 2582915890674427738n, 2],
      [1, 2449190947175888405n, 2],
      [2, 115923647291579034n, 0],
    ],
    thresholds: [624783968716559440n, 3279723050338863581n, 6717849057872324379n, 12552623127150127847n],
    reports: [2, 1, 1, 1],
  },
  {
    values: texts("no", "yes"),
    names: { release: "survey-2026", attribute: "smoker" },
    object: { type: "integer", value: -7 },
    truth: 1,
    derived: "ba2c43f230a589d03e3f7b5c24942284a48da269652075cb93375e7d5493e01e",
    message: "0100000008000000f9ffffffffffffff01000000000000000000000000000000",
    block: "d2aea33c352ea3b664cb1097d31a5da8",
    path: [
      [0, 13160413342292225746n, 0],
      [1, 6426889119785767382n, 1],
      [2, 3780824633433392237n, 1],
      [3, 2330261858018116512n, 0],
      [4, 2012063481446471921n, 1],
      [5, 75686010444900828n, 1],
    ],
    thresholds: [921569357186432047n, 4517951884236491746n, 8524556932045589908n, 14048932482948833964n],
    reports: [1, 1, 0, 1],
  },
  {
    values: integers(10, 20, 30, 40, 50),
    names: { release: "Erhebung-\u00e4", attribute: "Gr\u00f6\u00dfe" },
    object: { type: "uuid", value: "00112233-4455-6677-8899-aabbccddeeff" },
    truth: 4,
    derived: "afb213f9310f5959ef5c558fb6fd7cad7a0602c38b6f1a3b59e329f63f680fe2",
    message: "040000001000000000112233445566778899aabbccddeeff000000000000000004000000000000000000000000000000",
    block: "3761a3fd205e458e10f9e2cfb803940a",
    path: [
      [0, 10251703622566109495n, 3],
      [3, 6093873606147559075n, 1],
      [4, 4788871445420600255n, 4],
      [6, 4048083209352392958n, 2],
      [9, 353858728296538575n, 4],
    ],
    thresholds: [380018816386628578n, 2118496325504426911n, 4717977891582421986n, 10348292405075850221n],
    reports: [2, 2, 4, 4],
  },
];

for (const [index, vector] of VECTORS.entries()) {
  const { values, names, object, truth } = vector;
  const open = () => new Categorical(values).path({ key: KEY, ...names, object, truth });

  test(`vector ${index + 1}: key, message and first block`, async () => {
    const params = await categoricalParams(values);
    const derived = await derive(KEY, {
      purpose: "path",
      ...names,
      encoding: "categorical",
      alphabet: values.length,
      params,
    });
    assert.equal(hex(derived), vector.derived);
    const rest = `${truth.toString(16).padStart(2, "0")}${"00".repeat(15)}`;
    assert.equal(hex(encode(object)) + rest, vector.message);
    assert.equal(hex(await cmac(derived, unhex(vector.message))), vector.block);
  });

  test(`vector ${index + 1}: thresholds, path and reports`, async () => {
    const path = await open();
    assert.deepEqual(
      EPSILONS.map((epsilon) => threshold(epsilon, values.length)),
      vector.thresholds,
    );
    assert.deepEqual(
      await path.draws(vector.thresholds[0]),
      vector.path.map(([j, R, V]) => ({ j, R, V })),
    );
    for (const [i, epsilon] of EPSILONS.entries()) assert.equal(await path.at(epsilon), vector.reports[i]);
  });

  test(`vector ${index + 1}: any order and any company of levels gives the same reports`, async () => {
    const backwards = await open();
    for (const [i, level] of [...vector.thresholds.entries()].reverse()) {
      assert.equal(await backwards.atThreshold(level), vector.reports[i]);
    }
    const together = await open();
    assert.deepEqual(await Promise.all(EPSILONS.map((epsilon) => together.at(epsilon))), vector.reports);
    const alone = await Promise.all(EPSILONS.map(async (epsilon) => (await open()).at(epsilon)));
    assert.deepEqual(alone, vector.reports);
  });
}

test("a path goes on down to position 0", async () => {
  const values = integers(1, 2, 3);
  const names = { release: "r", attribute: "a" };
  const path = await new Categorical(values).path({ key: KEY, ...names, object: values[0], truth: 0 });
  const draws = await path.draws(1n);
  assert.equal(draws.at(-1).R, 0n);
  assert.ok(draws.at(-1).j >= 32, "this path is a long one");
  assert.ok(draws.every((draw, i) => i === 0 || (draw.R < draws[i - 1].R && draw.j > draws[i - 1].j)));
  // Each report is what the definition says, at every threshold where it can change.
  for (const [i, { R }] of draws.slice(0, -1).entries()) {
    assert.equal(await path.atThreshold(R), draws[i].V);
    assert.equal(await path.atThreshold(R + 1n), i === 0 ? 0 : draws[i - 1].V);
  }
});

// ---- Thresholds

test("thresholds at the ends, next to boundaries and for large alphabets (oracle: mpmath with 4000 bits)", () => {
  const cases = [
    // The first threshold begins at log1p(m / (2^64 - 1)); the decimals are its two neighbours of 60 places.
    ["0.000000000000000000108420217248550443400745280086994171142684", 2, 0n],
    ["0.000000000000000000108420217248550443400745280086994171142685", 2, 1n],
    ["0.000000000000000000271050543121376108479822681139567537085483", 5, 0n],
    ["0.000000000000000000271050543121376108479822681139567537085484", 5, 1n],
    // The last one begins at ln(1 + m (2^64 - 1)).
    ["45.0545667363964451120929828404693393140569", 2, ONE - 2n],
    ["45.0545667363964451120929828404693393140570", 2, ONE - 1n],
    ["88.0296919311130542959342693165641489238925", 2n ** 63n, ONE - 2n],
    ["88.0296919311130542959342693165641489238926", 2n ** 63n, ONE - 1n],
    ["5e-19", 2, 4n],
    ["1e-18", 3, 6n],
    ["0.001", 2, 9223371268240516n],
    ["20", 3, 18446743959644831977n],
    ["36", 2n ** 64n - 1n, 4310224194573817n],
    ["44", 2, 18446744073709551613n],
    ["88", 2n ** 64n - 1n, 18446744073709551613n],
    ["89", 2n ** 64n - 1n, ONE - 1n],
    ["120", 3, ONE - 1n],
  ];
  for (const [epsilon, m, expected] of cases) assert.equal(threshold(epsilon, m), expected, `${epsilon}, ${m}`);
});

test("300 digits next to a boundary double the precision until the side is known", () => {
  const boundary =
    "0.0999999999999999998909200635038022335907010910443890601862075061854287618845350704331614070912735771254377" +
    "0778354900164089864147485464363376503568452646491543424397962617683242627887005180900137477433006869071602486" +
    "375875871603796295719498612412532653828622799003983337306296053542962394364641171824";
  assert.equal(threshold(`${boundary}8`, 3), 624783968716559439n);
  assert.equal(threshold(`${boundary}9`, 3), 624783968716559440n);
});

test("huge and tiny levels end at once", () => {
  for (const epsilon of ["100", "1e5", "9e999999999999999999999", `1${"0".repeat(999)}`]) {
    assert.equal(threshold(epsilon, 2), ONE - 1n);
  }
  for (const epsilon of ["1e-20", "9.9e-21", "9e-999999999999999999999", `.${"0".repeat(998)}1`]) {
    assert.equal(threshold(epsilon, 2), 0n);
  }
});

test("one number has one threshold, however it is written", () => {
  for (const written of ["2.5", "2.50", "+2.5", "25e-1", "0.25E1", "0.25e+1", "0002.5", "2500000e-6"]) {
    assert.equal(threshold(written, 4), threshold("2.5", 4n), written);
  }
  assert.equal(threshold(".5", 2), threshold("0.5", 2));
  assert.equal(threshold("5.", 2), threshold("5", 2));
});

test("an epsilon that is no positive decimal is refused", () => {
  const malformed = ["", ".", "e1", "1e", "1e1.5", "0x10", "1_000", "1,5", " 1", "1\n", "\u0661", "NaN", "Infinity"];
  const other = ["-1", "-0.5", `0.${"1".repeat(999)}`, 0.5, 1, 1n, null, undefined, true, ["1"]];
  for (const epsilon of [...malformed, ...other]) {
    assert.throws(() => threshold(epsilon, 2), refusal("epsilon_invalid", /^epsilon must be a positive decimal/));
  }
  for (const epsilon of ["0", "0.000", "0e5", ".0", "0e-99999999999999"]) {
    assert.throws(() => threshold(epsilon, 2), refusal("epsilon_invalid", /^epsilon must be greater than 0/));
  }
  for (const m of [1, 0, -3, 2.5, "2", ONE, undefined, NaN]) {
    assert.throws(() => threshold("1", m), refusal("alphabet_invalid"));
  }
});

// ---- Acceptance

test("accepted pairs are exactly uniform: every pair of words of 1 to 5 bits", () => {
  for (const one of [2n, 4n, 8n, 16n, 32n]) {
    for (let n = 1n; n <= one; n += 1n) {
      for (const m of [2n, 3n, 5n, 13n].filter((size) => size <= one)) {
        const counts = new Map();
        for (let u = 0n; u < one; u += 1n) {
          for (let v = 0n; v < one; v += 1n) {
            const pair = accept(u, v, n, m, one);
            if (pair !== null) counts.set(`${pair.R} ${pair.V}`, (counts.get(`${pair.R} ${pair.V}`) ?? 0n) + 1n);
          }
        }
        assert.equal(counts.size, Number(n * m));
        assert.deepEqual(new Set(counts.values()), new Set([(one / n) * (one / m)]));
      }
    }
  }
});

test("the last accepted words of 64 bits", () => {
  const last = ONE - 1n;
  assert.deepEqual(accept(last, last, ONE, 2n), { R: last, V: 1n });
  // 2^64 leaves the remainder 1 by 3 and by 5.
  assert.equal(accept(0n, last, ONE, 3n), null);
  assert.deepEqual(accept(0n, last - 1n, ONE, 3n), { R: 0n, V: 2n });
  assert.equal(accept(last, 0n, 5n, 2n), null);
  assert.deepEqual(accept(last - 1n, 0n, 5n, 2n), { R: 4n, V: 0n });
});

// ---- Bytes

test("each type has its own bytes", () => {
  const cases = [
    ["integer", 0, "01000000080000000000000000000000"],
    ["integer", -0, "01000000080000000000000000000000"],
    ["integer", -(2n ** 63n), "01000000080000000000000000000080"],
    ["integer", "9223372036854775807", "0100000008000000ffffffffffffff7f"],
    ["integer", "9223372036854775808", "02000000080000000000000000000080"],
    ["integer", 2n ** 64n - 1n, "0200000008000000ffffffffffffffff"],
    ["text", "", "03000000000000000000000000000000"],
    ["text", "12345678", "03000000080000003132333435363738"],
    ["text", "123456789", "0300000009000000313233343536373839000000000000000000000000000000"],
    ["text", "\u{1f600}\0", "0300000005000000f09f988000000000"],
    [
      "uuid",
      "AABBCCDD-EEFF-0011-2233-445566778899",
      "0400000010000000aabbccddeeff001122334455667788990000000000000000",
    ],
    ["bytes", Uint8Array.of(), "05000000000000000000000000000000"],
    ["bytes", Uint8Array.of(0, 255), "050000000200000000ff000000000000"],
    ["number", 0.1, "06000000080000009a9999999999b93f"],
    ["number", -2.5, "060000000800000000000000000004c0"],
    ["number", -0, "06000000080000000000000000000000"],
    ["number", 2n ** 60n, "0600000008000000000000000000b043"],
  ];
  for (const [type, value, expected] of cases) assert.equal(hex(encode({ type, value })), expected, inspect(value));
});

test("values that have no bytes are refused, and not shown", () => {
  const cases = [
    ["integer", [2n ** 64n, -(2n ** 63n) - 1n, "18446744073709551616", "9".repeat(50), 2 ** 53, 7.25, NaN, true, null]],
    ["integer", ["7.25", "+725", "0725", "-0", " 725", "", "0x725"]],
    ["text", [725, null, undefined, ["725"]]],
    ["uuid", ["00112233445566778899aabbccddeeff", "{00112233-4455-6677-8899-aabbccddeeff}", "725", 725, null]],
    ["bytes", ["725", [7, 25], new ArrayBuffer(2), new Uint16Array(2), null]],
    ["number", [NaN, Infinity, -Infinity, 2n ** 53n + 1n, 10n ** 400n, "7.25", true, null]],
    ["boolean", [true]],
    ["constructor", [725]],
    [undefined, [725]],
  ];
  for (const [type, values] of cases) {
    for (const value of values) {
      assert.throws(
        () => encode({ type, value }),
        (error) => {
          refusal(type === "text" ? "text_invalid" : "value_invalid")(error);
          assert.doesNotMatch(error.message, /725|7\.25|0011/);
          return true;
        },
      );
    }
  }
  for (const nothing of [null, undefined, 725, "725"]) assert.throws(() => encode(nothing), refusal("value_invalid"));
  for (const lone of ["\ud800", "a\udc00b", "\udc00\ud800"]) {
    assert.throws(() => encode({ type: "text", value: lone }), refusal("text_invalid", /surrogate/));
  }
});

test("text is taken as it is, with one warning if it is not NFC", async (context) => {
  const warn = context.mock.method(console, "warn", () => {});
  const fresh = await import("../../src/relaxdp/web/device/bytes.js?has-not-warned-yet");
  const composed = fresh.encode({ type: "text", value: "Gr\u00f6\u00dfe" });
  assert.equal(warn.mock.callCount(), 0);
  const decomposed = fresh.encode({ type: "text", value: "Gro\u0308\u00dfe" });
  fresh.encode({ type: "text", value: "Gro\u0308\u00dfe" });
  assert.notEqual(hex(composed), hex(decomposed));
  assert.equal(warn.mock.callCount(), 1);
  assert.doesNotMatch(warn.mock.calls[0].arguments.join(" "), /Gr/);
});

// ---- Keys

const CONTEXT = {
  purpose: "path",
  release: "r",
  attribute: "a",
  encoding: "categorical",
  alphabet: 2,
  params: Uint8Array.of(1, 2),
};

test("every part of the context changes the key", async () => {
  const others = [
    { purpose: "coin" },
    { release: "ra", attribute: "" },
    { release: "r2" },
    { attribute: "b" },
    { encoding: "unary-symmetric" },
    { alphabet: 3n },
    { params: Uint8Array.of(1) },
  ];
  const keys = await Promise.all([{}, ...others].map((change) => derive(KEY, { ...CONTEXT, ...change })));
  keys.push(
    await derive(
      KEY.map((byte) => byte ^ 1),
      CONTEXT,
    ),
  );
  assert.equal(new Set(keys.map(hex)).size, others.length + 2);
  assert.ok(keys.every((key) => key.length === 32));
});

test("the order of the values changes their parameters", async () => {
  const [one, other] = [texts("a", "b"), texts("b", "a")];
  assert.notEqual(hex(await categoricalParams(one)), hex(await categoricalParams(other)));
});

test("names may be longer than WebCrypto's own HKDF allows (oracle: Python's hmac)", async () => {
  const derived = await derive(KEY, { ...CONTEXT, release: "r".repeat(3000) });
  assert.equal(hex(derived), "bf2485bda0d765910cfdd25d7448ba54a2e4baa0c96d86d4433cbf5604817d9c");
});

test("bad keys, purposes and names are refused", async () => {
  for (const key of [undefined, "0".repeat(32), KEY.slice(1), new Uint8Array(33), [...KEY]]) {
    await assert.rejects(derive(key, CONTEXT), refusal("key_invalid"));
    await assert.rejects(cmac(key, NIST_MESSAGE), refusal("key_invalid"));
  }
  await assert.rejects(derive(KEY, { ...CONTEXT, purpose: "other" }), refusal("purpose_invalid"));
  await assert.rejects(derive(KEY, { ...CONTEXT, release: undefined }), refusal("text_invalid", /^the release/));
  await assert.rejects(derive(KEY, { ...CONTEXT, attribute: "\ud800" }), refusal("text_invalid", /^the attribute/));
  await assert.rejects(derive(KEY, { ...CONTEXT, alphabet: 1 }), refusal("alphabet_invalid"));
  await assert.rejects(derive(KEY, { ...CONTEXT, params: "12" }), refusal("value_invalid"));
});

// ---- Categorical and its paths

test("a list of values needs two values, all different and of one type", () => {
  assert.equal(new Categorical(texts("a", "b", "c")).size, 3);
  for (const values of [undefined, [], texts("a"), "ab"]) {
    assert.throws(() => new Categorical(values), refusal("values_invalid", /at least 2/));
  }
  const twice = [texts("a", "b", "a"), integers(7, "7"), [0, -0].map((value) => ({ type: "number", value }))];
  for (const values of twice) assert.throws(() => new Categorical(values), refusal("values_invalid", /different/));
  const mixed = [...integers(7), ...texts("7")];
  assert.throws(() => new Categorical(mixed), refusal("values_invalid", /one type/));
  // biome-ignore lint/suspicious/noSparseArray: a hole is what is refused here
  assert.throws(() => new Categorical([...texts("a"), , ...texts("b")]), refusal("value_invalid"));
  // Both kinds of integers, below and above 2^63, are one type.
  assert.equal(new Categorical(integers(-1, 2n ** 63n)).size, 2);
});

const GOOD = { key: KEY, release: "r", attribute: "a", object: { type: "integer", value: 1 }, truth: 1 };
const YES_NO = new Categorical(texts("no", "yes"));

test("a path refuses a bad truth without showing it, and a float as an object", async () => {
  for (const truth of [-1, 2, 725, 0.5, "1", 1n, null, undefined, NaN]) {
    await assert.rejects(YES_NO.path({ ...GOOD, truth }), {
      code: "truth_invalid",
      message: "the truth must be the index of one of the 2 declared values. Nothing was drawn.",
    });
  }
  const float = { type: "number", value: 1 };
  await assert.rejects(YES_NO.path({ ...GOOD, object: float }), refusal("object_invalid"));
  await assert.rejects(YES_NO.path({ ...GOOD, object: undefined }), refusal("value_invalid"));
  await assert.rejects(YES_NO.path({ ...GOOD, key: KEY.slice(1) }), refusal("key_invalid"));
  await assert.rejects(YES_NO.path({ ...GOOD, release: undefined }), refusal("text_invalid"));
});

test("a path refuses a level without information, a bad epsilon and a bad threshold", async () => {
  const path = await YES_NO.path(GOOD);
  await assert.rejects(path.at("1e-30"), refusal("epsilon_too_small"));
  await assert.rejects(path.at(0.5), refusal("epsilon_invalid"));
  for (const T of [0n, -1n, ONE, 5, "5", undefined]) {
    await assert.rejects(path.atThreshold(T), refusal("threshold_invalid"));
    await assert.rejects(path.draws(T), refusal("threshold_invalid"));
  }
});

test("a path shows nothing when it is printed, listed or sent", async () => {
  const path = await YES_NO.path(GOOD);
  await path.at("1");
  assert.equal(inspect(path, { showHidden: true, depth: 9 }), "Path {}");
  assert.equal(JSON.stringify(path), "{}");
  assert.deepEqual(Reflect.ownKeys(path), []);
});

test("without WebCrypto nothing is drawn", async () => {
  const original = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
  try {
    await assert.rejects(YES_NO.path(GOOD), refusal("crypto_missing", /Nothing was drawn/));
  } finally {
    Object.defineProperty(globalThis, "crypto", original);
  }
});

// ---- The vectors shared with the Python package

/** Read a typed value of the file: integers and numbers are decimal text there, and bytes are hexadecimal. */
function typed({ type, value }) {
  if (type === "number") return { type, value: Number(value) };
  if (type === "bytes") return { type, value: unhex(value) };
  return { type, value };
}

test("every case of stream-1.json", async () => {
  const file = new URL("../vectors/stream-1.json", import.meta.url);
  const { version, cases } = JSON.parse(await readFile(file, "utf8"));
  assert.equal(version, 1);
  assert.ok(cases.length >= 300, `only ${cases.length} cases`);
  for (const [index, { key, encoding, values, object, levels, ...rest }] of cases.entries()) {
    const where = `case ${index}`;
    assert.equal(encoding, "categorical", where);
    assert.ok(levels.length > 0, where);
    const path = await new Categorical(values.map(typed)).path({ key: unhex(key), object: typed(object), ...rest });
    for (const level of levels) {
      assert.equal(threshold(level.epsilon, values.length), BigInt(level.threshold), `${where}: ${level.epsilon}`);
      assert.equal(await path.at(level.epsilon), level.report, `${where}: ${level.epsilon}`);
    }
  }
});
