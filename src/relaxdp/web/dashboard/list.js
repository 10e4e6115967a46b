/** The list of campaigns; the questions of a survey are one of its cards. */

import { facts, h } from "../kit/dom.js";
import { measureOf, plural, whole } from "../kit/words.js";
import { knownTo, levelOf, progressOf, STATES, standing } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */

/**
 * @param {import("../kit/api.js").Api} api
 * @param {HTMLElement} main
 */
export async function showList(api, main) {
  /** @type {import("../kit/wire.d.ts").Campaigns} */
  const { campaigns } = await api.ask("GET", "campaigns");
  const groups = groupsOf(campaigns.reverse());
  /** @type {import("../kit/wire.d.ts").Surveys} */
  const { surveys } = groups.some(({ name }) => name !== null) ? await api.ask("GET", "surveys") : { surveys: [] };
  const cards = groups.map(({ name, questions }) =>
    name === null ? card(questions[0]) : surveyCard(name, surveys.find(({ id }) => id === name)?.about, questions),
  );
  main.replaceChildren(
    h(
      "div",
      { class: "row apart" },
      h("h1", { tabindex: -1 }, "Campaigns"),
      cards.length > 0 ? h("a", { class: "button primary", href: "#new" }, "New campaign") : "",
    ),
    cards.length > 0 ? h("div", { class: "grid" }, ...cards) : noCampaign(),
  );
}

/**
 * Return campaigns that are asked alone, and those of each survey together, where the first of them stands.
 *
 * @param {Campaign[]} campaigns
 */
function groupsOf(campaigns) {
  /** @type {Map<string, { name: string | null, questions: Campaign[] }>} */
  const groups = new Map();
  for (const each of campaigns) {
    const name = each.survey?.name ?? null;
    const key = name === null ? `campaign/${each.id}` : `survey/${name}`;
    const group = groups.get(key) ?? { name, questions: [] };
    group.questions.push(each);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/**
 * @param {string} name
 * @param {string | null | undefined} about
 * @param {Campaign[]} campaigns newest first
 */
function surveyCard(name, about, campaigns) {
  const questions = [...campaigns].reverse();
  const states = [...new Set(questions.map(({ state }) => state))];
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: `#survey/${name}` }, about ?? name)),
    h(
      "p",
      { class: "row" },
      ...states.map((state) => stateBadge({ state })),
      h("span", { class: "muted small" }, `survey of ${plural(questions.length, "question")}`),
      h("span", { class: "muted small code" }, name),
    ),
    h(
      "ul",
      {},
      ...questions.map((each) =>
        h(
          "li",
          {},
          h("a", { href: `#campaign/${each.id}` }, each.question),
          h("span", { class: "small muted" }, ` – ${standingOf(each)}`),
        ),
      ),
    ),
  );
}

/** @param {Campaign} campaign */
const standingOf = (campaign) =>
  campaign.devices.total === 0 ? "nobody yet" : `${plural(campaign.devices.total, "device")}, ${knownTo(campaign)}`;

/** @param {Campaign} campaign */
function card(campaign) {
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: `#campaign/${campaign.id}` }, campaign.question)),
    h("p", { class: "row" }, stateBadge(campaign), h("span", { class: "muted small code" }, campaign.id)),
    facts([
      ["Level", levelOf(campaign)],
      ["Devices", whole(campaign.devices.total)],
      ["Known to", knownTo(campaign)],
    ]),
    standingPart(campaign),
  );
}

/** @param {Pick<Campaign, "state">} campaign */
export const stateBadge = ({ state }) => h("span", { class: `badge ${state}` }, STATES[state]);

/**
 * Return how a campaign stands, and where it is on a way, the way as a bar.
 *
 * @param {Campaign} campaign
 */
export function standingPart(campaign) {
  const { encoding, target, state, devices } = campaign;
  const words = h("p", { class: "small" }, standing(campaign));
  if (target === null || state === "finished" || devices.total === 0) return words;
  const wanted = measureOf(encoding).width(target.half_width);
  const done = progressOf(campaign, target);
  const bar = h("progress", { value: done, max: 1, "aria-label": `On the way to ${wanted}` });
  return h("div", {}, bar, words);
}

function noCampaign() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "No campaign yet"),
    h(
      "p",
      {},
      "A campaign asks many people one question. Their devices answer with reports that protect the answer, very " +
        "private at first; you relax it level by level until the answer is precise enough.",
    ),
    h("a", { class: "button primary", href: "#new" }, "Create the first one"),
  );
}
