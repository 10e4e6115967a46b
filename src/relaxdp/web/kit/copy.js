/** Texts to take away: shown whole, with a button that copies them. */

import { h } from "./dom.js";
import { tell } from "./page.js";

const SHOWN_FOR = 2000;

/**
 * Return a text under its name, and a button that copies it. Where the browser lends no clipboard (on plain HTTP), the
 * text is selected instead, so that the keys for copying do.
 *
 * @param {string} label
 * @param {string} text
 * @param {{ lines?: boolean }} [options] whether the text has lines that are kept
 */
export function copyPart(label, text, { lines = false } = {}) {
  const shown = h(lines ? "pre" : "p", { class: "code copied" }, text);
  const button = h("button", { type: "button", "aria-label": `Copy: ${label}`, onclick: copy }, "Copy");
  async function copy() {
    const done = await copied(text, shown);
    const words = done ? "Copied" : "Selected: copy it with the keyboard";
    button.textContent = words;
    tell(`${label}: ${words}.`);
    setTimeout(() => {
      button.textContent = "Copy";
    }, SHOWN_FOR);
  }
  return h("div", { class: "copy" }, h("p", { class: "name" }, label), h("div", { class: "pairing" }, shown, button));
}

/**
 * @param {string} text
 * @param {HTMLElement} shown
 */
async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    return false;
  }
}
