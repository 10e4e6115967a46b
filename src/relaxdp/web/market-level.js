/** Choosing a level: a field, a slider, and at once what it costs and tells. The price is always the service's own. */

import { facts, h, notice } from "./dashboard-dom.js";
import { field } from "./dashboard-fields.js";
import { whole } from "./dashboard-words.js";
import { credits, isEpsilon, shown, stepsOf, tells } from "./market-words.js";

const PATIENCE = 120;
const HINTS = {
  release: "The larger, the more it tells.",
  pool: "Whoever has a smaller limit of their own, or wants more credits, is not in the sale.",
};

/**
 * @param {import("./market-session.js").Session} session
 * @param {any} listing
 * @param {(quote: any) => void} quoted hears every quote, and null where there is none
 */
export function levelPart(session, listing, quoted) {
  const steps = stepsOf(listing.authorised);
  const typed = h("input", { inputmode: "decimal", autocomplete: "off", oninput: () => change(typed.value.trim()) });
  const slider = h("input", { type: "range", min: 0, max: steps.length - 1, step: 1, "aria-label": "Level", oninput: () => choose(steps[slider.value]) });
  const told = h("div", { class: "quote", "aria-live": "polite" });
  const element = h(
    "div",
    {},
    field("epsilon", "Level (ε)", typed, `Any number up to ${shown(listing.authorised)}. ${HINTS[/** @type {keyof HINTS} */ (listing.kind)]}`),
    slider,
    told,
  );
  const wrong = element.querySelector("#epsilon-wrong");
  let last = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} text */
  function change(text) {
    last = text;
    clearTimeout(timer);
    const fits = isEpsilon(text);
    wrong.textContent = fits || text === "" ? "" : "A level is a number above 0, like 0.5.";
    typed.toggleAttribute("aria-invalid", false);
    if (!fits) {
      if (text !== "") typed.setAttribute("aria-invalid", "true");
      quoted(null);
      return;
    }
    const near = steps.findIndex((step) => Number(step) >= Number(text));
    slider.value = near < 0 ? steps.length - 1 : near;
    slider.setAttribute("aria-valuetext", `ε ${text}`);
    timer = setTimeout(ask, PATIENCE, text);
  }

  /** @param {string} text */
  async function ask(text) {
    told.setAttribute("aria-busy", "true");
    try {
      const quote = await session.api.ask("GET", `market/listings/${encodeURIComponent(listing.id)}/quote?${new URLSearchParams({ epsilon: text })}`);
      if (last !== text) return;
      told.replaceChildren(words(quote, listing));
      quoted(quote);
    } catch (refusal) {
      if (last !== text) return;
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message, "warn"));
      quoted(null);
    } finally {
      if (last === text) told.removeAttribute("aria-busy");
    }
  }

  /** @param {string} epsilon */
  function choose(epsilon) {
    typed.value = epsilon;
    change(epsilon);
  }
  return {
    element,
    choose,
    again: () => change(last),
    /** @param {number} share */
    near: (share) => choose(steps[Math.max(0, Math.ceil(share * steps.length) - 1)]),
  };
}

/**
 * @param {any} quote
 * @param {any} listing
 */
function words(quote, { encoding, kind }) {
  return facts([
    [`Price of ε ${shown(quote.epsilon)}`, credits(quote.price)],
    ["What it tells", tells(encoding, quote.half_width)],
    [kind === "pool" ? "Objects that take part" : "Objects", whole(quote.objects)],
  ]);
}
