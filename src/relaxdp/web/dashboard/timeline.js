/** How a campaign went: reports over time, how precise the answer became, and what was done when. */

import { fitted, ticksOf } from "../kit/charts.js";
import { h, s, tableHead, tableRow } from "../kit/dom.js";
import { measureOf, moment, plural, whole } from "../kit/words.js";
import { pointable } from "./charts.js";
import { dayOrHour, timeTicks } from "./time.js";

/** @typedef {import("../kit/wire.d.ts").Timeline} Timeline */
/** @typedef {import("../kit/wire.d.ts").TimelineStep} Step */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {{ from: number, to: number, reports: number, width: number | null }} Bin */
/** @typedef {{ bins: Bin[], from: number, to: number, marks: { at: number, text: string }[], widest: number }} Course */

const HOUR = 3_600_000;
const SPANS = [1, 3, 6, 12, 24, 48, 168, 720]; // hours
const MOST_BINS = 48;
const EDGE = { left: 52, right: 12, top: 20, bottom: 24 };
const HEIGHT = { bars: 120, line: 130 };
const DONE = {
  created: "created",
  opened: "opened",
  relaxed: "relaxed",
  paused: "paused",
  resumed: "resumed",
  finished: "ended",
  reduced: "reports deleted",
};

/** @param {Campaign} first */
export function timelinePart(first) {
  const measure = measureOf(first.encoding);
  /** @type {Course | null} */
  let course = null;
  const note = h("p", { class: "small muted" });
  const bars = fitted("bars-over-time", (width) => (course === null ? h("span") : barsPicture(course, width)));
  const line = fitted("line-over-time", (width) => (course === null ? h("span") : linePicture(course, measure, width)));
  const pictures = h(
    "div",
    { hidden: true },
    h("h3", {}, "Reports"),
    bars.place,
    h("h3", {}, measure.numeric ? "How far the mean may be off (±)" : "How far a share may be off (±)"),
    line.place,
  );
  const body = h("tbody", {});
  const steps = h(
    "table",
    {},
    h("caption", {}, "What was done, by the hour in which it was."),
    tableHead("When", "What"),
    body,
  );
  const numbers = h("tbody", {});
  const head = tableHead("Until", "Reports", measure.numeric ? "Mean ±" : "Share ±");
  const table = h(
    "details",
    { hidden: true },
    h("summary", {}, "The numbers over time as a table"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers over time" },
      h("table", {}, h("caption", {}, "All reports so far, and how precise the answer was."), head, numbers),
    ),
  );
  const element = h("section", { class: "card" }, h("h2", {}, "Over time"), note, pictures, steps, table);

  /**
   * @param {Timeline} found
   * @param {Campaign} campaign
   */
  function update(found, campaign) {
    const { hours, least } = found;
    body.replaceChildren(...found.steps.map((step) => tableRow(moment(step.hour), stepWords(step, campaign))));
    pictures.hidden = hours.length === 0;
    table.hidden = hours.length === 0;
    note.textContent =
      hours.length === 0
        ? `As soon as ${least} reports have come, this shows how many came when.`
        : `Numbers are kept by the hour and move by ${least} or more, so that no hour is that of a single report.`;
    if (hours.length === 0) return;
    course = courseOf(found, campaign);
    const rows = hours.map(({ hour, reports, half_width: width }) => {
      const until = new Date(Date.parse(hour) + HOUR).toISOString();
      return tableRow(moment(until), whole(sum(reports)), width === null ? "–" : measure.width(width));
    });
    numbers.replaceChildren(...rows);
    bars.draw();
    line.draw();
  }
  return { element, update };
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);

/**
 * @param {Step} step
 * @param {Campaign} campaign
 */
function stepWords({ what, level }, { levels }) {
  return level === null ? DONE[what] : `${DONE[what]} ${what === "opened" ? "at" : "to"} ε ${levels[level].epsilon}`;
}

/**
 * Return bars of equal spans, few enough to be told apart, from the first hour to the last or to now.
 *
 * @param {Timeline} found
 * @param {Campaign} campaign
 * @returns {Course}
 */
export function courseOf({ hours, steps }, { levels, state, encoding }) {
  const [least, most] = encoding.range ?? [0, 1];
  const opened = steps.find(({ what }) => what === "opened")?.hour ?? hours[0].hour;
  const first = Math.min(Date.parse(opened), Date.parse(hours[0].hour));
  const over = steps.find(({ what }) => what === "finished")?.hour;
  const last = Math.max(Date.parse(hours[hours.length - 1].hour), over === undefined ? 0 : Date.parse(over)) + HOUR;
  const end = state === "finished" ? last : Math.max(last, HOUR * Math.ceil(Date.now() / HOUR));
  const span = HOUR * (SPANS.find((each) => (end - first) / (HOUR * each) <= MOST_BINS) ?? SPANS[SPANS.length - 1]);
  /** @type {Bin[]} */
  const bins = [];
  let [place, before] = [0, 0];
  /** @type {number | null} */
  let width = null;
  for (let from = first; from < end; from += span) {
    let so_far = before;
    while (place < hours.length && Date.parse(hours[place].hour) < from + span) {
      so_far = sum(hours[place].reports);
      width = hours[place].half_width;
      place += 1;
    }
    bins.push({ from, to: from + span, reports: Math.max(0, so_far - before), width });
    before = so_far;
  }
  const marks = steps.flatMap(({ what, level, hour }) =>
    level === null || (what !== "relaxed" && what !== "opened")
      ? []
      : [{ at: Date.parse(hour), text: `ε ${levels[level].epsilon}` }],
  );
  return { bins, from: first, to: bins[bins.length - 1].to, marks, widest: (most - least) / 2 };
}

