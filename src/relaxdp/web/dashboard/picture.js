/** The result as one picture for a slide: its question, its intervals on an axis, and what they are from. */

import { s } from "../kit/dom.js";
import { measureOf, moment, plural, whole } from "../kit/words.js";
import { scaleOf } from "./charts.js";
import { between, inside } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Row} Row */

export const PICTURE = 960;
const EDGE = 32;
const NAMES = 260;
const NUMBERS = 190;
const LINE = 40;
const FONT = "system-ui, sans-serif";
const INK = { text: "#16191d", muted: "#545d69", line: "#cfd5dd", accent: "#1a56b0" };

/**
 * @param {import("../kit/wire.d.ts").OperatorCampaign} campaign
 * @param {import("../kit/wire.d.ts").Estimate} estimate
 * @param {Row[]} rows
 */
export function resultPicture(campaign, estimate, rows) {
  const measure = measureOf(campaign.encoding);
  const scale = scaleOf(rows, measure);
  const title = wrapped(campaign.question, 62).slice(0, 3);
  const top = EDGE + 34 * title.length + 12;
  const floor = top + LINE * rows.length;
  const height = floor + 84;
  const [left, right] = [EDGE + NAMES, PICTURE - EDGE - NUMBERS];
  const x = (/** @type {number} */ v) => left + ((v - scale.low) * (right - left)) / (scale.high - scale.low);
  const write = (/** @type {string} */ text, /** @type {Record<string, string | number>} */ where) =>
    s("text", { "font-family": FONT, "font-size": 17, fill: INK.text, ...where }, text);
  const drawn = s("svg", { viewBox: `0 0 ${PICTURE} ${height}` });
  drawn.append(
    ...title.map((line, place) =>
      write(line, { x: EDGE, y: EDGE + 26 + 34 * place, "font-size": 26, "font-weight": 700 }),
    ),
  );
  for (const tick of scale.ticks) {
    drawn.append(s("line", { x1: x(tick), x2: x(tick), y1: top, y2: floor, stroke: INK.line }));
    drawn.append(
      write(measure.tick(tick), {
        x: x(tick),
        y: floor + 22,
        "text-anchor": "middle",
        fill: INK.muted,
        "font-size": 14,
      }),
    );
  }
  for (const [place, row] of rows.entries()) {
    const y = top + LINE * (place + 0.5);
    const name = measure.numeric ? "mean" : String(row.value);
    drawn.append(
      write(name.length > 30 ? `${name.slice(0, 29)}…` : name, { x: EDGE, y: y + 6 }),
      s("line", {
        x1: x(row.low),
        x2: x(row.high),
        y1: y,
        y2: y,
        stroke: INK.accent,
        "stroke-width": 6,
        "stroke-linecap": "round",
        opacity: 0.4,
      }),
      s("circle", { cx: x(inside(row)), cy: y, r: 8, fill: INK.accent }),
      write(between(row, measure), { x: PICTURE - EDGE, y: y + 6, "text-anchor": "end", "font-size": 15 }),
    );
  }
  const sure = `${whole(100 * estimate.confidence_level)} % intervals`;
  const said = `${plural(estimate.devices, "device")}, ${sure}, ${moment(new Date().toISOString())}. Not published: it may still change.`;
  drawn.append(write(said, { x: EDGE, y: height - 18, fill: INK.muted, "font-size": 14 }));
  return { drawn, height };
}

/**
 * Return a text in lines of so many letters.
 *
 * @param {string} text
 * @param {number} most
 */
function wrapped(text, most) {
  /** @type {string[]} */
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (last !== "" && last.length + word.length >= most) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}
