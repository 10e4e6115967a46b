/** Elements, and nothing but text in them: what a service says is never read as markup. Old browsers can read this. */

import { sentenceOf } from "./problem.js";

const SVG = "http://www.w3.org/2000/svg";
const KEPT_FOR = 60000;

/** @typedef {Node | string | number | null | undefined} Child null and undefined are left out */
/** @typedef {(event: never) => unknown} Listener of whatever kind of event its attribute names */
/** @typedef {Record<string, string | number | boolean | null | undefined | Listener>} Attributes */

/**
 * Return an HTML element.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes] `on...` are listeners; false, null and undefined are left out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * Return an SVG element.
 *
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Replace what is in an element; null and undefined are left out.
 *
 * @param {Element} element
 * @param {...Child} children
 */
export function put(element, ...children) {
  element.replaceChildren(...present(children));
}

/**
 * Return a definition list of names and what they are; names without a value are left out.
 *
 * @param {[string, Child][]} pairs
 */
export function facts(pairs) {
  const present = pairs.filter(([, value]) => value !== null);
  const rows = present.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  return h("dl", { class: "facts" }, ...rows);
}

/**
 * Return the head of a table. A column without a name holds pictures, which are not read out.
 *
 * @param {...string} names
 */
export function tableHead(...names) {
  const cells = names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", { "aria-hidden": "true" })));
  return h("thead", {}, h("tr", {}, ...cells));
}

/**
 * Return a row of a table, of which the first cell says what the row is about.
 *
 * @param {Child} name
 * @param {...Child} cells
 */
export function tableRow(name, ...cells) {
  return h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell)));
}

/**
 * Return a message that is read out at once.
 *
 * @param {string} sentence
 * @param {"bad" | "good" | "warn" | ""} [kind]
 */
export function notice(sentence, kind = "bad") {
  return h("p", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : null }, sentence);
}

/**
 * Do something that may be refused, and then say so at a place of the page, where nothing stands otherwise.
 *
 * @param {Element} place
 * @param {() => Promise<unknown>} work
 * @returns {Promise<boolean>} whether it was done
 */
export async function attempt(place, work) {
  place.replaceChildren();
  try {
    await work();
    return true;
  } catch (problem) {
    place.replaceChildren(notice(sentenceOf(problem)));
    return false;
  }
}

/** @typedef {{ title: string, text: string[], yes: string, danger?: boolean }} Question */

/**
 * Ask before something that cannot be undone. The focus starts on the way out, and goes back to where it was.
 *
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, yes, danger = true }) {
  return new Promise((settle) => {
    let agreed = false;
    const close = (/** @type {boolean} */ answer) => {
      agreed = answer;
      box.close();
    };
    const closed = () => {
      box.remove();
      settle(agreed);
    };
    const box = h(
      "dialog",
      { "aria-labelledby": "asked", onclose: closed },
      h("h2", { id: "asked" }, title),
      ...text.map((each) => h("p", {}, each)),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", autofocus: true, onclick: () => close(false) }, "Cancel"),
        h("button", { type: "button", class: danger ? "danger" : "primary", onclick: () => close(true) }, yes),
      ),
    );
    document.body.append(box);
    box.showModal();
  });
}

/**
 * Hand a file to the person. The token is in a header, so a plain link to it would not do.
 *
 * @param {Blob} file
 * @param {string} name
 */
export function save(file, name) {
  const address = URL.createObjectURL(file);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_FOR);
}

/**
 * @template {Element} Kind
 * @param {Kind} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    // A listener's own kind of event is the one that its attribute names.
    if (typeof value === "function") element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/** @param {Child[]} children */
function present(children) {
  const there = children.filter((child) => child !== null && child !== undefined);
  return there.map((child) => (child instanceof Node ? child : String(child)));
}
