/** The list of campaigns. */

import { facts, h } from "../kit/dom.js";
import { measureOf, whole } from "../kit/words.js";
import { surveyLinks } from "./surveys.js";
import { knownTo, levelOf, progressOf, STATES, standing } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */

/**
 * @param {import("../kit/api.js").Api} api
 * @param {HTMLElement} main
 */
export async function showList(api, main) {
  /** @type {import("../kit/wire.d.ts").Campaigns} */
  const { campaigns } = await api.ask("GET", "campaigns");
  const cards = campaigns.reverse().map(card);
  main.replaceChildren(
    h(
      "div",
      { class: "row apart" },
      h("h1", { tabindex: -1 }, "Campaigns"),
      cards.length > 0 ? h("a", { class: "button primary", href: "#new" }, "New campaign") : "",
    ),
    surveyLinks(campaigns) ?? "",
    cards.length > 0 ? h("div", { class: "grid" }, ...cards) : noCampaign(),
  );
}

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

/** @param {Campaign} campaign */
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
