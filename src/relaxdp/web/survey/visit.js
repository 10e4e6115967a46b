/** What every visit has, of one question or of several: the device, the server, other tabs, and what is refused. */

import { Client } from "../device/client.js";
import { Amount, most, ZERO } from "../device/decimal.js";
import { Device } from "../device/device.js";
import { BrowserStorage } from "../device/storage.js";
import { onLanguage } from "../kit/language.js";
import { Watch } from "../kit/watch.js";
import { InvitationView } from "./invited.js";
import { complaint, input, onSubmit, part, say, show, showProblem } from "./page.js";
import { isRefusal, lossOf, refusalOf } from "./refusals.js";
import { problemWords, word } from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */
/** @typedef {import("../device/participation.js").Participation} Participation */
/** @typedef {"go on" | "failed" | "over"} Outcome */

/**
 * What is different where one question is asked, or several.
 *
 * @template Mine what this browser has joined
 * @typedef {object} Kind
 * @property {() => Promise<boolean>} look asks what the survey is; whether it may have changed
 * @property {(device: Device) => Promise<Mine | null>} joined
 * @property {(problem: RelaxdpError | null) => Promise<Outcome>} stranger shows it to somebody who has not joined
 * @property {(mine: Mine, problem: RelaxdpError | null, news: boolean) => Promise<Outcome>} shown
 * @property {(device: Device, options: { upto?: string, invitation: string | null }) => Promise<Mine>} join
 * @property {(participation: Participation) => boolean} isOwn whether a campaign is asked about here
 * @property {() => import("../device/address.js").CampaignAddress | null} invited where invitations are looked at; null where none is needed
 * @property {() => void} forget what was chosen
 */

const CHANNEL = "relaxdp survey";
const POLL_SECONDS = 20;

/**
 * One survey in one tab. Other tabs show the same: they tell each other, and one of them sends.
 *
 * @template Mine
 */
export class Visit {
  #address;
  #invitation;
  #kind;
  #storage = new BrowserStorage();
  // A turn that fails is taken again by the watch, which knows when the network is back.
  #client = new Client({ attempts: 2, timeout: 20, firstWait: 0.3 });
  /** @type {string | null} the entity tag of what was seen last; null where the next answer is news in any case */
  #tag = null;
  #watch = new Watch(() => this.#turn(), { seconds: POLL_SECONDS });
  #channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
  /** @type {Device | null} */
  device = null;
  /** @type {Mine | null} */
  mine = null;
  #startOver = false;
  /** @type {import("./words.js").Name} */
  #loss = "cleared.gone";
  /** @type {string | null} an invitation of which the server said that it would be taken */
  #good = null;
  #invitations = new InvitationView((invitation) => this.#useInvitation(invitation));

  /**
   * @param {string} address
   * @param {string | null} invitation
   * @param {Kind<Mine>} kind
   */
  constructor(address, invitation, kind) {
    this.#address = address;
    this.#invitation = invitation;
    this.#kind = kind;
  }

