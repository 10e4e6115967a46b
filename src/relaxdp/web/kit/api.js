/** The service, as the pages ask it. The token travels in a header and never in an address. */

import { plainRequest } from "../device/client.js";
import { Problem } from "./problem.js";

/**
 * The service that this page came from: it may lie below a path of its site, and there may be others beside it. What is
 * behind the last "static/" is a matter of how scripts are served.
 */
export const ROOT = new URL(import.meta.url.replace(/^(.*\/)static\/.*$/, "$1"));
const BASE = new URL("v1/", ROOT);
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
   * Hand over a file and return the JSON of the answer.
   *
   * @template Answer
   * @param {string} path
   * @param {Blob} file
   * @param {string} type the media type; a browser knows few of them by the name of the file
   * @returns {Promise<Answer>}
   */
  async send(path, file, type) {
    return (await this.#fetch(path, { method: "POST", body: file, type })).json();
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
   * Hand over server-sent events until the stream ends. EventSource cannot send a header, so this reads them itself.
   *
   * @template Event
   * @param {string} path
   * @param {(event: Event) => void} receive
   * @param {AbortSignal} signal
   */
  async stream(path, receive, signal) {
    const { body } = await this.#fetch(path, { signal });
    if (body === null) return;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (waiting + value).split("\n\n");
      waiting = events.pop() ?? "";
      for (const event of events) {
        const lines = event.split("\n").filter((line) => line.startsWith("data: "));
        if (lines.length > 0) receive(JSON.parse(lines.map((line) => line.slice(6)).join("\n")));
      }
    }
  }

  /**
   * @param {string} path
   * @param {{ method?: string, body?: unknown, type?: string, signal?: AbortSignal }} options
   */
  async #fetch(path, { method = "GET", body, type = "application/json", signal }) {
    /** @type {Record<string, string>} */
    const headers = this.#token === null ? {} : { authorization: `Bearer ${this.#token}` };
    if (body !== undefined) headers["content-type"] = type;
    const content = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
    let answer;
    try {
      answer = await fetch(
        new URL(path, BASE),
        plainRequest({ method, headers, body: content, signal, redirect: "error" }),
      );
    } catch (problem) {
      if (signal?.aborted) throw problem;
      throw new Problem(AWAY);
    }
    if (answer.ok) return answer;
    throw await Problem.of(answer);
  }
}

/**
 * Follow a campaign's estimates for as long as the signal lets us; a stream that breaks off is opened again.
 *
 * @template Event
 * @param {Api} api
 * @param {string} path
 * @param {{ receive: (event: Event) => void, linked: (on: boolean) => void, signal: AbortSignal }} options
 */
export async function follow(api, path, { receive, linked, signal }) {
  let wait = 1;
  const heard = (/** @type {Event} */ event) => {
    wait = 1;
    linked(true);
    receive(event);
  };
  while (!signal.aborted) {
    const link = new AbortController(); // a line that is gone may stay silent for minutes before a browser notices
    const cut = () => link.abort();
    window.addEventListener("offline", cut);
    signal.addEventListener("abort", cut);
    try {
      await api.stream(path, heard, link.signal);
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Problem && [400, 401, 404].includes(problem.status)) throw problem;
    } finally {
      window.removeEventListener("offline", cut);
      signal.removeEventListener("abort", cut);
    }
    linked(false);
    wait = (await pause(wait, signal)) ? 1 : Math.min(15, 2 * wait);
  }
}

/**
 * Wait, or until there is a reason to try at once: the network is back, or somebody looks at the page again.
 *
 * @param {number} seconds
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether there was such a reason
 */
function pause(seconds, signal) {
  return new Promise((wake) => {
    const over = new AbortController();
    const end = (/** @type {boolean} */ early) => {
      clearTimeout(timer);
      over.abort();
      wake(early);
    };
    const timer = setTimeout(() => end(false), 1000 * seconds);
    const looked = () => document.visibilityState === "visible" && end(true);
    signal.addEventListener("abort", () => end(false), { signal: over.signal });
    window.addEventListener("online", () => end(true), { signal: over.signal });
    window.addEventListener("focus", looked, { signal: over.signal });
    document.addEventListener("visibilitychange", looked, { signal: over.signal });
  });
}
