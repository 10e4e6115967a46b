// The browser's device for the suite of all devices: one command per line in, one answer per line out, all JSON.
// What the commands are is written in tests/contract/device/device_clients.py.

import { webcrypto } from "node:crypto";
import { createInterface } from "node:readline";
import { FileStorage } from "./file_storage.mjs";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { Client, Device, RelaxdpError } = await import("../../src/relaxdp/web/device/relaxdp.js");
const client = new Client({ timeout: 180, attempts: 3, sleep: async () => {} });
let storage;
let device;
let seen;

const shown = ({ epsilon, threshold, report, status, cohort }) => ({ epsilon, threshold, report, status, cohort });
const find = async (campaign) => (await device.campaigns()).find(({ address }) => address === campaign);

const COMMANDS = {
  open: async ({ file, limit }) => {
    const opened = new FileStorage(file);
    device = await Device.open({ storage: opened, limit, client });
    storage = opened;
  },
  join: async ({ campaign, upto, invitation }) => {
    const joined = await device.join(campaign, { upto, invitation });
    const { question, consent } = await joined.details();
    return { question, values: await joined.values(), consent };
  },
  join_survey: async ({ survey, upto, invitation }) => {
    const { questions, leftOut, limit, cross } = await device.joinSurvey(survey ?? seen, { upto, invitation });
    const consents = await Promise.all(questions.map(async (each) => [each.address, (await each.details()).consent]));
    return { questions: Object.fromEntries(consents), left_out: leftOut, limit, cross };
  },
  look: async ({ survey, upto }) => {
    const { offer, given, leftOut } = await device.look(survey, { upto });
    seen = offer;
    const epsilons = [...given].map(([id, epsilon]) => [id, String(epsilon)]);
    return { given: Object.fromEntries(epsilons), left_out: leftOut.map(({ id }) => id) };
  },
  answer: async ({ campaign, value }) => (await find(campaign)).answer(value),
  report: async ({ campaign }) => {
    const sent = await (await find(campaign)).report();
    return { sent: sent === null ? null : shown(sent) };
  },
  sent: async ({ campaign }) => ({ sent: (await (await find(campaign)).sent()).map(shown) }),
  withdraw: async ({ campaign }) => (await find(campaign)).withdraw(),
  forget: async ({ campaign }) => (await find(campaign)).forget(),
  balance: async () => device.balance(),
  change_limit: async ({ limit }) => device.changeLimit(limit),
  // The device itself shows no secret to anybody, so this reads what it stored.
  secrets: async ({ campaign }) => {
    const { campaigns } = JSON.parse(await storage.read());
    const record = campaigns.find(({ address }) => address === campaign);
    return { device: record.device, key: record.key, answered: record.answer !== null };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...options } = JSON.parse(line);
  let answer;
  try {
    answer = (await COMMANDS[name](options)) ?? {};
  } catch (problem) {
    if (!(problem instanceof RelaxdpError)) throw problem;
    answer = { error: problem.code, message: problem.message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
