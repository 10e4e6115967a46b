// Waves as browsers draw them: one case per line in, its reports per line out, all JSON.

import { webcrypto } from "node:crypto";
import { createInterface } from "node:readline";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { Wave } = await import("../../src/relaxdp/web/device/relaxdp.js");

for await (const line of createInterface({ input: process.stdin })) {
  const { low, high, shape, key, truth, epsilons } = JSON.parse(line);
  const wave = new Wave(low, high, shape);
  const where = { key: Uint8Array.from(Buffer.from(key, "hex")), release: "r", attribute: "a" };
  const path = await wave.path({ ...where, object: { type: "text", value: "o" }, truth });
  const reports = [];
  for (const epsilon of epsilons) reports.push([String(wave.threshold(epsilon)), await path.at(epsilon)]);
  const params = Buffer.from(await wave.params()).toString("hex");
  process.stdout.write(`${JSON.stringify({ params, reports })}\n`);
}
