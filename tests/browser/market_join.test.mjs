// What the market's page remembers of a pool: one key and one answer for each account, before anything leaves.

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { test } from "node:test";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { MemoryStorage, RelaxdpError } = await import("../../src/relaxdp/web/device/relaxdp.js");
const { Pool } = await import("../../src/relaxdp/web/market/pool.js");
const { PoolKeys } = await import("../../src/relaxdp/web/market/keys.js");

const SERVER = "https://market.example/";
const code =
  (expected, not = []) =>
  (error) => {
    assert.ok(error instanceof RelaxdpError);
    assert.equal(error.code, expected);
    for (const secret of not) assert.ok(!error.message.includes(secret));
    return true;
  };

function listing(more = {}) {
  const encoding = { name: "categorical", options: {}, values: ["no", "yes", "mauve"] };
  const prices = {
    points: [
      ["0.1", 10],
      ["4", 400],
    ],
  };
  const levels = ["0.1", "0.5", "1", "2", "4"].map((epsilon) => ({ epsilon }));
  return { id: "snacks", kind: "pool", title: "What?", state: "open", encoding, prices, levels, ...more };
}

const pool = (more) => Pool.of(listing(more), "snacks");
const keysIn = (storage) => new PoolKeys(SERVER, "ann", storage);
const records = async (storage) => JSON.parse(await storage.read()).campaigns;

test("a listing that is no pool, or of an unknown encoding, is refused", () => {
  assert.throws(() => Pool.of(listing({ kind: "release" }), "snacks"), code("offer_error"));
  assert.throws(() => Pool.of(listing(), "others"), code("offer_error"));
  const strange = [
    null,
    { name: "bloom", options: { bits: 8, hashes: 1, cohorts: 1 } },
    { name: "categorical", options: {}, values: ["a"] },
    { name: "numeric", options: {}, range: [1, 1] },
    { name: "other", options: {} },
  ];
  for (const encoding of strange) assert.throws(() => pool({ encoding }), code("offer_error"));
  const unreadable = [undefined, [], [{}], [{ epsilon: 1 }], [{ epsilon: "0" }], [{ epsilon: "1" }, { epsilon: "1" }]];
  for (const levels of unreadable) assert.throws(() => pool({ levels }), code("offer_error"));
  assert.equal(pool({ state: "closed" }).open, false);
});

test("what the pool does not sell is no level, and epsilons with one threshold are one", () => {
  assert.deepEqual(Object.keys(pool().level("4.0")), ["epsilon", "threshold"]);
  assert.equal(pool().level("4.0").epsilon, "4");
  for (const epsilon of ["4.01", "0.7", "0.01"]) assert.throws(() => pool().level(epsilon), code("level_error"));
  assert.throws(() => pool().level("1e-30"), code("epsilon_too_small"));
  assert.deepEqual(pool().level("0.50000000000000000000001"), pool().level("0.5"));
  const same = ["1", "50"].map((epsilon) => ({ epsilon }));
  assert.equal(pool({ levels: same }).level("70").epsilon, "50");
});

test("the key and a tag are durable before a report is handed out, and the answer is not among them", async () => {
  const storage = new MemoryStorage();
  const sent = await keysIn(storage).write(pool(), "mauve", "0.5");
  const [record] = await records(storage);
  assert.equal(sent.status, "written");
  assert.deepEqual(record.sent, [sent]);
  assert.match(record.key, /^[0-9a-f]{64}$/);
  assert.match(record.answer, /^[0-9a-f]{32}$/);
  const without = { ...record, sent: [] };
  assert.ok(!JSON.stringify(without).includes("mauve"));
  const refusing = { ...wrapped(storage), replace: async () => Promise.reject(new Error("full")) };
  await assert.rejects(keysIn(refusing).write(pool(), "mauve", "1"), /full/);
});

const wrapped = (storage) => ({
  read: () => storage.read(),
  replace: (before, after) => storage.replace(before, after),
  remembered: () => storage.remembered(),
  remember: (revision) => storage.remember(revision),
});

test("the same answer goes on under the same key, in any order of levels, each drawn once", async () => {
  const storage = new MemoryStorage();
  const first = await keysIn(storage).write(pool(), "yes", "1");
  for (const epsilon of ["2", "0.5", "1", "1.0"]) await keysIn(storage).write(pool(), "yes", epsilon);
  const [record, ...none] = await records(storage);
  assert.deepEqual(none, []);
  assert.deepEqual(
    record.sent.map(({ epsilon }) => epsilon),
    ["1", "2", "0.5"],
  );
  assert.deepEqual(record.sent[0], first);
  const { spent, others } = await keysIn(storage).known("snacks");
  assert.equal(spent, "2");
  assert.equal(others.number, 0);
  await keysIn(storage).arrived(pool(), first);
  const { sent } = await keysIn(storage).known("snacks");
  assert.deepEqual(
    sent.map(({ status }) => status),
    ["sent", "written", "written"],
  );
});

