/** The parts of a campaign's page that change with every report. Each is drawn once and then kept current. */

import { h, tableHead, tableRow } from "../kit/dom.js";
import { whole } from "../kit/words.js";
import { horizontalBar, horizontalInterval, intervalPanel, pointsText, scaleOf } from "./charts.js";
import { between, inside } from "./words.js";

/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {import("../kit/wire.d.ts").Estimate} Estimate */
/** @typedef {import("../kit/wire.d.ts").History} History */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").Row} Row */
/** @typedef {import("../kit/wire.d.ts").Quantile} Quantile */

const QUARTILES = new Map([
  [0.25, "lower quartile"],
  [0.5, "median"],
  [0.75, "upper quartile"],
]);

/**
 * What is known now: one row for each value, or for the mean and, where they are told, the quartiles.
 *
 * @param {Measure} measure
 */
export function answerPart(measure) {
  const body = h("tbody", {});
  const caption = h("caption", {}, "Nothing is known before the first report.");
  const rest = h("p", { class: "small muted" });
  const head = measure.numeric ? tableHead("Number", "Estimate", "") : tableHead("Answer", "Share", "");
  /** @type {Quantile[]} */
  let quartiles = [];
  const element = h(
    "section",
    { class: "card" },
    h("h2", {}, "What is known now"),
    h("table", { class: "answer" }, caption, head, body),
    rest,
  );

  /** @param {Estimate} estimate */
  function update(estimate) {
    if (estimate.pooled === null) return;
    const rows = estimate.pooled;
    const values = whole(estimate.values);
    if (estimate.quantiles !== null) quartiles = estimate.quantiles;
    /** @type {[string, Pick<Row, "estimate" | "low" | "high" | "beyond">][]} */
    const shown = rows.map((row) => [nameOf(row, measure), row]);
    shown.push(...quartiles.map((row) => /** @type {(typeof shown)[0]} */ ([quartileName(row), row])));
    const scale = scaleOf(
      shown.map(([, row]) => row),
      measure,
    );
    const sure = `${whole(100 * estimate.confidence_level)} %`;
    const weights = estimate.method === "precision" ? "the more precise ones counting more" : "each counting alike";
    caption.textContent = `Estimates from ${whole(estimate.devices)} devices, ${weights}, with ${sure} intervals${kindOf(estimate, measure)}.`;
    body.replaceChildren(
      ...shown.map(([name, row]) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, name),
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
      rows.length < estimate.values
        ? `These are the ${rows.length} most frequent of ${values}; the exported estimates have all. They were chosen by ` +
          `their estimates, so their intervals hold for all ${values} answers at once.`
        : "";
  }
  return { element, update };
}

/** @param {Quantile} quantile */
const quartileName = ({ probability }) => QUARTILES.get(probability) ?? `quantile ${probability}`;

/** How many devices stand at each level. The table is the chart. */
export function levelsPart() {
  const body = h("tbody", {});
  const table = h(
    "table",
    { class: "levels" },
    h("caption", {}, "A device counts at the highest level that it has reported at."),
    tableHead("ε", "Devices", "Reports", ""),
    body,
  );
  const element = h("section", { class: "card" }, h("h2", {}, "Devices at each level"), table);
  /** @type {number[]} */
  let reports = [];

  /**
   * @param {Campaign} campaign
   * @param {History | null} history what each level told, where that is known
   */
  function update(campaign, history) {
    if (history !== null) reports = history.levels.map(({ devices }) => devices);
    const numbers = campaign.devices.per_level;
    const largest = Math.max(1, ...numbers);
    const rows = campaign.levels.map(({ epsilon }, place) => {
      const open = campaign.open_level !== null && place <= campaign.open_level;
      return h(
        "tr",
        { class: open ? null : "shut" },
        h("th", { scope: "row" }, epsilon),
        h("td", {}, whole(numbers[place])),
        h("td", {}, reports[place] === undefined ? "–" : whole(reports[place])),
        h("td", { class: "picture" }, open ? horizontalBar(numbers[place], largest) : "not open"),
      );
    });
    body.replaceChildren(...rows);
  }
  return { element, update };
}

/**
 * How the answer became sharper: every value's intervals against epsilon, and the same as a table.
 *
 * @param {Measure} measure
 */
export function historyPart(measure) {
  const { value } = measure;
  const panels = h("ul", { class: "panels" });
  const note = h("p", { class: "small muted" }, "As soon as there are reports, this shows what each level told.");
  const body = h("tbody", {});
  const head = tableHead("ε", measure.numeric ? "Mean" : "Answer", "Estimate", "Low", "High", "Reports");
  const table = h("table", {}, h("caption", {}, "What each level told, alone."), head, body);
  const details = h(
    "details",
    {},
    h("summary", {}, "The same as a table"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Estimates of each level" }, table),
  );
  const element = h("section", { class: "card" }, h("h2", {}, "How the answer became sharper"), note, panels, details);

  /**
   * @param {History | null} history null where the reports are gone
   * @param {Estimate} estimate
   */
  function update(history, estimate) {
    const { levels } = history ?? estimate;
    const { pooled } = estimate;
    const rows = levels.flatMap((level) => level.rows);
    if (rows.length === 0 || pooled === null) return;
    const shown = new Set(pooled.map((row) => row.value));
    const scale = scaleOf([...pooled, ...rows.filter((row) => shown.has(row.value))], measure);
    const pictures = pooled.map((now) => {
      const points = levels.map(({ epsilon, rows }) => ({
        at: epsilon,
        row: rows.find((row) => row.value === now.value),
      }));
      const name = nameOf(now, measure);
      const text = `${pointsText(name, "at epsilon", points, measure)}, now ${between(now, measure)}`;
      return h("li", {}, h("h3", {}, name), intervalPanel(text, points, { now, axis: "ε", scale, measure }));
    });
    panels.replaceChildren(...pictures);
    const from =
      history === null
        ? "The reports were reduced to counts: only what each device told last is left."
        : "Intervals from the reports at each ε alone. The band is what is known now, from every device’s last report.";
    const all = `All intervals hold for all ${whole(estimate.values)} answers at once.`;
    note.textContent = estimate.simultaneous ? `${from} ${all}` : from;
    const cells = levels.flatMap(({ epsilon, devices, rows }) =>
      rows.map((row) => [
        epsilon,
        nameOf(row, measure),
        ...[inside(row), row.low, row.high].map(value),
        whole(devices),
      ]),
    );
    body.replaceChildren(...cells.map(([epsilon, ...rest]) => tableRow(epsilon, ...rest)));
  }
  return { element, update };
}

/**
 * Say which intervals these are.
 *
 * @param {Estimate} estimate
 * @param {Measure} measure
 */
function kindOf({ simultaneous }, { numeric }) {
  if (numeric) return "";
  return simultaneous ? " that hold for all answers at once" : ", each for its answer alone";
}

/**
 * @param {Row} row
 * @param {Measure} measure
 */
export const nameOf = (row, measure) => (measure.numeric ? "mean" : String(row.value));
