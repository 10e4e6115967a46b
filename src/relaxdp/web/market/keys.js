/**
 * What this browser remembers of the pools that an account joined, in the way in which a device remembers its
 * campaigns: for each pool its key, a tag of the answer, and every report, written down before it leaves.
 *
 * All reports of a member are one path, and the path protects one answer. So another answer is refused, and so are
 * other values. The answer itself is not kept: it is asked for again where a report is made.
 */

import { Book } from "../device/book.js";
import { fromHex, toHex } from "../device/bytes.js";
import { most, ZERO } from "../device/decimal.js";
import { RelaxdpError } from "../device/errors.js";
import { now } from "../device/participation.js";
import { amount, recordOf, spentBy, spentIn, withRecord } from "../device/state.js";
import { BrowserStorage } from "../device/storage.js";
import { refused } from "./pool.js";

/** @typedef {import("./pool.js").Pool} Pool */
/** @typedef {import("./pool.js").Level} Level */
/** @typedef {import("../device/state.js").Sent} Sent */
/** @typedef {import("../device/state.js").State} State */
/** @typedef {import("../device/state.js").CampaignRecord} CampaignRecord its `answer` is the tag of the answer here */
/** @typedef {import("../device/decimal.js").Amount} Amount */
/** @typedef {{ sent: Sent[], spent: string, others: { number: number, amount: Amount } }} Known */

/** @type {State} what a browser keeps that never kept anything */
const NEVER = { limit: "0", revision: 0, campaigns: [] };

/** The keys of one account on one server; other accounts in the same browser have others. */
export class PoolKeys {
  #server;
  #storage;
  #book;

  /**
   * @param {string} server
   * @param {string} account
   * @param {import("../device/storage.js").DeviceStorage} [storage]
   */
  constructor(server, account, storage = new BrowserStorage(`relaxdp pools of ${account} at ${server}`)) {
    this.#server = server;
    this.#storage = storage;
    this.#book = new Book(storage);
  }

  /**
   * Return what was sent to a pool or was about to be, and what this pool and the account's others cost. Where
   * something had been kept and is gone, this refuses.
   *
   * @param {string} pool
   * @returns {Promise<Known>}
   */
  async known(pool) {
    const state = await this.#state();
    const record = recordOf(state, this.#address(pool));
    const spent = record === undefined ? ZERO : spentBy(record);
    const others = state.campaigns.length - (record === undefined ? 0 : 1);
    return {
      sent: record?.sent ?? [],
      spent: String(spent),
      others: { number: others, amount: spentIn(state).minus(spent) },
    };
  }

  /**
   * Return the report of an answer at a level. When this returns, the report and what the key was used for are durable.
   *
   * @param {Pool} pool
   * @param {unknown} answer
   * @param {string} epsilon
   * @param {{ startOver?: boolean }} [options] the person knows that keys were lost, and begins anew
   * @returns {Promise<Sent>}
   */
  async write(pool, answer, epsilon, { startOver = false } = {}) {
    const kept = pool.encoding.keep(answer);
    const level = pool.level(epsilon);
    await this.#book.begin(level.epsilon, startOver);
    const state = await this.#book.change(async (before) => {
      const record = recordOf(before, this.#address(pool.id)) ?? (await this.#begun(pool, kept, level));
      const key = fromHex(/** @type {string} */ (record.key));
      await checkSame(record, pool, await pool.tag(kept, key));
      if (sentAt(record.sent, level) !== undefined) return before;
      const report = await pool.report(kept, key, level);
      /** @type {Sent} */
      const sent = { ...level, report, time: now(), status: "written", cohort: null };
      return agreed(before, { ...record, sent: [...record.sent, sent] });
    });
    const record = /** @type {CampaignRecord} */ (recordOf(state, this.#address(pool.id)));
    return /** @type {Sent} */ (sentAt(record.sent, level));
  }

  /**
   * Write down that the market has a report.
   *
   * @param {Pool} pool
   * @param {Level} level
   */
  async arrived(pool, level) {
    await this.#book.change((state) => {
      const record = recordOf(state, this.#address(pool.id));
      const sent = sentAt(record?.sent ?? [], level);
      if (record === undefined || sent === undefined || sent.status === "sent") return state;
      /** @type {Sent} */
      const marked = { ...sent, status: "sent" };
      return agreed(state, { ...record, sent: record.sent.map((each) => (each === sent ? marked : each)) });
    });
  }

  /** Ask the browser not to clear the keys on its own when space is short. */
  async persist() {
    if (this.#storage instanceof BrowserStorage) await this.#storage.persist();
  }

  /** @returns {Promise<State>} */
  async #state() {
    try {
      return await this.#book.begin(null, false);
    } catch (problem) {
      if (problem instanceof RelaxdpError && problem.code === "budget_missing_error") return NEVER;
      throw problem;
    }
  }

  /**
   * @param {Pool} pool
   * @param {unknown} kept
   * @param {Level} level
   * @returns {Promise<CampaignRecord>}
   */
  async #begun(pool, kept, { epsilon }) {
    const key = crypto.getRandomValues(new Uint8Array(32));
    return {
      address: this.#address(pool.id),
      question: pool.title,
      encoding: pool.encoding.name,
      params: await pool.params(),
      device: toHex(crypto.getRandomValues(new Uint8Array(16))), // never sent: in a pool the market makes pseudonyms
      key: toHex(key),
      consent: epsilon,
      joined: now(),
      answer: await pool.tag(kept, key),
      answered: now(),
      invitation: null,
      sent: [],
      ended: null,
    };
  }

  /** @param {string} pool */
  #address(pool) {
    return `${this.#server}v1/market/listings/${pool}`;
  }
}

/**
 * @param {Sent[]} sent
 * @param {Level} level
 */
export function sentAt(sent, { epsilon, threshold }) {
  return sent.find((each) => each.epsilon === epsilon && each.threshold === threshold);
}

/**
 * Refuse what a key was not used for before: a second path, whose cost would be added.
 *
 * @param {CampaignRecord} record
 * @param {Pool} pool
 * @param {string} tag
 */
async function checkSame(record, pool, tag) {
  if (record.encoding !== pool.encoding.name || record.params !== (await pool.params())) {
    throw refused("values_changed_error", "the values of this pool (or their order) are not those that you answered.");
  }
  if (record.answer !== tag) {
    throw refused(
      "answer_changed_error",
      "this is another answer than the one that you gave in this pool before: that it changed would show.",
    );
  }
}

/**
 * Return the state in which one pool is as given. The limit is what the person agreed to in all pools together.
 *
 * @param {State} state
 * @param {CampaignRecord} record
 * @returns {State}
 */
function agreed(state, record) {
  const changed = withRecord(state, { ...record, consent: String(most(amount(record.consent), spentBy(record))) });
  return { ...changed, limit: String(spentIn(changed)) };
}
