/** One campaign, live: what is known, how it became known, who took part, and what can be done next. */

import { follow, Problem, ROOT } from "../kit/api.js";
import { facts, h } from "../kit/dom.js";
import { measureOf, whole } from "../kit/words.js";
import { actionsOf } from "./actions.js";
import { progress, state } from "./list.js";
import { exportPart, invitationsPart, settingsPart } from "./more.js";
import { answerPart, historyPart, levelsPart } from "./parts.js";
import { levelOf } from "./words.js";

const HISTORY_SECONDS = 3;
const MOST_SHOWN = 20;

/**
 * @param {import("../kit/api.js").Api} api
 * @param {HTMLElement} main
 * @param {string} id
 * @param {{ signal: AbortSignal, fail: (problem: unknown) => void }} page
 */
export async function showCampaign(api, main, id, { signal, fail }) {
  const path = `campaigns/${encodeURIComponent(id)}`;
  let campaign = await api.ask("GET", `${path}/status`);
  const measure = measureOf(campaign.encoding);
  const summary = h("div", {});
  const live = h("span", { class: "live" }, "connecting");
  const answer = answerPart(measure);
  const levels = levelsPart();
  const history = historyPart(measure);
  const actions = actionsOf(api, path, (changed) => seen(changed));
  const exports = exportPart(api, path, id);
  const settings = h("div", {});

  /** @param {any} now the campaign as its operator sees it */
  function seen(now) {
    if (campaign.state !== now.state || campaign.open_level !== now.open_level) tell(now);
    campaign = now;
    summary.replaceChildren(
      facts([
        ["State", state(now)],
        ["Open level", levelOf(now)],
        ["Devices", whole(now.devices.total)],
        ["Half-width at worst", now.half_width === null ? "no reports yet" : measure.width(now.half_width)],
      ]),
      progress(now),
    );
    actions.update(now);
    exports.update(now);
    settings.replaceChildren(settingsPart(now));
  }

  const refresh = calm(async () => {
    if (signal.aborted) return true;
    const told = await api.ask("GET", `${path}/history?simultaneous=${estimate.simultaneous}`).catch((problem) => {
      if (problem instanceof Problem && problem.code === "campaign_reduced") return null;
      if (!(problem instanceof Problem) || problem.status !== 401) throw problem;
      if (!signal.aborted) fail(problem); // a token that ended is not tried again
      return null;
    });
    if (!signal.aborted) history.update(campaign, told, estimate);
    if (!signal.aborted && told !== null) levels.update(campaign, told);
    // A busy service shows a history that is a little old, and after the last report no event would ask for a newer one.
    return told === null || told.version >= estimate.version;
  }, HISTORY_SECONDS);

  /** @type {any} */
  let estimate = null;

  /** @param {any} found */
  async function receive(found) {
    estimate = found;
    answer.update(found);
    try {
      seen(await api.ask("GET", `${path}/status`));
      levels.update(campaign, null);
      await refresh();
    } catch (problem) {
      if (problem instanceof Problem && problem.status === 401) fail(problem); // else the next event brings it
    }
  }

  seen(campaign);
  levels.update(campaign, null);
  main.replaceChildren(
    h("p", { class: "row small" }, h("a", { href: "#" }, "All campaigns"), live),
    h("h1", { tabindex: -1 }, campaign.question),
    h("section", { class: "card", "aria-label": "How it stands" }, summary, actions.element),
    h("div", { class: "columns" }, answer.element, levels.element),
    history.element,
    h(
      "div",
      { class: "grid" },
      surveyPart(campaign),
      exports.element,
      campaign.needs_invitation ? invitationsPart(api, path) : null,
      h("section", { class: "card" }, h("h2", {}, "Settings"), settings),
    ),
  );
  const linked = (/** @type {boolean} */ on) => {
    live.classList.toggle("on", on);
    live.textContent = on ? "live" : "connection lost, trying again";
  };
  follow(api, `${path}/stream?${optionsOf(campaign.target)}`, { receive, linked, signal }).catch(fail);
}

/**
 * The intervals are those that the target speaks of; of more values than are shown the server chooses the largest.
 *
 * @param {Record<string, any> | null} target
 */
function optionsOf(target) {
  const names = ["method", "confidence_level", "about", "simultaneous"];
  return new URLSearchParams([
    ["largest", String(MOST_SHOWN)],
    ...(target === null ? [] : names.map((name) => [name, String(target[name])])),
  ]);
}

/** @param {any} campaign */
function surveyPart(campaign) {
  const address = new URL(`survey/${campaign.id}`, ROOT).href;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Survey"),
    h("p", {}, "Whoever opens this page can take part. The answer stays in their browser."),
    h("p", {}, h("a", { class: "code", href: address }, address)),
  );
}

/**
 * Say what changed, for those who do not see it.
 *
 * @param {any} campaign
 */
function tell(campaign) {
  const place = document.getElementById("told");
  if (place !== null) place.textContent = `The campaign is ${campaign.state}. Level: ${levelOf(campaign)}.`;
}

/**
 * Return a function that works at most once in so many seconds, and once more when it was asked meanwhile, when it
 * failed, or when it says that it is not done.
 *
 * @param {() => Promise<boolean>} work
 * @param {number} seconds
 */
function calm(work, seconds) {
  let busy = false;
  let again = false;
  return async function run() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      if (!(await work())) again = true;
    } catch (problem) {
      again = true;
      throw problem;
    } finally {
      setTimeout(() => {
        busy = false;
        if (again) {
          again = false;
          run().catch(() => {}); // it is tried again
        }
      }, 1000 * seconds);
    }
  };
}
