/** What an operator can do with a campaign. Whatever cannot be undone is asked about first. */

import { Problem } from "../kit/api.js";
import { confirmed, h, notice } from "../kit/dom.js";

/**
 * Return the buttons; they stay the same elements, so that the keyboard does not lose its place.
 *
 * @param {import("../kit/api.js").Api} api
 * @param {string} path
 * @param {(campaign: any) => void} changed
 */
export function actionsOf(api, path, changed) {
  /** @type {any} */
  let shown = null;
  const problem = h("div", {});

  /**
   * @param {string} what
   * @param {{ title: string, text: string[], yes: string, danger?: boolean } | null} question
   */
  async function step(what, question) {
    const { open_level: level, state } = shown;
    if (question !== null && !(await confirmed(question))) return;
    problem.replaceChildren();
    try {
      const now = await api.ask("GET", `${path}/status`);
      if (now.open_level !== level || now.state !== state) {
        changed(now); // what was agreed to is not what would happen
        throw new Problem("The campaign moved on by itself meanwhile. Nothing was changed.");
      }
      changed(await api.ask("POST", `${path}/${what}`));
    } catch (refusal) {
      problem.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
  }

  const relax = h("button", { class: "primary", type: "button", onclick: () => step("relax", aboutRelax(shown)) });
  const pause = h("button", {
    type: "button",
    onclick: () => step(shown.state === "paused" ? "resume" : "pause", null),
  });
  const finish = h("button", { class: "danger", type: "button", onclick: () => step("finish", FINISH) }, "Finish …");
  const reduce = h(
    "button",
    { class: "danger", type: "button", onclick: () => step("reduce", REDUCE) },
    "Delete the reports …",
  );
  const element = h("div", {}, h("div", { class: "row" }, relax, pause, finish, reduce), problem);

  /** @param {any} campaign */
  function update(campaign) {
    shown = campaign;
    const next = campaign.open_level === null ? undefined : campaign.levels[campaign.open_level + 1];
    relax.textContent = next === undefined ? "Relax" : `Relax to ε ${next.epsilon} …`;
    relax.disabled = campaign.state !== "open" || next === undefined;
    pause.textContent = campaign.state === "paused" ? "Resume" : "Pause";
    pause.disabled = campaign.state !== "open" && campaign.state !== "paused";
    const over = campaign.state === "finished";
    for (const each of [relax, pause, finish]) each.hidden = over;
    reduce.hidden = !over;
    reduce.disabled = campaign.reduced;
    reduce.textContent = campaign.reduced ? "The reports are deleted" : "Delete the reports …";
  }
  return { element, update };
}

/** @param {any} campaign */
function aboutRelax(campaign) {
  const now = campaign.levels[campaign.open_level].epsilon;
  const next = campaign.levels[campaign.open_level + 1].epsilon;
  return {
    title: `Relax to ε ${next}?`,
    text: [
      `Devices whose owners agreed will send a clearer report. What each of them gives away grows from ε ${now} to ε ${next}.`,
      "A level that was opened cannot be closed again, and a report cannot be taken back.",
    ],
    yes: `Relax to ε ${next}`,
    danger: false,
  };
}

const FINISH = {
  title: "Finish the campaign?",
  text: ["It takes no reports any more. A finished campaign cannot be opened again.", "Estimates and exports stay."],
  yes: "Finish",
};

const REDUCE = {
  title: "Delete the reports?",
  text: [
    "All reports are deleted and only counts are kept. The estimate stays.",
    "This cannot be undone: afterwards nothing can be exported, nobody can withdraw, and what each level told alone is gone.",
  ],
  yes: "Delete the reports",
};
