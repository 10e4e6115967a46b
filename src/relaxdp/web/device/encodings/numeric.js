/** Numeric: a number in a range becomes one bit, its lower or upper end, rounded at random once and for good. */

import { Ranged } from "./range.js";

/** A number from `low` to `high`; the mean over the objects is what can be estimated. */
export class Numeric extends Ranged {
  /** @override */
  name = "numeric";

  /**
   * @param {number} low
   * @param {number} high
   */
  constructor(low, high) {
    super(low, high, { bins: 2, window: 1 });
  }

  /**
   * The end of the range that a place stands for.
   *
   * @override
   * @param {number} place
   */
  reported(place) {
    return place === 1 ? this.high : this.low;
  }

  /**
   * The place of a report, which is an end of the range.
   *
   * @override
   * @param {number} report
   */
  placeOf(report) {
    return report === this.high ? 1 : 0;
  }
}
