/** Surveys of several questions: results side by side, and tables of questions that are counted together. */

import { follow } from "../kit/api.js";
import { attempt, confirmed, h, s, tableHead } from "../kit/dom.js";
import { Problem } from "../kit/problem.js";
import { measureOf, plural, whole } from "../kit/words.js";
import { invitationsPart } from "./controls.js";
import { severalAddress, sharePart } from "./share.js";
import { isReadable, needsPeople, STATES, tooFew } from "./words.js";

/** @typedef {import("../kit/api.js").Api} Api */
/** @typedef {import("../kit/wire.d.ts").OperatorSurvey} OperatorSurvey */
/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */
/** @typedef {import("../kit/wire.d.ts").SurveyEstimate} SurveyEstimate */
/** @typedef {import("../kit/wire.d.ts").SurveyQuestion} SurveyQuestion */
/** @typedef {import("../kit/wire.d.ts").TwoWay} TwoWay */
/** @typedef {import("../kit/wire.d.ts").Cell} Cell */

const MOST_SHOWN = 20;
/** Cells that are known less well than to within so much of the whole say nothing. */
const WIDEST_CELL = 0.15;

/**
 * @param {Api} api
 * @param {HTMLElement} main
 * @param {string} name
 * @param {{ signal: AbortSignal, fail: (problem: unknown) => void }} page
 */
export async function showSurvey(api, main, name, { signal, fail }) {
  const place = h("div", { class: "questions" });
  const tables = h("div", {});
  const wrong = h("div", {});
  const address = severalAddress(name);
  const path = `surveys/${encodeURIComponent(name)}`;
  const { questions, about } = await surveyNamed(api, name);
  if (signal.aborted) return;
  const step = (/** @type {string} */ verb) => attempt(wrong, () => api.ask("POST", `${path}/${verb}`).then(look));
  const fresh = questions.every(needsPeople); // then there is one thing to do
  const invited = questions.some(({ needs_invitation: needed }) => needed);
  const people = questions.every(({ state }) => state === "finished")
    ? []
    : [
        sharePart({ id: name, needs_invitation: invited }, address),
        invited ? invitationsPart(api, path, name, address) : "",
      ];
  main.replaceChildren(
    h("p", { class: "row small" }, h("a", { href: "#" }, "All campaigns")),
    h("h1", { tabindex: -1 }, about ?? name),
    h("p", {}, `${plural(questions.length, "question")}. People set one limit for all of them.`),
    h(
      "div",
      { class: "row steps" },
      h("button", { type: "button", onclick: () => relax(step) }, "Relax all questions …"),
      h("button", { type: "button", onclick: () => finish(step) }, "End all questions …"),
    ),
    wrong,
    ...(fresh ? people : []),
    place,
    tables,
    ...(fresh ? [] : people),
  );
  const receive = async (/** @type {SurveyEstimate} */ found) => {
    const survey = await surveyNamed(api, name);
    const campaigns = new Map(survey.questions.map((each) => [each.id, each]));
    place.replaceChildren(...found.questions.map((each) => questionCard(each, campaigns.get(each.campaign))));
    tables.replaceChildren(...found.tables.map((table) => tableCard(table, found)));
  };
  const look = follow(api, `${path}/estimate?largest=${MOST_SHOWN}`, { receive, linked: () => {}, fail, signal });
}

/**
 * @param {Api} api
 * @param {string} name
 * @returns {Promise<OperatorSurvey>}
 */
async function surveyNamed(api, name) {
  /** @type {import("../kit/wire.d.ts").Surveys} */
  const { surveys } = await api.ask("GET", "surveys");
  const survey = surveys.find(({ id }) => id === name);
  if (survey === undefined) throw new Problem("There is no such survey.", { status: 404 });
  return survey;
}

/** @param {(verb: string) => Promise<unknown>} step */
async function relax(step) {
  const text = [
    "Each question that has a next level opens it. People’s own limits still hold. It cannot be closed again.",
  ];
  if (await confirmed({ title: "Open the next level of all questions?", text, yes: "Relax", danger: false })) {
    await step("relax");
  }
}

/** @param {(verb: string) => Promise<unknown>} step */
async function finish(step) {
  const text = ["No reports are taken any more, and devices erase their answers. Ended by hand, nothing is published."];
  if (await confirmed({ title: "End all questions?", text, yes: "End" })) await step("finish");
}

/**
 * @param {SurveyQuestion} question
 * @param {Campaign | undefined} campaign
 */
