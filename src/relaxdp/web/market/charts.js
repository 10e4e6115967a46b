/** The market's charts: price and precision of levels, income against privacy loss, and what is left of a budget. */

import { fitted, ticksOf } from "../kit/charts.js";
import { h, s, tableHead } from "../kit/dom.js";
import { measureOf, whole } from "../kit/words.js";
import { ABSENT, betterNote, credits, dipWords, noDearer, onSale, precision, shortEpsilon, widest } from "./words.js";

const PANEL = 116;
const CURVE_EDGE = { left: 52, right: 14, top: 24, between: 40, bottom: 36 };
const CURVE_HEIGHT = CURVE_EDGE.top + 2 * PANEL + CURVE_EDGE.between + CURVE_EDGE.bottom;
const INCOME_EDGE = { left: 52, right: 14, top: 14, bottom: 24 };
const INCOME_HEIGHT = 190;
const INCOME_TITLE = "What each level brought";
const WIDTH_TITLE = "How far off an answer may be";
const HOLLOW = "A hollow point is a level that nobody needs: another one costs no more and tells no less.";

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").OfferedLevel} Level */
/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */
/** @typedef {Pick<Level, "epsilon" | "price" | "objects" | "half_width">} Point */

/**
 * Return the chart, kept current by what is chosen and what is owned.
 *
 * @param {Listing} listing
 * @param {(share: number) => void} chosen hears which part of the axis was pressed, from 0 to 1
 */
