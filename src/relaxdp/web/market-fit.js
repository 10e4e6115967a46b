/** A picture that is drawn as wide as its place, so that its letters keep their size on every screen. */

import { h } from "./dashboard-dom.js";

/**
 * @param {string} kind the class of the place, which fixes its height: nothing moves when the picture comes
 * @param {(width: number) => any} picture
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
