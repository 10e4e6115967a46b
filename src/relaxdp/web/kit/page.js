/** What the frame of a page does: finds its parts, says where we are, and what changed. */

import { h, notice } from "./dom.js";
import { sentenceOf } from "./problem.js";

/**
 * Return a part of the page by its name. That it is missing, or of another kind, is a mistake in the page.
 *
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {{ new (): Kind }} kind
 * @returns {Kind}
 */
export function partOf(id, kind) {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new TypeError(`the page has no ${kind.name} called ${id}`);
}

/**
 * Say something to whoever does not see it.
 *
 * @param {string} sentence
 */
export function tell(sentence) {
  partOf("told", HTMLElement).textContent = sentence;
}

/**
 * Say where we are, to the tab and to whoever cannot see the page.
 *
 * @param {HTMLElement} main
 */
export function arrived(main) {
  const heading = main.querySelector("h1");
  document.title = heading === null ? "relaxdp" : `${heading.textContent} · relaxdp`;
  heading?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

/**
 * Return what is shown where a page cannot be.
 *
 * @param {unknown} problem
 * @param {() => unknown} again
 */
export function failure(problem, again) {
  const button = h("button", { type: "button", onclick: again }, "Try again");
  return [h("h1", { tabindex: -1 }, "That did not work"), notice(sentenceOf(problem)), button];
}

/**
 * Show pages as the address names them, and let the keyboard skip what stands above them.
 *
 * @param {HTMLElement} main
 * @param {() => unknown} show
 */
export function followAddress(main, show) {
  window.addEventListener("hashchange", show);
  partOf("skip", HTMLElement).addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}
