/** The parts of a campaign's page that change with every report. Each is drawn once and then kept current. */

import { h } from "../kit/dom.js";
import { whole } from "../kit/words.js";
import { horizontalInterval, lyingBar, panel, scaleOf } from "./charts.js";
import { between, inside } from "./words.js";

/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {import("./charts.js").Row} Row */

/**
 * What is known now: one row for each value, or for the mean.
 *
 * @param {Measure} measure
 */
export function answerPart(measure) {
  const body = h("tbody", {});
  const caption = h("caption", {}, "Nothing is known before the first report.");
  const rest = h("p", { class: "small muted" });
  const heads = [measure.numeric ? "Mean" : "Answer", measure.numeric ? "Estimate" : "Share", ""];
  const head = heads.map((each) => (each ? h("th", { scope: "col" }, each) : h("td", { "aria-hidden": "true" })));
  const element = h(
    "section",
    { class: "card" },
    h("h2", {}, "What is known now"),
    h("table", { class: "answer" }, caption, h("thead", {}, h("tr", {}, ...head)), body),
    rest,
  );

  /** @param {any} found the estimate */
  function update(found) {
    if (found.pooled === null) return;
    /** @type {Row[]} */
    const rows = found.pooled;
    const scale = scaleOf(rows, measure);
    const sure = `${whole(100 * found.confidence_level)} %`;
    const weights = found.method === "precision" ? "the more precise ones counting more" : "each counting alike";
    caption.textContent = `Estimates from ${whole(found.devices)} devices, ${weights}, with ${sure} intervals${kindOf(found, measure)}.`;
    body.replaceChildren(
      ...rows.map((row) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, named(row, measure)),
          h(
            "td",
            {},
            h("span", { class: "estimate" }, measure.value(inside(row))),
            h("span", { class: "hint" }, between(row, measure)),
          ),
          h("td", { class: "picture" }, horizontalInterval(row, scale)),
        ),
      ),
    );
    rest.textContent =
      rows.length < found.values
        ? `These are the ${rows.length} most frequent of ${whole(found.values)}; the exported estimates have all. They were chosen by their estimates, so their intervals hold for all ${whole(found.values)} answers at once.`
        : "";
  }
  return { element, update };
}

/** How many devices stand at each level. The table is the chart. */
export function levelsPart() {
  const body = h("tbody", {});
  const heads = ["ε", "Devices", "Reports"].map((each) => h("th", { scope: "col" }, each));
  const table = h(
    "table",
    { class: "levels" },
    h("caption", {}, "A device counts at the highest level that it has reported at."),
    h("thead", {}, h("tr", {}, ...heads, h("td", { "aria-hidden": "true" }))),
    body,
  );
  const element = h("section", { class: "card" }, h("h2", {}, "Devices at each level"), table);
  /** @type {number[]} */
  let reports = [];

  /**
   * @param {any} campaign
   * @param {any} told what each level told, where that is known
   */
  function update(campaign, told) {
    if (told !== null) reports = told.levels.map((/** @type {any} */ level) => level.devices);
    const numbers = campaign.devices.per_level;
    const largest = Math.max(1, ...numbers);
    body.replaceChildren(
      ...campaign.levels.map((/** @type {any} */ level, /** @type {number} */ place) => {
        const open = campaign.open_level !== null && place <= campaign.open_level;
        return h(
          "tr",
          { class: open ? null : "shut" },
          h("th", { scope: "row" }, level.epsilon),
          h("td", {}, whole(numbers[place])),
          h("td", {}, reports[place] === undefined ? "–" : whole(reports[place])),
          h("td", { class: "picture" }, open ? lyingBar(numbers[place], largest) : "not open"),
        );
      }),
    );
  }
  return { element, update };
}

/**
 * How the answer became sharper: every value's intervals against epsilon, and the same as a table.
 *
 * @param {Measure} measure
 */
export function historyPart(measure) {
  const panels = h("ul", { class: "panels" });
  const note = h("p", { class: "small muted" }, "As soon as there are reports, this shows what each level told.");
  const body = h("tbody", {});
  const heads = ["ε", measure.numeric ? "Mean" : "Answer", "Estimate", "Low", "High", "Reports"].map((each) =>
    h("th", { scope: "col" }, each),
  );
  const table = h(
    "table",
    {},
    h("caption", {}, "What each level told, alone."),
    h("thead", {}, h("tr", {}, ...heads)),
    body,
  );
  const details = h(
    "details",
    {},
    h("summary", {}, "The same as a table"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Estimates of each level" }, table),
  );
  const element = h("section", { class: "card" }, h("h2", {}, "How the answer became sharper"), note, panels, details);

  /**
   * @param {any} campaign
   * @param {any} told null where the reports are gone
   * @param {any} found the pooled estimate
   */
  function update(campaign, told, found) {
    const levels = (told ?? found).levels;
    const rows = levels.flatMap((/** @type {any} */ level) => level.rows);
    if (rows.length === 0 || found.pooled === null) return;
    /** @type {Row[]} */
    const pooled = found.pooled;
    const shown = new Set(pooled.map((row) => row.value));
    const scale = scaleOf([...pooled, ...rows.filter((/** @type {Row} */ row) => shown.has(row.value))], measure);
    panels.replaceChildren(
      ...pooled.map((now) => {
        const points = levels.map((/** @type {any} */ level) => ({
          epsilon: level.epsilon,
          row: level.rows.find((/** @type {Row} */ row) => row.value === now.value),
        }));
        const name = named(now, measure);
        return h("li", {}, h("h3", {}, name), panel(name, points, now, scale, measure));
      }),
    );
    const from =
      told === null
        ? "The reports were reduced to counts: only what each device told last is left."
        : "Intervals from the reports at each ε alone. The band is what is known now, from every device’s last report.";
    note.textContent = found.simultaneous
      ? `${from} All intervals hold for all ${whole(found.values)} answers at once.`
      : from;
    body.replaceChildren(
      ...levels.flatMap((/** @type {any} */ level) => level.rows.map((/** @type {Row} */ row) => tableRow(level, row))),
    );
  }

  /**
   * @param {any} level
   * @param {Row} row
   */
  function tableRow(level, row) {
    const cells = [
      named(row, measure),
      measure.value(inside(row)),
      measure.value(row.low),
      measure.value(row.high),
      whole(level.devices),
    ];
    return h("tr", {}, h("th", { scope: "row" }, level.epsilon), ...cells.map((cell) => h("td", {}, cell)));
  }
  return { element, update };
}

/**
 * Say which intervals these are.
 *
 * @param {any} found the estimate
 * @param {Measure} measure
 */
function kindOf(found, measure) {
  if (measure.numeric) return "";
  return found.simultaneous ? " that hold for all answers at once" : ", each for its answer alone";
}

/**
 * @param {Row} row
 * @param {Measure} measure
 */
const named = (row, measure) => (measure.numeric ? "mean" : String(row.value));
