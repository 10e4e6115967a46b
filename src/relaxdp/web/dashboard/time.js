/** Times on an axis: round ones, as many as there is room for, in the clock and calendar of whoever looks. */

const HOUR = 3_600_000;
const STEPS = [1, 2, 3, 6, 12, 24, 48, 72, 96, 168, 336, 720, 2160, 8760]; // hours
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const BOTH = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/**
 * Return an hour with its day.
 *
 * @param {number} time
 */
export const dayOrHour = (time) => BOTH.format(time);

/**
 * Return times between two, at midnight or at whole hours from it on; midnight has the day's name.
 *
 * @param {number} from
 * @param {number} to
 * @param {number} most
 */
export function timeTicks(from, to, most) {
  const step = HOUR * (STEPS.find((each) => (to - from) / (HOUR * each) <= most) ?? STEPS[STEPS.length - 1]);
  const midnight = new Date(from);
  midnight.setHours(0, 0, 0, 0);
  if (step >= 24 * HOUR && midnight.getTime() < from) midnight.setDate(midnight.getDate() + 1); // the first one inside
  const ticks = [];
  for (let at = midnight.getTime(); at <= to; at += step) {
    const isDay = step >= 24 * HOUR || new Date(at).getHours() === 0;
    if (at >= from) ticks.push({ at, text: (isDay ? DAY : CLOCK).format(at) });
  }
  return ticks;
}
