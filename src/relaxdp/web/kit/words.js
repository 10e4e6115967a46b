/** Numbers as people read them: shares as percentages, means in the units of their question. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const PERCENT = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const PLAIN = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** @param {number} value */
export const whole = (value) => WHOLE.format(value);

/**
 * Return how many there are of something: 1 device, 2 devices.
 *
 * @param {number} number
 * @param {string} one
 */
export const plural = (number, one) => `${whole(number)} ${one}${number === 1 ? "" : "s"}`;

/**
 * How the numbers of a campaign are written.
 *
 * @typedef {{ numeric: boolean, value: (x: number) => string, tick: (x: number) => string, width: (x: number) => string,
 *             between: (low: number, high: number) => string }} Measure
 */

/** @type {Measure} */
const SHARES = {
  numeric: false,
  value: (x) => `${PERCENT.format(100 * x)} %`,
  tick: (x) => `${PLAIN.format(100 * x)} %`,
  width: (x) => `± ${SHORT.format(100 * x)} %`,
  between: (low, high) => `${PERCENT.format(100 * low)} to ${PERCENT.format(100 * high)} %`,
};

/** @type {Measure} */
const MEANS = {
  numeric: true,
  value: (x) => PLAIN.format(x),
  tick: (x) => PLAIN.format(x),
  width: (x) => `± ${SHORT.format(x)}`,
  between: (low, high) => `${PLAIN.format(low)} to ${PLAIN.format(high)}`,
};

/**
 * @param {{ range?: unknown } | null} encoding null where nothing was delivered yet
 * @returns {Measure}
 */
export const measureOf = (encoding) => (encoding?.range === undefined ? SHARES : MEANS);

/** @param {string | null} time */
export const moment = (time) =>
  time === null ? null : new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