export function curvePart(listing, chosen) {
  /** @type {Point | null} */
  let mark = null;
  /** @type {string | null} */
  let owned = null;
  const { place, draw } = fitted("curve", (width) => {
    const drawn = curvePicture(listing, { width, mark, owned });
    drawn.addEventListener("click", (event) => {
      const part =
        (event.clientX - drawn.getBoundingClientRect().left - CURVE_EDGE.left) /
        (width - CURVE_EDGE.left - CURVE_EDGE.right);
      chosen(Math.min(1, Math.max(0, part)));
    });
    return drawn;
  });
  const dip = dipWords(listing);
  const hollow = onSale(listing).some(({ better }) => better !== null);
  return {
    element: h(
      "section",
      { class: "card" },
      h("h2", {}, "What a level costs and tells"),
      place,
      dip === null ? null : h("p", { class: "small dip" }, dip),
      hollow ? h("p", { class: "small dip" }, HOLLOW) : null,
      levelsTable(listing),
    ),
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
 * @param {Listing} listing
 * @param {{ width: number, mark: Point | null, owned: string | null }} now
 */
function curvePicture(listing, { width, mark, owned }) {
  const points = onSale(listing);
  const most = Number(points[points.length - 1].epsilon);
  const { tick: widthTick } = measureOf(listing.encoding);
  const right = width - CURVE_EDGE.right;
  const x = (/** @type {string | number} */ epsilon) =>
    CURVE_EDGE.left + (Number(epsilon) / most) * (right - CURVE_EDGE.left);
  const known = points.filter(({ half_width: width }) => width !== null);
  const cap = Math.min(widest(listing.encoding), Math.max(...known.map((point) => Number(point.half_width)), 0) || 1);
  const panels = [
    {
      title: "Price in credits",
      top: CURVE_EDGE.top,
      high: Math.max(1, ...points.map(({ price }) => price)),
      whole: true,
      tick: whole,
      points,
      of: (/** @type {Point} */ p) => p.price,
    },
    {
      title: WIDTH_TITLE,
      top: CURVE_EDGE.top + PANEL + CURVE_EDGE.between,
      high: cap,
      whole: false,
      tick: widthTick,
      points: known,
      of: (/** @type {Point} */ p) => Math.min(cap, Number(p.half_width)),
    },
  ];
  const drawn = s("svg", {
    viewBox: `0 0 ${width} ${CURVE_HEIGHT}`,
    width,
    height: CURVE_HEIGHT,
    role: "img",
    "aria-label": curveText(listing),
  });
  for (const { title, top, high, whole: isWhole, tick, points: those, of } of panels) {
    const y = (/** @type {number} */ value) => top + PANEL * (1 - value / high);
    if (owned !== null)
      drawn.append(
        s("rect", { class: "band", x: CURVE_EDGE.left, y: top, width: x(owned) - CURVE_EDGE.left, height: PANEL }),
      );
    drawn.append(s("text", { x: 0, y: top - 10, class: "head" }, title));
    for (const each of upTo(high).filter((tick) => !isWhole || Number.isInteger(tick))) {
      drawn.append(s("line", { class: "axis", x1: CURVE_EDGE.left, x2: right, y1: y(each), y2: y(each) }));
      drawn.append(s("text", { x: CURVE_EDGE.left - 6, y: y(each) + 4, "text-anchor": "end" }, tick(each)));
    }
    drawn.append(
      s("polyline", { class: "line", points: those.map((point) => `${x(point.epsilon)},${y(of(point))}`).join(" ") }),
    );
    drawn.append(
      ...those.map((point) => {
        const kind = point.better === null ? { class: "level", r: 2.5 } : { class: "level hollow", r: 4 };
        return s("circle", { ...kind, cx: x(point.epsilon), cy: y(of(point)) });
      }),
    );
    if (mark === null || (title === WIDTH_TITLE && mark.half_width === null)) continue;
    drawn.append(s("line", { class: "mark", x1: x(mark.epsilon), x2: x(mark.epsilon), y1: top, y2: top + PANEL }));
    drawn.append(s("circle", { class: "dot", cx: x(mark.epsilon), cy: y(of(mark)), r: 5 }));
  }
  const foot = CURVE_HEIGHT - CURVE_EDGE.bottom + 18;
  for (const each of upTo(most)) {
    drawn.append(s("text", { x: x(each), y: foot, "text-anchor": "middle" }, String(Number(each.toPrecision(6)))));
  }
  drawn.append(s("text", { x: CURVE_EDGE.left - 12, y: foot, class: "head", "text-anchor": "end" }, "ε"));
  if (owned !== null)
    drawn.append(
      s("text", { x: right, y: CURVE_EDGE.top - 10, "text-anchor": "end" }, `yours: up to ε ${shortEpsilon(owned)}`),
    );
  return drawn;
}

/**
 * Return round numbers from 0 on that are not above a number.
 *
 * @param {number} high
 */
const upTo = (high) => ticksOf(0, high).ticks.filter((tick) => tick <= high * 1.0001);

/** @param {Listing} listing */
function curveText(listing) {
  const { encoding } = listing;
  const points = onSale(listing);
  const few = [points[0], points[Math.floor(points.length / 2)], points[points.length - 1]];
  const parts = few.map(
    (point) => `at epsilon ${point.epsilon} ${credits(point.price)} and ${precision(encoding, point.half_width)}`,
  );
  return `What levels cost, and how far off an answer may be: ${parts.join(", ")}. The table below has all levels.`;
}

/** @param {Listing} listing */
function levelsTable(listing) {
  const head = tableHead("Level ε", "Credits", ...(listing.kind === "pool" ? ["People"] : []), "Right to within");
  const rows = listing.levels.map((level) => levelRow(level, listing));
  return h(
    "details",
    {},
    h("summary", {}, "The same as a table"),
    h("table", { class: "levels" }, head, h("tbody", {}, ...rows)),
  );
}

/**
 * @param {Level} level
 * @param {Listing} listing
 */
function levelRow(level, listing) {
  const { epsilon, price, each, objects, available } = level;
  const below = noDearer(listing, epsilon);
  const notes = [
    each === null ? null : `${whole(each)} each`,
    below === null ? null : `same as ε ${shortEpsilon(below)}`,
    betterNote(level),
    available || each !== null ? null : ABSENT.release,
  ];
  const cost = h(
    "td",
    {},
    available || each === null ? whole(price) : "–",
    ...notes.map((note) => (note === null ? null : h("span", { class: "note" }, note))),
  );
  const width =
    available || each === null
      ? precision(listing.encoding, level.half_width)
      : h("span", { class: "note" }, ABSENT.pool);
  return h(
    "tr",
    { class: available ? null : "shut" },
    h("th", { scope: "row" }, shortEpsilon(epsilon)),
    cost,
    each === null ? null : h("td", {}, whole(objects)),
    h("td", {}, width),
  );
}

/**
 * Return a bar of the budget: what buyers know and what the platform holds, each a part of what may ever be given.
 *
 * @param {Sale} sale
 */
export function budgetBar({ budget, left, loss_buyers: sold, loss_platform: delivered }) {
  const most = Number(budget ?? delivered);
  if (most === 0) return null;
  const part = (/** @type {string} */ epsilon) => (100 * Math.min(most, Number(epsilon))) / most;
  const words = [
    `sold up to ε ${shortEpsilon(sold)}`,
    `delivered up to ε ${shortEpsilon(delivered)}`,
    budget === null
      ? "no budget was set"
      : `ε ${shortEpsilon(left ?? "0")} left of a budget of ε ${shortEpsilon(budget)}`,
  ];
  return h(
    "div",
    { class: "budget" },
    s(
      "svg",
      { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `Budget: ${words.join(", ")}` },
      s("rect", { class: "bar-ground", width: 100, height: 10 }),
      s("rect", { class: "bar-held", width: part(delivered), height: 10 }),
      s("rect", { class: "bar-fill", width: part(sold), height: 10 }),
    ),
    h(
      "ul",
      { class: "legend small muted" },
      ...words.map((each, place) => h("li", { class: ["sold", "held", "left"][place] }, each)),
    ),
  );
}

/**
 * Return what each level brought, at the place of the loss that it means.
 *
 * @param {Sale} sale
 */
export function incomePart(sale) {
  const heading = h("h3", {}, INCOME_TITLE);
  if (sale.sold.length === 0) return h("div", {}, heading, h("p", { class: "muted" }, "Nothing was sold yet."));
  const words =
    "Credits at each level. The band ends at the largest level that was sold: no buyers know more, however many " +
    "pool. The dashed line stands at what this market holds.";
  return h(
    "div",
    {},
    heading,
    fitted("income", (width) => incomePicture(sale, width)).place,
    h("p", { class: "small muted" }, words),
  );
}

/**
 * @param {Sale} sale
 * @param {number} width
 */
function incomePicture({ sold, loss_buyers: loss, loss_platform: held, budget }, width) {
  const most = Math.max(Number(budget ?? 0), Number(held));
  const right = width - INCOME_EDGE.right;
  const bottom = INCOME_HEIGHT - INCOME_EDGE.bottom;
  const scale = ticksOf(0, Math.max(1, ...sold.map((level) => level.income)));
  const x = (/** @type {string | number} */ epsilon) =>
    INCOME_EDGE.left + (Number(epsilon) / most) * (right - INCOME_EDGE.left);
  const y = (/** @type {number} */ value) => INCOME_EDGE.top + (bottom - INCOME_EDGE.top) * (1 - value / scale.high);
  const parts = sold.map((level) => `epsilon ${level.epsilon}: ${whole(level.income)}`);
  const drawn = s("svg", {
    viewBox: `0 0 ${width} ${INCOME_HEIGHT}`,
    width,
    height: INCOME_HEIGHT,
    role: "img",
    "aria-label": `${INCOME_TITLE}: ${parts.join(", ")}`,
  });
  drawn.append(
    s("rect", {
      class: "band",
      x: INCOME_EDGE.left,
      y: INCOME_EDGE.top,
      width: x(loss) - INCOME_EDGE.left,
      height: bottom - INCOME_EDGE.top,
    }),
  );
  for (const each of scale.ticks.filter(Number.isInteger)) {
    drawn.append(s("line", { class: "axis", x1: INCOME_EDGE.left, x2: right, y1: y(each), y2: y(each) }));
    drawn.append(s("text", { x: INCOME_EDGE.left - 6, y: y(each) + 4, "text-anchor": "end" }, whole(each)));
  }
  for (const level of sold) {
    drawn.append(
      s("line", { class: "interval", x1: x(level.epsilon), x2: x(level.epsilon), y1: bottom, y2: y(level.income) }),
    );
    drawn.append(s("circle", { class: "dot", cx: x(level.epsilon), cy: y(level.income), r: 5 }));
  }
  drawn.append(s("line", { class: "mark", x1: x(held), x2: x(held), y1: INCOME_EDGE.top, y2: bottom }));
  for (const each of upTo(most)) {
    drawn.append(
      s("text", { x: x(each), y: INCOME_HEIGHT - 6, "text-anchor": "middle" }, String(Number(each.toPrecision(6)))),
    );
  }
  drawn.append(s("text", { x: 0, y: INCOME_HEIGHT - 6 }, "ε"));
  return drawn;
}
