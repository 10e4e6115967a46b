// The parts around the browser's device: exact amounts, addresses, the HTTP client, what is missing, and its sources.

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const web = new URL("../../src/relaxdp/web/", import.meta.url);
const { Amount, Client, RelaxdpError, missingParts } = await import("../../src/relaxdp/web/device/relaxdp.js");
const { CampaignAddress } = await import("../../src/relaxdp/web/device/address.js");

const { Problem, isUnknownToken, sentenceOf } = await import("../../src/relaxdp/web/kit/problem.js");
const { between } = await import("../../src/relaxdp/web/dashboard/words.js");
const { measureOf } = await import("../../src/relaxdp/web/kit/words.js");

const ADDRESS = CampaignAddress.parse("https://collect.example/v1/campaigns/snacks");
const code = (expected) => (error) => error instanceof RelaxdpError && error.code === expected;

// ---- Amounts

test("amounts are exact, and have one spelling", () => {
  const one = (text) => Amount.parse(text);
  assert.equal(String(one("0.1").plus(one("0.2"))), "0.3");
  assert.equal(String(one("0.3").minus(one("0.1")).minus(one("0.2"))), "0");
  assert.equal(one("0.3").compare(one("0.1").plus(one("0.2"))), 0);
  for (const [written, text] of [
    ["2.50", "2.5"],
    ["+1e2", "100"],
    [" 3 ", "3"],
    ["1e-3", "0.001"],
    ["05", "5"],
    [".5", "0.5"],
    ["1e-100", `0.${"0".repeat(99)}1`],
  ]) {
    assert.equal(String(one(written)), text);
    assert.equal(String(Amount.fromText(text)), text);
  }
  const long = "1".repeat(60);
  assert.equal(String(one(long).plus(one(`1e-100`))), `${long}.${"0".repeat(99)}1`);
  assert.ok(one("2").compare(one("10")) < 0 && one("10").compare(one("2")) > 0);
  for (const none of [
    "0",
    "",
    "-1",
    "NaN",
    "Infinity",
    "much",
    "1e",
    "1_0",
    "\u0663",
    "1".repeat(61),
    "1e60",
    "1e-101",
    "1e999999999",
    1,
    null,
    undefined,
    ["1"],
    "1".repeat(9999),
  ]) {
    assert.throws(() => one(none), code("epsilon_error"), String(none));
  }
  for (const none of ["2.50", "1e2", "+1", ".5", "05", "-1", "", 1, null])
    assert.equal(Amount.fromText(none), null, String(none));
  assert.throws(() => one("1").minus(one("2")), code("epsilon_error"));
});

// ---- Addresses

test("addresses have one spelling, and unencrypted ones are for this machine", () => {
  const spellings = {
    "https://Collect.Example:443/v1/campaigns/a": "https://collect.example/v1/campaigns/a",
    "https://h:8443/some/where/v1/campaigns/A-b_9": "https://h:8443/some/where/v1/campaigns/A-b_9",
    "http://localhost:80/v1/campaigns/a": "http://localhost/v1/campaigns/a",
    "http://127.0.0.1:8080/v1/campaigns/a": "http://127.0.0.1:8080/v1/campaigns/a",
    "http://[::1]:0080/v1/campaigns/a": "http://[::1]/v1/campaigns/a",
  };
  for (const [written, text] of Object.entries(spellings)) {
    assert.equal(String(CampaignAddress.parse(written)), text);
    assert.equal(new URL(text).href, text, "a browser reads it as it is");
  }
  const none = [
    "http://192.168.1.5/v1/campaigns/a",
    "http://127.0.0.1.evil.example/v1/campaigns/a",
    "http://localhost.evil.example/v1/campaigns/a",
    "http://127.1/v1/campaigns/a",
    "https://h/./v1/campaigns/a",
    "https://h/../v1/campaigns/a",
    "https://h//v1/campaigns/a",
    "https://h/v1/campaigns/a/",
    "https://h\\@evil/v1/campaigns/a",
    "javascript://h/v1/campaigns/a",
    " https://h/v1/campaigns/a",
    "https://h/v1/campaigns/a\n",
    "https://h\u3002x/v1/campaigns/a",
    5,
    null,
  ];
  for (const written of none)
    assert.throws(() => CampaignAddress.parse(written), code("address_error"), String(written));
  assert.equal(CampaignAddress.parse("http://192.168.1.5/v1/campaigns/a", { allowHttp: true }).host, "192.168.1.5");
});

// ---- The client

