/** What an operator can do with a campaign: relax, pause and end it, invite. Here stand its settings, too. */

import { copyPart } from "../kit/copy.js";
import { attempt, confirmed, facts, h, save } from "../kit/dom.js";
import { field, formPart, textOf } from "../kit/form.js";
import { Problem } from "../kit/problem.js";
import { measureOf, moment, plural, whole } from "../kit/words.js";
import { surveyAddress } from "./share.js";
import { isReadable, needsPeople } from "./words.js";

/** @typedef {import("../kit/api.js").Api} Api */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */

const MOST_INVITATIONS = 10_000;
const FINISH = {
  title: "Finish the campaign?",
  text: ["It takes no reports any more, and cannot be opened again.", "Estimates and files stay."],
  yes: "Finish",
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
   * @param {() => Promise<unknown>} onclick
   */
  const button = (kind, onclick) => h("button", { class: kind || null, type: "button", onclick });
  const relax = button("", () => step("relax", relaxQuestion(campaign)));
  const pause = button("", () => step(campaign.state === "paused" ? "resume" : "pause", null));
  const finish = button("", () => step("finish", finishQuestion(campaign)));
  const results = button("primary", () =>
    attempt(refusal, async () => save(await api.file(`${path}/estimate.csv`), `${campaign.id}-estimate.csv`)),
  );
  results.textContent = "Save the results (CSV)";
  const element = h("div", {}, h("div", { class: "row" }, relax, pause, finish, results), refusal);

  /** @param {Campaign} now */
  function update(now) {
    campaign = now;
    const next = nextLevel(now);
    relax.textContent = next === undefined ? "Relax" : `Relax to ε ${next.epsilon} …`;
    // Levels of a campaign that is published open by themselves, and the last one has none after it.
    relax.hidden = now.state === "finished" || next === undefined || now.publish !== null;
    relax.disabled = now.state !== "open";
    relax.classList.toggle("primary", !needsPeople(now));
    pause.textContent = now.state === "paused" ? "Resume" : "Pause";
    pause.disabled = now.state !== "open" && now.state !== "paused";
    finish.textContent = "Finish …";
    const over = now.state === "finished";
    for (const each of [pause, finish]) each.hidden = over;
    results.hidden = !over || !isReadable(now);
  }
  return { element, update };
}

/** @param {Campaign} campaign */
const nextLevel = ({ open_level: open, levels }) => (open === null ? undefined : levels[open + 1]);

/** @param {Campaign} campaign */
function finishQuestion({ publish, devices }) {
  const unpublished = publish === null ? [] : ["Nothing will be published: only a campaign that ends by itself is."];
  const few = devices.total === 0 ? ["Nobody has answered yet."] : [];
  return { ...FINISH, text: [...few, ...FINISH.text, ...unpublished] };
}

/** @param {Campaign} campaign whose next level there is */
function relaxQuestion(campaign) {
  const now = campaign.levels[campaign.open_level ?? 0].epsilon;
  const next = nextLevel(campaign)?.epsilon;
  return {
    title: `Relax to ε ${next}?`,
    text: [
      ...(campaign.devices.total === 0 ? ["Nobody has answered at the present level yet."] : []),
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
 * @param {string} [address]
 */
export function invitationsPart(api, path, id, address = surveyAddress(id)) {
  const count = h("input", { type: "number", min: 1, max: MOST_INVITATIONS, value: 10 });
  const form = formPart([field("count", "How many", count)], {
    yes: "Make invitations",
    check: () =>
      count.value !== "" && count.checkValidity() ? {} : { count: `From 1 to ${whole(MOST_INVITATIONS)}.` },
    work: async (data) => {
      /** @type {import("../kit/wire.d.ts").Invitations} */
      const { invitations } = await api.ask("POST", `${path}/invitations`, { count: Number(textOf(data, "count")) });
      const label = `${plural(invitations.length, "invitation")}, shown this once`;
      const links = invitations.map((each) => `${address}#invitation=${each}`).join("\n");
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
    ["Answers are blurred by", encoding.name],
    ["Answers", encoding.values === undefined ? null : whole(encoding.values.length)],
    ["Range", encoding.range === undefined ? null : encoding.range.map(value).join(" to ")],
    ["Wanted", target === null ? "you decide" : `${width(target.half_width)}, ${confidence} % sure`],
    ["Largest ε promised", campaign.largest_epsilon],
    ["Suggested limit", campaign.suggested ?? null],
    ["Relaxes", devices === null ? "when you say so" : `by itself at ${plural(devices, "device")}`],
    ["Opens", moment(campaign.opens)],
    ["Closes", moment(campaign.closes)],
    [
      "Invitations",
      campaign.needs_invitation ? `${whole(invitations.used)} used of ${whole(invitations.issued)}` : null,
    ],
    ["Refused, being other than before", campaign.refused.differing === 0 ? null : whole(campaign.refused.differing)],
  ]);
}
