/** Numbers as people read them: shares as percentages, means in the units of their question. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const PERCENT = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const PLAIN = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** @param {number} value */
export const whole = (value) => WHOLE.format(value);

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
 * @param {{ name: string }} encoding
 * @returns {Measure}
 */
export const measureOf = (encoding) => (encoding.name === "numeric" ? MEANS : SHARES);

/**
 * Return the estimate that is shown: inside its interval, so that no share is below 0.
 *
 * @param {{ estimate: number, low: number, high: number }} row
 */
export const inside = (row) => Math.min(row.high, Math.max(row.low, row.estimate));

/**
 * Return an interval in words. What lies beyond what can be told has only a bound.
 *
 * @param {{ low: number, high: number, beyond?: "below" | "above" }} row
 * @param {Measure} measure
 */
export function between(row, measure) {
  if (row.beyond === "below") return `below what can be told, at most ${measure.value(row.high)}`;
  if (row.beyond === "above") return `above what can be told, at least ${measure.value(row.low)}`;
  return measure.between(row.low, row.high);
}

/**
 * Return how far a campaign is on its way to its target: as many times more devices would do as this is below 1.
 *
 * @param {{ half_width: number | null, target: { half_width: number } | null, target_met: boolean }} campaign
 * @returns {number | null}
 */
export function progressOf(campaign) {
  if (campaign.target === null) return null;
  if (campaign.target_met) return 1;
  if (campaign.half_width === null) return 0;
  return Math.min(1, (campaign.target.half_width / campaign.half_width) ** 2);
}

/** @param {{ open_level: number | null, levels: { epsilon: string }[] }} campaign */
export function levelOf(campaign) {
  if (campaign.open_level === null) return "none yet";
  return `ε ${campaign.levels[campaign.open_level].epsilon} (${campaign.open_level + 1} of ${campaign.levels.length})`;
}

/** @param {string | null} time */
export const moment = (time) => (time === null ? null : new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }));

export const STATES = { waiting: "not open yet", open: "open", paused: "paused", finished: "finished" };
