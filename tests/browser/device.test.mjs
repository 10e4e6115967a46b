// The browser's device: what it writes before it sends, tabs that race, what it refuses, and what it never shows.

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { test } from "node:test";
import { inspect } from "node:util";
import { FakeServer, json } from "./fake_server.mjs";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { Amount, Client, Device, MemoryStorage, RelaxdpError, threshold } = await import(
  "../../src/relaxdp/web/device/relaxdp.js"
);

const { Book } = await import("../../src/relaxdp/web/device/book.js");

const LONG = process.env.RELAXDP_LONG === "1"; // make test-long

const refusal =
  (code, sentence = /\.$/) =>
  (error) => {
    assert.ok(error instanceof RelaxdpError, inspect(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, sentence);
    return true;
  };

/** A device that waits for nobody. */
function open(server, storage, options = {}) {
  const client = new Client({ fetch: server.fetch, attempts: 2, sleep: async () => {}, ...options.client });
  return Device.open({ storage, limit: "4", ...options, client });
}

async function answered(device, address, value = "fruit") {
  const joined = await device.join(address);
  await joined.answer(value);
  return joined;
}

/** Numbers that are the same in every run. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

// ---- What is written, and when

test("a report is durable before it leaves, and marked when it has arrived", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  const before = [];
  server.instead = async ({ url }) => {
    if (url.endsWith("/reports")) before.push(JSON.parse(await storage.read()).campaigns[0].sent);
  };
  const sent = await joined.report();
  assert.equal(before.length, 1);
  assert.equal(before[0].length, 1);
  assert.deepEqual({ ...before[0][0], status: "sent" }, sent);
  assert.equal(before[0][0].status, "written");
  assert.deepEqual(await joined.sent(), [sent]);
});

test("a report that has arrived is neither written nor sent again", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  const sent = await joined.report();
  const text = await storage.read();
  assert.deepEqual(await joined.report(), sent);
  assert.equal(await storage.read(), text);
  assert.equal(server.reports.length, 1);
});

test("the first answer is kept, and the same one again is fine", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  const text = await storage.read();
  await joined.answer("fruit");
  await assert.rejects(joined.answer("none"), refusal("answer_changed_error"));
  assert.equal(await storage.read(), text);
});

test("a state beyond the limit is not written, whatever the rules say", async () => {
  const book = new Book(new MemoryStorage());
  const state = await book.begin("1", false);
  const sent = [{ epsilon: "1.1", threshold: "5", report: "x", time: "", status: "written", cohort: null }];
  const record = { address: "a", device: "0".repeat(32), key: null, consent: "2", sent, ended: null };
  const over = { ...state, revision: 2, campaigns: [record] };
  await assert.rejects(
    book.change(() => over),
    refusal("device_file_error", /more than its limit/),
  );
  assert.deepEqual(await book.state(), state);
});

test("what cannot be written is not sent", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  storage.replace = async () => {
    throw new RelaxdpError("device_file_error", "full.");
  };
  await assert.rejects(joined.report(), refusal("device_file_error"));
  assert.deepEqual(server.reports, []);
});

test("interrupted after writing, the same report is sent by the next device on this storage", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const address = server.open();
  const joined = await answered(await open(server, storage), address);
  server.instead = async ({ url }) => (url.endsWith("/reports") ? new TypeError("gone") : undefined);
  await assert.rejects(joined.report(), refusal("unreachable_error"));
  server.instead = async () => undefined;
  const [again] = await (await open(server, storage)).sync();
  assert.equal(again.sent.status, "sent");
  assert.equal(new Set(server.requests.filter(({ url }) => url.endsWith("/reports")).map(({ text }) => text)).size, 1);
});

// ---- Tabs

/** A storage that takes its time, so that everything that can happen in between happens. */
class SlowStorage extends MemoryStorage {
  constructor(chance) {
    super();
    this.chance = chance;
  }

  async read() {
    await this.pause();
    const text = await super.read();
    await this.pause();
    return text;
  }

  async replace(before, after) {
    await this.pause();
    const replaced = await super.replace(before, after);
    await this.pause();
    return replaced;
  }

  async pause() {
    for (let turns = Math.floor(this.chance() * 4); turns > 0; turns -= 1) await new Promise(setImmediate);
  }
}

test("tabs that do everything at the same time: one device, one report a level, within the limit", async () => {
  let fullest = 0;
  for (let seed = 1; seed <= (LONG ? 20 : 4); seed += 1) {
    const storage = new SlowStorage(generator(seed));
    const server = new FakeServer();
    const addresses = ["a", "b", "c"].map((id) => server.open(id, { levels: ["0.5", "0.7", "1.1"] }));
    const tabs = await Promise.all([1, 2, 3].map(() => open(server, storage, { limit: "1.5" })));
    const problems = [];
    const outcomes = [];
    for (let step = 0; step < 3; step += 1) {
      await Promise.all(
        tabs.flatMap((tab, i) =>
          addresses.map(async (address) => {
            try {
              const joined = await tab.join(address);
              await joined.answer(["crisps", "fruit", "none"][i]).catch((problem) => problems.push(problem.code));
              outcomes.push(await joined.report());
            } catch (problem) {
              problems.push(problem.code);
            }
          }),
        ),
      );
      if (step < 2) for (const id of ["a", "b", "c"]) server.relax(id);
    }
    assert.ok(
      problems.every((code) => ["answer_changed_error", "budget_exceeded_error"].includes(code)),
      String(problems),
    );
    assert.ok(outcomes.some((sent) => sent !== null));
    assert.equal(
      new Set(server.reports.map(({ device }) => device)).size,
      new Set(server.requests.filter(({ url }) => url.endsWith("/reports")).map(({ url }) => url)).size,
    );
    const largest = new Map();
    const seen = new Map();
    for (const { url, body, text } of server.requests.filter((request) => request.url.endsWith("/reports"))) {
      const key = `${url} ${body.level.epsilon}`;
      assert.equal(seen.get(key) ?? text, text, "one report for a level");
      seen.set(key, text);
      largest.set(url, Math.max(largest.get(url) ?? 0, Math.round(Number(body.level.epsilon) * 10)));
    }
    const total = [...largest.values()].reduce((sum, part) => sum + part, 0);
    assert.ok(total <= 15, `${total} tenths were spent`);
    assert.deepEqual((await tabs[0].balance()).spent, String(Amount.parse(`${total}e-1`)));
    fullest = Math.max(fullest, total);
  }
  assert.ok(fullest >= 12, "the limit was never even near");
});

test("two tabs begin a device at the same time: one limit counts, and the other is told", async () => {
  const storage = new SlowStorage(generator(7));
  const server = new FakeServer();
  const begun = await Promise.allSettled(["1", "2"].map((limit) => open(server, storage, { limit })));
  assert.deepEqual(begun.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  refusal("budget_error", /has a limit of/)(begun.find(({ status }) => status === "rejected").reason);
});

// ---- Storage that was cleared, damaged or taken back

test("cleared storage is said, and a second device begins only when the person knows", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const device = await open(server, storage);
  const joined = await answered(device, server.open());
  await joined.report();
  const cleared = new MemoryStorage();
  cleared.remember(storage.remembered());
  const lost = (error) =>
    refusal("device_file_error", /is gone .* second device/)(error) && error.fields.reason === "cleared";
  await assert.rejects(open(server, cleared), lost);
  await assert.rejects(open(server, cleared, { limit: null }), lost);
  assert.equal(await cleared.read(), null, "nothing was begun in silence");
  const second = await open(server, cleared, { startOver: true });
  assert.deepEqual(await second.balance(), { limit: "4", spent: "0", left: "4" });
  assert.deepEqual(await (await open(server, cleared)).balance(), await second.balance());
});

test("a state that disappears, goes back or is damaged while a page is open", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  const early = await storage.read();
  await joined.report();
  const late = await storage.read();
  server.relax();
  const reason = (expected) => (error) => refusal("device_file_error")(error) && error.fields.reason === expected;
  const changed = { cleared: null, "went back": early, damaged: late.replace('"limit":"4"', '"limit":"9"') };
  for (const [expected, text] of Object.entries(changed)) {
    storage.read = async () => text;
    await assert.rejects(joined.report(), reason(expected));
    await assert.rejects(open(server, storage), reason(expected));
  }
  for (const text of ["", "{}", "null", "[1]", late.slice(0, -1), late.replace("written", "wrilten")]) {
    storage.read = async () => text;
    if (text !== late) await assert.rejects(joined.report(), reason("damaged"), text);
  }
  assert.equal(server.reports.length, 1);
});

