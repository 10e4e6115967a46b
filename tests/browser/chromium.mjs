// What a page does in a real browser, one step at a time; test_chromium.py opens it and reads what it tells.

import {
  Bloom,
  BrowserStorage,
  Categorical,
  Device,
  LocalHash,
  missingParts,
  Numeric,
  Unary,
  Wave,
} from "/web/device/relaxdp.js";

const query = new URLSearchParams(location.search);
const [step, tab] = [query.get("step"), Number(query.get("tab"))];
const campaigns = (query.get("campaigns") ?? "").split(",").map((id) => `${location.origin}/v1/campaigns/${id}`);
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const refused = (promise) =>
  promise.then(
    () => null,
    ({ code, fields, message }) => ({ code, fields, message }),
  );

function typed({ type, value }) {
  if (type === "number") return { type, value: Number(value) };
  return { type, value: type === "bytes" ? unhex(value) : value };
}

const MADE = {
  categorical: ({ values }) => new Categorical(values.map(typed)),
  "unary-symmetric": ({ values }) => new Unary(values.map(typed), { optimised: false }),
  "unary-optimised": ({ values }) => new Unary(values.map(typed)),
  "local-hash": ({ values, buckets }) => new LocalHash(values.map(typed), { buckets }),
  bloom: (shape) => new Bloom(shape),
  numeric: ({ low, high }) => new Numeric(Number(low), Number(high)),
  wave: ({ low, high, ...shape }) => new Wave(Number(low), Number(high), shape),
};

/** Return how many cases of a shared file there are, and which do not agree. */
async function vectors(name) {
  const { cases } = await (await fetch(`/vectors/${name}`)).json();
  const wrong = [];
  for (const [index, { key, encoding, release, attribute, object, truth, levels, ...rest }] of cases.entries()) {
    const made = MADE[encoding](rest);
    const where = { key: unhex(key), release, attribute, object: typed(object) };
    const path = await made.path({ ...where, truth: "low" in rest ? Number(truth) : truth });
    for (const { epsilon, threshold, report } of levels) {
      const read = await path.at(epsilon);
      const same = read instanceof Uint8Array ? hex(read) === report : read === Number(report);
      if (!same || String(made.threshold(epsilon)) !== threshold) wrong.push(index);
    }
  }
  return { cases: cases.length, wrong };
}

const STEPS = {
  vectors: async () => {
    const values = Array.from({ length: 1024 }, (_, value) => ({ type: "integer", value }));
    const where = { key: new Uint8Array(32), release: "r", attribute: "a", object: { type: "text", value: "o" } };
    await (await new Unary(values, { optimised: false }).path({ ...where, truth: 7 })).at("0.1");
    const files = ["stream-1.json", "encodings-1.json", "bloom-numeric-1.json", "wave-1.json"];
    const found = [];
    for (const name of files) found.push(await vectors(name));
    return { found, missing: missingParts() };
  },
  // Several frames do this at the same time, again and again.
  race: async () => {
    const codes = [];
    const device = await Device.open({ limit: "1.5" });
    for (let turn = 0; turn < 5; turn += 1) {
      await Promise.all(
        campaigns.map(async (campaign) => {
          try {
            const joined = await device.join(campaign);
            await joined.answer(["crisps", "fruit", "none"][tab]).catch(({ code }) => codes.push(code));
            await joined.report();
          } catch ({ code }) {
            codes.push(code);
          }
        }),
      );
    }
    return { codes, balance: await device.balance() };
  },
  begin: async () => {
    const device = await Device.open({ limit: "3" });
    const joined = await device.join(campaigns[0]);
    await joined.answer("fruit");
    return { sent: await joined.report() };
  },
  again: async () => {
    const device = await Device.open();
    const outcomes = await device.sync();
    const [joined] = await device.campaigns();
    return {
      outcomes: outcomes.map(({ sent, problem }) => sent ?? problem?.code),
      details: await joined.details(),
      balance: await device.balance(),
    };
  },
  cleared: async () => {
    await STEPS.begin();
    await new Promise((done) => (indexedDB.deleteDatabase("relaxdp device").onsuccess = done));
    const said = await refused(Device.open({ limit: "3" }));
    const second = await Device.open({ limit: "3", startOver: true });
    return { said, balance: await second.balance(), persisted: typeof (await new BrowserStorage().persist()) };
  },
};

let told;
try {
  told = await STEPS[step]();
} catch (problem) {
  told = { problem: String(problem?.stack ?? problem) };
}
await fetch("/told", { method: "POST", body: JSON.stringify({ step, tab, ...told }) });
