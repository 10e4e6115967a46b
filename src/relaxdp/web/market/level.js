/** Choosing one of a listing's levels, and at once what it costs and tells. The price is always the service's own. */

import { facts, h, notice } from "../kit/dom.js";
import { field } from "../kit/form.js";
import { whole } from "../kit/words.js";
import { ABSENT, credits, noDearer, onSale, shown, tells } from "./words.js";

const PATIENCE = 120;
const HINTS = {
  release: "The larger, the more it tells.",
  pool: "Whoever has a smaller limit of their own, or wants more credits, is not in the sale.",
};

/** @typedef {import("./words.js").Level} Level */

/**
 * @param {import("./session.js").Session} session
 * @param {any} listing
 * @param {(quote: any) => void} quoted hears every quote, and null where there is none
 */
export function levelPart(session, listing, quoted) {
  const steps = onSale(listing).map(({ epsilon }) => epsilon);
  const options = listing.levels.map((/** @type {Level} */ level) => option(level, listing.kind));
  const list = h("select", { autocomplete: "off", onchange: () => choose(list.value) }, ...options);
  const slider = h("input", {
    type: "range",
    min: 0,
    max: steps.length - 1,
    step: 1,
    "aria-label": "Level",
    oninput: () => choose(steps[slider.value]),
  });
  const told = h("div", { class: "quote", "aria-live": "polite" });
  const element = h(
    "div",
    {},
    field("epsilon", "Level (ε)", list, HINTS[/** @type {keyof HINTS} */ (listing.kind)]),
    slider,
    told,
  );
  let last = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} epsilon */
  async function ask(epsilon) {
    told.setAttribute("aria-busy", "true");
    try {
      const quote = await session.api.ask(
        "GET",
        `market/listings/${encodeURIComponent(listing.id)}/quote?${new URLSearchParams({ epsilon })}`,
      );
      if (last !== epsilon) return;
      told.replaceChildren(words(quote, listing));
      quoted(quote);
    } catch (refusal) {
      if (last !== epsilon) return;
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message, "warn"));
      quoted(null);
    } finally {
      if (last === epsilon) told.removeAttribute("aria-busy");
    }
  }

  /** @param {string} epsilon */
  function choose(epsilon) {
    last = epsilon;
    clearTimeout(timer);
    list.value = epsilon;
    slider.value = steps.indexOf(epsilon);
    slider.setAttribute("aria-valuetext", `ε ${epsilon}`);
    timer = setTimeout(ask, PATIENCE, epsilon);
  }
  return {
    element,
    choose,
    again: () => choose(last),
    /** @param {number} share of the axis of levels */
    near: (share) => choose(nearest(steps, share * Number(steps[steps.length - 1]))),
  };
}

/**
 * @param {Level} level
 * @param {string} kind
 */
function option({ epsilon, price, available }, kind) {
  const cost = available ? credits(price) : ABSENT[/** @type {keyof ABSENT} */ (kind)];
  return h("option", { value: epsilon, disabled: !available }, `${shown(epsilon)}: ${cost}`);
}

/**
 * @param {string[]} steps
 * @param {number} wanted
 */
function nearest(steps, wanted) {
  const far = (/** @type {string} */ step) => Math.abs(Number(step) - wanted);
  return steps.reduce((best, step) => (far(step) < far(best) ? step : best));
}

/**
 * @param {any} quote
 * @param {any} listing
 */
function words(quote, listing) {
  const below = noDearer(listing, quote.epsilon);
  return facts([
    [
      `Price of ε ${shown(quote.epsilon)}`,
      `${credits(quote.price)}${below === null ? "" : `, same as ε ${shown(below)}`}`,
    ],
    ["What it tells", tells(listing.encoding, quote.half_width)],
    [listing.kind === "pool" ? "Objects that take part" : "Objects", whole(quote.objects)],
  ]);
}
