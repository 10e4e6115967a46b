/** A report of a number as a mark on its scale. The words beside the picture say the same, so it is not read out. */

import { Ranged } from "../device/encodings/range.js";
import { s } from "./dom.js";
import { plainNumber } from "./language.js";

const EDGE = 3;
const NEAR = 10;
const LABELS = 30;

/**
 * Return the scale with the ends of the range and a mark at the report; null where answers are no numbers. A place may
 * lie beyond the range, and so does its mark.
 *
 * @param {import("../device/encodings/registry.js").Encoding} encoding
 * @param {unknown} report
 */
export function scalePicture(encoding, report) {
  return encoding instanceof Ranged ? scaleAt(encoding, encoding.placeOf(Number(report))) : null;
}

/**
 * The same with a mark at a number itself, which may lie between two places.
 *
 * @param {import("../device/encodings/registry.js").Encoding} encoding
 * @param {number} number
 */
export function numberPicture(encoding, number) {
  return encoding instanceof Ranged
    ? scaleAt(encoding, encoding.first + (number - encoding.low) / encoding.step)
    : null;
}

/**
 * @param {Ranged} encoding
 * @param {number} place
 */
function scaleAt(encoding, place) {
  const { low, high, first, bins, alphabet } = encoding;
  const at = (/** @type {number} */ place) => EDGE + ((100 - 2 * EDGE) * place) / (alphabet - 1);
  const [start, end] = [at(first), at(first + bins - 1)];
  return s(
    "svg",
    { class: "scale", "aria-hidden": "true" },
    s("line", { class: "axis", x1: `${at(0)}%`, x2: `${at(alphabet - 1)}%`, y1: 12, y2: 12 }),
    s("line", { class: "ground", x1: `${start}%`, x2: `${end}%`, y1: 12, y2: 12 }),
    ...endOf(low, start, end - start < LABELS ? "end" : "middle"),
    ...endOf(high, end, end - start < LABELS ? "start" : "middle"),
    s("circle", { class: "dot", cx: `${at(place)}%`, cy: 12, r: 7 }),
  );
}

/**
 * @param {number} number
 * @param {number} at in percent of the width
 * @param {"start" | "middle" | "end"} inside which part of the label is at the mark, where no edge is near
 */
function endOf(number, at, inside) {
  const anchor = at < NEAR ? "start" : at > 100 - NEAR ? "end" : inside;
  return [
    s("line", { class: "ground", x1: `${at}%`, x2: `${at}%`, y1: 4, y2: 20 }),
    s("text", { x: `${at}%`, y: 36, "text-anchor": anchor }, plainNumber(number)),
  ];
}
