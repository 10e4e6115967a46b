/** A survey of several questions, from its first view to its last: one limit for all, then one question at a time. */

import { SurveyAddress } from "../device/address.js";
import { Client } from "../device/client.js";
import { Amount, most, ZERO } from "../device/decimal.js";
import { Device } from "../device/device.js";
import { amount } from "../device/state.js";
import { BrowserStorage } from "../device/storage.js";
import { readSurvey } from "../device/survey.js";
import { fieldsOf } from "../device/typed.js";
import { onLanguage } from "../kit/language.js";
import { inOneTab } from "./flow.js";
import { IntroductionView, readIntroduction } from "./introduced.js";
import { InvitationView } from "./invited.js";
import { complaint, input, onSubmit, part, say, show, showProblem } from "./page.js";
import { QuestionView } from "./question.js";
import { isRefusal, lossOf, refusalOf } from "./refusals.js";
import { SeveralLimitView } from "./several_limit.js";
import { SeveralStatusView } from "./several_status.js";
import { Watch } from "./watch.js";
import { closedWords, problemWords, word } from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */
/** @typedef {import("../device/participation.js").Participation} Participation */
/** @typedef {import("../device/survey.js").SurveyOffer} SurveyOffer */
/** @typedef {import("./introduced.js").Introduction} Introduction */
/** @typedef {{ questions: Participation[], limit: string }} Joined */

const CHANNEL = "relaxdp survey";

