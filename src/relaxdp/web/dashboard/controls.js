/** What an operator can do with a campaign: relax, pause and end it, fetch files, invite. Here stand its settings, too. */

import { copyPart } from "../kit/copy.js";
import { attempt, confirmed, facts, h, save } from "../kit/dom.js";
import { field, formPart, textOf } from "../kit/form.js";
import { Problem } from "../kit/problem.js";
import { measureOf, moment, plural, whole } from "../kit/words.js";
import { surveyAddress } from "./share.js";

/** @typedef {import("../kit/api.js").Api} Api */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */

const MOST_INVITATIONS = 10_000;
const FINISH = {
  title: "Finish the campaign?",
  text: ["It takes no reports any more. A finished campaign cannot be opened again.", "Estimates and exports stay."],
  yes: "Finish",
};
const REDUCE = {
  title: "Delete the reports?",
  text: [
    "All reports are deleted and only counts are kept. The estimate stays.",
    "This cannot be undone: afterwards nothing can be exported, nobody can withdraw, and what each level told alone " +
      "is gone.",
  ],
  yes: "Delete the reports",
};

/**
 * Return the buttons; they stay the same elements, so that the keyboard does not lose its place. Whatever cannot be
 * undone is asked about first.
 *
 * @param {Api} api
 * @param {string} path
 * @param {Campaign} first
 * @param {(campaign: Campaign) => void} changed
 */
export function stepsPart(api, path, first, changed) {
  let campaign = first;
  const refusal = h("div", {});

  /**
   * @param {string} name
   * @param {import("../kit/dom.js").Question | null} question
   */
  async function step(name, question) {
    const { open_level: level, state } = campaign;
    if (question !== null && !(await confirmed(question))) return;
    await attempt(refusal, async () => {
      /** @type {Campaign} */
      const now = await api.ask("GET", `${path}/status`);
      if (now.open_level !== level || now.state !== state) {
        changed(now); // what was agreed to is not what would happen
        throw new Problem("The campaign moved on by itself meanwhile. Nothing was changed.");
      }
      changed(await api.ask("POST", `${path}/${name}`));
    });
  }

  /**
   * @param {string} kind
   * @param {() => Promise<void>} onclick
   */
  const button = (kind, onclick) => h("button", { class: kind || null, type: "button", onclick });
  const relax = button("primary", () => step("relax", relaxQuestion(campaign)));
  const pause = button("", () => step(campaign.state === "paused" ? "resume" : "pause", null));
  const finish = button("danger", () => step("finish", FINISH));
  const reduce = button("danger", () => step("reduce", REDUCE));
  const element = h("div", {}, h("div", { class: "row" }, relax, pause, finish, reduce), refusal);

  /** @param {Campaign} now */
  function update(now) {
    campaign = now;
    const next = nextLevel(now);
    relax.textContent = next === undefined ? "Relax" : `Relax to ε ${next.epsilon} …`;
    relax.disabled = now.state !== "open" || next === undefined;
    pause.textContent = now.state === "paused" ? "Resume" : "Pause";
    pause.disabled = now.state !== "open" && now.state !== "paused";
    finish.textContent = "Finish …";
    const over = now.state === "finished";
    for (const each of [relax, pause, finish]) each.hidden = over;
    reduce.hidden = !over;
    reduce.disabled = now.reduced;
    reduce.textContent = now.reduced ? "The reports are deleted" : "Delete the reports …";
  }
  return { element, update };
}

/** @param {Campaign} campaign */
const nextLevel = ({ open_level: open, levels }) => (open === null ? undefined : levels[open + 1]);

/** @param {Campaign} campaign whose next level there is */
function relaxQuestion(campaign) {
  const now = campaign.levels[campaign.open_level ?? 0].epsilon;
  const next = nextLevel(campaign)?.epsilon;
  return {
    title: `Relax to ε ${next}?`,
    text: [
      "Devices whose owners agreed will send a clearer report. What each of them gives away grows from " +
        `ε ${now} to ε ${next}.`,
      "A level that was opened cannot be closed again, and a report cannot be taken back.",
    ],
    yes: `Relax to ε ${next}`,
    danger: false,
  };
}

