/** One campaign, live: what is known, how it became known, who took part, and what can be done next. */

import { follow } from "../kit/api.js";
import { facts, h } from "../kit/dom.js";
import { tell } from "../kit/page.js";
import { measureOf, whole } from "../kit/words.js";
import { invitationsPart, settingsPart, stepsPart } from "./controls.js";
import { isFormed } from "./definition.js";
import { exportPart, publicationPart } from "./export.js";
import { integrityPart } from "./integrity.js";
import { standingPart, stateBadge } from "./list.js";
import { answerPart, historyPart, levelsPart } from "./results.js";
import { sharePart } from "./share.js";
import { knownTo, levelOf, needsPeople, STATES } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").Estimate} Estimate */

const MOST_SHOWN = 20;
const INTERVALS = /** @type {const} */ (["method", "confidence_level", "about", "simultaneous"]);

/**
 * @param {import("../kit/api.js").Api} api
 * @param {HTMLElement} main
 * @param {string} id
 * @param {{ signal: AbortSignal, fail: (problem: unknown) => void }} page
 */
export async function showCampaign(api, main, id, { signal, fail }) {
  const path = `campaigns/${encodeURIComponent(id)}`;
  /** @type {Campaign} */
  let campaign = await api.ask("GET", `${path}/status`);
  const options = optionsOf(campaign);
  const measure = measureOf(campaign.encoding);
  const summary = h("div", {});
  const live = h("span", { class: "live" }, "connecting");
  const answer = answerPart(measure, (quantiles) => {
    options.set("quantiles", quantiles);
    return receive(campaign).catch(fail);
  });
  const levels = levelsPart();
  const history = historyPart(measure);
  const integrity = integrityPart(measure);
  const steps = stepsPart(api, path, campaign, (changed) => {
    update(changed);
    void look();
  });
  const exports = exportPart(api, path, id);
  const publication = publicationPart();
  const settings = h("div", {});
  // A question of a survey is asked there, under one limit: who came to it alone as well would count twice.
  const share = campaign.survey === null ? sharePart(campaign) : "";
  const fresh = needsPeople(campaign); // then there is one thing to do
  const invitations = campaign.needs_invitation && campaign.survey === null ? invitationsPart(api, path, id) : null;
  const results = h(
    "div",
    { class: "results" },
    h("div", { class: "columns" }, answer.element, levels.element),
    history.element,
    integrity.element,
  );

  /** @param {Campaign} now */
  function update(now) {
    if (campaign.state !== now.state || campaign.open_level !== now.open_level) {
      tell(`The campaign is ${STATES[now.state]}. Level: ${levelOf(now)}.`);
    }
    campaign = now;
    summary.replaceChildren(
      facts([
        ["State", stateBadge(now)],
        ["Open level", levelOf(now)],
        ["Devices", whole(now.devices.total)],
        ["Known to", knownTo(now)],
      ]),
      standingPart(now),
    );
    results.hidden = now.devices.total === 0; // tables of nothing say nothing
    levels.update(now);
    steps.update(now);
    exports.update(now);
    publication.update(now);
    settings.replaceChildren(settingsPart(now));
  }

  /** @param {Campaign} now */
  async function receive(now) {
    /** @type {Estimate} */
    const estimate = await api.ask("GET", `${path}/estimate?${options}`);
    if (signal.aborted) return;
    update(now);
    answer.update(estimate, now);
    history.update(estimate, now);
    integrity.update(estimate.integrity);
  }

  update(campaign);
  main.replaceChildren(
    h("p", { class: "row small" }, h("a", { href: "#" }, "All campaigns"), surveyLink(campaign), live),
    h("h1", { tabindex: -1 }, campaign.question),
    h("section", { class: "card", "aria-label": "How it stands" }, summary, steps.element),
    ...(fresh ? [share, invitations ?? ""] : []),
    results,
    ...(fresh || campaign.state === "finished" ? [] : [share]),
    h(
      "div",
      { class: "grid" },
      exports.element,
      publication.element,
      fresh || campaign.state === "finished" ? null : invitations,
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Settings"),
        settings,
        isFormed(campaign) ? h("a", { class: "button", href: `#copy/${id}` }, "Use it for a new campaign …") : null,
      ),
    ),
  );
  const linked = (/** @type {boolean} */ on) => {
    live.classList.toggle("on", on);
    live.textContent = on ? "live" : "connection lost, trying again";
  };
  const look = follow(api, `${path}/status`, { receive, linked, fail, signal });
}

/** @param {Campaign} campaign */
const surveyLink = ({ survey }) =>
  survey === null ? null : h("a", { href: `#survey/${survey.name}` }, "The survey that asks it");

/**
 * The intervals are those that the target speaks of; of more values than are shown the server chooses the largest.
 *
 * @param {Campaign} campaign
 */
function optionsOf({ target, encoding }) {
  const options = new URLSearchParams({ largest: String(MOST_SHOWN) });
  if (measureOf(encoding).numeric) options.set("quantiles", "0.25,0.5,0.75");
  if (target === null) return options;
  for (const name of INTERVALS) options.set(name, String(target[name]));
  return options;
}
