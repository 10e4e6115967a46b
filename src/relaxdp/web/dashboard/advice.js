/** The planner's advice beside the form: how precise each level would be, by the rule that also stops a campaign. */

import { h, notice, put, tableHead, tableRow } from "../kit/dom.js";
import { sentenceOf } from "../kit/problem.js";
import { measureOf, plural, whole } from "../kit/words.js";
import { planOf, wrongPlan } from "./definition.js";

/** @typedef {import("../kit/wire.d.ts").Advice} Advice */
/** @typedef {ReturnType<typeof planOf>} Plan */

const PATIENCE = 300;
const ODDS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** @param {import("../kit/api.js").Api} api */
export function advicePart(api) {
  const body = h(
    "div",
    { "aria-live": "polite" },
    h("p", { class: "muted" }, "Fill in the answers to see how precise each level will be."),
  );
  const whose = h("p", { class: "small muted" });
  const element = h(
    "aside",
    { class: "card advice", "aria-label": "What to expect" },
    h("h2", {}, "What to expect"),
    whose,
    body,
  );
  let last = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /**
   * @param {FormData} data of one question
   * @param {number} place of the question
   * @param {number} questions how many the survey has
   */
  function update(data, place, questions) {
    whose.textContent = `Question ${place}`;
    whose.hidden = questions === 1;
    const [reason] = Object.values(wrongPlan(data));
    if (reason !== undefined) {
      if (last === "" || reason === last) return; // nothing was shown yet, or this was
      clearTimeout(timer);
      last = reason; // numbers of what stood here before would be taken for those of what stands here now
      body.replaceChildren(notice(reason, "warn"));
      return;
    }
    const plan = planOf(data);
    const text = JSON.stringify([plan, questions]);
    if (text === last) return;
    last = text;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        const advice = await api.ask("POST", "advice", plan);
        if (last === text) put(body, ...advicePieces(advice, plan, questions));
      } catch (problem) {
        if (last === text) body.replaceChildren(notice(sentenceOf(problem), "warn"));
      }
    }, PATIENCE);
  }
  return { element, update };
}

/**
 * @param {Advice} advice
 * @param {Plan} plan
 * @param {number} questions each has these levels, and what reports to all of them tell adds up
 */
function advicePieces(advice, plan, questions) {
  const { width } = measureOf(advice.encoding);
  const aimed = plan.target !== undefined;
  const rows = advice.levels.map((level) => {
    const needed = level.devices_needed === null ? "no number" : whole(level.devices_needed);
    const precision = level.half_width >= advice.widest ? "nothing known" : width(level.half_width);
    const odds = `× ${ODDS.format(Math.exp(questions * Number(level.epsilon)))}`;
    return tableRow(level.epsilon, precision, ...(aimed ? [`${needed}${level.met ? " ✓" : ""}`] : []), odds);
  });
  const all = `With ${plural(plan.devices, "device")}, if all of them report at the level; whatever they answer.`;
  return [
    aimed ? verdict(advice, plan) : null,
    h(
      "table",
      {},
      h("caption", {}, all),
      tableHead("ε", "Known to", ...(aimed ? ["Devices it takes"] : []), "Odds"),
      h("tbody", {}, ...rows),
    ),
    h(
      "p",
      { class: "small muted" },
      `Odds: by what factor a person’s reports ${questions === 1 ? "" : "to all questions "}up to this level can at most ` +
        `change what somebody believes of them. Answers are blurred by “${advice.encoding.name}”.`,
    ),
  ];
}

/**
 * @param {Advice} advice
 * @param {Plan} plan
 */
function verdict({ levels }, plan) {
  const first = levels.find(({ met }) => met);
  if (first !== undefined) {
    return notice(`Precise enough at ε ${first.epsilon}: there the campaign finishes by itself.`, "good");
  }
  const needed = levels[levels.length - 1].devices_needed;
  const more =
    needed === null
      ? "a wider target or a larger last level"
      : `${plural(needed, "device")} at the last level, a larger last level or a wider target`;
  return notice(`With ${plural(plan.devices, "device")} no level is precise enough. It takes ${more}.`, "warn");
}
