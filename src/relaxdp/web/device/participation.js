/** One campaign of a device: its answer is kept, its reports are written down and then sent, and it can be left. */

import { fromHex } from "./bytes.js";
import { RelaxdpError } from "./errors.js";
import { ATTRIBUTE, readOffer } from "./offer.js";
import { checkActive, checkSame, nextLevel, writtenAt } from "./rules.js";
import { over, recordOf, spentBy, wholeOf, withRecord } from "./state.js";
import { fieldsOf, readValue } from "./typed.js";

/** @typedef {import("./address.js").CampaignAddress} CampaignAddress */
/** @typedef {import("./offer.js").Offer} Offer */
/** @typedef {import("./offer.js").Level} Level */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Sent} Sent */
/** @typedef {import("./state.js").Ending} Ending */
/** @typedef {import("./state.js").CampaignRecord} CampaignRecord */

/**
 * What a person may see of a campaign. Neither answer nor key is among it.
 *
 * @typedef {object} Details
 * @property {string} question
 * @property {string} consent the largest epsilon that was agreed to
 * @property {string} spent what this campaign has cost
 * @property {{ limit: string, spent: string }} whole the limit and the cost of all questions of the survey that it was
 *   joined with; its own where it was joined by itself. Compute what others can learn at most from these.
 * @property {boolean} answered
 * @property {string} joined
 * @property {Ending | null} ended
 * @property {Sent[]} sent exactly what the server was sent, oldest first; it learned nothing else
 */

/** Obtained from `Device.join` or `Device.campaigns`; shows neither answer nor key when printed. */
export class Participation {
  #book;
  #client;
  #address;
  /** @type {Offer | null} */
  #offer;

  /**
   * @param {import("./book.js").Book} book
   * @param {import("./client.js").Client} client
   * @param {CampaignAddress} address
   * @param {Offer | null} [offer]
   */
  constructor(book, client, address, offer = null) {
    this.#book = book;
    this.#client = client;
    this.#address = address;
    this.#offer = offer;
  }

