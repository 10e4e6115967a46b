/** Charts, drawn as SVG: intervals, and how they narrow. Whatever they show, a table beside them says too. */

import { h, s } from "../kit/dom.js";
import { between, inside } from "./words.js";

const WIDTH = 176;
const HEIGHT = 168;
const EDGE = { left: 40, right: 8, top: 10, bottom: 36 };
const LETTER = 6.6;
const DOT = 5;

/** @typedef {import("../kit/wire.d.ts").Row} Row */
/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {{ low: number, high: number, ticks: number[] }} Scale with round ticks */
/** @typedef {Pick<Row, "estimate" | "low" | "high">} Interval */

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
  const step = roundUp((high - low || 1) / 4);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
  return { low: ticks[0], high: ticks[ticks.length - 1], ticks };
}

/**
 * Return the smallest round number that is not below a size.
 *
 * @param {number} size
 */
function roundUp(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return power * [1, 2, 2.5, 5, 10].filter((each) => each * power >= size * 0.999)[0];
}

/** Where a number lies on a row of a table, in percent of its width: the ends have room for a label. */
const across = (/** @type {number} */ x, /** @type {Scale} */ scale) =>
  `${5 + (90 * (x - scale.low)) / (scale.high - scale.low)}%`;

/**
 * Return one interval as a horizontal bar, for a row of a table that says the same in numbers.
 *
 * @param {Interval} row
 * @param {Scale} scale
 */
export function horizontalInterval(row, scale) {
  const [low, high] = [across(row.low, scale), across(row.high, scale)];
  return s(
    "svg",
    { class: "across", "aria-hidden": "true" },
    ...scale.ticks.map((tick) =>
      s("line", { class: "axis", x1: across(tick, scale), x2: across(tick, scale), y1: 0, y2: "100%" }),
    ),
    s("line", { class: "interval wide", x1: low, x2: high, y1: "50%", y2: "50%" }),
    s("circle", { class: "dot", cx: across(inside(row), scale), cy: "50%", r: DOT }),
  );
}

/**
 * Return the axis below such bars.
 *
 * @param {Scale} scale
 * @param {Measure} measure
 */
export function horizontalAxis(scale, measure) {
  const most = Math.max(2, Math.floor(28 / measure.tick(scale.high).length));
  const every = Math.ceil((scale.ticks.length - 1) / most);
  const labels = scale.ticks.filter((_, place) => place % every === 0);
  return s(
    "svg",
    { class: "across", "aria-hidden": "true" },
    ...labels.map((tick) => s("text", { x: across(tick, scale), y: 14, "text-anchor": "middle" }, measure.tick(tick))),
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

/** @typedef {{ at: string, row: Row | undefined }} Point one interval, and the level that it is of */

/**
 * Return the intervals of one value side by side, behind them the band of what is known now, and a line below that says
 * the interval at which the pointer is, or which the arrow keys have reached.
 *
 * @param {string} text what it says to whoever does not see it
 * @param {Point[]} points one for each level of the campaign
 * @param {{ now?: Row, scale: Scale, measure: Measure }} options
 */
export function intervalPanel(text, points, { now, scale, measure }) {
  const y = (/** @type {number} */ v) =>
    EDGE.top + ((scale.high - v) * (HEIGHT - EDGE.top - EDGE.bottom)) / (scale.high - scale.low);
  const step = (WIDTH - EDGE.left - EDGE.right) / points.length;
  const x = (/** @type {number} */ place) => EDGE.left + step * (place + 0.5);
  const right = WIDTH - EDGE.right;
  const floor = HEIGHT - EDGE.bottom;
  const drawn = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text, tabindex: 0 });
  if (now !== undefined) {
    const height = Math.max(2, y(now.low) - y(now.high));
    drawn.append(s("rect", { class: "band", x: EDGE.left, width: right - EDGE.left, y: y(now.high), height }));
  }
  for (const tick of scale.ticks) {
    drawn.append(s("line", { class: "axis", x1: EDGE.left, x2: right, y1: y(tick), y2: y(tick) }));
    drawn.append(s("text", { x: EDGE.left - 6, y: y(tick) + 4, "text-anchor": "end" }, measure.tick(tick)));
  }
  drawn.append(s("text", { x: right, y: HEIGHT - 4, "text-anchor": "end" }, "level ε"));
  let free = WIDTH; // the labels that fit, from the last one on
  for (let place = points.length - 1; place >= 0; place -= 1) {
    const { at, row } = points[place];
    const half = (LETTER * at.length) / 2;
    drawn.append(s("line", { class: "tick", x1: x(place), x2: x(place), y1: floor, y2: floor + 4 }));
    if (x(place) + half <= free) {
      drawn.append(s("text", { x: x(place), y: floor + 17, "text-anchor": "middle" }, at));
      free = x(place) - half - 2;
    }
    if (row === undefined) continue;
    drawn.append(...verticalInterval(x(place), y(row.low), y(row.high), y(inside(row)), Math.min(6, step / 3)));
  }
  const there = points.flatMap(({ at, row }, place) => (row === undefined ? [] : [{ x: x(place), at, row }]));
  const said = (/** @type {number} */ place) => {
    const { at, row } = there[place];
    return `ε ${at}: ${measure.value(inside(row))} (${between(row, measure)})`;
  };
  const rest = now === undefined ? "" : `Now ${between(now, measure)}`;
  return pointable(drawn, { at: there.map((each) => each.x / WIDTH), said, rest });
}

