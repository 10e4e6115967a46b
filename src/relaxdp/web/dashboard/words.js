/** A campaign in words: its intervals, its levels, and how far it is. */

/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").Row} Row */
/** @typedef {import("../kit/words.js").Measure} Measure */

export const STATES = { waiting: "not open yet", open: "open", paused: "paused", finished: "finished" };

/**
 * Return the estimate that is shown: inside its interval, so that no share is below 0.
 *
 * @param {Pick<Row, "estimate" | "low" | "high">} row
 */
export const inside = (row) => Math.min(row.high, Math.max(row.low, row.estimate));

/**
 * Return an interval in words. What lies beyond what can be told has only a bound.
 *
 * @param {Pick<Row, "low" | "high" | "beyond">} row
 * @param {Measure} measure
 */
export function between(row, measure) {
  if (row.beyond === "below") return `below what can be told, at most ${measure.value(row.high)}`;
  if (row.beyond === "above") return `above what can be told, at least ${measure.value(row.low)}`;
  return measure.between(row.low, row.high);
}

/**
 * Return a change in words.
 *
 * @param {Pick<Row, "estimate" | "low" | "high">} row
 * @param {Measure} measure
 */
export function changeWords(row, measure) {
  const points = measure.numeric ? "" : " points";
  return `${measure.change(row.estimate)}${points} (${measure.change(row.low)} to ${measure.change(row.high)})`;
}

/**
 * Return how far a campaign is on its way to a target: as many times more devices would do as this is below 1.
 *
 * @param {Campaign} campaign
 * @param {NonNullable<Campaign["target"]>} target
 */
export function progressOf(campaign, target) {
  if (campaign.target_met) return 1;
  if (campaign.half_width === null) return 0;
  return Math.min(1, (target.half_width / campaign.half_width) ** 2);
}

/** @param {Campaign} campaign */
export function levelOf(campaign) {
  if (campaign.open_level === null) return "none yet";
  return `ε ${campaign.levels[campaign.open_level].epsilon} (${campaign.open_level + 1} of ${campaign.levels.length})`;
}