test("another answer, other values and another encoding are refused, and nothing is written", async () => {
  const storage = new MemoryStorage();
  await keysIn(storage).write(pool(), "mauve", "0.5");
  const before = await storage.read();
  await assert.rejects(keysIn(storage).write(pool(), "yes", "1"), code("answer_changed_error", ["yes", "mauve"]));
  const { encoding } = listing();
  const reversed = { ...encoding, values: [...encoding.values].reverse() };
  for (const other of [reversed, { ...encoding, name: "unary-optimised" }]) {
    const changed = keysIn(storage).write(pool({ encoding: other }), "mauve", "1");
    await assert.rejects(changed, code("values_changed_error", ["mauve"]));
  }
  await assert.rejects(keysIn(storage).write(pool(), "puce", "1"), code("undeclared_value_error", ["puce"]));
  assert.equal(await storage.read(), before);
});

test("numbers are kept to themselves too", async () => {
  const storage = new MemoryStorage();
  const numbers = pool({ encoding: { name: "numeric", options: {}, range: [0, 10] } });
  const { report } = await keysIn(storage).write(numbers, 3.25, "1");
  assert.ok(report === 0 || report === 10);
  await assert.rejects(keysIn(storage).write(numbers, 3.5, "2"), code("answer_changed_error", ["3.5", "3.25"]));
  for (const none of [11, NaN, "3.25"]) {
    await assert.rejects(keysIn(storage).write(numbers, none, "2"), code("undeclared_value_error", ["11", "3.25"]));
  }
});

test("tabs that begin at once have one key, and one of their answers counts", async () => {
  const storage = new MemoryStorage();
  const answers = ["no", "yes", "mauve", "no", "yes", "mauve"];
  const done = await Promise.allSettled(answers.map((answer) => keysIn(storage).write(pool(), answer, "1")));
  const [record, ...none] = await records(storage);
  assert.deepEqual(none, []);
  assert.deepEqual(record.sent.length, 1);
  const taken = done.filter(({ status }) => status === "fulfilled");
  assert.equal(taken.length, 2); // the answer that counts was given twice
  for (const { reason } of done.filter(({ status }) => status === "rejected")) code("answer_changed_error")(reason);
});

test("pools have different keys, and what they cost is added up", async () => {
  const storage = new MemoryStorage();
  await keysIn(storage).write(pool(), "yes", "1");
  const other = Pool.of(listing({ id: "sleep" }), "sleep");
  await keysIn(storage).write(other, "no", "0.5");
  const [one, two] = await records(storage);
  assert.notEqual(one.key, two.key);
  assert.deepEqual(
    [one.address, two.address],
    ["snacks", "sleep"].map((id) => `${SERVER}v1/market/listings/${id}`),
  );
  const { others } = await keysIn(storage).known("sleep");
  assert.deepEqual([others.number, String(others.amount)], [1, "1"]);
});

test("keys that were lost are missed, and nothing begins anew by itself", async () => {
  const storage = new MemoryStorage();
  await keysIn(storage).write(pool(), "yes", "1");
  const emptied = { ...wrapped(new MemoryStorage()), remembered: () => storage.remembered() };
  await assert.rejects(keysIn(emptied).known("snacks"), code("device_file_error"));
  await assert.rejects(keysIn(emptied).write(pool(), "yes", "1"), code("device_file_error"));
  assert.equal(await emptied.read(), null);
  await keysIn(emptied).write(pool(), "no", "1", { startOver: true });
  assert.notEqual((await records(emptied))[0].key, (await records(storage))[0].key);
  assert.deepEqual((await keysIn(new MemoryStorage()).known("snacks")).sent, []);
});

test("a tag depends on key, pool, values and answer", async () => {
  const key = new Uint8Array(32);
  const other = Uint8Array.from({ length: 32 }, () => 1);
  const tags = await Promise.all([
    pool().tag("yes", key),
    pool().tag("no", key),
    pool().tag("yes", other),
    Pool.of(listing({ id: "sleep" }), "sleep").tag("yes", key),
    pool({ encoding: { name: "categorical", options: {}, values: ["yes", "no"] } }).tag("yes", key),
    pool({ encoding: { name: "unary-symmetric", options: {}, values: ["no", "yes", "mauve"] } }).tag("yes", key),
  ]);
  assert.equal(new Set(tags).size, tags.length);
  assert.equal(await pool().tag("yes", key), tags[0]);
});
