/** Files, invitations and settings of a campaign. */

import { facts, h, notice, save } from "../kit/dom.js";
import { measureOf, moment, whole } from "../kit/words.js";

const MOST_INVITATIONS = 10_000;

/**
 * @param {import("../kit/api.js").Api} api
 * @param {string} path
 * @param {string} id
 */
export function exportPart(api, path, id) {
  const problem = h("div", {});
  const estimates = h(
    "button",
    { type: "button", onclick: () => download("estimate.parquet", `${id}-estimate.parquet`) },
    "Download estimates",
  );
  const level = h("select", { id: "export-level" });
  const reports = h(
    "button",
    { type: "button", onclick: () => download(`export?level=${level.value}`, `${id}-${level.value}.parquet`) },
    "Download reports",
  );
  const choice = h(
    "div",
    {},
    h("div", { class: "field" }, h("label", { for: "export-level" }, "Reports of level"), level),
    reports,
  );
  const gone = h("p", { class: "muted" }, "The reports are deleted.");
  const element = h(
    "section",
    { class: "card" },
    h("h2", {}, "Export"),
    h("p", {}, "Parquet files. Reports are protected already; relaxdp estimate reads them."),
    h("p", {}, estimates),
    choice,
    gone,
    problem,
  );

  /**
   * @param {string} what
   * @param {string} name
   */
  async function download(what, name) {
    problem.replaceChildren();
    try {
      save(await api.file(`${path}/${what}`), name);
    } catch (refusal) {
      problem.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
  }

  /** @param {any} campaign */
  function update(campaign) {
    choice.hidden = campaign.reduced;
    gone.hidden = !campaign.reduced;
    if (level.options.length === 0) {
      level.append(
        ...campaign.levels.map((/** @type {any} */ each, /** @type {number} */ place) =>
          h("option", { value: place }, `ε ${each.epsilon}`),
        ),
      );
    }
  }
  return { element, update };
}

/**
 * @param {import("../kit/api.js").Api} api
 * @param {string} path
 */
export function invitationsPart(api, path) {
  const count = h("input", { id: "count", type: "number", min: 1, max: MOST_INVITATIONS, value: 10, required: true });
  const made = h("div", { "aria-live": "polite" });
  const make = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const { invitations } = await api.ask("POST", `${path}/invitations`, { count: Number(count.value) });
      const list = h("textarea", { id: "invitations", class: "code tokens", readonly: true, rows: 6 });
      list.value = invitations.join("\n");
      made.replaceChildren(
        h("label", { for: "invitations" }, `${whole(invitations.length)} invitations, shown this once`),
        list,
      );
    } catch (refusal) {
      made.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
  };
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Invitations"),
    h("p", {}, "Only invited devices take part, and each invitation works for one device."),
    h(
      "form",
      { onsubmit: make },
      h("div", { class: "field" }, h("label", { for: "count" }, "How many"), count),
      h("button", { type: "submit" }, "Make invitations"),
    ),
    made,
  );
}

/** @param {any} campaign */
export function settingsPart(campaign) {
  const { encoding, target } = campaign;
  const measure = measureOf(encoding);
  const wanted =
    target === null ? "none" : `${measure.width(target.half_width)} at ${whole(100 * target.confidence_level)} %`;
  return facts([
    ["Name", campaign.id],
    ["Encoding", encoding.name],
    ["Values", encoding.values === undefined ? null : whole(encoding.values.length)],
    ["Range", encoding.range === undefined ? null : encoding.range.map(measure.value).join(" to ")],
    ["Target", wanted],
    ["Largest ε promised", campaign.largest_epsilon],
    [
      "Relaxes",
      campaign.automatic_devices === null
        ? "when you say so"
        : `by itself at ${whole(campaign.automatic_devices)} devices`,
    ],
    ["Opens", moment(campaign.opens)],
    ["Closes", moment(campaign.closes)],
    [
      "Invitations",
      campaign.needs_invitation
        ? `${whole(campaign.invitations.used)} used of ${whole(campaign.invitations.issued)}`
        : null,
    ],
    ["Reports that differed", campaign.refused.differing === 0 ? null : whole(campaign.refused.differing)],
  ]);
}