  begin() {
    if (this.#channel !== null) this.#channel.onmessage = () => void this.wake();
    part("problem-again").addEventListener("click", () => void this.news());
    onLanguage(() => say(part("cleared-title"), word(this.#loss)));
    const complain = complaint("cleared-form", "cleared-wrong");
    onSubmit("cleared-form", async () => {
      const understood = input("cleared-understood");
      if (!understood.checked) return complain(() => word("cleared.check"), understood);
      this.#startOver = true;
      this.#kind.forget();
      this.device = this.mine = null;
      await this.wake();
    });
    return this.#watch.start();
  }

  /** Look at the survey and at what this browser keeps, send what may be sent, and show all of it. */
  async #turn() {
    let problem = null;
    let news = false;
    try {
      news = await this.#kind.look();
    } catch (thrown) {
      problem = refusalOf(thrown);
      this.#tag = null;
    }
    try {
      const mine = await this.joined();
      if (mine === null) return await this.#kind.stranger(problem);
      return await this.#kind.shown(mine, problem, news);
    } catch (thrown) {
      return this.#lost(refusalOf(thrown));
    }
  }

  /**
   * Ask what the survey is; a server that cannot be reached throws.
   *
   * @param {Parameters<Client["tag"]>[0]} address
   * @param {boolean} isKnown
   * @param {{ tag: string, content: unknown } | null} [enclosed] what the page brought along
   * @returns {Promise<unknown>} undefined where it is as it was
   */
  async described(address, isKnown, enclosed = null) {
    const before = this.#tag;
    // What is wrong with a server that does not answer is found out below.
    this.#tag = enclosed?.tag ?? (await this.#client.tag(address, before).catch(() => null));
    if (this.#tag !== null && this.#tag === before && isKnown) return undefined;
    return enclosed?.content ?? (await this.#client.ask(address, []));
  }

  /** @type {Client["ask"]} */
  ask = (...asked) => this.#client.ask(...asked);

  /** @returns {Promise<Mine | null>} null where this browser has not joined */
  async joined() {
    if (this.device === null) {
      try {
        this.device = await Device.open({ storage: this.#storage, client: this.#client });
      } catch (problem) {
        if (isRefusal(problem, "budget_missing_error")) return null;
        if (this.#startOver && lossOf(problem) !== undefined) return null;
        throw problem;
      }
    }
    this.mine ??= await this.#kind.joined(this.device);
    return this.mine;
  }

  /**
   * Send what is due, in one tab at a time. To ask twice is safe; it is only not useful.
   *
   * @param {Participation} participation
   * @param {boolean} news
   * @param {Parameters<Participation["report"]>[0]} [offer]
   * @returns {Promise<RelaxdpError | null>} what kept it from being sent
   */
  async send(participation, news, offer) {
    const { answered, ended, sent } = await participation.details();
    const waiting = sent.length === 0 || sent.some(({ status }) => status !== "sent");
    if (ended !== "withdrawing" && (!answered || ended !== null || !(news || waiting))) return null;
    try {
      await this.inOneTab(async () => {
        if (ended === "withdrawing") await participation.withdraw();
        else await participation.report(offer);
      });
      return null;
    } catch (problem) {
      return refusalOf(problem);
    } finally {
      const after = await participation.details();
      if (JSON.stringify(after.sent) !== JSON.stringify(sent) || after.ended !== ended) this.tell();
    }
  }

  /**
   * Ask for an invitation where one is needed and none is good.
   *
   * @param {RelaxdpError | null} problem
   * @returns {Promise<Outcome | null>} null where somebody may go on
   */
  async uninvited(problem) {
    if (this.#kind.invited() === null || this.#good !== null) return null;
    const wrong = this.#invitation === null ? null : await this.#checkInvitation(this.#invitation);
    this.#invitation = null; // it is good now, or the person is asked for another one
    if (this.#good !== null) return null;
    this.#invitations.show(wrong);
    return problem === null ? "go on" : "failed";
  }

  /**
   * Ask whether an invitation would be taken; no device is named, and nothing is used up.
   *
   * @param {string} invitation
   * @returns {Promise<RelaxdpError | null>} why it would not
   */
  async #checkInvitation(invitation) {
    try {
      const address = this.#kind.invited();
      if (address !== null) await this.#client.ask(address, ["invitation"], { invitation });
    } catch (problem) {
      return refusalOf(problem);
    }
    this.#good = invitation;
    return null;
  }

  /** @param {string} invitation that was typed in */
  async #useInvitation(invitation) {
    const problem = await this.#checkInvitation(invitation);
    if (problem === null) await this.wake();
    return problem;
  }

  /**
   * @param {RelaxdpError | null} problem
   * @param {boolean} [again] whether it is said that nothing was sent, and is tried again
   * @returns {Outcome}
   */
  failed(problem, again = true) {
    const final = problem?.code === "refused_by_server_error" || problem?.code === "address_error";
    showProblem(() => ({
      title: word("problem.title"),
      sentences: [problemWords(problem), ...(final || !again ? [] : [word("problem.later")])],
      perhapsLater: true,
    }));
    return final ? "over" : "failed";
  }

  /**
   * What this browser kept cannot be used: it is said, and nothing begins anew by itself.
   *
   * @param {RelaxdpError} problem
   * @returns {Outcome}
   */
  #lost(problem) {
    const title = lossOf(problem);
    if (title === undefined) return this.failed(problem, false);
    show("cleared");
    this.#loss = title;
    say(part("cleared-title"), word(title));
    return "over";
  }

  /** What this browser has agreed to elsewhere, or has spent where that is over. */
  async others() {
    let [number, amount] = [0, ZERO];
    for (const other of this.device === null ? [] : await this.device.campaigns()) {
      const { consent, spent, ended } = await other.details();
      const part = ended === null ? consent : spent;
      if (part === "0" || this.#kind.isOwn(other)) continue;
      number += 1;
      amount = amount.plus(Amount.parse(part));
    }
    return { number, amount };
  }

  /**
   * Set the limit, which was shown with what other surveys add to it, and join.
   *
   * @param {string} upto
   */
  async join(upto) {
    const invitation = this.#good;
    try {
      this.device ??= await this.#opened(upto);
      const { limit } = await this.device.balance();
      const needed = (await this.others()).amount.plus(Amount.parse(upto));
      await this.device.changeLimit(String(most(needed, Amount.parse(limit))));
      this.mine = await this.#kind.join(this.device, { upto, invitation });
      this.#startOver = false;
      this.tell();
    } catch (problem) {
      // Another tab was faster: what was chosen there is shown now. Or a question was joined before, up to more.
      const elsewhere = isRefusal(problem, "consent_error") && (await this.joined()) !== null;
      if (!elsewhere) return void this.failed(refusalOf(problem));
    }
    await this.wake();
  }

  /** @param {string} limit of a device that begins now; one that another tab began a moment ago has its own */
  async #opened(limit) {
    const options = { storage: this.#storage, client: this.#client };
    try {
      return await Device.open({ ...options, limit, startOver: this.#startOver });
    } catch (problem) {
      if (!isRefusal(problem, "budget_error")) throw problem;
      return Device.open(options);
    }
  }

  /**
   * @param {Participation | undefined} participation
   * @param {unknown} value
   */
  async answer(participation, value) {
    try {
      await participation?.answer(value);
    } catch (problem) {
      if (!isRefusal(problem, "answer_changed_error")) throw problem; // else another tab was faster, and its answer counts
    }
    void this.#storage.persist().catch(() => false);
    this.tell();
    await this.wake();
  }

  /** @param {string} invitation for what was joined with another one */
  async invite(invitation) {
    try {
      if (this.device !== null) await this.#kind.join(this.device, { invitation });
    } catch {
      // The next turn says what is wrong.
    }
    await this.wake();
  }

  async news() {
    this.#tag = null;
    await this.wake();
  }

  wake() {
    return this.#watch.wake();
  }

  tell() {
    this.#channel?.postMessage(this.#address);
  }

  /** @param {() => Promise<void>} deed */
  async inOneTab(deed) {
    // Without locks two tabs may both send the same report, which the server then has once.
    return navigator.locks ? navigator.locks.request(`${CHANNEL} ${this.#address}`, deed) : deed();
  }
}
