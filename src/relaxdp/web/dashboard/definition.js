/** From what a person typed to a campaign's definition, with a sentence for whatever cannot be meant. */

import { DECIMAL, NAME, splitLevels, textOf } from "../kit/form.js";

const NUMBER = /^[-+]?[0-9]+(\.[0-9]+)?$/;
const MOST_DEVICES = 1e15;
export const INTRODUCTION = /** @type {const} */ ([
  "asker",
  "about",
  "purpose",
  "contact",
  "privacy_notice",
  "logo",
  "suggested",
]);

/**
 * Return the answers, one for each line that is not empty.
 *
 * @param {FormData} data
 */
export const valuesOf = (data) =>
  textOf(data, "values")
    .split("\n")
    .map((line) => line.trim().normalize("NFC"))
    .filter((line) => line !== "");

/**
 * Return the epsilons as they were written.
 *
 * @param {FormData} data
 */
export const levelsOf = (data) => splitLevels(textOf(data, "levels"));

/**
 * Return a sentence for each field that has to be changed. The service checks everything again.
 *
 * @param {FormData} data
 * @returns {import("../kit/form.js").Wrong}
 */
export function wrongDefinition(data) {
  /** @type {import("../kit/form.js").Wrong} */
  const wrong = { ...wrongPlan(data) };
  if (textOf(data, "question") === "") wrong.question = "A campaign needs a question.";
  if (textOf(data, "id") !== "" && !NAME.test(textOf(data, "id")))
    wrong.id = "Small letters, digits and hyphens, at most 64.";
  if (data.get("advance") === "devices" && !isCount(textOf(data, "devices")))
    wrong.devices = "A whole number, from 1 on.";
  const closes = textOf(data, "closes");
  if (closes !== "" && new Date(closes) <= new Date()) wrong.closes = "This has passed already.";
  const notice = textOf(data, "privacy_notice");
  if (/^[a-z][a-z0-9+.-]*:\S*$/i.test(notice) && !/^https:\/\/[^/@\s]+/i.test(notice))
    wrong.privacy_notice = "An address that begins with https://, or the notice itself.";
  if (data.has("publish")) Object.assign(wrong, wrongPublication(data));
  return wrong;
}

/**
 * @param {FormData} data of a campaign that is to be published
 * @returns {import("../kit/form.js").Wrong}
 */
function wrongPublication(data) {
  /** @type {import("../kit/form.js").Wrong} */
  const wrong = {};
  if (textOf(data, "closes") === "" && textOf(data, "half_width") === "")
    wrong.closes = "What is published ends by itself: say when it closes, or above how precise is enough.";
  if (!isCount(textOf(data, "least")) || Number(textOf(data, "least")) < 2) wrong.least = "A whole number, from 2 on.";
  else if (data.get("advance") !== "devices" && levelsOf(data).length > 1)
    wrong.least =
      "Nobody relaxes what is published by hand: choose above that it relaxes by itself, or only one level.";
  return wrong;
}

/**
 * The same for what the advice depends on.
 *
 * @param {FormData} data
 * @returns {import("../kit/form.js").Wrong}
 */
export function wrongPlan(data) {
  /** @type {import("../kit/form.js").Wrong} */
  const wrong = {};
  const levels = levelsOf(data);
  if (levels.length === 0) wrong.levels = "At least one level is needed, like 0.5.";
  else if (!levels.every((level) => DECIMAL.test(level) && Number(level) > 0))
    wrong.levels = "Levels are numbers above 0 with commas between them, like 0.25, 0.5, 1.";
  else if (levels.some((level, place) => place > 0 && Number(level) <= Number(levels[place - 1])))
    wrong.levels = "Each level must be larger than the one before: a report cannot be taken back.";
  if (data.get("kind") === "number") {
    const [low, high] = [textOf(data, "low"), textOf(data, "high")];
    if (!NUMBER.test(low)) wrong.low = "A number, like 0.";
    if (!NUMBER.test(high)) wrong.high = "A number, like 100.";
    else if (NUMBER.test(low) && Number(high) <= Number(low)) wrong.high = "This must be larger than the smallest.";
  } else {
    const values = valuesOf(data);
    if (values.length < 2) wrong.values = "At least two answers are needed, each on a line of its own.";
    else if (new Set(values).size < values.length) wrong.values = "An answer is listed twice.";
  }
  for (const [key, written] of data)
    if (key.startsWith(optionField(encodingChosen(data), "")) && written !== "" && !isCount(String(written)))
      wrong[key] = "A whole number, or nothing.";
  const width = textOf(data, "half_width");
  const most = data.get("kind") === "number" ? (Number(textOf(data, "high")) - Number(textOf(data, "low"))) / 2 : 50;
  if (width !== "" && !(DECIMAL.test(width) && Number(width) > 0)) wrong.half_width = "A number above 0, or nothing.";
  else if (width !== "" && Number(width) >= most)
    wrong.half_width = `Less than ${most}: that would be knowing nothing.`;
  if (!isCount(textOf(data, "expected"))) wrong.expected = "A whole number, from 1 on.";
  return wrong;
}

