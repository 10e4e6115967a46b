// Campaigns in memory behind a `fetch`: what the HTTP contract promises to devices, and every request that came.

import { createHash } from "node:crypto";

const { encodingOf } = await import("../../src/relaxdp/web/device/relaxdp.js");

export class FakeServer {
  requests = [];
  campaigns = new Map();
  stored = new Map();
  /** Is asked first; undefined leaves it to the server, an Error is thrown as a lost connection is. */
  instead = async () => undefined;

  open(
    id = "snacks",
    {
      encoding = { name: "categorical", values: ["crisps", "fruit", "none"] },
      levels = ["0.5", "1", "2"],
      ...more
    } = {},
  ) {
    const made = encodingOf(encoding);
    this.campaigns.set(id, {
      id,
      question: "What did you eat last?",
      encoding,
      release: id,
      attribute: "answer",
      levels: levels.map((epsilon) => ({ epsilon, threshold: String(made.threshold(epsilon)) })),
      open_level: 0,
      state: "open",
      opens: null,
      closes: null,
      largest_epsilon: levels.at(-1),
      needs_invitation: false,
      ...more,
    });
    return `https://collect.example/v1/campaigns/${id}`;
  }

  relax(id = "snacks") {
    this.campaigns.get(id).open_level += 1;
  }

  get reports() {
    return this.requests.filter(({ url }) => url.endsWith("/reports")).map(({ body }) => body);
  }

  fetch = async (url, { method, body }) => {
    const request = { url, method, body: body === undefined ? undefined : JSON.parse(body), text: body };
    this.requests.push(request);
    const changed = await this.instead(request);
    if (changed instanceof Error) throw changed;
    return changed ?? this.answer(request);
  };

  answer({ url, body }) {
    const [id, route] = new URL(url).pathname.split("/").slice(3);
    const campaign = this.campaigns.get(id);
    if (campaign === undefined) return json(404, { error: "unknown_campaign", message: "No." });
    if (route === undefined) return json(200, campaign);
    if (route === "withdraw") {
      for (const key of this.stored.keys()) if (key.startsWith(`${id} ${body.device} `)) this.stored.delete(key);
      return json(200, { status: "withdrawn", state: campaign.state });
    }
    const key = `${id} ${body.device} ${body.level.epsilon}`;
    const content = createHash("sha256")
      .update(JSON.stringify([body.level, body.report, body.cohort]))
      .digest("hex");
    if (this.stored.has(key)) {
      return this.stored.get(key) === content
        ? json(200, { status: "same" })
        : json(409, { error: "report_differs", message: "Another report is stored." });
    }
    this.stored.set(key, content);
    return json(200, { status: "new" });
  }
}

export function json(status, content, headers = {}) {
  return new Response(JSON.stringify(content), { status, headers });
}
