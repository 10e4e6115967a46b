/** How good a guess becomes, as a picture. */

import { s } from "./dom.js";

/**
 * How often a guess is right by luck, and at most with all reports. The sentence beside it says the same.
 *
 * @param {import("./reports.js").Guess} guess
 */
export function boundPicture({ blind, bound, scale }) {
  const bar = (/** @type {string} */ name, /** @type {number} */ width) =>
    s("rect", { class: name, x: 0, y: 0, width, height: 10 });
  return s(
    "svg",
    { class: "bound", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    bar("rest", 100),
    bar("more", (100 * bound) / scale),
    bar("guess", (100 * blind) / scale),
  );
}