test("opening a device reminds the second place, which may have been behind", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  await answered(await open(server, storage), server.open());
  const { revision } = JSON.parse(await storage.read());
  storage.remember(0);
  await open(server, storage);
  assert.equal(storage.remembered(), revision);
});

test("a storage that never takes anything is given up", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  storage.replace = async () => false;
  await assert.rejects(joined.report(), refusal("device_file_error", /other tabs/));
  assert.deepEqual(server.reports, []);
});

test("a sound device is kept whatever is asked", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  await answered(await open(server, storage), server.open());
  const again = await open(server, storage, { startOver: true });
  assert.equal((await again.campaigns()).length, 1);
});

// ---- Secrets

test("neither answer nor key is shown, and what is printed is empty", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const device = await open(server, storage);
  const joined = await answered(device, server.open());
  await joined.report();
  for (const object of [device, joined]) {
    assert.match(inspect(object, { showHidden: true, depth: 9 }), /^\w+ \{( \[address\]: \[Getter\] )?\}$/);
    assert.equal(JSON.stringify(object), "{}");
  }
  const { key } = JSON.parse(await storage.read()).campaigns[0];
  const details = JSON.stringify(await joined.details());
  assert.ok(!details.includes(key));
  assert.deepEqual(Object.keys(JSON.parse(details)), [
    "question",
    "consent",
    "spent",
    "whole",
    "answered",
    "joined",
    "ended",
    "sent",
  ]);
  assert.ok(!server.requests.some(({ url, text }) => `${url}${text}`.includes(key)));
});

