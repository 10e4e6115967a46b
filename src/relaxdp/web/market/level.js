/** Choosing one of a listing's levels, and at once what it costs and tells. The price is always the service's own. */

import { facts, h, notice } from "../kit/dom.js";
import { field } from "../kit/form.js";
import { sentenceOf } from "../kit/problem.js";
import { whole } from "../kit/words.js";
import { ABSENT, credits, noDearer, onSale, shortEpsilon, toldBy } from "./words.js";

const PATIENCE = 120;
const HINTS = {
  release: "The larger, the more it tells.",
  pool: "Whoever has a smaller limit of their own, or wants more credits, is not in the sale.",
};

/** @typedef {import("../kit/wire.d.ts").Listing} Listing */
/** @typedef {import("../kit/wire.d.ts").OfferedLevel} Level */
/** @typedef {import("../kit/wire.d.ts").Quote} Quote */

/**
 * @param {import("./session.js").MarketSession} session
 * @param {Listing} listing
 * @param {(quote: Quote | null) => void} quoted hears every quote, and null where there is none
 */
export function levelPart(session, listing, quoted) {
  const steps = onSale(listing).map(({ epsilon }) => epsilon);
  const options = listing.levels.map((level) => option(level, listing.kind));
  const list = h("select", { autocomplete: "off" }, ...options);
  list.addEventListener("change", () => choose(list.value));
  const slider = h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, "aria-label": "Level" });
  slider.addEventListener("input", () => choose(steps[slider.valueAsNumber]));
  const place = h("div", { class: "quote", "aria-live": "polite" });
  const element = h("div", {}, field("epsilon", "Level (ε)", list, HINTS[listing.kind]), slider, place);
  let last = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} epsilon */
  async function ask(epsilon) {
    place.setAttribute("aria-busy", "true");
    try {
      /** @type {Quote} */
      const quote = await session.api.ask(
        "GET",
        `market/listings/${encodeURIComponent(listing.id)}/quote?${new URLSearchParams({ epsilon })}`,
      );
      if (last !== epsilon) return;
      place.replaceChildren(quoteFacts(quote, listing));
      quoted(quote);
    } catch (problem) {
      if (last !== epsilon) return;
      place.replaceChildren(notice(sentenceOf(problem), "warn"));
      quoted(null);
    } finally {
      if (last === epsilon) place.removeAttribute("aria-busy");
    }
  }

  /** @param {string} epsilon */
  function choose(epsilon) {
    last = epsilon;
    clearTimeout(timer);
    list.value = epsilon;
    slider.valueAsNumber = steps.indexOf(epsilon);
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
 * @param {Listing["kind"]} kind
 */
function option({ epsilon, price, available }, kind) {
  const cost = available ? credits(price) : ABSENT[kind];
  return h("option", { value: epsilon, disabled: !available }, `${shortEpsilon(epsilon)}: ${cost}`);
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
 * @param {Quote} quote
 * @param {Listing} listing
 */
function quoteFacts(quote, listing) {
  const below = noDearer(listing, quote.epsilon);
  return facts([
    [
      `Price of ε ${shortEpsilon(quote.epsilon)}`,
      `${credits(quote.price)}${below === null ? "" : `, same as ε ${shortEpsilon(below)}`}`,
    ],
    ["What it tells", toldBy(listing.encoding, quote.half_width)],
    [listing.kind === "pool" ? "Objects that take part" : "Objects", whole(quote.objects)],
  ]);
}
