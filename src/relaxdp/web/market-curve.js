/** Price and precision against one axis of levels. */

import { ticksOf } from "./dashboard-charts.js";
import { h, s } from "./dashboard-dom.js";
import { measureOf, whole } from "./dashboard-words.js";
import { fitted } from "./market-fit.js";
import { ABSENT, credits, noDearer, onSale, precision, shown, widest } from "./market-words.js";

const PANEL = 116;
const EDGE = { left: 52, right: 14, top: 24, between: 40, bottom: 36 };
const HEIGHT = EDGE.top + 2 * PANEL + EDGE.between + EDGE.bottom;

/** @typedef {import("./market-words.js").Level} Level */
/** @typedef {Pick<Level, "epsilon" | "price" | "objects" | "half_width">} Point */

/**
 * Return the chart, kept current by what is chosen and what is owned.
 *
 * @param {any} listing
 * @param {(share: number) => void} chosen hears which part of the axis was pressed, from 0 to 1
 */
export function curvePart(listing, chosen) {
  /** @type {Point | null} */
  let mark = null;
  /** @type {string | null} */
  let owned = null;
  const { place, draw } = fitted("curve", (width) => {
    const drawn = picture(listing, { width, mark, owned });
    drawn.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const part = (event.clientX - drawn.getBoundingClientRect().left - EDGE.left) / (width - EDGE.left - EDGE.right);
      chosen(Math.min(1, Math.max(0, part)));
    });
    return drawn;
  });
  return {
    element: h("section", { class: "card" }, h("h2", {}, "What a level costs and tells"), place, tableOf(listing)),
    /** @param {Point | null} point */
    choose(point) {
      mark = point;
      draw();
    },
    /** @param {string | null} epsilon */
    own(epsilon) {
      owned = epsilon;
      draw();
    },
  };
}

/**
 * @param {any} listing
 * @param {{ width: number, mark: Point | null, owned: string | null }} now
 */
function picture(listing, { width, mark, owned }) {
  /** @type {Point[]} */
  const points = onSale(listing);
  const most = Number(points[points.length - 1].epsilon);
  const measure = measureOf(listing.encoding);
  const right = width - EDGE.right;
  const x = (/** @type {string | number} */ epsilon) => EDGE.left + (Number(epsilon) / most) * (right - EDGE.left);
  const known = points.filter(({ half_width: width }) => width !== null);
  const cap = Math.min(widest(listing.encoding), Math.max(...known.map((point) => Number(point.half_width)), 0) || 1);
  const panels = [
    { title: "Price in credits", top: EDGE.top, high: Math.max(1, ...points.map(({ price }) => price)), whole: true, tick: whole, points, of: (/** @type {Point} */ p) => p.price },
    { title: "Half-width", top: EDGE.top + PANEL + EDGE.between, high: cap, whole: false, tick: measure.tick, points: known, of: (/** @type {Point} */ p) => Math.min(cap, Number(p.half_width)) },
  ];
  const drawn = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": spoken(listing) });
  for (const { title, top, high, whole: isWhole, tick, points: those, of } of panels) {
    const y = (/** @type {number} */ value) => top + PANEL * (1 - value / high);
    if (owned !== null) drawn.append(s("rect", { class: "band", x: EDGE.left, y: top, width: x(owned) - EDGE.left, height: PANEL }));
    drawn.append(s("text", { x: 0, y: top - 10, class: "head" }, title));
    for (const each of upTo(high).filter((tick) => !isWhole || Number.isInteger(tick))) {
      drawn.append(s("line", { class: "axis", x1: EDGE.left, x2: right, y1: y(each), y2: y(each) }));
      drawn.append(s("text", { x: EDGE.left - 6, y: y(each) + 4, "text-anchor": "end" }, tick(each)));
    }
    drawn.append(s("polyline", { class: "line", points: those.map((point) => `${x(point.epsilon)},${y(of(point))}`).join(" ") }));
    drawn.append(...those.map((point) => s("circle", { class: "level", cx: x(point.epsilon), cy: y(of(point)), r: 2 })));
    if (mark === null || (title === "Half-width" && mark.half_width === null)) continue;
    drawn.append(s("line", { class: "mark", x1: x(mark.epsilon), x2: x(mark.epsilon), y1: top, y2: top + PANEL }));
    drawn.append(s("circle", { class: "dot", cx: x(mark.epsilon), cy: y(of(mark)), r: 5 }));
  }
  const foot = HEIGHT - EDGE.bottom + 18;
  for (const each of upTo(most)) {
    drawn.append(s("text", { x: x(each), y: foot, "text-anchor": "middle" }, String(Number(each.toPrecision(6)))));
  }
  drawn.append(s("text", { x: EDGE.left - 12, y: foot, class: "head", "text-anchor": "end" }, "ε"));
  if (owned !== null) drawn.append(s("text", { x: right, y: EDGE.top - 10, "text-anchor": "end" }, `yours: up to ε ${shown(owned)}`));
  return drawn;
}

/**
 * Return round numbers from 0 on that are not above a number.
 *
 * @param {number} high
 */
const upTo = (high) => ticksOf(0, high).ticks.filter((tick) => tick <= high * 1.0001);

/** @param {any} listing */
function spoken(listing) {
  const { encoding } = listing;
  const points = onSale(listing);
  const few = [points[0], points[Math.floor(points.length / 2)], points[points.length - 1]];
  const parts = few.map((point) => `at epsilon ${point.epsilon} ${credits(point.price)} and ${precision(encoding, point.half_width)}`);
  return `Price and half-width against epsilon: ${parts.join(", ")}. The table below has all levels.`;
}

/** @param {any} listing */
function tableOf(listing) {
  const heads = ["ε", "Credits", ...(listing.kind === "pool" ? ["Objects"] : []), "Half-width"].map((each) => h("th", { scope: "col" }, each));
  const rows = listing.levels.map((/** @type {Level} */ level) => rowOf(level, listing));
  return h("details", {}, h("summary", {}, "The same as a table"), h("table", { class: "levels" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)));
}

/**
 * @param {Level} level
 * @param {any} listing
 */
function rowOf(level, listing) {
  const { epsilon, price, each, objects, available } = level;
  const below = noDearer(listing, epsilon);
  const notes = [each === null ? null : `${whole(each)} each`, below === null ? null : `same as ε ${shown(below)}`, available || each !== null ? null : ABSENT.release];
  const cost = h("td", {}, available || each === null ? whole(price) : "–", ...notes.map((note) => (note === null ? null : h("span", { class: "note" }, note))));
  const width = available || each === null ? precision(listing.encoding, level.half_width) : h("span", { class: "note" }, ABSENT.pool);
  return h("tr", { class: available ? null : "shut" }, h("th", { scope: "row" }, shown(epsilon)), cost, each === null ? null : h("td", {}, whole(objects)), h("td", {}, width));
}
