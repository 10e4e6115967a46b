/** A device: it holds a person's answers and keys, and sends reports up to the person's own limit and no further. */

import { CampaignAddress } from "./address.js";
import { Book } from "./book.js";
import { toHex } from "./bytes.js";
import { Client } from "./client.js";
import { Amount } from "./decimal.js";
import { RelaxdpError } from "./errors.js";
import { askOffer, now, Participation } from "./participation.js";
import { checkSame, consentTo } from "./rules.js";
import { amount, leftIn, recordOf, spentIn, withRecord } from "./state.js";
import { BrowserStorage } from "./storage.js";

const MOST_INVITATION = 200;

/**
 * What became of one campaign when all of them were asked.
 *
 * @typedef {object} Outcome
 * @property {Participation} participation
 * @property {import("./state.js").Sent | null} sent the report that the server has now
 * @property {RelaxdpError | null} problem
 */

/**
 * All campaigns of one person in this browser, under one limit.
 *
 * The limit comes first: a limit that is chosen after the answer could depend on it, and would tell of it. Reports are
 * written down before they are sent, and are pure functions of what is kept: closed at any instant, open in two tabs or
 * asked twice, a device never has two reports for one level. Neither answers nor keys are ever shown or sent.
 */
export class Device {
  #book;
  #client;

  /**
   * Use `Device.open`.
   *
   * @param {Book} book
   * @param {Client} client
   */
  constructor(book, client) {
    this.#book = book;
    this.#client = client;
  }

  /**
   * Open this browser's device, or begin one, for which the person's limit must be known.
   *
   * Where something had been kept and is gone, this refuses (`device_file_error`, with `fields.reason`): a second
   * device must not begin in silence. `startOver` is for a person who was told.
   *
   * @param {{ limit?: string | null, storage?: import("./storage.js").DeviceStorage, client?: Client,
   *           startOver?: boolean }} [options]
   */
  static async open({ limit = null, storage = new BrowserStorage(), client = new Client(), startOver = false } = {}) {
    const wanted = limit === null ? null : asLimit(limit);
    const book = new Book(storage);
    const kept = await book.begin(wanted, startOver);
    if (wanted !== null && wanted !== kept.limit) {
      throw new RelaxdpError(
        "budget_error",
        `this device has a limit of ${kept.limit} already, and ${wanted} was given. Opening it does not change it; ` +
          "changeLimit does. Nothing was changed.",
        { limit: kept.limit, given: wanted },
      );
    }
    return new Device(book, client);
  }

  /**
   * The most that all campaigns together may cost, what they have cost so far, and what may still be spent.
   *
   * @returns {Promise<{ limit: string, spent: string, left: string }>}
   */
  async balance() {
    const state = await this.#book.state();
    return { limit: state.limit, spent: String(spentIn(state)), left: String(leftIn(state)) };
  }

  /**
   * Set another limit, never below what was spent. Whether and how must not depend on an answer.
   *
   * @param {string} limit
   */
  async changeLimit(limit) {
    const wanted = asLimit(limit);
    await this.#book.change((state) => {
      const spent = spentIn(state);
      if (amount(wanted).compare(spent) < 0) {
        throw new RelaxdpError(
          "budget_error",
          `${spent} was spent already and cannot be taken back, so the limit cannot be ${wanted}. Nothing was changed.`,
          { spent: String(spent), limit: wanted },
        );
      }
      return { ...state, limit: wanted, revision: state.revision + 1 };
    });
  }

  /**
   * Join a campaign by its address, agreeing to its largest epsilon or to less (`upto`). Nothing is sent yet.
   *
   * Whoever has joined already gets the same pseudonym and key: to join twice is to join once.
   *
   * @param {string} campaign
   * @param {{ upto?: string | null, invitation?: string | null }} [options]
   */
  async join(campaign, { upto = null, invitation = null } = {}) {
    const address = this.#address(campaign);
    const agreed = upto === null ? null : Amount.parse(upto);
    const invited = typeof invitation === "string" && invitation !== "" && invitation.length <= MOST_INVITATION;
    if (invitation !== null && !invited) {
      throw new RelaxdpError(
        "participation_error",
        `an invitation is text of at most ${MOST_INVITATION} letters. Nothing was sent.`,
      );
    }
    const offer = await askOffer(this.#client, address);
    await this.#book.change((state) => {
      const record = recordOf(state, String(address));
      const consent = String(consentTo(offer, agreed));
      if (record === undefined) {
        return withRecord(state, {
          address: String(address),
          question: offer.question,
          encoding: offer.encoding.name,
          params: offer.params,
          device: random(16),
          key: random(32),
          consent,
          joined: now(),
          answer: null,
          answered: null,
          invitation,
          sent: [],
          ended: null,
          series: offer.series,
        });
      }
      checkSame(record, offer);
      if (agreed !== null && consent !== record.consent) {
        throw new RelaxdpError(
          "consent_error",
          `this campaign was joined up to an epsilon of ${record.consent} already. Nothing was changed.`,
          { consent: record.consent },
        );
      }
      if (invitation === null || record.invitation === invitation || record.ended !== null) return state;
      return withRecord(state, { ...record, invitation });
    });
    return new Participation(this.#book, this.#client, address, offer);
  }

  /**
   * Every campaign that was ever joined.
   *
   * @returns {Promise<Participation[]>}
   */
  async campaigns() {
    const { campaigns } = await this.#book.state();
    return campaigns.map(({ address }) => new Participation(this.#book, this.#client, this.#address(address)));
  }

  /**
   * Report to every campaign that goes on. One that fails does not keep the others from their reports.
   *
   * @returns {Promise<Outcome[]>}
   */
  async sync() {
    /** @type {Outcome[]} */
    const outcomes = [];
    for (const participation of await this.campaigns()) {
      const { ended, answered } = await participation.details();
      /** @type {Outcome} */
      const outcome = { participation, sent: null, problem: null };
      try {
        if (ended === "withdrawing") await participation.withdraw();
        else if (ended === null && answered) outcome.sent = await participation.report();
        else continue;
      } catch (problem) {
        if (!(problem instanceof RelaxdpError)) throw problem;
        outcome.problem = problem;
      }
      outcomes.push(outcome);
    }
    return outcomes;
  }

  /** @param {string} text */
  #address(text) {
    return CampaignAddress.parse(text, { allowHttp: this.#client.allowHttp });
  }
}

/** @param {string} limit */
function asLimit(limit) {
  return String(Amount.parse(limit, "a limit", "budget_error"));
}

/** @param {number} bytes */
function random(bytes) {
  return toHex(crypto.getRandomValues(new Uint8Array(bytes)));
}
