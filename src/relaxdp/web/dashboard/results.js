/** The parts of a campaign's page that change with every report. Each is drawn once and then kept current. */

import { h, tableHead, tableRow } from "../kit/dom.js";
import { plural, whole } from "../kit/words.js";
import { horizontalAxis, horizontalBar, horizontalInterval, intervalPanel, pointsText, scaleOf } from "./charts.js";
import { between, inside, isReadable, tooFew } from "./words.js";

/** @typedef {import("../kit/words.js").Measure} Measure */
/** @typedef {import("../kit/wire.d.ts").Estimate} Estimate */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").Row} Row */
/** @typedef {import("../kit/wire.d.ts").Quantile} Quantile */

const QUANTILES = "0?[.]\\d*[1-9]\\d*( *, *0?[.]\\d*[1-9]\\d*)*";
const QUARTILES = new Map([
  [0.25, "lower quartile"],
  [0.5, "median"],
  [0.75, "upper quartile"],
]);

/**
 * What is known now: one row for each value, or for the mean and, where they are told, quantiles. Before an interval
 * says something there are none: their middles would be chance.
 *
 * @param {Measure} measure
 * @param {(quantiles: string) => unknown} askFor
 */
export function answerPart(measure, askFor) {
  const body = h("tbody", {});
  const caption = h("caption", {});
  const rest = h("p", { class: "small muted" });
  const few = h("p", {});
  const head = measure.numeric ? tableHead("Number", "Estimate", "") : tableHead("Answer", "Share", "");
  const foot = h("td", { class: "picture" });
  const table = h(
    "table",
    { class: "answer", hidden: true },
    caption,
    head,
    body,
    h("tfoot", { "aria-hidden": "true" }, h("tr", {}, h("td", {}), h("td", {}), foot)),
  );
  const quantiles = h("input", { value: "0.25, 0.5, 0.75", pattern: QUANTILES, required: true, maxlength: 200 });
  quantiles.onchange = () => quantiles.reportValidity() && askFor(quantiles.value.replaceAll(" ", ""));
  const choice = h("label", { class: "small", hidden: true }, "Quantiles ", quantiles);
  const element = h("section", { class: "card" }, h("h2", {}, "What is known now"), few, table, rest, choice);

  /**
   * @param {Estimate} estimate
   * @param {Campaign} campaign
   */
  function update(estimate, campaign) {
    if (estimate.pooled === null) return;
    const tells = isReadable({ half_width: estimate.half_width, readable: campaign.readable });
    few.textContent = tells ? "" : tooFew(campaign);
    few.hidden = tells;
    table.hidden = !tells;
    rest.hidden = !tells;
    choice.hidden = !tells || estimate.quantiles === null;
    if (!tells) return;
    const rows = estimate.pooled;
    const values = whole(estimate.values);
    /** @type {[string, Pick<Row, "estimate" | "low" | "high" | "beyond">][]} */
    const shown = rows.map((row) => [nameOf(row, measure), row]);
    shown.push(...(estimate.quantiles ?? []).map((row) => /** @type {(typeof shown)[0]} */ ([quartileName(row), row])));
    const scale = scaleOf(
      shown.map(([, row]) => row),
      measure,
    );
    const sure = `${whole(100 * estimate.confidence_level)} %`;
    const weights = estimate.method === "precision" ? "the more precise ones counting more" : "each counting alike";
    caption.textContent = `From ${plural(estimate.devices, "device")}, ${weights}, with ${sure} intervals${kindOf(estimate, measure)}.`;
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
            h("span", { class: row.beyond === undefined ? "hint whole" : "hint" }, between(row, measure)),
          ),
          h("td", { class: "picture" }, horizontalInterval(row, scale)),
        ),
      ),
    );
    foot.replaceChildren(horizontalAxis(scale, measure));
    rest.textContent =
      rows.length < estimate.values
        ? `These are the ${rows.length} most frequent of ${values}; the exported estimates have all. They were chosen by ` +
          `their estimates, so their intervals hold for all ${values} answers at once.`
        : estimate.quantiles === null
          ? ""
          : `Intervals of quantiles cover at least ${sure}, mostly more: they assume nothing about the distribution.`;
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
    h("caption", {}, "A device is at the highest level that it has reported at; its earlier reports count as reports."),
    tableHead("ε", "Devices", "Reports", ""),
    body,
  );
  const element = h("section", { class: "card" }, h("h2", {}, "Devices at each level"), table);

  /** @param {Campaign} campaign */
  function update(campaign) {
    const { per_level: numbers, reports } = campaign.devices;
    const largest = Math.max(1, ...numbers);
    const rows = campaign.levels.map(({ epsilon }, place) => {
      const open = campaign.open_level !== null && place <= campaign.open_level;
      return h(
        "tr",
        { class: open ? null : "shut" },
        h("th", { scope: "row" }, epsilon),
        h("td", {}, whole(numbers[place])),
        h("td", {}, whole(reports[place])),
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
  const note = h("p", { class: "small muted" });
  const body = h("tbody", {});
  const head = tableHead("ε", measure.numeric ? "Mean" : "Answer", "Estimate", "Low", "High", "Reports");
  const table = h("table", {}, h("caption", {}, "What each level told, alone."), head, body);
  const details = h(
    "details",
    { hidden: true },
    h("summary", {}, "The same as a table"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Estimates of each level" }, table),
  );
  const title = h("h2", {}, "How the answer became sharper");
  const element = h("section", { class: "card", hidden: true }, title, note, panels, details);

  /**
   * @param {Estimate} estimate
   * @param {Campaign} campaign
   */
  function update(estimate, campaign) {
    const { pooled } = estimate;
    const levels = estimate.levels.map((level) => ({
      ...level,
      rows: level.rows.filter((row) => tellsSomething(row, campaign)),
    }));
    const rows = levels.flatMap((level) => level.rows);
    const tells = rows.length > 0 && pooled !== null;
    element.hidden = !tells;
    details.hidden = !tells;
    panels.hidden = !tells;
    if (!tells) return;
    const shown = new Set(pooled.map((row) => row.value));
    const scale = scaleOf(
      [...pooled.filter((row) => tellsSomething(row, campaign)), ...rows.filter((row) => shown.has(row.value))],
      measure,
    );
    const pictures = pooled.map((now) => {
      const points = levels.map(({ epsilon, rows }) => ({
        at: epsilon,
        row: rows.find((row) => row.value === now.value),
      }));
      const name = nameOf(now, measure);
      const known = tellsSomething(now, campaign) ? now : undefined;
      const last = known === undefined ? "" : `, now ${between(now, measure)}`;
      const text = `${pointsText(name, points, measure)}${last}`;
      const panel = intervalPanel(text, points, { now: known, scale, measure });
      return h("li", {}, h("h3", {}, name), panel);
    });
    panels.replaceChildren(...pictures);
    const from =
      "Each level alone: what its reports say. The band is what is known now, from every device’s last report. Point at a dot, or use the arrow keys, to read it.";
    const all = `All intervals hold for all ${whole(estimate.values)} answers at once.`;
    note.textContent = estimate.simultaneous ? `${from} ${all}` : from;
    const cells = levels.flatMap(({ epsilon, reports, rows }) =>
      rows.map((row) => [
        epsilon,
        nameOf(row, measure),
        ...[inside(row), row.low, row.high].map(value),
        whole(reports),
      ]),
    );
    body.replaceChildren(...cells.map(([epsilon, ...rest]) => tableRow(epsilon, ...rest)));
  }
  return { element, update };
}

/**
 * Tell whether an interval is worth drawing: narrower than half of all that could be.
 *
 * @param {Pick<Row, "low" | "high">} row
 * @param {Campaign} campaign
 */
function tellsSomething({ low, high }, { encoding }) {
  const [least, most] = encoding.range ?? [0, 1];
  return high - low < 0.5 * (most - least);
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
