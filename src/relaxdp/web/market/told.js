/** Answers as intervals: those that a purchase tells, and what one would look like before it is bought. */

import { readValue } from "../device/typed.js";
import { attempt, h, notice, put, s } from "../kit/dom.js";
import { valueText } from "../kit/reports.js";
import { measureOf, whole } from "../kit/words.js";
import { shortEpsilon, tells } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Encoding} Encoding */
/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").Purchase} Purchase */
/** @typedef {import("../kit/wire.d.ts").Told} Told */
/** @typedef {{ name: string, estimate: number, low: number, high: number }} Row */

// Made up: shares of two values, and of the first of more.
const TWO = [0.6, 0.4];
const MORE = [0.5, 0.3, 0.15];
// An interval that covers more than this part of all that is possible has no middle worth showing.
const TOO_WIDE = 0.5;
const EXAMPLE =
  "An example with made-up numbers, and real widths: at worst so wide, 95 times in 100. The data is not looked at.";
const OWN = "Estimated from the answers that you bought. Each bar holds the true number 95 times in 100.";

/**
 * Return a place that shows how exact an answer would be at a level. Nothing of the data is in it: the shares are made
 * up, and the width follows from the number of answers and the level alone.
 *
 * @param {Listing} listing
 */
export function previewPart({ encoding }) {
  const body = h("div", {});
  const heading = h("h2", {});
  const element = h("div", { class: "preview" }, heading, body);

  /** @param {import("../kit/wire.d.ts").Quote | null} quote */
  function update(quote) {
    const halfWidth = quote?.half_width ?? null;
    element.hidden = quote === null || quote.owned === quote.epsilon; // what is owned is shown itself
    heading.textContent = `What ε ${shortEpsilon(quote?.epsilon ?? "")} would look like`;
    if (halfWidth === null || !tells(encoding, halfWidth)) {
      put(
        body,
        h("p", { class: "muted" }, "At this level an answer could be anything: too few answers, too much blur."),
      );
      return;
    }
    put(body, intervals(exampleRows(encoding, halfWidth), encoding?.range), h("p", { class: "small muted" }, EXAMPLE));
  }
  return { element, update };
}

/**
 * Return made-up answers: shares that differ, or a mean in the middle.
 *
 * @param {Encoding | null} encoding
 * @param {number} halfWidth
 * @returns {Row[]}
 */
function exampleRows(encoding, halfWidth) {
  const [low, high] = encoding?.range ?? [0, 1];
  const values = encoding?.values ?? [];
  const numeric = encoding?.range !== undefined;
  const middles = numeric ? [(low + high) / 2] : values.length <= TWO.length ? TWO : MORE;
  const names = numeric ? ["mean"] : values.slice(0, middles.length).map(nameOf);
  return names.map((name, place) => ({
    name,
    estimate: middles[place],
    low: Math.max(low, middles[place] - halfWidth),
    high: Math.min(high, middles[place] + halfWidth),
  }));
}

/** @param {unknown} value */
const nameOf = (value) => valueText(readValue(value).value);

/**
 * Return what a purchase tells.
 *
 * @param {import("./session.js").MarketSession} session
 * @param {Purchase} purchase
 * @param {string} [title]
 */
export function toldPart(session, purchase, title) {
  const body = h("div", { class: "told", "aria-busy": "true" }, h("p", { class: "muted" }, "One moment …"));
  void attempt(body, async () => {
    body.setAttribute("aria-busy", "true");
    /** @type {Told} */
    const found = await session.api.ask("GET", `market/purchases/${purchase.number}/told`);
    const rest = found.values - found.rows.length;
    const rows = found.rows.map(({ value, ...numbers }) => ({ name: nameOf(value), ...numbers }));
    put(
      body,
      intervals(rows, found.range ?? undefined),
      h("p", { class: "small muted" }, rest > 0 ? `${OWN} ${whole(rest)} rarer answers are in the file.` : OWN),
    );
  }).then(() => body.removeAttribute("aria-busy"));
  return h("div", {}, title === undefined ? h("h3", {}, "What it tells") : h("h2", {}, title), body);
}

/**
 * Return a table of intervals, each drawn on the same scale and said in numbers.
 *
 * @param {Row[]} rows
 * @param {[number, number]} [range] of a mean; undefined where the rows are shares
 */
function intervals(rows, range) {
  const [low, high] = range ?? [0, 1];
  const measure = measureOf({ range });
  if (rows.length === 0) return notice("There is nothing to show.", "warn");
  const ends = [low, (low + high) / 2, high].map((each) => h("span", {}, measure.tick(each)));
  return h(
    "div",
    { class: "intervals", role: "list" },
    ...rows.map((row) =>
      h(
        "div",
        { role: "listitem" },
        h("span", { class: "name", dir: "auto" }, row.name),
        h("span", { class: "said" }, said(row, measure, isWide(row, low, high))),
        bar(row, low, high),
      ),
    ),
    h("div", { class: "ends", "aria-hidden": "true" }, ...ends),
  );
}

/**
 * @param {Row} row
 * @param {import("../kit/words.js").Measure} measure
 * @param {boolean} wide
 */
function said(row, measure, wide) {
  const between = measure.between(row.low, row.high);
  return wide ? between : `${measure.value(inside(row))} (${between})`;
}

/**
 * @param {Row} row
 * @param {number} least
 * @param {number} most
 */
const isWide = ({ low, high }, least, most) => high - low > TOO_WIDE * (most - least);

/** @param {Row} row an estimate may lie outside of what is possible; what is drawn does not */
const inside = ({ estimate, low, high }) => Math.min(high, Math.max(low, estimate));

/**
 * @param {Row} row
 * @param {number} least
 * @param {number} most
 */
function bar(row, least, most) {
  const at = (/** @type {number} */ number) => (100 * (number - least)) / (most - least);
  const [from, to] = [at(row.low), at(row.high)];
  return s(
    "svg",
    { class: "bar-of", "aria-hidden": "true" },
    s("line", { class: "axis", x1: "0%", x2: "100%", y1: 10, y2: 10 }),
    s("rect", { class: "band", x: `${from}%`, width: `${Math.max(0.5, to - from)}%`, y: 3, height: 14, rx: 3 }),
    s("line", { class: "interval", x1: `${from}%`, x2: `${from}%`, y1: 3, y2: 17 }),
    s("line", { class: "interval", x1: `${to}%`, x2: `${to}%`, y1: 3, y2: 17 }),
    isWide(row, least, most) ? null : s("circle", { class: "dot", cx: `${at(inside(row))}%`, cy: 10, r: 5 }),
  );
}
