/** What went wrong, in the sentence that a person reads. */

import { RelaxdpError } from "../device/errors.js";

/** A refusal that a page shows as it is: the service's own sentence, or the page's where nothing was sent. */
export class Problem extends RelaxdpError {
  /**
   * @param {string} sentence
   * @param {{ code?: string, status?: number }} [refusal] what the service said; its status is 0 where nobody answered
   */
  constructor(sentence, { code = "page_error", status = 0 } = {}) {
    super(code, sentence, { status });
    this.status = status;
  }

  /**
   * Read what the service says of a refusal.
   *
   * @param {Response} answer
   */
  static async of(answer) {
    /** @type {Partial<import("./wire.d.ts").Problem>} */
    const content = await answer.json().catch(() => ({}));
    const { error = "service_error", message = `The service answered with status ${answer.status}.` } = content;
    return new Problem(message, { code: error, status: answer.status });
  }
}

/**
 * Return the sentence of whatever was thrown.
 *
 * @param {unknown} problem
 */
export const sentenceOf = (problem) => (problem instanceof Error ? problem.message : String(problem));

/**
 * Return whether the service does not know the token that was sent, or does not know it any more.
 *
 * @param {unknown} problem
 */
export const isUnknownToken = (problem) => problem instanceof Problem && problem.status === 401;