/**
 * Return what is asked of the planner.
 *
 * @param {FormData} data
 */
export function planOf(data) {
  return {
    encoding: encodingOf(data),
    levels: levelsOf(data).map((epsilon) => ({ epsilon })),
    devices: Number(textOf(data, "expected")),
    ...targetOf(data),
  };
}

/**
 * Return the campaign that is created.
 *
 * @param {FormData} data
 */
export function definitionOf(data) {
  /** @type {Record<string, unknown>} */
  const definition = {
    question: textOf(data, "question"),
    encoding: encodingOf(data),
    levels: levelsOf(data).map((epsilon) => ({ epsilon })),
    ...targetOf(data),
    invitations: data.has("invitations"),
  };
  if (textOf(data, "id") !== "") definition.id = textOf(data, "id");
  if (data.get("advance") === "devices") definition.devices = Number(textOf(data, "devices"));
  if (textOf(data, "closes") !== "") definition.closes = new Date(textOf(data, "closes")).toISOString();
  for (const name of INTRODUCTION) if (textOf(data, name) !== "") definition[name] = textOf(data, name);
  if (data.has("coloured")) definition.colour = textOf(data, "colour");
  if (data.has("publish")) {
    definition.publish = { least: Number(textOf(data, "least")) };
    definition.shows_results = data.has("shows_results");
  }
  return definition;
}

/**
 * The name under which a form asks for an option of an encoding.
 *
 * @param {string} encoding
 * @param {string} option
 */
export const optionField = (encoding, option) => `option-${encoding}-${option}`;

/**
 * Return the encoding that is chosen for the kind of answer that is.
 *
 * @param {FormData} data
 */
export const encodingChosen = (data) => textOf(data, `encoding-${data.get("kind")}`);

/** @param {FormData} data */
function encodingOf(data) {
  const name = encodingChosen(data);
  const first = optionField(name, "");
  /** @type {Record<string, number>} */
  const options = {};
  for (const [key, written] of data)
    if (key.startsWith(first) && written !== "") options[key.slice(first.length)] = Number(written);
  if (data.get("kind") === "number")
    return { name, options, range: [Number(textOf(data, "low")), Number(textOf(data, "high"))] };
  return { name, options, values: valuesOf(data) };
}

/** @param {FormData} data */
function targetOf(data) {
  const width = textOf(data, "half_width");
  if (width === "") return {};
  const shares = data.get("kind") !== "number";
  return {
    target: {
      half_width: Number(width) / (shares ? 100 : 1),
      confidence_level: Number(textOf(data, "confidence")) / 100,
    },
  };
}

/**
 * Return what the form says of a campaign, by the names of its fields.
 *
 * @param {import("../kit/wire.d.ts").OperatorCampaign} campaign
 * @returns {Record<string, string>}
 */
export function fieldsOf(campaign) {
  const { question, encoding, levels, target, automatic_devices: devices, devices: seen } = campaign;
  const kind = encoding.range === undefined ? "choice" : "number";
  const options = Object.entries(encoding.options).map(([name, value]) => [
    optionField(encoding.name, name),
    `${value}`,
  ]);
  return {
    question,
    kind,
    values: (encoding.values ?? []).join("\n"),
    low: String(encoding.range?.[0] ?? ""),
    high: String(encoding.range?.[1] ?? ""),
    levels: levels.map(({ epsilon }) => epsilon).join(", "),
    expected: seen.total > 0 ? String(seen.total) : "10000",
    half_width:
      target === null ? "" : String(Number((target.half_width * (kind === "choice" ? 100 : 1)).toPrecision(12))),
    confidence: String(Math.round(100 * (target?.confidence_level ?? 0.95))),
    advance: devices === null ? "operator" : "devices",
    devices: devices === null ? "" : String(devices),
    [`encoding-${kind}`]: encoding.name,
    ...Object.fromEntries(options),
    ...Object.fromEntries(INTRODUCTION.map((name) => [name, campaign[name] ?? ""])),
    coloured: campaign.colour ? "on" : "",
    ...(campaign.colour ? { colour: campaign.colour } : {}),
    invitations: campaign.needs_invitation ? "on" : "",
    publish: campaign.publish === null ? "" : "on",
    ...(campaign.publish === null ? {} : { least: String(campaign.publish.least) }),
    shows_results: campaign.shows_results ? "on" : "",
  };
}

/**
 * Tell whether the form could have made a campaign: it knows answers that are text, and ranges.
 *
 * @param {import("../kit/wire.d.ts").OperatorCampaign} campaign
 */
export const isFormed = ({ encoding }) =>
  encoding.range !== undefined || (encoding.values ?? [1]).every((value) => typeof value === "string");

/** @param {string} text */
const isCount = (text) => /^[0-9]+$/.test(text) && Number(text) >= 1 && Number(text) <= MOST_DEVICES;
