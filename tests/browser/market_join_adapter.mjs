// The reports of a pool as the market's page makes them: one case per line in, its reports per line out, all JSON.

import { webcrypto } from "node:crypto";
import { createInterface } from "node:readline";

// Node 18 has WebCrypto, but not under its global name.
if (globalThis.crypto === undefined) globalThis.crypto = webcrypto;

const { Pool } = await import("../../src/relaxdp/web/market/pool.js");

for await (const line of createInterface({ input: process.stdin })) {
  const { listing, key: written, answer, epsilons } = JSON.parse(line);
  const pool = Pool.of(listing, listing.id);
  const key = Uint8Array.from(Buffer.from(written, "hex"));
  const kept = pool.encoding.keep(answer);
  const reports = [];
  for (const epsilon of epsilons) {
    const level = pool.level(epsilon);
    reports.push({ level, report: await pool.report(kept, key, level) });
  }
  process.stdout.write(`${JSON.stringify({ reports, params: await pool.params() })}\n`);
}
