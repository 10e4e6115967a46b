/** What a seller does in a pool: one report, a clearer one later, another least price. Everything goes through here. */

import { ZERO } from "../device/decimal.js";
import { Problem } from "../kit/problem.js";
import { PoolKeys, sentAt } from "./keys.js";
import { Pool, refused } from "./pool.js";

/** @typedef {import("../device/state.js").Sent} Sent */
/** @typedef {import("../kit/wire.d.ts").SellerListing} Sale */

/** @typedef {{ answer: unknown, epsilon: string, minimum: number }} Delivery an answer, the limit, the least price */

/**
 * How somebody stands in a pool.
 *
 * @typedef {object} Standing
 * @property {Sale | null} sale the pool as the market shows it to its member; null for whoever is none
 * @property {Sent[]} sent what this browser sent, or was about to send
 * @property {string} spent the largest level of it
 * @property {boolean} mine whether all that was delivered came from here: only then is the key here
 * @property {{ number: number, amount: import("../device/decimal.js").Amount }} others what the account's other pools cost
 */

export const ELSEWHERE =
  "The key of your report is not in this browser. To raise your limit or to change your least price, go where you " +
  "joined: to another browser, or to the command line with your key file. A new key would make a second report of " +
  "one answer, and what both tell adds up.";
/** @type {import("./keys.js").Known} */
const NOTHING_KEPT = { sent: [], spent: "0", others: { number: 0, amount: ZERO } };
const AGAIN = "If you ask again, give the same answer.";

export class Member {
  #api;
  #path;
  #keys;
  #startOver;

  /**
   * @param {{ api: import("../kit/api.js").Api, account: { name: string } | null }} session
   * @param {import("../kit/wire.d.ts").Listing} listing as it was shown: what is answered is what the person saw
   * @param {string} server
   * @param {{ startOver?: boolean }} [options] the person knows that keys were lost, and begins anew
   */
  constructor({ api, account }, listing, server, { startOver = false } = {}) {
    this.pool = Pool.of(listing, listing.id);
    this.#api = api;
    this.#path = `market/listings/${encodeURIComponent(listing.id)}`;
    this.#keys = new PoolKeys(server, String(account?.name));
    this.#startOver = startOver;
  }

  /**
   * @param {Sale | null} [sale] what the market said a moment ago
   * @returns {Promise<Standing>}
   */
  async look(sale) {
    const current = sale === undefined ? await saleOf(this.#api, this.pool.id) : sale;
    const memory = this.#startOver ? NOTHING_KEPT : await this.#keys.known(this.pool.id);
    const mine = (current?.delivered ?? []).every((level) => sentAt(memory.sent, level) !== undefined);
    return { sale: current, mine, ...memory };
  }

  /**
   * Join, or raise the limit; returns the pool as its member sees it.
   *
   * The market is asked first: an account that joined elsewhere must not get a second key, and no report leaves for a
   * pool that is closed or asks something else now.
   *
   * @param {Delivery} delivery
   * @returns {Promise<Sale>}
   */
  async deliver({ answer, epsilon, minimum }) {
    const [{ mine }, listing] = await Promise.all([this.look(), this.#api.ask("GET", this.#path)]);
    const now = Pool.of(listing, this.pool.id);
    if (!mine) throw refused("participation_error", ELSEWHERE);
    if (!now.open) throw refused("offer_error", "this pool is closed.");
    if (now.encoding.name !== this.pool.encoding.name || (await now.params()) !== (await this.pool.params())) {
      throw refused("values_changed_error", "the values of this pool (or their order) are not those that were shown.");
    }
    const sent = await this.#keys.write(this.pool, answer, epsilon, { startOver: this.#startOver });
    this.#startOver = false;
    void this.#keys.persist().catch(() => false);
    try {
      return await this.#send(sent, minimum);
    } catch (problem) {
      // What was sent has left, whatever came of it: another answer would be a second path.
      if (problem instanceof Problem) throw new Problem(`${problem.message} ${AGAIN}`, problem);
      throw problem;
    }
  }

  /**
   * Send the last report once more, the same one, with another least price.
   *
   * @param {number} minimum
   * @returns {Promise<Sale>}
   */
  async reprice(minimum) {
    const { sale, sent, mine } = await this.look();
    const level = sale?.delivered.at(-1);
    const last = level === undefined ? undefined : sentAt(sent, level);
    if (last === undefined || !mine) throw refused("participation_error", ELSEWHERE);
    return this.#send(last, minimum);
  }

  /**
   * @param {Sent} sent
   * @param {number} minimum
   * @returns {Promise<Sale>}
   */
  async #send({ epsilon, threshold, report }, minimum) {
    const level = { epsilon, threshold };
    const sale = await this.#api.ask("POST", `${this.#path}/reports`, { level, report, minimum });
    await this.#keys.arrived(this.pool, level);
    return sale;
  }
}

/**
 * Return a pool as its member sees it; null for whoever is none.
 *
 * @param {import("../kit/api.js").Api} api
 * @param {string} id
 * @returns {Promise<Sale | null>}
 */
export async function saleOf(api, id) {
  /** @type {import("../kit/wire.d.ts").Sales} */
  const { listings } = await api.ask("GET", "market/sales");
  return listings.find((each) => each.listing.id === id) ?? null;
}
