/** The service, as the pages ask it. The token travels in a header and never in an address. */

import { plainRequest } from "../device/client.js";
import { Problem } from "./problem.js";
import { Watch } from "./watch.js";

/**
 * The service that this page came from: it may lie below a path of its site, and there may be others beside it. What is
 * behind the last "static/" is a matter of how scripts are served.
 */
export const ROOT = new URL(import.meta.url.replace(/^(.*\/)static\/.*$/, "$1"));
const BASE = new URL("v1/", ROOT);
const POLL_SECONDS = 5;
const POLL_TIMEOUT = 30; // seconds; a connection that is gone may stay silent for minutes
const FINAL = [400, 401, 404];
const AWAY = "The service does not answer. If something was to be changed, look whether it was before you ask again.";

/** Asks the service. Whoever has signed in has a token. */
export class Api {
  #token;

  /** @param {string | null} token null for whoever has not signed in */
  constructor(token) {
    this.#token = token;
  }

  /**
   * Return the JSON of an answer, or throw what the service says. The caller names its type, as the service's own
   * description has it (wire.d.ts).
   *
   * @template Answer
   * @param {"GET" | "POST"} method
   * @param {string} path below /v1/
   * @param {unknown} [body]
   * @returns {Promise<Answer>}
   */
  async ask(method, path, body) {
    return (await this.#fetch(path, { method, body })).json();
  }

  /**
   * Return a file.
   *
   * @param {string} path
   * @returns {Promise<Blob>}
   */
  async file(path) {
    return (await this.#fetch(path, {})).blob();
  }

  /**
   * Return the JSON of an answer with its entity tag; null while the answer is the one that has this tag.
   *
   * @template Answer
   * @param {string} path
   * @param {string | null} tag
   * @returns {Promise<{ tag: string | null, content: Answer } | null>}
   */
  async poll(path, tag) {
    const answer = await this.#fetch(path, { tag, signal: AbortSignal.timeout(1000 * POLL_TIMEOUT) });
    if (answer.status === 304) return null;
    return { tag: answer.headers.get("ETag"), content: await answer.json() };
  }

  /**
   * @param {string} path
   * @param {{ method?: string, body?: unknown, tag?: string | null, signal?: AbortSignal }} options
   */
  async #fetch(path, { method = "GET", body, tag = null, signal }) {
    /** @type {Record<string, string>} */
    const headers = this.#token === null ? {} : { authorization: `Bearer ${this.#token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (tag !== null) headers["if-none-match"] = tag;
    let answer;
    try {
      answer = await fetch(
        new URL(path, BASE),
        plainRequest({ method, headers, body: JSON.stringify(body), signal, redirect: "error" }),
      );
    } catch {
      throw new Problem(AWAY);
    }
    if (answer.ok || (answer.status === 304 && tag !== null)) return answer;
    throw await Problem.of(answer);
  }
}

/**
 * Keep a page current: ask for a document every few seconds, and hand it over where it has changed.
 *
 * @template Answer
 * @param {Api} api
 * @param {string} path
 * @param {{ receive: (found: Answer) => Promise<void>, linked: (on: boolean) => void, fail: (problem: unknown) => void,
 *           signal: AbortSignal }} options `fail` is told what no later request would mend
 * @returns {() => Promise<void>} asks at once
 */
export function follow(api, path, { receive, linked, fail, signal }) {
  /** @type {string | null} */
  let tag = null;
  const watch = new Watch(
    async () => {
      try {
        const found = await api.poll(path, tag);
        if (found !== null && !signal.aborted) {
          await receive(found.content);
          tag = found.tag;
        }
        linked(true);
        return "go on";
      } catch (problem) {
        if (signal.aborted) return "over";
        if (!(problem instanceof Problem)) throw problem;
        linked(false);
        if (!FINAL.includes(problem.status)) return "failed";
        fail(problem);
        return "over";
      }
    },
    { seconds: POLL_SECONDS, signal },
  );
  window.addEventListener("offline", () => void watch.wake(), { signal });
  void watch.start();
  return () => watch.wake();
}
