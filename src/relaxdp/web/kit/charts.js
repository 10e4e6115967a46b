/** What all charts share: round ticks, and pictures that are as wide as their place. */

import { h } from "./dom.js";

/** @typedef {{ low: number, high: number, ticks: number[] }} Scale */

/**
 * Return round ticks that hold two numbers between them.
 *
 * @param {number} low
 * @param {number} high
 * @returns {Scale}
 */
export function ticksOf(low, high) {
  const step = roundStep((high - low || 1) / 4);
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
function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return power * [1, 2, 2.5, 5, 10].filter((each) => each * power >= size * 0.999)[0];
}

/**
 * Return a place for a picture that is drawn as wide as it is, so that letters keep their size on every screen.
 *
 * @param {string} kind the class of the place, which fixes its height: nothing moves when the picture comes
 * @param {(width: number) => Node} picture
 */
export function fitted(kind, picture) {
  const place = h("div", { class: kind });
  let width = 0;
  const draw = () => (width > 0 ? place.replaceChildren(picture(width)) : undefined);
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now === width) return;
    width = now;
    draw();
  }).observe(place);
  return { place, draw };
}
