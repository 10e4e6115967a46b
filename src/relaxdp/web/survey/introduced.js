/** Who asks, about what and why: what a campaign says of itself, read by a page that does not trust it, and shown. */

import { Amount } from "../device/decimal.js";
import { fieldsOf } from "../device/typed.js";
import { h } from "../kit/dom.js";
import { onLanguage } from "../kit/language.js";
import { partOf } from "../kit/page.js";
import { part, say } from "./page.js";
import { pieces, word } from "./words.js";

/**
 * @typedef {object} Introduction
 * @property {string | null} asker
 * @property {string | null} about
 * @property {string | null} purpose
 * @property {string | null} contact
 * @property {string | null} notice
 * @property {string | null} colour
 * @property {string | null} logo
 * @property {string | null} suggested an epsilon
 * @property {boolean} showsResults
 * @property {string | null} opens
 * @property {{ width: number, people: (number | null)[] } | null} learns how many people it takes at each level
 */

const MOST_LETTERS = 4000;
const COLOUR = /^#[0-9a-f]{6}$/;
const LOGO = /^data:image\/(png|svg\+xml|webp|jpeg);base64,[A-Za-z0-9+/]+={0,2}$/;
const MOST_LOGO = 22_000;
const MAIL = /^[^\s@<>"?&#%]+@[^\s@<>"?&#%]+\.[^\s@<>"?&#%]+$/;

/**
 * Read what a campaign says of itself; what is not as it should be is left out.
 *
 * @param {unknown} content
 * @returns {Introduction}
 */
export function readIntroduction(content) {
  const fields = fieldsOf(content);
  const text = (/** @type {unknown} */ field, /** @type {RegExp} */ form = /\S/, most = MOST_LETTERS) =>
    typeof field === "string" && field.length <= most && form.test(field) ? field : null;
  return {
    asker: text(fields.asker),
    about: text(fields.about),
    purpose: text(fields.purpose),
    contact: text(fields.contact),
    notice: text(fields.privacy_notice),
    colour: text(fields.colour, COLOUR),
    logo: text(fields.logo, LOGO, MOST_LOGO),
    suggested: Amount.fromText(String(fields.suggested)) === null ? null : text(fields.suggested),
    showsResults: fields.shows_results === true,
    opens: text(fields.opens),
    learns: readLearning(fields.learns),
  };
}

/** @param {unknown} content */
function readLearning(content) {
  const { half_width: width, devices } = fieldsOf(content);
  if (typeof width !== "number" || !(width > 0) || !Array.isArray(devices)) return null;
  return { width, people: devices.map((each) => (Number.isSafeInteger(each) && each > 0 ? each : null)) };
}

/** The head of the page, which is there in every view; in the first ones with all that it has to say. */
export class IntroductionView {
  /** @type {Introduction | null} */
  #said = null;
  #paused = false;

  constructor() {
    onLanguage(() => this.#say());
  }

  /**
   * @param {Introduction} said
   * @param {boolean} paused for somebody who has not answered
   */
  show(said, paused) {
    const content = JSON.stringify([said, paused]);
    if (content === JSON.stringify([this.#said, this.#paused])) return;
    this.#said = said;
    this.#paused = paused;
    if (said.colour !== null) showColour(said.colour);
    this.#say();
  }

  #say() {
    if (this.#said === null) return;
    const { asker, about, purpose, contact, notice, logo } = this.#said;
    say(part("intro-about"), about ?? word("page.title"));
    document.title = about ?? word("page.title");
    say(part("intro-asker"), asker);
    const picture = partOf("intro-logo", HTMLImageElement);
    picture.hidden = logo === null;
    if (logo !== null && picture.src !== logo) picture.src = logo;
    picture.alt = asker === null ? "" : word("intro.logo", { asker });
    say(part("intro-unknown"), asker === null ? word("intro.unknown") : null);
    say(part("intro-paused"), this.#paused ? word("intro.paused") : null);
    const facts = [
      [word("intro.purpose"), purpose === null ? null : h("span", { class: "prose", dir: "auto" }, purpose)],
      [word("intro.contact"), contact === null ? null : contactPart(contact)],
      [word("intro.notice"), notice === null ? null : noticePart(notice)],
    ].filter(([, what]) => what !== null);
    part("intro-facts").replaceChildren(
      ...facts.map(([name, what]) => h("div", {}, h("dt", {}, name), h("dd", {}, what))),
    );
    part("intro-more").hidden = facts.length === 0;
  }
}

/**
 * Use a colour for links and buttons. The page's policy lets in no styles but those that a script sets.
 *
 * @param {string} colour
 */
function showColour(colour) {
  document.documentElement.classList.add("coloured");
  document.documentElement.style.setProperty("--own", colour);
}

/** @param {string} contact */
function contactPart(contact) {
  if (MAIL.test(contact)) return h("a", { href: `mailto:${contact}` }, contact);
  return h("span", { dir: "auto" }, contact);
}

/** @param {string} notice text, or an address, of which only those are opened that a browser opens safely */
function noticePart(notice) {
  if (/^https:\/\/[^\s@]+$/.test(notice)) {
    return h("a", { href: notice, target: "_blank", rel: "noopener noreferrer" }, ...pieces("intro.read"));
  }
  return h("span", { class: "prose", dir: "auto" }, notice);
}
