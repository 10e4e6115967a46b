/** The wave: a number is reported as a place near it, with a rounding and an offset that are drawn once and kept. */

import { concat, u32 } from "../bytes.js";
import { RelaxdpError } from "../errors.js";
import { Ranged } from "./range.js";

const MOST = 1024;

/** A number from `low` to `high`; the mean and the whole distribution over the objects can be estimated. */
export class Wave extends Ranged {
  /** @override */
  name = "wave";

  /**
   * @param {number} low
   * @param {number} high
   * @param {{ bins: number, window: number, clip?: boolean }} options
   */
  constructor(low, high, options) {
    const { bins, window } = options;
    if (!isWhole(bins, 2) || !isWhole(window, 1) || (window & (window - 1)) !== 0) {
      throw new RelaxdpError(
        "shape_invalid",
        `there are from 2 to ${MOST} bins, and the window is a power of two, at most ${MOST}.`,
      );
    }
    super(low, high, options);
  }

  /**
   * The range, the function's name, the bins and the window.
   *
   * @override
   */
  async params() {
    return concat(await super.params(), u32(this.bins), u32(this.window));
  }
}

/**
 * @param {unknown} number
 * @param {number} least
 */
const isWhole = (number, least) => Number.isInteger(number) && Number(number) >= least && Number(number) <= MOST;
