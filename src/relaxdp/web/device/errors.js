/** What this package refuses, and how it says so. */

/** Every refusal: `code` is for programs and is stable, `message` is a sentence that shows neither truth nor key. */
export class RelaxdpError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {Record<string, unknown>} [fields] what a program may want to know, never a secret
   */
  constructor(code, message, fields = {}) {
    super(message);
    this.name = "RelaxdpError";
    this.code = code;
    this.fields = fields;
  }
}
