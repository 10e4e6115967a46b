// What the dashboard says and computes without a page: how a campaign stands in every state.

import assert from "node:assert/strict";
import { test } from "node:test";

const { isReadable, knownTo, needsPeople, standing } = await import("../../src/relaxdp/web/dashboard/words.js");

const CAMPAIGN = {
  state: "open",
  opens: null,
  encoding: { name: "categorical", options: {}, values: ["a", "b"] },
  levels: [{ epsilon: "0.5" }, { epsilon: "1" }],
  devices: { total: 0, per_level: [0, 0], reports: [0, 0] },
  half_width: null,
  readable: { half_width: 0.1, more: 1234 },
  target: null,
  target_met: false,
  reduced: false,
};
const FEW = { ...CAMPAIGN, devices: { ...CAMPAIGN.devices, total: 1 }, half_width: 0.5 };
const KNOWN = { ...FEW, devices: { ...FEW.devices, total: 5000 }, half_width: 0.04 };
const AIMED = { ...KNOWN, target: { half_width: 0.02 } };

test("how a campaign stands, in every state", () => {
  const said = [
    [{ ...CAMPAIGN, state: "waiting", opens: "2030-01-02T03:04:05Z" }, /^It opens .*2030/],
    [CAMPAIGN, /^Nobody has answered yet\. Share the link to begin\.$/],
    [FEW, /^Too few reports yet: about 1,200 more for ± 10 %\.$/],
    [{ ...FEW, readable: { half_width: 0.1, more: null } }, /at this level no number of them gives ± 10 %\.$/],
    [KNOWN, /^The answer is known to ± 4 %\. You decide when that is enough\.$/],
    [AIMED, /Of the reports that ± 2 % takes at these levels, 25 % are here\.$/],
    [{ ...AIMED, target: { half_width: 0.001 } }, /fewer than 1 % are here\.$/],
    [{ ...AIMED, half_width: 0.02, target_met: true }, /That is enough: ± 2 % was wanted\.$/],
    [{ ...KNOWN, state: "paused" }, /^It is paused and takes no reports\. The answer is known to/],
    [{ ...CAMPAIGN, state: "finished" }, /^It ended without an answer\.$/],
    [{ ...FEW, state: "finished" }, /^It ended with 1 device: too few to tell anything\.$/],
    [{ ...AIMED, state: "finished" }, /^The answer is known to ± 4 % instead of ± 2 %, from 5,000 devices\.$/],
    [{ ...KNOWN, state: "finished", reduced: true }, /The reports are deleted; the counts stay\.$/],
  ];
  for (const [campaign, words] of said) assert.match(standing(campaign), words);
  assert.deepEqual([CAMPAIGN, FEW, KNOWN].map(knownTo), ["nothing yet", "too few reports", "± 4 %"]);
  assert.deepEqual([CAMPAIGN, FEW, KNOWN].map(isReadable), [false, false, true]);
  assert.deepEqual([CAMPAIGN, FEW, KNOWN, { ...FEW, state: "finished" }].map(needsPeople), [true, true, false, false]);
});

test("signing out forgets the token", async () => {
  const kept = new Map();
  const store = {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, text) => kept.set(name, text),
    removeItem: (name) => kept.delete(name),
  };
  Object.defineProperty(globalThis, "sessionStorage", { value: store, configurable: true });
  const { Session } = await import("../../src/relaxdp/web/kit/session.js");
  const session = new Session();
  session.use("secret");
  assert.equal(session.token, "secret");
  session.leave();
  assert.equal(kept.size, 0);
});