  /** Where the campaign is. */
  get address() {
    return String(this.#address);
  }

  /** What the server said of the campaign when it was last asked. */
  async offer() {
    return this.#offer ?? this.#ask();
  }

  /** The values to choose an answer from; null where the answer is a number or free text. */
  async values() {
    return (await this.offer()).encoding.values;
  }

  /**
   * What a person may see of this campaign.
   *
   * @returns {Promise<Details>}
   */
  async details() {
    const state = await this.#book.state();
    const record = this.#of(state);
    const { question, consent, joined, ended, sent } = record;
    return {
      question,
      consent,
      spent: String(spentBy(record)),
      whole: wholeOf(state, record),
      answered: record.answered !== null,
      joined,
      ended,
      sent,
    };
  }

  /**
   * What the person answered, for their own eyes; undefined before they did, and when it was erased. It is among nothing
   * else that this module shows.
   *
   * @returns {Promise<unknown>}
   */
  async ownAnswer() {
    const { answer, answered } = this.#of(await this.#book.state());
    return answered === null || answer === null ? undefined : readValue(answer).value;
  }

  /**
   * Exactly what the server was sent, oldest first.
   *
   * @returns {Promise<Sent[]>}
   */
  async sent() {
    return (await this.details()).sent;
  }

  /**
   * Keep the answer on the device. The first one counts: that it changed would show, so another stays out.
   *
   * @param {unknown} value
   */
  async answer(value) {
    const offer = await this.offer();
    const kept = offer.encoding.keep(value);
    await this.#book.change((state) => {
      const record = this.#of(state);
      checkSame(record, offer);
      checkActive(record);
      if (record.answered === null) return withRecord(state, { ...record, answer: kept, answered: now() });
      if (JSON.stringify(record.answer) !== JSON.stringify(kept)) {
        throw new RelaxdpError(
          "answer_changed_error",
          "this campaign has an answer already, and another one stays out: that it changed would show. The first " +
            "answer was kept; a new answer needs a new campaign.",
        );
      }
      return state;
    });
  }

  /**
   * Report at the highest open level that consent and limit allow; null where there is nothing to do.
   *
   * The report is durable before it leaves. To call this again is always safe: until the server has acknowledged a
   * report the same one is sent again, and then none.
   *
   * @param {Offer} [known] what the server said of the campaign a moment ago; it is asked where nothing is given
   * @returns {Promise<Sent | null>}
   */
  async report(known) {
    const offer = known ?? (await this.#ask());
    /** @type {Level | null} */
    let wanted = null;
    const state = await this.#book.change(async (before) => {
      const record = this.#of(before);
      wanted = nextLevel(before, record, offer);
      if (offer.state === "finished") return withRecord(before, over(record, "finished"));
      if (offer.needsInvitation && record.invitation === null && record.sent.length === 0) {
        throw new RelaxdpError(
          "participation_error",
          "this campaign needs an invitation: join it with one. Nothing was sent.",
        );
      }
      if (wanted === null || writtenAt(record, wanted) !== undefined) return before;
      return withRecord(before, { ...record, sent: [...record.sent, await this.#draw(offer, record, wanted)] });
    });
    const record = this.#of(state);
    const sent = wanted === null ? undefined : writtenAt(record, wanted);
    if (sent === undefined) return null;
    return sent.status === "sent" ? sent : this.#deliver(record, sent);
  }

  /**
   * Leave: the server deletes the reports, the device its answer and key. What was spent does not come back.
   *
   * Where the server cannot be reached, the device has left all the same, and `Device.sync` tells the server later.
   * So it does while the campaign is paused and no report was acknowledged: one that is still on its way could be
   * taken after the pause, and the server remembers a device that it does not know in an open campaign only.
   */
  async withdraw() {
    await this.#end("withdrawing", ["withdrawing", "withdrawn"]);
    const record = this.#of(await this.#book.state());
    if (record.ended !== "withdrawing") return;
    try {
      const acknowledged = record.sent.some(({ status }) => status === "sent");
      if (record.sent.length > 0 && (await this.#tellWithdrawal(record)) === "paused" && !acknowledged) return;
    } catch (problem) {
      // The device has left and the server keeps what it has: the person is told.
      if (isRefusal(problem)) await this.#end("forgotten", ["withdrawn"]);
      throw problem;
    }
    await this.#end("withdrawn");
  }

  /** Erase answer and key after the last report that the person wants to give. What was sent stays known. */
  async forget() {
    await this.#end("forgotten", ["finished", "withdrawing", "withdrawn", "forgotten"]);
  }

  async #ask() {
    this.#offer = await askOffer(this.#client, this.#address);
    return this.#offer;
  }

  /**
   * @param {Offer} offer
   * @param {CampaignRecord} record
   * @param {Level} level
   * @returns {Promise<Sent>} a pure function of what the record holds, apart from the time
   */
  async #draw({ encoding }, record, { epsilon, threshold }) {
    const where = {
      key: fromHex(/** @type {string} */ (record.key)),
      release: this.#address.id,
      attribute: ATTRIBUTE,
      object: /** @type {import("./bytes.js").Typed} */ ({ type: "text", value: record.device }),
    };
    const { report, cohort } = await encoding.draw(where, record.answer, threshold);
    return { epsilon: String(epsilon), threshold: String(threshold), report, time: now(), status: "written", cohort };
  }

  /**
   * @param {CampaignRecord} record
   * @param {Sent} sent
   */
  async #deliver({ device, invitation }, sent) {
    const { epsilon, threshold, report, cohort } = sent;
    const body = { device, level: { epsilon, threshold }, report };
    if (cohort !== null) Object.assign(body, { cohort });
    if (invitation !== null) Object.assign(body, { invitation });
    let status;
    try {
      ({ status } = fieldsOf(await this.#client.ask(this.#address, ["reports"], body)));
    } catch (problem) {
      if (isRefusal(problem)) await this.#mark(sent, "refused");
      throw problem;
    }
    if (status !== "new" && status !== "same") {
      throw new RelaxdpError(
        "server_answer_error",
        "the server did not say whether it has the report; it will be sent again, the same one, next time.",
      );
    }
    return this.#mark(sent, "sent");
  }

  /**
   * @param {CampaignRecord} record
   * @returns {Promise<unknown>} the state that the campaign has
   */
  async #tellWithdrawal({ device, invitation }) {
    const body = invitation === null ? { device } : { device, invitation };
    return fieldsOf(await this.#client.ask(this.#address, ["withdraw"], body)).state;
  }

  /**
   * @param {Sent} sent
   * @param {"sent" | "refused"} status
   * @returns {Promise<Sent>}
   */
  async #mark(sent, status) {
    const same = (/** @type {Sent} */ each) => each.epsilon === sent.epsilon && each.threshold === sent.threshold;
    await this.#book.change((state) => {
      const record = this.#of(state);
      const known = record.sent.find(same);
      // What the server acknowledged once is there, whatever another tab was told a moment later.
      if (known === undefined || known.status === status || known.status === "sent") return state;
      const reports = record.sent.map((each) => (same(each) ? { ...each, status } : each));
      // An invitation that has served is not told again.
      return withRecord(state, { ...record, sent: reports, invitation: status === "sent" ? null : record.invitation });
    });
    return { ...sent, status };
  }

  /**
   * @param {Ending} ending
   * @param {Ending[]} [unless]
   */
  async #end(ending, unless = []) {
    await this.#book.change((state) => {
      const record = this.#of(state);
      return record.ended !== null && unless.includes(record.ended) ? state : withRecord(state, over(record, ending));
    });
  }

  /** @param {State} state */
  #of(state) {
    const record = recordOf(state, this.address);
    if (record === undefined) {
      throw new RelaxdpError("participation_error", "this device has not joined the campaign. Nothing was sent.");
    }
    return record;
  }
}

/**
 * Ask a server what a campaign is.
 *
 * @param {import("./client.js").Client} client
 * @param {CampaignAddress} address
 */
export async function askOffer(client, address) {
  return readOffer(address, await client.ask(address, []));
}

/** @param {unknown} problem */
function isRefusal(problem) {
  return problem instanceof RelaxdpError && problem.code === "refused_by_server_error";
}

/** The time as it is written down, to the second. */
export function now() {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}
