/** Categorical: the report is one of the declared values. The randomized response of the paper. */

import { Path, Words } from "../path.js";
import { releaseThreshold } from "../threshold.js";
import { readValue } from "../typed.js";
import { Declared } from "./declared.js";

/** @typedef {import("../bytes.js").Typed} Typed */
/** @typedef {import("../path.js").Where} Where */

/** One symbol, whose alphabet are the declared values. */
export class Categorical extends Declared {
  name = "categorical";

  /** What is bound into every key beside the names: the digest of the ordered values. */
  params() {
    return this.digest();
  }

  /**
   * The threshold of an epsilon, rounded to the private side.
   *
   * @param {string} epsilon
   */
  threshold(epsilon) {
    return releaseThreshold(epsilon, this.size);
  }

  /**
   * Return the path of one object, whose reports are indices into the declared values. The object must name one person
   * only, and keep its truth: a changed truth is another path, and that it changed would show.
   *
   * @param {Where & { truth: number }} of `truth` is an index into the declared values
   * @returns {Promise<Path<number>>}
   */
  async path({ truth, ...where }) {
    this.checkTruth(truth);
    const what = { purpose: "path", encoding: this.name, alphabet: this.size, params: await this.params() };
    return new Path({
      words: await Words.of(where, what, { index: truth }),
      alphabet: this.size,
      truths: [truth],
      threshold: (epsilon) => this.threshold(epsilon),
      report: ([code]) => code,
    });
  }

  /**
   * Return the report as it travels.
   *
   * @param {Where} where
   * @param {unknown} kept an answer that `keep` returned
   * @param {bigint} T
   */
  async draw(where, kept, T) {
    const path = await this.path({ ...where, truth: /** @type {number} */ (this.indexOf(readValue(kept))) });
    return { report: this.written(await path.atThreshold(T)), cohort: null };
  }
}