/** One survey in one tab. */
export class Several {
  #address;
  #invitation;
  #storage = new BrowserStorage();
  #client = new Client({ attempts: 2, timeout: 20, firstWait: 0.3 });
  /** @type {string | null} */
  #tag = null;
  #watch = new Watch(() => this.#turn());
  #channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
  /** @type {SurveyOffer | null} */
  #offer = null;
  /** @type {{ whole: Introduction, questions: Introduction[] } | null} */
  #said = null;
  /** @type {Device | null} */
  #device = null;
  /** @type {Joined | null} */
  #mine = null;
  #startOver = false;
  /** @type {import("./words.js").Name} */
  #loss = "cleared.gone";
  /** @type {string | null} an invitation of which the server said that it would be taken */
  #good = null;
  /** @type {string | null} the question that is asked now */
  #asked = null;
  #intro = new IntroductionView();
  #invitations = new InvitationView((invitation) => this.#useInvitation(invitation));
  #limits = new SeveralLimitView((upto) => this.#join(upto));
  #questions = new QuestionView((value) => this.#answer(value));
  #statuses = new SeveralStatusView({
    check: () => this.#news(),
    stop: () => this.#leave((participation) => participation.forget()),
    leave: () => this.#leave((participation) => participation.withdraw()),
    invite: (invitation) => this.#invite(invitation),
  });
  #progress = () => "";

  /**
   * @param {string} address
   * @param {string | null} invitation
   */
  constructor(address, invitation) {
    this.#address = address;
    this.#invitation = invitation;
  }

  begin() {
    if (this.#channel !== null) this.#channel.onmessage = () => void this.#watch.wake();
    part("problem-again").addEventListener("click", () => void this.#news());
    part("question-title").removeAttribute("data-word");
    onLanguage(() => {
      say(part("cleared-title"), word(this.#loss));
      say(part("question-title"), this.#progress());
    });
    const complain = complaint("cleared-form", "cleared-wrong");
    onSubmit("cleared-form", async () => {
      const understood = input("cleared-understood");
      if (!understood.checked) return complain(() => word("cleared.check"), understood);
      this.#startOver = true;
      this.#device = this.#mine = null;
      await this.#watch.wake();
    });
    return this.#watch.start();
  }

  async #turn() {
    let problem = null;
    let news = false;
    try {
      news = await this.#look();
    } catch (thrown) {
      problem = refusalOf(thrown);
      this.#tag = null;
    }
    try {
      const mine = await this.#joined();
      if (mine === null) return await this.#stranger(problem);
      return await this.#shown(mine, problem, news);
    } catch (thrown) {
      return this.#lost(refusalOf(thrown));
    }
  }

  /** Ask what the survey is, where it may have changed; a server that cannot be reached throws. */
  async #look() {
    const address = SurveyAddress.parse(this.#address);
    const before = this.#tag;
    this.#tag = await this.#client.tag(address, before).catch(() => null);
    if (this.#tag !== null && this.#tag === before && this.#offer !== null) return false;
    const content = await this.#client.ask(address, []);
    this.#offer = await readSurvey(address, content);
    const { questions } = fieldsOf(content);
    this.#said = {
      whole: readIntroduction(content),
      questions: /** @type {unknown[]} */ (questions).map(readIntroduction),
    };
    return true;
  }

  /** @returns {Promise<Joined | null>} null where it has not been joined */
  async #joined() {
    if (this.#device === null) {
      try {
        this.#device = await Device.open({ storage: this.#storage, client: this.#client });
      } catch (problem) {
        if (isRefusal(problem, "budget_missing_error")) return null;
        if (this.#startOver && lossOf(problem) !== undefined) return null;
        throw problem;
      }
    }
    this.#mine ??= await this.#device.joined(this.#address);
    return this.#mine;
  }

  /** @param {RelaxdpError | null} problem */
  async #stranger(problem) {
    if (this.#offer === null || this.#said === null) return this.#failed(problem);
    const { whole } = this.#said;
    this.#intro.show(
      whole,
      this.#states().every((state) => state === "paused"),
    );
    const closed = this.#closed();
    if (closed !== null) return closed;
    const invited = this.#offer.questions.find(({ offer }) => offer.needsInvitation);
    if (invited !== undefined && this.#good === null) {
      const wrong = this.#invitation === null ? null : await this.#checkInvitation(this.#invitation);
      this.#invitation = null; // it is good now, or the person is asked for another one
      if (this.#good === null) {
        this.#invitations.show(wrong);
        return problem === null ? "go on" : "failed";
      }
    }
    const learns = this.#said.questions.map((each) => each.learns);
    this.#limits.show(this.#offer, whole, learns, await this.#others());
    return problem === null ? "go on" : "failed";
  }

  #states() {
    return (this.#offer?.questions ?? []).map(({ offer }) => offer.state);
  }

  /** Say so where no question takes answers; null while one does. */
  #closed() {
    const states = new Set(this.#states());
    if (states.has("open") || states.has("paused")) return null;
    const state = states.has("waiting") ? "waiting" : "finished";
    const opens = this.#said?.questions.find((each) => each.opens !== null)?.opens ?? null;
    showProblem(() => {
      const { title, sentence } = /** @type {{ title: string, sentence: string }} */ (closedWords(state, opens));
      return { title, sentences: [sentence], perhapsLater: state === "waiting" };
    });
    return state === "waiting" ? "go on" : "over";
  }

  /**
   * What somebody sees who has joined: the next question without an answer, or what was sent of all.
   *
   * @param {Joined} mine
   * @param {RelaxdpError | null} problem
   * @param {boolean} news
   */
  async #shown(mine, problem, news) {
    if (this.#said !== null) this.#intro.show(this.#said.whole, false);
    const all = [];
    for (const [place, participation] of mine.questions.entries()) {
      const refused = problem ?? (await this.#send(participation, news));
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
    if (answered.length === 0) return this.#closed() ?? "go on";
    const known = new Set((await this.#device?.campaigns())?.map(({ address }) => address));
    const out = (this.#offer?.questions ?? []).filter(({ address }) => !known.has(String(address)));
    const leftOut = out.map(({ offer }) => offer.question);
    this.#statuses.show({ answered, leftOut, limit: mine.limit, spent: String(spent) });
    if (answered.some((each) => each.problem !== null)) return "failed";
    return answered.every(({ details }) => details.ended !== null && details.ended !== "withdrawing")
      ? "over"
      : "go on";
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
   */
  async #ask(participation, offer, progress, problem) {
    const next = this.#asked !== participation.address;
    if (next) part("question").hidden = true; // the view shows one question, and this is another
    this.#asked = participation.address;
    this.#progress = () => word("several.progress", progress);
    await participation.offer(); // so that an answer can be kept even if the network goes now
    const { consent } = await participation.details();
    this.#questions.show(offer, consent, await participation.dates());
    say(part("question-title"), this.#progress());
    if (next) part("question-title").focus();
    return problem === null ? "go on" : "failed";
  }

  /**
   * @param {Participation} participation
   * @param {boolean} news
   * @returns {Promise<RelaxdpError | null>} what kept it from being sent
   */
  async #send(participation, news) {
    const { answered, ended, sent } = await participation.details();
    const waiting = sent.length === 0 || sent.some(({ status }) => status !== "sent");
    if (ended !== "withdrawing" && (!answered || ended !== null || !(news || waiting))) return null;
    try {
      await inOneTab(this.#address, async () => {
        if (ended === "withdrawing") await participation.withdraw();
        else await participation.report();
      });
      return null;
    } catch (problem) {
      return refusalOf(problem);
    } finally {
      const after = await participation.details();
      if (JSON.stringify(after.sent) !== JSON.stringify(sent) || after.ended !== ended) this.#tell();
    }
  }

  /** @param {string} invitation */
  async #checkInvitation(invitation) {
    try {
      const asked = this.#offer?.questions.find(({ offer }) => offer.needsInvitation);
      if (asked !== undefined) await this.#client.ask(asked.address, ["invitation"], { invitation });
    } catch (problem) {
      return refusalOf(problem);
    }
    this.#good = invitation;
    return null;
  }

  /** @param {string} invitation that was typed in */
  async #useInvitation(invitation) {
    const problem = await this.#checkInvitation(invitation);
    if (problem === null) await this.#watch.wake();
    return problem;
  }

  /** @param {RelaxdpError | null} problem */
  #failed(problem) {
    const final = problem?.code === "refused_by_server_error" || problem?.code === "address_error";
    showProblem(() => ({
      title: word("problem.title"),
      sentences: [problemWords(problem), ...(final ? [] : [word("problem.later")])],
      perhapsLater: true,
    }));
    return final ? "over" : "failed";
  }

  /** @param {RelaxdpError} problem */
  #lost(problem) {
    const title = lossOf(problem);
    if (title === undefined) {
      showProblem(() => ({
        title: word("problem.title"),
        sentences: [problemWords(problem)],
        perhapsLater: true,
      }));
      return "failed";
    }
    show("cleared");
    this.#loss = title;
    say(part("cleared-title"), word(title));
    return "over";
  }

  /** What this browser has agreed to elsewhere, or has spent where that is over. */
  async #others() {
    let [number, amount] = [0, ZERO];
    for (const other of this.#device === null ? [] : await this.#device.campaigns()) {
      const { consent, spent, ended } = await other.details();
      const part = ended === null ? consent : spent;
      if (part === "0" || this.#offerOf(other) !== undefined) continue;
      number += 1;
      amount = amount.plus(Amount.parse(part));
    }
    return { number, amount };
  }

  /**
   * Set the limit, which was shown with what other surveys add to it, and join: it is divided in one step.
   *
   * @param {string} upto
   */
  async #join(upto) {
    const invitation = this.#good;
    try {
      this.#device ??= await this.#opened(upto);
      const { limit } = await this.#device.balance();
      const needed = (await this.#others()).amount.plus(Amount.parse(upto));
      await this.#device.changeLimit(String(most(needed, Amount.parse(limit))));
      this.#mine = await this.#device.joinSurvey(this.#address, { upto, invitation });
      this.#startOver = false;
      this.#tell();
    } catch (problem) {
      // Another tab was faster: what was chosen there is shown now.
      if (!isRefusal(problem, "consent_error")) return void this.#failed(refusalOf(problem));
    }
    await this.#watch.wake();
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

  /** @param {unknown} value */
  async #answer(value) {
    const asked = this.#mine?.questions.find(({ address }) => address === this.#asked);
    try {
      await asked?.answer(value);
    } catch (problem) {
      if (!isRefusal(problem, "answer_changed_error")) throw problem; // else another tab was faster, and its answer counts
    }
    this.#statuses.reveal();
    void this.#storage.persist().catch(() => false);
    this.#tell();
    await this.#watch.wake();
  }

  /** @param {string} invitation */
  async #invite(invitation) {
    try {
      await this.#device?.joinSurvey(this.#address, { invitation });
    } catch {
      // The next turn says what is wrong.
    }
    await this.#watch.wake();
  }

  /** @param {(participation: Participation) => Promise<void>} deed for every question */
  async #leave(deed) {
    await inOneTab(this.#address, async () => {
      for (const each of this.#mine?.questions ?? []) {
        try {
          await deed(each);
        } catch (problem) {
          refusalOf(problem); // the device has left all the same; the next turn tells the server
        }
      }
    });
    this.#tell();
    await this.#watch.wake();
  }

  async #news() {
    this.#tag = null;
    await this.#watch.wake();
  }

  #tell() {
    this.#channel?.postMessage(this.#address);
  }
}
