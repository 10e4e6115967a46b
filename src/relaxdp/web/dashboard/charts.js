/** Charts, drawn as SVG: intervals, and how they narrow. Whatever they show, a table beside them says too. */

import { ticksOf } from "../kit/charts.js";
import { s } from "../kit/dom.js";
import { between, inside } from "./words.js";

const WIDTH = 176;
const HEIGHT = 150;
const EDGE = { left: 38, right: 4, top: 8, bottom: 22 };
const LETTER = 7;

/** @typedef {import("../kit/wire.d.ts").Row} Row */
/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {import("../kit/charts.js").Scale} Scale */

/**
 * Return a scale with round ends that holds all intervals; shares begin at 0.
 *
 * @param {Pick<Row, "low" | "high">[]} rows
 * @param {Measure} measure
 * @returns {Scale}
 */
export function scaleOf(rows, measure) {
  const low = measure.numeric ? Math.min(...rows.map((row) => row.low)) : 0;
  const high = Math.max(...rows.map((row) => row.high), measure.numeric ? -Infinity : 0.01);
  return ticksOf(low, high);
}

/**
 * Return one interval as a horizontal bar, for a row of a table that says the same in numbers.
 *
 * @param {Pick<Row, "estimate" | "low" | "high">} row
 * @param {Scale} scale
 */
export function horizontalInterval(row, scale) {
  const at = (/** @type {number} */ x) => 4 + (192 * (x - scale.low)) / (scale.high - scale.low);
  return s(
    "svg",
    { viewBox: "0 0 200 20", "aria-hidden": "true" },
    s("line", { class: "axis", x1: 4, x2: 196, y1: 10, y2: 10 }),
    s("rect", {
      class: "band",
      x: at(row.low),
      width: Math.max(2, at(row.high) - at(row.low)),
      y: 4,
      height: 12,
      rx: 3,
    }),
    s("line", { class: "interval", x1: at(row.low), x2: at(row.low), y1: 4, y2: 16 }),
    s("line", { class: "interval", x1: at(row.high), x2: at(row.high), y1: 4, y2: 16 }),
    s("circle", { class: "dot", cx: at(inside(row)), cy: 10, r: 4 }),
  );
}

/**
 * Return a bar for a part of a whole.
 *
 * @param {number} part
 * @param {number} most
 */
export function horizontalBar(part, most) {
  const ground = s("rect", { class: "bar-ground", width: 200, height: 14, rx: 3 });
  const fill =
    part > 0 ? s("rect", { class: "bar-fill", width: Math.max(2, (200 * part) / most), height: 14, rx: 3 }) : null;
  return s("svg", { viewBox: "0 0 200 14", "aria-hidden": "true" }, ground, fill);
}

/** @typedef {{ at: string, row: Row | undefined }} Point one interval, and the level or the date that it is of */

/**
 * Return the intervals of one value side by side, and behind them the band of what is known now.
 *
 * @param {string} text what it says to whoever does not see it
 * @param {Point[]} points one for each level of the campaign, or for each date of its series
 * @param {{ now?: Row, axis?: string, scale: Scale, measure: Measure }} options
 */
export function intervalPanel(text, points, { now, axis = "", scale, measure }) {
  const y = (/** @type {number} */ v) =>
    EDGE.top + ((scale.high - v) * (HEIGHT - EDGE.top - EDGE.bottom)) / (scale.high - scale.low);
  const step = (WIDTH - EDGE.left - EDGE.right) / points.length;
  const x = (/** @type {number} */ place) => EDGE.left + step * (place + 0.5);
  const right = WIDTH - EDGE.right;
  const drawn = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text });
  if (now !== undefined) {
    const height = Math.max(1, y(now.low) - y(now.high));
    drawn.append(s("rect", { class: "band", x: EDGE.left, width: right - EDGE.left, y: y(now.high), height }));
  }
  for (const tick of scale.ticks) {
    drawn.append(s("line", { class: "axis", x1: EDGE.left, x2: right, y1: y(tick), y2: y(tick) }));
    drawn.append(s("text", { x: EDGE.left - 5, y: y(tick) + 4, "text-anchor": "end" }, measure.tick(tick)));
  }
  drawn.append(s("text", { x: EDGE.left - 5, y: HEIGHT - 6, "text-anchor": "end" }, axis));
  let free = WIDTH; // the labels that fit, from the last one on
  for (let place = points.length - 1; place >= 0; place -= 1) {
    const { at, row } = points[place];
    const half = (LETTER * at.length) / 2;
    if (x(place) + half <= free) {
      drawn.append(s("text", { x: x(place), y: HEIGHT - 6, "text-anchor": "middle" }, at));
      free = x(place) - half;
    }
    if (row === undefined) continue;
    drawn.append(...verticalInterval(x(place), y(row.low), y(row.high), y(inside(row)), Math.min(6, step / 3)));
  }
  return drawn;
}

/**
 * @param {number} x
 * @param {number} low
 * @param {number} high
 * @param {number} middle
 * @param {number} cap
 */
function verticalInterval(x, low, high, middle, cap) {
  return [
    s("line", { class: "interval", x1: x, x2: x, y1: low, y2: high }),
    s("line", { class: "interval", x1: x - cap, x2: x + cap, y1: low, y2: low }),
    s("line", { class: "interval", x1: x - cap, x2: x + cap, y1: high, y2: high }),
    s("circle", { class: "dot", cx: x, cy: middle, r: 3.5 }),
  ];
}

/**
 * Say what a panel shows.
 *
 * @param {string} name
 * @param {string} where before each level or date
 * @param {Point[]} points
 * @param {Measure} measure
 */
export function pointsText(name, where, points, measure) {
  const parts = points.flatMap(({ at, row }) => (row === undefined ? [] : [`${where} ${at} ${between(row, measure)}`]));
  return `${name}: ${parts.join(", ")}`;
}