// ---- A server that says anything

test("a hostile server: the limit holds and no level gets two reports", async () => {
  const chance = generator(3);
  const pick = (list) => list[Math.floor(chance() * list.length)];
  const junk = [null, true, 0, -1, 1.5, "", "x", [], {}, "9".repeat(80), { epsilon: "1" }];
  const events = new Map();
  for (let round = 0; round < (LONG ? 150 : 40); round += 1) {
    const [server, storage] = [new FakeServer(), new MemoryStorage()];
    const addresses = ["a", "b"].map((id) =>
      server.open(id, { levels: ["0.1", "0.5", "1", "7"], largest_epsilon: "80" }),
    );
    const limit = pick(["0.3", "1", "2", "8"]);
    const device = await open(server, storage, { limit, client: { attempts: 1 } });
    for (const address of addresses) await answered(device, address);
    const honest = new Map([...server.campaigns].map(([id, campaign]) => [id, JSON.stringify(campaign)]));
    server.instead = async ({ url }) => {
      const id = new URL(url).pathname.split("/")[3];
      const campaign = JSON.parse(honest.get(id));
      campaign.open_level = Math.floor(chance() * 4);
      server.campaigns.set(id, campaign);
      if (chance() < 0.4) {
        const part = pick(Object.keys(campaign));
        campaign[part] = pick(junk);
      } else if (chance() < 0.3) {
        const level = pick(campaign.levels);
        level.threshold = String(BigInt(level.threshold) + BigInt(pick([-1, 0, 1, 10 ** 15])));
        // biome-ignore lint/suspicious/noDuplicateElseIf: each call draws anew
      } else if (chance() < 0.3) {
        return pick([
          () => new TypeError("gone"),
          () => new Response("{", { status: 200 }),
          () => new Response("[".repeat(200_000), { status: 200 }),
          () => new Response(null, { status: 204 }),
          () => json(pick([400, 404, 409, 500, 503]), pick(junk)),
          () => json(200, pick(junk)),
          () => Response.redirect("https://elsewhere.example/", 307),
        ])();
      }
      return undefined;
    };
    for (let step = 0; step < 6; step += 1) {
      for (const { sent, problem } of await device.sync()) {
        const what = problem?.code ?? (sent === null ? "nothing" : "sent");
        events.set(what, (events.get(what) ?? 0) + 1);
        if (problem !== null) assert.match(problem.message, /^[^\n]{10,400}$/);
      }
    }
    const [spent, seen] = [new Map(), new Map()];
    for (const { url, body, text } of server.requests.filter((request) => request.url.endsWith("/reports"))) {
      const key = `${url} ${body.level.epsilon}`;
      assert.equal(seen.get(key) ?? text, text);
      seen.set(key, text);
      const epsilon = Amount.parse(body.level.epsilon);
      assert.ok(BigInt(body.level.threshold) <= threshold(body.level.epsilon, 3), "no threshold tells too much");
      assert.ok(!spent.has(url) || spent.get(url).compare(epsilon) <= 0, "levels never fall");
      spent.set(url, epsilon);
    }
    const total = [...spent.values()].reduce((sum, part) => sum.plus(part), new Amount(0n, 0));
    assert.ok(total.compare(Amount.parse(limit)) <= 0, `${total} of ${limit}`);
    assert.equal((await device.balance()).spent, String(total));
  }
  const wanted = [
    "sent",
    "level_error",
    "offer_error",
    "budget_exceeded_error",
    "refused_by_server_error",
    "server_answer_error",
    "unreachable_error",
  ];
  for (const code of wanted) assert.ok(events.get(code) > 5, `${code}: ${inspect(events)}`);
});

