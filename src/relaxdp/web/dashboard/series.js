/** A question that is asked again: its dates side by side, how the answer changed, and the way to the other campaigns. */

import { h, tableHead, tableRow } from "../kit/dom.js";
import { whole } from "../kit/words.js";
import { intervalPanel, pointsText, scaleOf } from "./charts.js";
import { isFormed } from "./definition.js";
import { nameOf } from "./results.js";
import { between, changeWords, inside, STATES } from "./words.js";

/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").SeriesDate} SeriesDate */
/** @typedef {import("../kit/wire.d.ts").SeriesEstimate} SeriesEstimate */
/** @typedef {import("../kit/wire.d.ts").Row} Row */

/**
 * Drawn once and then kept current, like everything on a campaign's page.
 *
 * @param {Measure} measure
 * @param {Campaign} campaign
 * @param {import("../kit/wire.d.ts").Series} series
 */
export function seriesPart(measure, campaign, { name }) {
  const panels = h("ul", { class: "panels dates" });
  const campaigns = h("tbody", {});
  const numbers = h("tbody", {});
  const kind = h("p", { class: "small muted" });
  const head = tableHead(measure.numeric ? "Mean" : "Answer", "Date", "Estimate", "Interval", "Change", "Its interval");
  const element = h(
    "section",
    { class: "card", "aria-label": `Series ${name}` },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, `Asked again: ${name}`),
      isFormed(campaign) ? h("a", { class: "button", href: `#new/${campaign.id}` }, "Ask again …") : null,
    ),
    h(
      "p",
      { class: "small muted" },
      "Each date is a campaign of its own. Nobody can tell which devices of two dates are the same, so they are compared " +
        "as two groups. What a device gives away adds up over the dates that it takes part in.",
    ),
    panels,
    kind,
    h(
      "table",
      { class: "levels" },
      h("caption", {}, "The campaigns of this series."),
      tableHead("Date", "ε", "Devices", "State"),
      campaigns,
    ),
    h(
      "details",
      {},
      h("summary", {}, "Estimates and changes as a table"),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Estimates of each date" },
        h("table", { class: "levels" }, h("caption", {}, changeCaption(measure)), head, numbers),
      ),
    ),
  );

  /** @param {SeriesEstimate} found */
  function update(found) {
    campaigns.replaceChildren(...found.dates.map((each) => campaignRow(each, campaign.id)));
    const rows = found.dates.flatMap(({ rows }) => rows ?? []);
    if (rows.length === 0) return;
    const scale = scaleOf(rows, measure);
    const shown = found.dates.flatMap(({ rows }) => (rows === null ? [] : [rows])).pop() ?? [];
    const sure = `${whole(100 * found.confidence_level)} % intervals`;
    kind.textContent = found.simultaneous ? `${sure} that hold for all answers of a date at once.` : `${sure}.`;
    panels.replaceChildren(...shown.map((row) => panel(row, found, scale, measure)));
    numbers.replaceChildren(...shown.flatMap((row) => numberRows(row, found, measure)));
  }
  return { element, update };
}

/**
 * One value over the dates, and the last change in words.
 *
 * @param {Row} last
 * @param {SeriesEstimate} found
 * @param {import("../kit/charts.js").Scale} scale
 * @param {Measure} measure
 */
function panel(last, { dates, changes }, scale, measure) {
  const name = nameOf(last, measure);
  const points = dates.map(({ date, rows }) => ({ at: date, row: rows?.find((row) => row.value === last.value) }));
  const text = pointsText(name, "in", points, measure);
  const change = changes[changes.length - 1];
  const row = change?.rows.find((row) => row.value === last.value);
  const words = row === undefined ? null : `${changeWords(row, measure)} since ${change.earlier}`;
  return h(
    "li",
    {},
    h("h3", {}, name),
    intervalPanel(text, points, { where: "In", scale, measure }),
    words === null ? null : h("p", { class: "small" }, words),
  );
}

/**
 * @param {SeriesDate} date
 * @param {string} here the campaign whose page this is
 */
function campaignRow({ date, campaign, epsilon, devices, state }, here) {
  const link = campaign === here ? `${date} (this one)` : h("a", { href: `#campaign/${campaign}` }, date);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, link),
    h("td", {}, epsilon ?? "–"),
    h("td", {}, whole(devices)),
    h("td", {}, STATES[state]),
  );
}

/**
 * @param {Row} last
 * @param {SeriesEstimate} found
 * @param {Measure} measure
 */
function numberRows(last, { dates, changes }, measure) {
  return dates.map(({ date, rows }) => {
    const row = rows?.find(({ value }) => value === last.value);
    const change = changes.find(({ later }) => later === date)?.rows.find(({ value }) => value === last.value);
    return tableRow(
      nameOf(last, measure),
      date,
      ...(row === undefined ? ["–", ""] : [measure.value(inside(row)), between(row, measure)]),
      ...(change === undefined
        ? ["", ""]
        : [measure.change(change.estimate), `${measure.change(change.low)} to ${measure.change(change.high)}`]),
    );
  });
}

/** @param {Measure} measure */
const changeCaption = ({ numeric }) => (numeric ? "Changes since the date before." : "Changes in percentage points.");
