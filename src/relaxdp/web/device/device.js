/** A device: it holds a person's answers and keys, and sends reports up to the person's own limit and no further. */

import { CampaignAddress, SurveyAddress } from "./address.js";
import { Book } from "./book.js";
import { toHex } from "./bytes.js";
import { Client } from "./client.js";
import { Amount } from "./decimal.js";
import { RelaxdpError } from "./errors.js";
import { askOffer, now, Participation } from "./participation.js";
import { checkSame, consentTo } from "./rules.js";
import { amount, leftIn, recordOf, spentIn, withRecord } from "./state.js";
import { BrowserStorage } from "./storage.js";
import { askSurvey, checkSome, divided, groupsOf } from "./survey.js";

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
 * The questions of a survey that a device joined.
 *
 * @typedef {object} Survey
 * @property {Participation[]} questions to be answered and reported one by one, in any order
 * @property {string[]} leftOut the questions that did not fit into the limit; they are not asked
 * @property {string} limit the most that all questions together may cost
 * @property {[string, string][]} cross which questions are counted together, by their ids
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
    checkInvitation(invitation);
    const offer = await askOffer(this.#client, address);
    await this.#book.change((state) => {
      const record = recordOf(state, String(address));
      const consent = String(consentTo(offer, agreed));
      if (record === undefined) {
        return withRecord(state, newRecord(address, offer, { device: random(16), consent, invitation }));
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
   * Ask what a survey's questions are, and say how the limit would be divided among them. Nothing is kept.
   *
   * @param {string} survey
   * @param {{ upto?: string | null }} [options]
   */
  async look(survey, { upto = null } = {}) {
    const offer = await askSurvey(this.#client, this.#survey(survey));
    return divided(await this.#book.state(), offer, upto === null ? null : Amount.parse(upto));
  }

  /**
   * Join the questions of a survey that fit into the limit, agreeing to `upto` for all of them together.
   *
   * The limit is divided now, before any answer, and in one step: whatever happens later, the questions together cost no
   * more. What did not fit is in `leftOut` and stays there. Nothing is sent yet. To join twice is to join once.
   *
   * @param {string | import("./survey.js").SurveyOffer} survey its address; or what a person has seen of it, which is joined
   *   then, and not what the server may say a moment later
   * @param {{ upto?: string | null, invitation?: string | null }} [options]
   * @returns {Promise<Survey>}
   */
  async joinSurvey(survey, { upto = null, invitation = null } = {}) {
    const agreed = upto === null ? null : Amount.parse(upto);
    checkInvitation(invitation);
    const offer = typeof survey === "string" ? await askSurvey(this.#client, this.#survey(survey)) : survey;
    const groups = groupsOf(offer.cross).map((group) => ({ group, device: random(16) }));
    const joined = await this.#book.change((state) => {
      const division = divided(state, offer, agreed);
      const { asked, given, limit, isNew } = division;
      if (isNew) checkSome(state, division);
      let changed = state;
      for (const { id, address: where, offer: each } of asked) {
        const record = recordOf(state, String(where));
        if (record !== undefined) checkSame(record, each);
        if (record !== undefined && !isNew) {
          const invited = invitation !== null && record.invitation !== invitation && record.ended === null;
          if (invited) changed = withRecord(changed, { ...record, invitation });
          continue;
        }
        const device = groups.find(({ group }) => group.has(id))?.device ?? random(16);
        const consent = String(given.get(id));
        const survey = { address: String(offer.address), limit: String(limit) };
        // Also what was joined by itself: without any record of the survey its limit would be forgotten.
        const own = record ?? newRecord(where, each, { device, consent, invitation });
        changed = withRecord(changed, { ...own, survey });
      }
      return changed;
    });
    const { asked, leftOut, limit } = divided(joined, offer, agreed);
    const questions = asked.map(
      ({ address: where, offer: each }) => new Participation(this.#book, this.#client, where, each),
    );
    return { questions, leftOut: leftOut.map((each) => each.offer.question), limit: String(limit), cross: offer.cross };
  }

  /**
   * The questions of a survey that were joined with it; null where none were. No server is asked, so that what was left
   * out is not known.
   *
   * @param {string} survey
   */
  async joined(survey) {
    const address = String(this.#survey(survey));
    const own = (await this.#book.state()).campaigns.filter((record) => record.survey?.address === address);
    if (own.length === 0) return null;
    const questions = own.map((record) => new Participation(this.#book, this.#client, this.#address(record.address)));
    return { questions, limit: String(own[0].survey?.limit) };
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
  #survey(text) {
    return SurveyAddress.parse(text, { allowHttp: this.#client.allowHttp });
  }

  /** @param {string} text */
  #address(text) {
    return CampaignAddress.parse(text, { allowHttp: this.#client.allowHttp });
  }
}

/** @param {unknown} invitation */
function checkInvitation(invitation) {
  const invited = typeof invitation === "string" && invitation !== "" && invitation.length <= MOST_INVITATION;
  if (invitation !== null && !invited) {
    throw new RelaxdpError(
      "participation_error",
      `an invitation is text of at most ${MOST_INVITATION} letters. Nothing was sent.`,
    );
  }
}

/**
 * The record of a campaign that is joined now, with a key of its own.
 *
 * @param {CampaignAddress} address
 * @param {import("./offer.js").Offer} offer
 * @param {{ device: string, consent: string, invitation: string | null }} own
 * @returns {import("./state.js").CampaignRecord}
 */
function newRecord(address, { question, encoding, params }, { device, consent, invitation }) {
  return {
    address: String(address),
    question,
    encoding: encoding.name,
    params,
    device,
    key: random(32),
    consent,
    joined: now(),
    answer: null,
    answered: null,
    invitation,
    sent: [],
    ended: null,
  };
}

/** @param {string} limit */
function asLimit(limit) {
  return String(Amount.parse(limit, "a limit", "budget_error"));
}

/** @param {number} bytes */
function random(bytes) {
  return toHex(crypto.getRandomValues(new Uint8Array(bytes)));
}
