/** A campaign in words: its intervals, its levels, how far it is, and how it stands. */

import { measureOf, moment, plural, whole } from "../kit/words.js";

/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").Row} Row */
/** @typedef {import("../kit/words.js").Measure} Measure */

export const STATES = { waiting: "not open yet", open: "open", paused: "paused", finished: "ended" };
const ROUND = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

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

/**
 * Tell whether estimates say something: before, an interval holds nearly everything and its middle is chance.
 *
 * @param {Pick<Campaign, "half_width" | "readable">} campaign
 */
export const isReadable = ({ half_width: width, readable }) => width !== null && width <= readable.half_width;

/**
 * Tell whether more people would help more than anything else: nothing is known yet, and their reports would do.
 *
 * @param {Campaign} campaign
 */
export const needsPeople = (campaign) =>
  campaign.state !== "finished" &&
  (campaign.devices.total === 0 || (!isReadable(campaign) && campaign.readable.more !== null));

/** @param {Campaign} campaign */
export function tooFew({ encoding, readable: { more, half_width: width } }) {
  const wanted = measureOf(encoding).width(width);
  if (more === null) return `Too few reports, and at this level no number of them gives ${wanted}.`;
  return `Too few reports yet: about ${ROUND.format(more)} more for ${wanted}.`;
}

/**
 * Return how precise the answer is, for a fact.
 *
 * @param {Campaign} campaign
 */
export function knownTo(campaign) {
  if (campaign.devices.total === 0 || campaign.half_width === null) return "nothing yet";
  return isReadable(campaign) ? measureOf(campaign.encoding).width(campaign.half_width) : "too few reports";
}

/**
 * Return how a campaign stands, in a sentence or two.
 *
 * @param {Campaign} campaign
 */
export function standing(campaign) {
  const { state, devices } = campaign;
  if (state === "waiting") return campaign.opens === null ? "It opens soon." : `It opens ${moment(campaign.opens)}.`;
  if (state === "finished")
    return `${ended(campaign)}${campaign.reduced ? " The reports are deleted; the counts stay." : ""}`;
  const paused = state === "paused" ? "It is paused and takes no reports. " : "";
  if (devices.total === 0) return `${paused}Nobody has answered yet. Share the link to begin.`;
  return `${paused}${isReadable(campaign) ? progress(campaign) : tooFew(campaign)}`;
}

/** @param {Campaign} campaign */
function ended(campaign) {
  const { devices, encoding, half_width: width, target, target_met: met } = campaign;
  if (devices.total === 0) return "It ended without an answer.";
  const measure = measureOf(encoding);
  if (!isReadable(campaign) || width === null) {
    return `It ended with ${plural(devices.total, "device")}: too few to tell anything.`;
  }
  const aim = target === null ? "" : met ? ", as was wanted" : ` instead of ${measure.width(target.half_width)}`;
  return `The answer is known to ${measure.width(width)}${aim}, from ${plural(devices.total, "device")}.`;
}

/** @param {Campaign} campaign with an answer that says something */
function progress(campaign) {
  const { encoding, half_width: width, target } = campaign;
  const measure = measureOf(encoding);
  const known = `The answer is known to ${measure.width(width ?? 0)}.`;
  if (target === null) return `${known} You decide when that is enough.`;
  const wanted = measure.width(target.half_width);
  if (campaign.target_met) return `${known} That is enough: ${wanted} was wanted.`;
  const here = Math.floor(100 * progressOf(campaign, target));
  const share = here < 1 ? "fewer than 1 %" : `${whole(here)} %`;
  return `${known} Of the reports that ${wanted} takes at these levels, ${share} are here.`;
}