function questionCard({ campaign: id, question, state, epsilon, devices, rows, values }, campaign) {
  const measure = measureOf(campaign?.encoding ?? null);
  const few = rows === null || campaign === undefined || isReadable(campaign) ? null : tooFew(campaign);
  const shown = few === null ? (rows ?? []) : [];
  const [low, high] = measure.numeric ? rangeOf(campaign) : [0, 1];
  const body = shown.map((row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", class: "wrapped" }, measure.numeric ? "Mean" : String(row.value)),
      h("td", {}, measure.value(Math.min(high, Math.max(low, row.estimate)))),
      h("td", {}, intervalBar(row, low, high), h("span", { class: "small muted" }, measure.between(row.low, row.high))),
    ),
  );
  const most = shown.length < values ? ` The largest ${whole(shown.length)} of ${whole(values)}.` : "";
  return h(
    "section",
    { class: "card" },
    h("h2", {}, h("a", { href: `#campaign/${id}` }, question)),
    h(
      "p",
      { class: "small muted" },
      `${STATES[state]}${epsilon === null ? "" : `, ε ${epsilon}`}, ${plural(devices, "device")}.`,
    ),
    rows === null ? h("p", {}, "Nobody has answered yet.") : null,
    few === null ? null : h("p", {}, few),
    shown.length === 0
      ? null
      : h(
          "table",
          { class: "answer" },
          h("caption", {}, `Estimates with 95 % intervals.${most}`),
          tableHead(measure.numeric ? "Number" : "Answer", measure.numeric ? "Estimate" : "Share", ""),
          h("tbody", {}, ...body),
        ),
  );
}

/**
 * @param {Campaign | undefined} campaign
 * @returns {[number, number]}
 */
function rangeOf(campaign) {
  const range = /** @type {number[] | undefined} */ (campaign?.encoding.range);
  return range === undefined ? [0, 1] : [range[0], range[1]];
}

/**
 * @param {{ estimate: number, low: number, high: number }} row
 * @param {number} low
 * @param {number} high
 */
function intervalBar(row, low, high) {
  const at = (/** @type {number} */ x) => 100 * Math.min(1, Math.max(0, (x - low) / (high - low)));
  return s(
    "svg",
    { class: "spread", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "all", x: 0, y: 4, width: 100, height: 2 }),
    s("rect", { class: "within", x: at(row.low), y: 2, width: Math.max(0.5, at(row.high) - at(row.low)), height: 6 }),
    s("rect", { class: "at", x: Math.min(99.2, at(row.estimate)), y: 0, width: 0.8, height: 10 }),
  );
}

/**
 * @param {TwoWay} table
 * @param {SurveyEstimate} found
 */
function tableCard({ rows, columns, devices, cells }, { questions }) {
  const named = (/** @type {string} */ id) => questions.find(({ campaign }) => campaign === id)?.question ?? id;
  const title = `${named(rows)} (rows) by ${named(columns)} (columns)`;
  const width = Math.max(0, ...(cells ?? []).map(({ low, high }) => (high - low) / 2));
  const measure = measureOf({});
  return h(
    "section",
    { class: "card", "aria-label": title },
    h("h2", {}, title),
    h(
      "p",
      { class: "small muted" },
      `Counted together, as the survey told people beforehand. Shares of the ${plural(devices, "device")} that answered ` +
        "both, with 95 % intervals of each cell.",
    ),
    cells === null
      ? h("p", {}, "Nobody has answered both yet.")
      : width > WIDEST_CELL
        ? h("p", {}, `Too few reports yet: the cells are known to ${measure.width(width)} only.`)
        : crossTable(cells, measure),
  );
}

/**
 * @param {Cell[]} cells row by row
 * @param {import("../kit/words.js").Measure} measure
 */
function crossTable(cells, measure) {
  const columns = [...new Set(cells.map(({ column }) => column))];
  const largest = Math.max(0.01, ...cells.map(({ estimate }) => estimate));
  const lines = Array.from({ length: cells.length / columns.length }, (_, place) =>
    cells.slice(place * columns.length, (place + 1) * columns.length),
  );
  const cellPart = (/** @type {Cell} */ cell) => {
    const shade = Math.round(8 * Math.min(1, Math.max(0, cell.estimate / largest)));
    return h(
      "td",
      { class: `number shade-${shade}` },
      h("div", {}, measure.value(Math.min(1, Math.max(0, cell.estimate)))),
      h("div", { class: "small" }, measure.between(cell.low, cell.high)),
    );
  };
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows and columns" },
    h(
      "table",
      { class: "two-way" },
      tableHead("", ...columns.map(String)),
      h(
        "tbody",
        {},
        ...lines.map((line) => h("tr", {}, h("th", { scope: "row" }, String(line[0].row)), ...line.map(cellPart))),
      ),
    ),
  );
}
