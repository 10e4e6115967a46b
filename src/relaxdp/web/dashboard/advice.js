/** The planner's advice beside the form: how precise each level would be, by the rule that also stops a campaign. */

import { h, notice } from "../kit/dom.js";
import { measureOf, whole } from "../kit/words.js";
import { checkedPlan, planOf } from "./definition.js";

const PATIENCE = 300;

/** @param {import("../kit/api.js").Api} api */
export function advicePart(api) {
  const told = h(
    "div",
    { "aria-live": "polite" },
    h("p", { class: "muted" }, "Fill in the answers to see how precise each level will be."),
  );
  const element = h(
    "aside",
    { class: "card advice", "aria-label": "What to expect" },
    h("h2", {}, "What to expect"),
    told,
  );
  let last = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {FormData} data */
  function update(data) {
    const [reason] = Object.values(checkedPlan(data));
    if (reason !== undefined) {
      if (last === "" || reason === last) return; // nothing was shown yet, or this was
      clearTimeout(timer);
      last = reason; // numbers of what stood here before would be taken for those of what stands here now
      told.replaceChildren(notice(reason, "warn"));
      return;
    }
    const plan = planOf(data);
    const text = JSON.stringify(plan);
    if (text === last) return;
    last = text;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        const found = await api.ask("POST", "advice", plan);
        if (last === text) told.replaceChildren(...words(found, plan));
      } catch (problem) {
        if (last === text) told.replaceChildren(notice(/** @type {Error} */ (problem).message, "warn"));
      }
    }, PATIENCE);
  }
  return { element, update };
}

/**
 * @param {any} found
 * @param {any} plan
 */
function words(found, plan) {
  const measure = measureOf(found.encoding);
  const aimed = plan.target !== undefined;
  const heads = ["ε", "Half-width", ...(aimed ? ["Devices it takes"] : []), "Odds"].map((each) =>
    h("th", { scope: "col" }, each),
  );
  const rows = found.levels.map((/** @type {any} */ level) => {
    const needed = level.devices_needed === null ? "no number" : whole(level.devices_needed);
    const width = level.half_width >= found.widest ? "nothing known" : measure.width(level.half_width);
    const cells = [width, ...(aimed ? [`${needed}${level.met ? " ✓" : ""}`] : []), `× ${odds(level.epsilon)}`];
    return h("tr", {}, h("th", { scope: "row" }, level.epsilon), ...cells.map((cell) => h("td", {}, cell)));
  });
  const caption = `If all ${whole(plan.devices)} devices report at a level, whatever they answer. Encoding: ${found.encoding.name}.`;
  return [
    aimed ? verdict(found, plan) : null,
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
    h(
      "p",
      { class: "small muted" },
      "Odds: by what factor a person’s reports up to this level can at most change what somebody believes of them.",
    ),
  ].filter((each) => each !== null);
}

/**
 * @param {any} found
 * @param {any} plan
 */
function verdict(found, plan) {
  const first = found.levels.find((/** @type {any} */ level) => level.met);
  if (first !== undefined)
    return h(
      "p",
      { class: "notice good" },
      `Precise enough at ε ${first.epsilon}: there the campaign finishes by itself.`,
    );
  const needed = found.levels[found.levels.length - 1].devices_needed;
  const more =
    needed === null
      ? "a wider target or a larger last level"
      : `${whole(needed)} devices at the last level, a larger last level or a wider target`;
  return h(
    "p",
    { class: "notice warn" },
    `With ${whole(plan.devices)} devices no level is precise enough. It takes ${more}.`,
  );
}

/** @param {string} epsilon */
const odds = (epsilon) =>
  new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(Math.exp(Number(epsilon)));
