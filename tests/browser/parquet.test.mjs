// What a Parquet file says of itself, read by the market's page from footers that are written here by hand.

import assert from "node:assert/strict";
import { test } from "node:test";

import { footerOf, releasedIn } from "../../src/relaxdp/web/market/parquet.js";

const DESCRIPTION = { id: "household", columns: { heating: { epsilon: "1.5" } } };

// ---- Thrift's compact protocol, as far as a footer needs it

const varint = (number) => (number < 128 ? [number] : [(number % 128) + 128, ...varint(Math.floor(number / 128))]);
const text = (words) => [8, [...varint(new TextEncoder().encode(words).length), ...new TextEncoder().encode(words)]];
const whole = (number) => [6, varint(2 * number)];
const list = (structs) => [
  9,
  [...(structs.length < 15 ? [16 * structs.length + 12] : [252, ...varint(structs.length)]), ...structs.flat()],
];
const struct = (fields) => {
  let last = 0;
  const bytes = [];
  for (const [id, [type, content]] of Object.entries(fields)) {
    bytes.push(16 * (Number(id) - last) + type, ...content);
    last = Number(id);
  }
  return [...bytes, 0];
};

function footer({
  columns = ["household", "heating"],
  rows = 2000,
  notes = { relaxdp: JSON.stringify(DESCRIPTION) },
} = {}) {
  return struct({
    1: whole(2),
    2: list(["schema", ...columns].map((name) => struct({ 4: text(name) }))),
    3: whole(rows),
    4: list([]),
    5: list(Object.entries(notes).map(([key, value]) => struct({ 1: text(key), 2: text(value) }))),
  });
}

function file(bytes, mark = "PAR1") {
  const tail = new DataView(new ArrayBuffer(4));
  tail.setUint32(0, bytes.length, true);
  return new Blob(["PAR1", Uint8Array.from(bytes), tail, mark]);
}

const DAMAGED = { message: "This is no Parquet file, or it is damaged. Nothing was sent." };

test("a footer names its rows, its columns and its notes", async () => {
  const many = Array.from({ length: 300 }, (_, place) => `column ${place}`);
  const notes = { relaxdp: "{}", other: "ε".repeat(200) };
  assert.deepEqual(await footerOf(file(footer({ columns: many, rows: 5e9, notes }))), {
    rows: 5e9,
    columns: many,
    notes: new Map(Object.entries(notes)),
  });
  assert.deepEqual(await releasedIn(file(footer())), { column: "heating", epsilon: "1.5", objects: 2000 });
});

test("what may hold answers is refused before anything is sent", async () => {
  const withAnswers = file(footer({ columns: ["household", "heating", "name"] }));
  await assert.rejects(releasedIn(withAnswers), /more columns than its ids and “heating”.*: name\./);
  for (const relaxdp of ["", "{", "null", "[]", '{"id": 1, "columns": {"a": {}}}', '{"id": "a", "columns": {}}']) {
    await assert.rejects(
      releasedIn(file(footer({ notes: { relaxdp } }))),
      /does not say that relaxdp release wrote it/,
    );
  }
  await assert.rejects(releasedIn(file(footer({ notes: {} }))), /does not say that relaxdp release wrote it/);
});

test("what is no footer, or a damaged one, is refused at once", async () => {
  const good = footer();
  await assert.rejects(footerOf(new Blob([])), DAMAGED);
  await assert.rejects(footerOf(file(good, "PAR2")), DAMAGED);
  await assert.rejects(footerOf(new Blob(["PAR1", Uint8Array.of(255, 255, 255, 127), "PAR1"])), DAMAGED);
  for (let length = 0; length < good.length; length += 1)
    await assert.rejects(footerOf(file(good.slice(0, length))), DAMAGED);
  const endless = Array.from({ length: 400_000 }, () => 0xff);
  await assert.rejects(footerOf(file([0x36, ...endless])), DAMAGED, "a number without an end");
  await assert.rejects(footerOf(file(endless.map(() => 0x1c))), DAMAGED, "structs in structs in structs");
  await assert.rejects(
    footerOf(file([0x29, 0xfc, ...varint(2 ** 40)])),
    DAMAGED,
    "a list that is longer than its file",
  );
});
