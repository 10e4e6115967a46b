/** A survey of several questions, from its first view to its last: one limit for all, then one question at a time. */

import { SurveyAddress } from "../device/address.js";
import { ZERO } from "../device/decimal.js";
import { amount } from "../device/state.js";
import { readSurvey } from "../device/survey.js";
import { fieldsOf } from "../device/typed.js";
import { onLanguage } from "../kit/language.js";
import { showClosed } from "./flow.js";
import { IntroductionView, readIntroduction } from "./introduced.js";
import { part, say } from "./page.js";
import { QuestionView } from "./question.js";
import { refusalOf } from "./refusals.js";
import { ResultsView } from "./results.js";
import { SeveralLimitView } from "./several_limit.js";
import { SeveralStatusView } from "./several_status.js";
import { Visit } from "./visit.js";
import { word } from "./words.js";

/** @typedef {import("../device/participation.js").Participation} Participation */
/** @typedef {import("../device/survey.js").SurveyOffer} SurveyOffer */
/** @typedef {import("./introduced.js").Introduction} Introduction */
/** @typedef {import("./visit.js").RelaxdpError} RelaxdpError */
/** @typedef {import("./visit.js").Outcome} Outcome */
/** @typedef {{ questions: Participation[], limit: string }} Joined */

/** One survey in one tab. */
export class Several {
  #address;
  /** @type {Visit<Joined>} */
  #visit;
  /** @type {SurveyOffer | null} */
  #offer = null;
  /** @type {{ whole: Introduction, questions: Introduction[] } | null} */
  #said = null;
  /** @type {string | null} the question that is asked now */
  #asked = null;
  #intro = new IntroductionView();
  #limits = new SeveralLimitView((upto) => this.#visit.join(upto));
  #questions = new QuestionView((value) => this.#answer(value));
  #statuses = new SeveralStatusView({
    check: () => this.#visit.news(),
    stop: () => this.#leave((participation) => participation.forget()),
    leave: () => this.#leave((participation) => participation.withdraw()),
    invite: (invitation) => this.#visit.invite(invitation),
  });
  #results = new ResultsView();
  #progress = () => "";

  /**
   * @param {string} address
   * @param {string | null} invitation
   */
  constructor(address, invitation) {
    this.#address = address;
    this.#visit = new Visit(address, invitation, {
      look: () => this.#look(),
      joined: (device) => device.joined(address),
      stranger: (problem) => this.#stranger(problem),
      shown: (mine, problem, news) => this.#shown(mine, problem, news),
      join: (device, options) => device.joinSurvey(this.#offer ?? address, options),
      isOwn: (participation) => this.#offerOf(participation) !== undefined,
      invited: () => this.#offer?.questions.find(({ offer }) => offer.needsInvitation)?.address ?? null,
      forget: () => this.#limits.forget(),
    });
  }

  begin() {
    part("question-title").removeAttribute("data-word");
    onLanguage(() => say(part("question-title"), this.#progress()));
    return this.#visit.begin();
  }

  async #look() {
    const address = SurveyAddress.parse(this.#address);
    const content = await this.#visit.described(address, this.#offer !== null);
    if (content === undefined) return false;
    this.#offer = await readSurvey(address, content);
    const { questions } = fieldsOf(content);
    this.#said = {
      whole: readIntroduction(content),
      questions: /** @type {unknown[]} */ (questions).map(readIntroduction),
    };
    return true;
  }

  /**
   * @param {RelaxdpError | null} problem
   * @returns {Promise<Outcome>}
   */
  async #stranger(problem) {
    if (this.#offer === null || this.#said === null) return this.#visit.failed(problem);
    const { whole } = this.#said;
    this.#intro.show(
      whole,
      this.#states().every((state) => state === "paused"),
    );
    const early = (await this.#closed()) ?? (await this.#visit.uninvited(problem));
    if (early !== null) return early;
    const learns = this.#said.questions.map((each) => each.learns);
    this.#limits.show(this.#offer, whole, learns, await this.#visit.others());
    return problem === null ? "go on" : "failed";
  }

  #states() {
    return (this.#offer?.questions ?? []).map(({ offer }) => offer.state);
  }

  /**
   * Say so where no question takes answers; null while one does.
   *
   * @returns {Promise<Outcome | null>}
   */
  async #closed() {
    const states = new Set(this.#states());
    if (states.has("open") || states.has("paused")) return null;
    const waits = states.has("waiting");
    const opens = this.#said?.questions.find((each) => each.opens !== null)?.opens ?? null;
    showClosed(waits ? "waiting" : "finished", opens, waits);
    return waits || !(await this.#learnt()) ? "go on" : "over";
  }

  /** Show what was learnt of the questions that have ended; whether nothing more of them is to come. */
  async #learnt() {
    const ended = this.#offer?.questions.filter(({ offer }) => offer.state === "finished") ?? [];
    return !this.#said?.whole.showsResults || this.#results.show(ended, this.#visit.ask);
  }

  /**
   * What somebody sees who has joined: the next question without an answer, or what was sent of all.
   *
   * @param {Joined} mine
   * @param {RelaxdpError | null} problem
   * @param {boolean} news
   * @returns {Promise<Outcome>}
   */
  async #shown(mine, problem, news) {
    if (this.#said !== null) this.#intro.show(this.#said.whole, false);
    const all = [];
    for (const [place, participation] of mine.questions.entries()) {
      const refused = problem ?? (await this.#visit.send(participation, news));
      const offer = this.#offerOf(participation) ?? null;
      const details = await participation.details();
      const takes = offer !== null && (offer.state === "open" || offer.state === "paused");
      if (!details.answered && details.ended === null && takes) {
        return this.#ask(participation, offer, { place: place + 1, all: mine.questions.length }, problem);
      }
      all.push({ details, own: await participation.ownAnswer(), offer, problem: refused });
    }
    this.#asked = null;
    const spent = all.map(({ details }) => amount(details.spent)).reduce((sum, each) => sum.plus(each), ZERO);
    const answered = all.filter(({ details }) => details.answered || details.sent.length > 0);
    if (answered.length === 0) return (await this.#closed()) ?? "go on";
    const known = new Set((await this.#visit.device?.campaigns())?.map(({ address }) => address));
    const out = (this.#offer?.questions ?? []).filter(({ address }) => !known.has(String(address)));
    const leftOut = out.map(({ offer }) => offer.question);
    this.#statuses.show({ answered, leftOut, limit: mine.limit, spent: String(spent) });
    if (answered.some((each) => each.problem !== null)) return "failed";
    const over = answered.every(({ details }) => details.ended !== null && details.ended !== "withdrawing");
    return (await this.#learnt()) && over ? "over" : "go on";
  }

  /** @param {Participation} participation */
  #offerOf(participation) {
    return this.#offer?.questions.find(({ address }) => String(address) === participation.address)?.offer;
  }

  /**
   * @param {Participation} participation
   * @param {import("../device/offer.js").Offer} offer
   * @param {{ place: number, all: number }} progress
   * @param {RelaxdpError | null} problem
   * @returns {Promise<Outcome>}
   */
  async #ask(participation, offer, progress, problem) {
    const next = this.#asked !== participation.address;
    if (next) part("question").hidden = true; // the view shows one question, and this is another
    this.#asked = participation.address;
    this.#progress = () => word("several.progress", progress);
    await participation.offer(); // so that an answer can be kept even if the network goes now
    const { whole } = await participation.details();
    this.#questions.show(offer, whole.limit);
    say(part("question-title"), this.#progress());
    if (next) part("question-title").focus();
    return problem === null ? "go on" : "failed";
  }

  /** @param {unknown} value */
  async #answer(value) {
    this.#statuses.reveal();
    const asked = this.#visit.mine?.questions.find(({ address }) => address === this.#asked);
    await this.#visit.answer(asked, value);
  }

  /** @param {(participation: Participation) => Promise<void>} deed for every question */
  async #leave(deed) {
    await this.#visit.inOneTab(async () => {
      for (const each of this.#visit.mine?.questions ?? []) {
        try {
          await deed(each);
        } catch (problem) {
          refusalOf(problem); // the device has left all the same; the next turn tells the server
        }
      }
    });
    this.#visit.tell();
    await this.#visit.wake();
  }
}