/** A client that is told what happens at each attempt, and notes how long it waited. */
function scripted(answers, options = {}) {
  const [waits, asked] = [[], []];
  const client = new Client({
    fetch: async (url, init) => {
      asked.push({ url, ...init });
      const next = answers.shift();
      if (next instanceof Error) throw next;
      return typeof next === "function" ? next(init) : next;
    },
    sleep: async (seconds) => void waits.push(seconds),
    chance: () => 1,
    ...options,
  });
  return { client, waits, asked };
}

const good = () => new Response('{"fine": true}', { status: 200 });

test("it asks again after ever longer waits, and no longer than it should", async () => {
  const { client, waits, asked } = scripted([
    new TypeError("x"),
    new Response("", { status: 503 }),
    new Response("", { status: 429, headers: { "Retry-After": "7" } }),
    new Response("", { status: 503, headers: { "Retry-After": "86400" } }),
    good(),
  ]);
  assert.deepEqual(await client.ask(ADDRESS, []), { fine: true });
  assert.deepEqual(waits, [0.5, 1, 7 + 2, 30 + 4]);
  assert.equal(asked.length, 5);
  const patient = scripted(
    Array.from({ length: 20 }, () => new TypeError("x")),
    { attempts: 12 },
  );
  await assert.rejects(patient.client.ask(ADDRESS, []), code("unreachable_error"));
  assert.equal(patient.asked.length, 12);
  assert.equal(Math.max(...patient.waits), 30);
  const jitter = scripted([new TypeError("x"), good()], { chance: () => 0 });
  await jitter.client.ask(ADDRESS, []);
  assert.deepEqual(jitter.waits, [0]);
});

test("a refusal is final, and a redirect is not followed", async () => {
  const refusedBy = scripted([
    new Response('{"error": "report_differs", "message": "two\\nlines\\u001b[31m", "fields": {}}', { status: 409 }),
  ]);
  await assert.rejects(refusedBy.client.ask(ADDRESS, ["reports"], {}), (error) => {
    assert.equal(error.code, "refused_by_server_error");
    assert.equal(error.message, "collect.example refused (status 409): two lines [31m");
    assert.deepEqual(error.fields, { status: 409, error: "report_differs" });
    return true;
  });
  assert.equal(refusedBy.asked.length, 1);
  const opaque = { status: 0, type: "opaqueredirect", headers: new Headers(), body: null };
  for (const response of [opaque, Response.redirect("https://elsewhere.example/", 302)]) {
    await assert.rejects(scripted([response]).client.ask(ADDRESS, []), code("server_answer_error"));
  }
});

test("answers that are too long, no JSON, no text or endless are refused", async () => {
  for (const body of ["", "{", "NaN", new Uint8Array([0xff, 0xfe]), "[".repeat(1_000_000), " ".repeat((4 << 20) + 1)]) {
    await assert.rejects(
      scripted([new Response(body, { status: 200 })]).client.ask(ADDRESS, []),
      code("server_answer_error"),
    );
  }
  const endless = () =>
    new Response(new ReadableStream({ pull: (queue) => queue.enqueue(new Uint8Array(1 << 16).fill(32)) }), {
      status: 200,
    });
  await assert.rejects(scripted([endless()]).client.ask(ADDRESS, []), code("server_answer_error"));
  const never = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const { client } = scripted([never, never], { timeout: 0.02, attempts: 2 });
  await assert.rejects(
    client.ask(ADDRESS, []),
    (error) => code("unreachable_error")(error) && /in time/.test(error.message),
  );
});

test("nothing is sent along that tells one person from another", async () => {
  const { client, asked } = scripted([good(), good()]);
  await client.ask(ADDRESS, []);
  await client.ask(ADDRESS, ["reports"], { device: "d" });
  for (const { credentials, redirect, referrerPolicy, cache, headers } of asked) {
    assert.deepEqual([credentials, redirect, referrerPolicy, cache], ["omit", "manual", "no-referrer", "no-store"]);
    assert.equal(headers["Accept-Language"], "*");
  }
  assert.deepEqual(
    asked.map(({ method, url, body }) => [method, url, body]),
    [
      ["GET", "https://collect.example/v1/campaigns/snacks", undefined],
      ["POST", "https://collect.example/v1/campaigns/snacks/reports", '{"device":"d"}'],
    ],
  );
});

test("while nothing has changed, a campaign is asked for its tag alone", async () => {
  const tagged = (status, tag) => new Response(status === 304 ? null : "{}", { status, headers: { ETag: tag } });
  const { client, asked } = scripted([tagged(200, '"a"'), tagged(304, '"a"'), tagged(200, '"b"'), tagged(500, '"c"')]);
  const tags = [];
  for (const known of [null, '"a"', '"a"', '"b"']) tags.push(await client.tag(ADDRESS, known));
  assert.deepEqual(tags, ['"a"', '"a"', '"b"', null]);
  assert.deepEqual(
    asked.map(({ headers }) => headers["If-None-Match"]),
    [undefined, '"a"', '"a"', '"b"'],
  );
  for (const { credentials, redirect, headers } of asked) {
    assert.deepEqual([credentials, redirect, headers["Accept-Language"]], ["omit", "manual", "*"]);
  }
  await assert.rejects(scripted([new TypeError("gone")]).client.tag(ADDRESS, null), TypeError);
});