/**
 * @param {Course} course
 * @param {number} width
 */
function barsPicture(course, width) {
  const { bins } = course;
  const scale = ticksOf(0, Math.max(1, ...bins.map(({ reports }) => reports)));
  const { drawn, x, y } = ground(course, scale, { width, height: HEIGHT.bars, tick: whole });
  for (const { from, to, reports } of bins) {
    if (reports === 0) continue;
    const [left, right] = [x(from), x(to)];
    const gap = right - left > 4 ? 1 : 0;
    drawn.append(
      s("rect", {
        class: "bar-fill",
        x: left + gap,
        width: Math.max(1, right - left - 2 * gap),
        y: y(reports),
        height: y(0) - y(reports),
      }),
    );
  }
  const total = bins.reduce((so_far, { reports }) => so_far + reports, 0);
  drawn.setAttribute(
    "aria-label",
    `${plural(total, "report")} from ${dayOrHour(course.from)} to ${dayOrHour(course.to)}`,
  );
  const said = (/** @type {number} */ place) => {
    const { from, to, reports } = bins[place];
    return `${dayOrHour(from)} to ${dayOrHour(to)}: ${plural(reports, "report")}`;
  };
  return pointable(drawn, {
    at: bins.map(({ from, to }) => (x(from) + x(to)) / 2 / width),
    said,
    rest: `${plural(total, "report")} in all`,
  });
}

/**
 * @param {Course} course
 * @param {import("../kit/words.js").Measure} measure
 * @param {number} width
 */
function linePicture(course, measure, width) {
  const all = course.bins.flatMap(({ to, width: half }) => (half === null ? [] : [{ to, half }]));
  const telling = all.filter(({ half }) => half < course.widest / 2); // before, nearly everything was possible
  const known = telling.length > 0 ? telling : all;
  const scale = ticksOf(0, Math.max(...known.map(({ half }) => half)));
  const { drawn, x, y } = ground(course, scale, { width, height: HEIGHT.line, tick: measure.tick });
  const path = known.map(({ to, half }, place) => {
    const start = place === 0 ? `M${x(to)},${y(half)}` : `H${x(to)}V${y(half)}`;
    return start;
  });
  drawn.append(s("path", { class: "course", d: path.join("") }));
  drawn.append(...known.slice(-1).map(({ to, half }) => s("circle", { class: "dot", cx: x(to), cy: y(half), r: 5 })));
  const [first, last] = [known[0], known[known.length - 1]];
  drawn.setAttribute("aria-label", `From ${measure.width(first.half)} to ${measure.width(last.half)}`);
  const said = (/** @type {number} */ place) => `${dayOrHour(known[place].to)}: ${measure.width(known[place].half)}`;
  return pointable(drawn, { at: known.map(({ to }) => x(to) / width), said, rest: `Now ${measure.width(last.half)}` });
}

/**
 * Return what both pictures stand on: the axes, with the levels marked where they were opened.
 *
 * @param {Course} course
 * @param {import("../kit/charts.js").Scale} scale
 * @param {{ width: number, height: number, tick: (value: number) => string }} options
 */
function ground({ from, to, marks }, scale, { width, height, tick }) {
  const [right, floor] = [width - EDGE.right, height - EDGE.bottom];
  const x = (/** @type {number} */ time) => EDGE.left + ((time - from) * (right - EDGE.left)) / (to - from);
  const y = (/** @type {number} */ value) =>
    floor - ((value - scale.low) * (floor - EDGE.top)) / (scale.high - scale.low);
  const drawn = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0 });
  for (const each of scale.ticks) {
    drawn.append(s("line", { class: "axis", x1: EDGE.left, x2: right, y1: y(each), y2: y(each) }));
    drawn.append(s("text", { x: EDGE.left - 6, y: y(each) + 4, "text-anchor": "end" }, tick(each)));
  }
  for (const { at, text } of timeTicks(from, to, Math.max(2, Math.floor((right - EDGE.left) / 90)))) {
    drawn.append(s("line", { class: "tick", x1: x(at), x2: x(at), y1: floor, y2: floor + 4 }));
    drawn.append(s("text", { x: x(at), y: height - 6, "text-anchor": "middle" }, text));
  }
  let free = EDGE.left;
  for (const { at, text } of marks) {
    drawn.append(s("line", { class: "step", x1: x(at), x2: x(at), y1: EDGE.top - 4, y2: floor }));
    if (x(at) < free || x(at) + 7 * text.length > width) continue;
    drawn.append(s("text", { x: x(at), y: 11 }, text));
    free = x(at) + 7 * text.length + 6;
  }
  return { drawn, x, y };
}
