/** The survey from its first view to its last: asks the device, and shows what it says. */

import { CampaignAddress } from "../device/address.js";
import { readOffer } from "../device/offer.js";
import { takeEnclosed } from "./enclosed.js";
import { IntroductionView, readIntroduction } from "./introduced.js";
import { LimitView } from "./limit.js";
import { showProblem } from "./page.js";
import { QuestionView } from "./question.js";
import { refusalOf } from "./refusals.js";
import { ResultsView } from "./results.js";
import { StatusView } from "./status.js";
import { Visit } from "./visit.js";
import { closedWords } from "./words.js";

/** @typedef {import("../device/offer.js").Offer} Offer */
/** @typedef {import("../device/participation.js").Participation} Participation */
/** @typedef {import("./introduced.js").Introduction} Introduction */
/** @typedef {import("./visit.js").RelaxdpError} RelaxdpError */
/** @typedef {import("./visit.js").Outcome} Outcome */

/** Several questions: loaded only by those who are asked them. */
export const several = () => import("./several.js");

/** One campaign in one tab. */
export class Survey {
  #address;
  /** @type {Visit<Participation>} */
  #visit;
  /** @type {Offer | null} */
  #offer = null;
  /** @type {Introduction | null} */
  #said = null;
  #intro = new IntroductionView();
  #limits = new LimitView((upto) => this.#visit.join(upto));
  #questions = new QuestionView((value) => this.#answer(value));
  #statuses = new StatusView({
    check: () => this.#visit.news(),
    stop: () => this.#leave((participation) => participation.forget()),
    leave: () => this.#leave((participation) => participation.withdraw()),
    invite: (invitation) => this.#visit.invite(invitation),
  });
  #results = new ResultsView();

  /**
   * @param {string} address
   * @param {string | null} invitation
   */
  constructor(address, invitation) {
    this.#address = address;
    this.#visit = new Visit(address, invitation, {
      look: () => this.#look(),
      joined: async (device) => (await device.campaigns()).find((each) => this.#isOwn(each)) ?? null,
      stranger: (problem) => this.#stranger(problem),
      shown: (participation, problem, news) => this.#shown(participation, problem, news),
      join: (device, options) => device.join(address, options),
      isOwn: (participation) => this.#isOwn(participation),
      invited: () => (this.#offer?.needsInvitation ? this.#parsed() : null),
      forget: () => this.#limits.forget(),
    });
  }

  begin() {
    return this.#visit.begin();
  }

  /** It is read when it is needed first, since an address that is none is told like anything else that is wrong. */
  #parsed() {
    return CampaignAddress.parse(this.#address);
  }

  /** @param {Participation} participation */
  #isOwn({ address }) {
    return address === String(this.#parsed());
  }

  async #look() {
    const address = this.#parsed();
    const content = await this.#visit.described(address, this.#offer !== null, takeEnclosed());
    if (content === undefined) return false;
    this.#offer = await readOffer(address, content);
    this.#said = readIntroduction(content);
    return true;
  }

  /**
   * @param {RelaxdpError | null} problem
   * @returns {Promise<Outcome>}
   */
  async #stranger(problem) {
    if (this.#offer === null || this.#said === null) return this.#visit.failed(problem);
    this.#intro.show(this.#said, this.#offer.state === "paused");
    const early = (await this.#closed(this.#offer, this.#said)) ?? (await this.#visit.uninvited(problem));
    if (early !== null) return early;
    this.#limits.show(this.#offer, this.#said, await this.#visit.others());
    return problem === null ? "go on" : "failed";
  }

  /**
   * What somebody sees who has joined.
   *
   * @param {Participation} participation
   * @param {RelaxdpError | null} before what went wrong already
   * @param {boolean} news
   * @returns {Promise<Outcome>}
   */
  async #shown(participation, before, news) {
    const problem = before ?? (await this.#visit.send(participation, news, this.#offer ?? undefined));
    const details = await participation.details();
    if (this.#said !== null) this.#intro.show(this.#said, !details.answered && this.#offer?.state === "paused");
    if (!details.answered && details.ended === null) {
      if (this.#offer === null || this.#said === null) return this.#visit.failed(problem);
      const closed = await this.#closed(this.#offer, this.#said);
      if (closed !== null) return closed;
      await participation.offer(); // so that an answer can be kept even if the network goes now
      this.#questions.show(this.#offer, details.whole.limit);
      return problem === null ? "go on" : "failed";
    }
    this.#statuses.show({ details, own: await participation.ownAnswer(), offer: this.#offer, problem });
    if (problem !== null) return "failed";
    const known = await this.#learnt(this.#offer, this.#said);
    return details.ended === null || !known ? "go on" : "over";
  }

  /**
   * What is said where no answers are taken; null while they are.
   *
   * @param {Offer} offer
   * @param {Introduction} said
   * @returns {Promise<Outcome | null>}
   */
  async #closed({ state }, said) {
    const waits = state !== "finished";
    if (closedWords(state, said.opens) === null) return null;
    showClosed(state, said.opens, waits);
    return waits || !(await this.#learnt(this.#offer, said)) ? "go on" : "over";
  }

  /**
   * Show what was learnt, where the survey has ended and shows it.
   *
   * @param {Offer | null} offer
   * @param {Introduction | null} said
   * @returns {Promise<boolean>} whether nothing more is to come
   */
  async #learnt(offer, said) {
    if (offer?.state !== "finished" || !said?.showsResults) return true;
    return this.#results.show([{ address: this.#parsed(), offer }], this.#visit.ask);
  }

  /** @param {unknown} value */
  async #answer(value) {
    this.#statuses.reveal();
    await this.#visit.answer(/** @type {Participation} */ (await this.#visit.joined()), value);
  }

  /** @param {(participation: Participation) => Promise<void>} deed */
  async #leave(deed) {
    let problem = null;
    const participation = /** @type {Participation} */ (await this.#visit.joined());
    try {
      await this.#visit.inOneTab(() => deed(participation));
    } catch (thrown) {
      problem = refusalOf(thrown);
    }
    this.#visit.tell();
    await this.#shown(participation, problem, false);
    if ((await participation.details()).ended === "withdrawing") await this.#visit.wake();
  }
}

/**
 * Say that no answers are taken now.
 *
 * @param {Parameters<typeof closedWords>[0]} state
 * @param {string | null} opens
 * @param {boolean} waits whether that may change
 */
export function showClosed(state, opens, waits) {
  showProblem(() => {
    const { title, sentence } = /** @type {{ title: string, sentence: string }} */ (closedWords(state, opens));
    return { title, sentences: [sentence], perhapsLater: waits };
  });
}
