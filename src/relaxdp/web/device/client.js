/** HTTP as a device needs it: short answers, no redirects, a deadline, and patience with a server that is away. */

import { RelaxdpError } from "./errors.js";
import { fieldsOf } from "./typed.js";

const MOST_BYTES = 4 << 20;
const AGAIN = new Set([408, 429, 500, 502, 503, 504]);
const SHOWN = 200;

/** @typedef {RequestInit & { headers: Record<string, string> }} PlainRequest */
/** @typedef {{ status: number, body: Uint8Array, redirected: boolean, retryAfter: number }} Answer */

/**
 * Asks a server, again and again if need be, with exponential back-off and full jitter: devices that were all cut off
 * at the same instant must not all come back at the same instant. Nothing here knows a truth or a key.
 */
export class Client {
  /**
   * @param {{ timeout?: number, attempts?: number, firstWait?: number, longestWait?: number, allowHttp?: boolean,
   *           fetch?: typeof globalThis.fetch, sleep?: (seconds: number) => Promise<void>, chance?: () => number }}
   *        [options] times are in seconds
   */
  constructor({
    timeout = 30,
    attempts = 5,
    firstWait = 0.5,
    longestWait = 30,
    allowHttp = false,
    fetch = (url, options) => globalThis.fetch(url, options),
    sleep = (seconds) => new Promise((wake) => setTimeout(wake, seconds * 1000)),
    chance = Math.random,
  } = {}) {
    this.timeout = timeout;
    this.attempts = attempts;
    this.firstWait = firstWait;
    this.longestWait = longestWait;
    this.allowHttp = allowHttp;
    this.fetch = fetch;
    this.sleep = sleep;
    this.chance = chance;
  }

  /**
   * Return the JSON of an answer that is a success, or throw what the server says. What is asked may be asked twice.
   *
   * @param {Pick<import("./address.js").CampaignAddress, "host" | "url">} address of a campaign, or of a survey
   * @param {string[]} words below it
   * @param {unknown} [body] what is posted; nothing is fetched without it
   * @returns {Promise<unknown>}
   */
  async ask(address, words, body) {
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt >= this.attempts;
      let wait = 0;
      try {
        const answer = await this.#once(address.url(...words), jsonRequest(body), readAnswer);
        if (!AGAIN.has(answer.status) || last) return checked(answer, address.host);
        wait = answer.retryAfter;
      } catch (problem) {
        if (problem instanceof RelaxdpError) throw problem;
        if (last) throw unreachable(address.host, problem);
      }
      const bound = Math.min(this.longestWait, this.firstWait * 2 ** (attempt - 1));
      // What the server asks for is a least wait; one that asks for a day is not obeyed.
      await this.sleep(Math.min(wait, this.longestWait) + this.chance() * bound);
    }
  }

  /**
   * Return the entity tag of a campaign as it is now, which is the known one while nothing has changed; null where there
   * is none. While nothing has changed the answer is a few bytes. What else is wrong is found out by whoever asks more.
   *
   * @param {import("./address.js").CampaignAddress} address
   * @param {string | null} known
   * @returns {Promise<string | null>}
   */
  async tag(address, known) {
    /** @type {Record<string, string>} */
    const headers = known === null ? {} : { "If-None-Match": known };
    return this.#once(address.url(), { headers }, async (response) => {
      if (response.status === 304) return known;
      return response.ok ? response.headers.get("ETag") : null;
    });
  }

  /**
   * @template Result
   * @param {string} url
   * @param {PlainRequest} request
   * @param {(response: Response) => Promise<Result>} read
   * @returns {Promise<Result>}
   */
  async #once(url, request, read) {
    const stop = new AbortController();
    const deadline = setTimeout(() => stop.abort(), this.timeout * 1000);
    try {
      return await read(await this.fetch(url, plainRequest({ ...request, signal: stop.signal })));
    } finally {
      clearTimeout(deadline);
      stop.abort(); // what was not read is not waited for
    }
  }
}

/**
 * Return a request that tells a server no more than it must: no cookies, no address of the page, and one language for
 * all, because which ones a person reads is nothing that a server needs to know. Redirects are not followed.
 *
 * @param {PlainRequest} request
 * @returns {RequestInit}
 */
export function plainRequest(request) {
  return {
    cache: "no-store",
    credentials: "omit",
    redirect: "manual",
    referrerPolicy: "no-referrer",
    ...request,
    headers: { "Accept-Language": "*", ...request.headers },
  };
}

/**
 * @param {unknown} body nothing is posted without one
 * @returns {PlainRequest}
 */
function jsonRequest(body) {
  const Accept = "application/json";
  if (body === undefined) return { method: "GET", headers: { Accept } };
  return { method: "POST", headers: { Accept, "Content-Type": Accept }, body: JSON.stringify(body) };
}

/**
 * @param {Response} response
 * @returns {Promise<Answer>}
 */
async function readAnswer(response) {
  const { status } = response;
  const redirected = response.type === "opaqueredirect" || (status >= 300 && status < 400);
  const retryAfter = response.headers.get("Retry-After") ?? "";
  return {
    status,
    body: redirected ? new Uint8Array(0) : await readShort(response),
    redirected,
    retryAfter: /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : 0,
  };
}

/**
 * @param {Response} response
 * @returns {Promise<Uint8Array>}
 */
async function readShort(response) {
  const body = new Uint8Array(MOST_BYTES);
  let length = 0;
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    if (length + part.value.length > MOST_BYTES) {
      throw new RelaxdpError(
        "server_answer_error",
        `the server's answer is longer than ${MOST_BYTES} bytes. The rest of it was not read.`,
      );
    }
    body.set(part.value, length);
    length += part.value.length;
  }
  return body.slice(0, length);
}

/**
 * Return the JSON of a success, or throw what the server says.
 *
 * @param {Answer} answer
 * @param {string} host
 */
function checked({ status, body, redirected }, host) {
  if (redirected) {
    throw new RelaxdpError("server_answer_error", `${host} wants to send us elsewhere, which is not followed.`, {
      status,
    });
  }
  const content = parsed(body);
  if (status >= 200 && status < 300) {
    if (content === undefined) {
      throw new RelaxdpError(
        "server_answer_error",
        "the server's answer is no JSON that can be read. Nothing was sent after it.",
      );
    }
    return content;
  }
  const { error, message } = fieldsOf(content);
  const readable = typeof error === "string" && typeof message === "string";
  throw new RelaxdpError(
    "refused_by_server_error",
    `${host} refused (status ${status})${readable ? `: ${tidy(message)}` : "."}`,
    { status, error: readable ? tidy(error) : null },
  );
}

/**
 * @param {Uint8Array} body
 * @returns {unknown} undefined for what is no JSON
 */
function parsed(body) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/**
 * A stranger's text as one short, printable line.
 *
 * @param {string} text
 */
function tidy(text) {
  return text.slice(0, SHOWN).replace(/[\p{C}\p{Z}]/gu, " ");
}

/**
 * @param {string} host
 * @param {unknown} problem
 */
function unreachable(host, problem) {
  const what =
    problem instanceof Error && problem.name === "AbortError" ? "did not answer in time" : "cannot be reached";
  return new RelaxdpError("unreachable_error", `${host} ${what}. What was to be sent is kept for the next time.`, {
    host,
  });
}