// ---- What pages show of a refusal

test("a page shows the service's own sentence, or says that there is none", async () => {
  const refused = await Problem.of(Response.json({ error: "sold_out", message: "nobody sells it." }, { status: 409 }));
  assert.ok(refused instanceof RelaxdpError);
  assert.deepEqual([refused.code, refused.status, sentenceOf(refused)], ["sold_out", 409, "nobody sells it."]);
  assert.equal(isUnknownToken(refused), false);
  assert.equal(isUnknownToken(await Problem.of(new Response("{}", { status: 401 }))), true);
  const other = await Problem.of(new Response("<h1>proxy</h1>", { status: 502 }));
  assert.equal(sentenceOf(other), "The service answered with status 502.");
  assert.equal(sentenceOf("thrown text"), "thrown text");
});

// ---- What is missing

const BROWSER = { isSecureContext: true, crypto: { subtle: {} }, BigInt, fetch, AbortController, indexedDB: {} };

test("an interval is said in words, and so is what lies beyond what can be told", () => {
  const shares = measureOf({ name: "categorical" });
  assert.equal(between({ low: 0, high: 0.0123 }, shares), "0.0 to 1.2 %");
  assert.equal(between({ low: 0, high: 0.0123, beyond: "below" }, shares), "below what can be told, at most 1.2 %");
  assert.equal(between({ low: 0.9, high: 1, beyond: "above" }, shares), "above what can be told, at least 90.0 %");
});

test("what is missing is said in plain words", () => {
  assert.deepEqual(missingParts(BROWSER), []);
  const plain = missingParts({ ...BROWSER, isSecureContext: false, crypto: {} });
  assert.equal(plain.length, 1);
  assert.match(plain[0], /plain http from another machine.*https:\/\//);
  assert.match(missingParts({ ...BROWSER, crypto: undefined })[0], /no WebCrypto/);
  assert.match(missingParts({ ...BROWSER, indexedDB: undefined })[0], /keeps nothing/);
  const blocked = { ...BROWSER };
  Object.defineProperty(blocked, "indexedDB", {
    get: () => {
      throw new DOMException("blocked", "SecurityError");
    },
  });
  assert.match(missingParts(blocked)[0], /keeps nothing/);
  assert.equal(missingParts({}).length, 4);
});

// ---- The sources

/** A module and all that it imports before anything of it runs, without comments. */
async function sources(entry) {
  const [found, waiting] = [new Map(), [new URL(entry, web).href]];
  while (waiting.length > 0) {
    const place = waiting.pop();
    if (found.has(place)) continue;
    const source = (await readFile(new URL(place), "utf8")).replace(/\/\*\*[\s\S]*?\*\//g, "");
    found.set(place, source);
    for (const [, from] of source.matchAll(/^(?:import|export) [^;]* from "([^"]+)";$/gm)) {
      assert.match(from, /^\.\.?\/[a-z0-9_/]+\.js$/, "nothing from outside");
      waiting.push(new URL(from, place).href);
    }
  }
  return found;
}

test("no source needs what a strict Content-Security-Policy forbids", async () => {
  const found = await sources("device/relaxdp.js");
  assert.ok(found.size >= 25, `${found.size} files`);
  for (const [place, source] of found) {
    assert.ok(place.startsWith(new URL("device/", web).href), `${place}: the device's end of the wire stands alone`);
    assert.doesNotMatch(
      source,
      /\beval\(|new Function|innerHTML|outerHTML|document\.|setTimeout\(["'`]|\bimport\(/,
      place,
    );
    assert.doesNotMatch(source, /\bMath\.random\(/, "chance enters as an argument, and secrets come from elsewhere");
  }
});

test("what tells a person that the browser is too old can be read by it", async () => {
  const found = await sources("survey/main.js");
  assert.ok(found.size >= 4, `${found.size} files`);
  for (const [place, source] of found) {
    assert.doesNotMatch(source, /\b\d+n\b/, `${place}: a whole number that not every browser can read`);
    assert.doesNotMatch(source, /\bthis\.#|\d_\d|\?\?=/, `${place}: newer than what is asked for`);
  }
  assert.match((await sources("device/relaxdp.js")).get(new URL("device/threshold.js", web).href), /\b\d+n\b/);
});