/**
 * Return a drawing with a line below it that says what is under the pointer, or under the arrow keys. The line has its
 * place before anything stands in it, so that nothing moves.
 *
 * @param {SVGSVGElement} drawn
 * @param {{ at: number[], said: (place: number) => string, rest: string }} options where each thing lies, from 0 at the
 *   left to 1 at the right; `rest` is said otherwise
 */
function pointable(drawn, { at, said, rest }) {
  const line = h("p", { class: "small told" }, rest);
  const mark = s("line", { class: "mark", y1: 0, y2: "100%" });
  let place = -1;
  const show = (/** @type {number} */ next) => {
    if (at.length === 0) return;
    place = Math.min(at.length - 1, Math.max(0, next));
    line.textContent = said(place);
    mark.setAttribute("x1", `${100 * at[place]}%`);
    mark.setAttribute("x2", `${100 * at[place]}%`);
    drawn.prepend(mark);
  };
  const leave = () => {
    if (document.activeElement === drawn) return;
    mark.remove();
    line.textContent = rest;
  };
  const nearest = (/** @type {PointerEvent} */ { clientX }) => {
    const box = drawn.getBoundingClientRect();
    const x = (clientX - box.left) / box.width;
    const far = at.map((each) => Math.abs(each - x));
    show(far.indexOf(Math.min(...far)));
  };
  drawn.addEventListener("pointermove", nearest);
  drawn.addEventListener("pointerdown", nearest);
  drawn.addEventListener("pointerleave", leave);
  drawn.addEventListener("focus", () => {
    line.setAttribute("aria-live", "polite");
    show(place < 0 ? at.length - 1 : place);
  });
  drawn.addEventListener("blur", () => {
    line.removeAttribute("aria-live");
    leave();
  });
  drawn.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: at.length - 1 };
    const next = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (next === undefined) return;
    event.preventDefault();
    show(next);
  });
  return h("div", { class: "pointable" }, drawn, line);
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
    s("circle", { class: "dot", cx: x, cy: middle, r: DOT }),
  ];
}

/**
 * Say what a panel shows.
 *
 * @param {string} name
 * @param {Point[]} points
 * @param {Measure} measure
 */
export function pointsText(name, points, measure) {
  const parts = points.flatMap(({ at, row }) =>
    row === undefined ? [] : [`at epsilon ${at} ${between(row, measure)}`],
  );
  return `${name}: ${parts.join(", ")}`;
}
