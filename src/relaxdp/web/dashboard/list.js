/** The list of campaigns. */

import { facts, h } from "../kit/dom.js";
import { measureOf, whole } from "../kit/words.js";
import { levelOf, progressOf, STATES } from "./words.js";

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
      h("a", { class: "button primary", href: "#new" }, "New campaign"),
    ),
    cards.length > 0 ? h("div", { class: "grid" }, ...cards) : noCampaign(),
  );
}

/** @param {Campaign} campaign */
function card(campaign) {
  const { width } = measureOf(campaign.encoding);
  return h(
    "article",
    { class: "card campaign" },
    h("h2", {}, h("a", { href: `#campaign/${campaign.id}` }, campaign.question)),
    h("p", { class: "row" }, stateBadge(campaign), h("span", { class: "muted small code" }, campaign.id)),
    facts([
      ["Level", levelOf(campaign)],
      ["Devices", whole(campaign.devices.total)],
      ["Half-width", campaign.half_width === null ? "no reports yet" : width(campaign.half_width)],
    ]),
    progressPart(campaign),
  );
}

/** @param {Campaign} campaign */
export const stateBadge = ({ state }) => h("span", { class: `badge ${state}` }, STATES[state]);

/**
 * Return the way to the target, as a bar and in words.
 *
 * @param {Campaign} campaign
 */
export function progressPart(campaign) {
  const { encoding, target } = campaign;
  if (target === null) return h("p", { class: "small muted" }, "No target: you decide when it is precise enough.");
  const done = progressOf(campaign, target);
  const wanted = measureOf(encoding).width(target.half_width);
  const words = campaign.target_met
    ? `The target of ${wanted} is reached.`
    : `${Math.floor(100 * done)} % of the reports that it takes for ${wanted} at these levels.`;
  return h(
    "div",
    {},
    h("progress", { value: done, max: 1, "aria-label": `Progress to the target of ${wanted}` }),
    h("p", { class: "small muted" }, words),
  );
}

function noCampaign() {
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "No campaign yet"),
    h(
      "p",
      {},
      "A campaign asks many devices one question. They answer with reports that protect the answer, very private at " +
        "first; you relax it level by level until the answer is precise enough.",
    ),
    h("a", { class: "button primary", href: "#new" }, "Create the first one"),
  );
}