/**
 * @param {Api} api
 * @param {string} path
 * @param {string} id
 */
export function exportPart(api, path, id) {
  const refusal = h("div", {});

  /**
   * @param {string} file
   * @param {string} name
   */
  const download = (file, name) => attempt(refusal, async () => save(await api.file(`${path}/${file}`), name));
  const fetchEstimates = () => download("estimate.parquet", `${id}-estimate.parquet`);
  const fetchReports = () => download(`export?level=${level.value}`, `${id}-${level.value}.parquet`);
  const level = h("select", { id: "export-level" });
  const choice = h(
    "div",
    {},
    h("div", { class: "field" }, h("label", { for: "export-level" }, "Reports of level"), level),
    h("button", { type: "button", onclick: fetchReports }, "Download reports"),
  );
  const deleted = h("p", { class: "muted" }, "The reports are deleted.");
  const element = h(
    "section",
    { class: "card" },
    h("h2", {}, "Export"),
    h("p", {}, "Parquet files. Reports are protected already; relaxdp estimate reads them."),
    h("p", {}, h("button", { type: "button", onclick: fetchEstimates }, "Download estimates")),
    choice,
    deleted,
    refusal,
  );

  /** @param {Campaign} campaign */
  function update({ levels, reduced }) {
    choice.hidden = reduced;
    deleted.hidden = !reduced;
    if (level.options.length > 0) return;
    level.append(...levels.map(({ epsilon }, place) => h("option", { value: place }, `ε ${epsilon}`)));
  }
  return { element, update };
}

/**
 * @param {Api} api
 * @param {string} path
 * @param {string} id
 */
export function invitationsPart(api, path, id) {
  const count = h("input", { type: "number", min: 1, max: MOST_INVITATIONS, value: 10 });
  const form = formPart([field("count", "How many", count)], {
    yes: "Make invitations",
    check: () =>
      count.value !== "" && count.checkValidity() ? {} : { count: `From 1 to ${whole(MOST_INVITATIONS)}.` },
    work: async (data) => {
      /** @type {import("../kit/wire.d.ts").Invitations} */
      const { invitations } = await api.ask("POST", `${path}/invitations`, { count: Number(textOf(data, "count")) });
      const label = `${plural(invitations.length, "invitation")}, shown this once`;
      const links = invitations.map((each) => `${surveyAddress(id)}#invitation=${each}`).join("\n");
      const keep = () => save(new Blob([`${links}\n`], { type: "text/plain" }), `${id}-invitations.txt`);
      return h(
        "div",
        {},
        copyPart(label, links, { lines: true }),
        h("p", {}, h("button", { type: "button", onclick: keep }, "Save as a file")),
      );
    },
  });
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Invitations"),
    h("p", {}, "Only invited people take part. Each link works for one of them; send each person their own."),
    form,
  );
}

/** @param {Campaign} campaign */
export function settingsPart(campaign) {
  const { encoding, target, invitations, automatic_devices: devices } = campaign;
  const { value, width } = measureOf(encoding);
  const confidence = whole(100 * (target?.confidence_level ?? 0));
  return facts([
    ["Name", campaign.id],
    ["Series", campaign.series === null ? null : `${campaign.series.name}, ${campaign.series.date}`],
    ["Encoding", encoding.name],
    ["Values", encoding.values === undefined ? null : whole(encoding.values.length)],
    ["Range", encoding.range === undefined ? null : encoding.range.map(value).join(" to ")],
    ["Target", target === null ? "none" : `${width(target.half_width)} at ${confidence} %`],
    ["Largest ε promised", campaign.largest_epsilon],
    ["Relaxes", devices === null ? "when you say so" : `by itself at ${whole(devices)} devices`],
    ["Opens", moment(campaign.opens)],
    ["Closes", moment(campaign.closes)],
    [
      "Invitations",
      campaign.needs_invitation ? `${whole(invitations.used)} used of ${whole(invitations.issued)}` : null,
    ],
    ["Reports that differed", campaign.refused.differing === 0 ? null : whole(campaign.refused.differing)],
  ]);
}