// ---- All campaigns at once

test("one campaign that fails does not hold up the others, and a withdrawal is told later", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const device = await open(server, storage);
  const [a, b, c] = ["a", "b", "c"].map((id) => server.open(id));
  for (const address of [a, b, c]) await answered(device, address);
  server.campaigns.get("a").question = "Another?";
  const outcomes = await device.sync();
  assert.deepEqual(
    outcomes.map(({ problem }) => problem?.code),
    ["path_changed_error", undefined, undefined],
  );
  const leaving = (await device.campaigns())[1];
  server.instead = async ({ url }) => (url.endsWith("/withdraw") ? new TypeError("gone") : undefined);
  await assert.rejects(leaving.withdraw(), refusal("unreachable_error"));
  assert.equal((await leaving.details()).ended, "withdrawing");
  server.instead = async () => undefined;
  await device.sync();
  assert.equal((await leaving.details()).ended, "withdrawn");
  assert.equal([...server.stored.keys()].filter((key) => key.startsWith("b ")).length, 0);
  assert.equal((await device.balance()).spent, "1", "what was spent does not come back");
});

test("a server that refuses a withdrawal: the device has left, and the person is told", async () => {
  const [server, storage] = [new FakeServer(), new MemoryStorage()];
  const joined = await answered(await open(server, storage), server.open());
  await joined.report();
  server.instead = async ({ url }) =>
    url.endsWith("/withdraw") ? json(409, { error: "campaign_reduced", message: "Too late." }) : undefined;
  await assert.rejects(joined.withdraw(), refusal("refused_by_server_error", /Too late/));
  assert.equal((await joined.details()).ended, "forgotten");
  const [record] = JSON.parse(await storage.read()).campaigns;
  assert.deepEqual([record.key, record.answer], [null, null]);
});
