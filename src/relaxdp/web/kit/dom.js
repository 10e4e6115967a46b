/** Elements, and nothing but text in them: what a campaign says is never read as markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an HTML element.
 *
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `on...` are listeners; false, null and undefined are left out
 * @param {...(Node | string | number | null | undefined)} children
 * @returns {any} the element, of whatever kind the tag names
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * Return an SVG element.
 *
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | number | null | undefined)} children
 * @returns {any}
 */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Replace what is in an element; null and undefined are left out.
 *
 * @param {Element} element
 * @param {...(Node | string | number | null | undefined)} children
 */
export function put(element, ...children) {
  element.replaceChildren(...present(children));
}

/**
 * Return a definition list of names and what they are; names without a value are left out.
 *
 * @param {[string, Node | string | number | null][]} pairs
 */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null);
  return h(
    "dl",
    { class: "facts" },
    ...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
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
 * Ask before something that cannot be undone. The focus starts on the way out, and goes back to where it was.
 *
 * @param {{ title: string, text: string[], yes: string, danger?: boolean }} question
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, yes, danger = true }) {
  return new Promise((settle) => {
    let answer = false;
    const close = (/** @type {boolean} */ value) => {
      answer = value;
      box.close();
    };
    const box = h(
      "dialog",
      { "aria-labelledby": "asked", onclose: () => (box.remove(), settle(answer)) },
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
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * @param {any} element
 * @param {Record<string, any>} attributes
 * @param {(Node | string | number | null | undefined)[]} children
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

/** @param {(Node | string | number | null | undefined)[]} children */
const present = (children) =>
  children
    .filter((child) => child !== null && child !== undefined)
    .map((child) => (child instanceof Node ? child : String(child)));
