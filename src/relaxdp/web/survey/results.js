/** What was learnt, for those who took part: what is published, once and for good. */

import { fieldsOf } from "../device/typed.js";
import { h, tableHead, tableRow } from "../kit/dom.js";
import { count, onLanguage, plainNumber } from "../kit/language.js";
import { part } from "./page.js";
import { word } from "./words.js";

/** @typedef {import("../device/address.js").CampaignAddress} CampaignAddress */
/** @typedef {{ address: CampaignAddress, offer: import("../device/offer.js").Offer }} Asked */
/** @typedef {{ value: string, estimate: number, low: number, high: number }} Row */
/** @typedef {{ people: number, numeric: boolean, rows: Row[] }} Found what is published of one question */

const MOST_ROWS = 20;
/** It is published within seconds, or never. */
const MOST_TRIES = 10;

/** Read as everything that comes from a server: what is not as it should be is left out. */
export class ResultsView {
  /** @type {Map<string, Found>} */
  #found = new Map();
  /** @type {Asked[]} */
  #shown = [];
  #tries = 0;

  constructor() {
    onLanguage(() => this.#say());
  }

  /**
   * Show what is published, or that it comes; the server is asked until it is there.
   *
   * @param {Asked[]} asked what has ended; several questions are told apart by what was asked
   * @param {(address: CampaignAddress, names: string[]) => Promise<unknown>} ask
   * @returns {Promise<boolean>} whether there is nothing more to come
   */
  async show(asked, ask) {
    if (asked.length === 0) return true;
    this.#shown = asked;
    this.#tries += 1;
    for (const { address } of asked) {
      if (this.#found.has(String(address))) continue;
      try {
        const found = readPublication(await ask(address, ["published"]));
        if (found !== null) this.#found.set(String(address), found);
      } catch {
        // Not published, or not yet, or nobody answers: one sentence says all of it.
      }
    }
    this.#say();
    return asked.every(({ address }) => this.#found.has(String(address))) || this.#tries >= MOST_TRIES;
  }

  #say() {
    if (this.#shown.length === 0) return;
    part("results").hidden = false;
    part("results-text").replaceChildren(
      ...this.#shown.flatMap(({ address, offer }) => {
        const found = this.#found.get(String(address));
        const title = this.#shown.length > 1 ? h("h3", { dir: "auto" }, offer.question) : "";
        return [title, ...(found === undefined ? [h("p", {}, word("results.later"))] : partsOf(found, address))];
      }),
    );
  }
}

/**
 * @param {Found} found
 * @param {CampaignAddress} address
 */
function partsOf({ people, numeric, rows }, { server, id }) {
  const largest = [...rows].sort((one, other) => other.estimate - one.estimate).slice(0, MOST_ROWS);
  const shown = (/** @type {number} */ number) => (numeric ? shortened(number) : percent(number));
  const lines = largest.map(({ value, estimate, low, high }) =>
    tableRow(
      h("span", { dir: "auto" }, numeric ? word("results.mean") : value),
      shown(estimate),
      word("results.range", { low: shown(low), high: shown(high) }),
    ),
  );
  const all = rows.length;
  return [
    h("p", {}, word("results.lead", { number: people })),
    h(
      "table",
      {},
      tableHead(word("results.answer"), word(numeric ? "results.mean" : "results.share"), word("results.between")),
      h("tbody", {}, ...lines),
    ),
    h("p", { class: "small" }, word("results.sure")),
    all > MOST_ROWS ? h("p", { class: "small" }, word("results.largest", { shown: MOST_ROWS, all })) : "",
    h("p", {}, h("a", { href: `${server}/published/${id}` }, word("results.more"))),
  ];
}

/** @param {number} share a share below none or above all is an accident of chance */
const percent = (share) => count(Math.min(1, Math.max(0, share)), { style: "percent", maximumFractionDigits: 1 });

/** @param {number} number */
const shortened = (number) => plainNumber(Number(number.toPrecision(4)));

/** @param {unknown} content */
function readPublication(content) {
  const { devices, rows, encoding } = fieldsOf(content);
  if (!Number.isSafeInteger(devices) || !Array.isArray(rows)) return null;
  const read = rows.map(fieldsOf).map(({ value, estimate, low, high }) => ({
    value: String(value),
    estimate: Number(estimate),
    low: Number(low),
    high: Number(high),
  }));
  const sound = read.every(({ estimate, low, high }) => [estimate, low, high].every(Number.isFinite));
  return sound ? { people: Number(devices), numeric: fieldsOf(encoding).range !== undefined, rows: read } : null;
}
