/** The survey from its first view to its last: asks the device, and shows what it says. */

import { CampaignAddress } from "../device/address.js";
import { Client } from "../device/client.js";
import { Amount, most, ZERO } from "../device/decimal.js";
import { Device } from "../device/device.js";
import { readOffer } from "../device/offer.js";
import { BrowserStorage } from "../device/storage.js";
import { onLanguage } from "../kit/language.js";
import { takeEnclosed } from "./enclosed.js";
import { IntroductionView, readIntroduction } from "./introduced.js";
import { InvitationView } from "./invited.js";
import { LimitView } from "./limit.js";
import { complaint, input, onSubmit, part, say, show, showProblem } from "./page.js";
import { QuestionView } from "./question.js";
import { isRefusal, lossOf, refusalOf } from "./refusals.js";
import { ResultsView } from "./results.js";
import { StatusView } from "./status.js";
import { Watch } from "./watch.js";
import { closedWords, problemWords, word } from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */
/** @typedef {import("../device/offer.js").Offer} Offer */
/** @typedef {import("../device/participation.js").Participation} Participation */
/** @typedef {import("../device/participation.js").Details} Details */

const CHANNEL = "relaxdp survey";

/** Several questions: loaded only by those who are asked them. */
export const several = () => import("./several.js");

/** One campaign in one tab. Other tabs show the same: they tell each other, and one of them sends. */
export class Survey {
  #address;
  #invitation;
  #storage = new BrowserStorage();
  // A turn that fails is taken again by the watch, which knows when the network is back.
  #client = new Client({ attempts: 2, timeout: 20, firstWait: 0.3 });
  /** @type {string | null} the entity tag of what was seen last; null where the next answer is news in any case */
  #tag = null;
  #watch;
  #channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
  /** @type {Offer | null} */
  #offer = null;
  /** @type {import("./introduced.js").Introduction | null} */
  #said = null;
  /** @type {Device | null} */
  #device = null;
  /** @type {Participation | null} */
  #mine = null;
  #startOver = false;
  /** @type {import("./words.js").Name} */
  #loss = "cleared.gone";
  #intro = new IntroductionView();
  #invitations = new InvitationView((invitation) => this.#useInvitation(invitation));
  /** @type {string | null} an invitation of which the server said that it would be taken */
  #good = null;
  #limits = new LimitView((upto) => this.#join(upto));
  #questions = new QuestionView((value) => this.#answer(value));
  #statuses = new StatusView({
    check: () => this.#news(),
    stop: () => this.#leave((participation) => participation.forget()),
    leave: () => this.#leave((participation) => participation.withdraw()),
    invite: (invitation) => this.#invite(invitation),
  });

  #results;

  /**
   * @param {string} address
   * @param {string | null} invitation
   */
  constructor(address, invitation) {
    this.#address = address;
    this.#invitation = invitation;
    this.#results = new ResultsView(address.replace(/\/v1\/campaigns\/([^/]+)$/, "/published/$1"));
    this.#watch = new Watch(() => this.#turn());
  }

  begin() {
    if (this.#channel !== null) this.#channel.onmessage = () => void this.#watch.wake();
    part("problem-again").addEventListener("click", () => void this.#news());
    onLanguage(() => say(part("cleared-title"), word(this.#loss)));
    const complain = complaint("cleared-form", "cleared-wrong");
    onSubmit("cleared-form", async () => {
      const understood = input("cleared-understood");
      if (!understood.checked) return complain(() => word("cleared.check"), understood);
      this.#startOver = true;
      this.#limits.forget();
      this.#device = this.#mine = null;
      await this.#watch.wake();
    });
    return this.#watch.start();
  }

  /** Look at the campaign and at what this browser keeps, send what may be sent, and show all of it. */
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
      const participation = await this.#participation();
      if (participation === null) return await this.#stranger(problem);
      problem ??= await this.#send(participation, news);
      return await this.#shown(participation, problem);
    } catch (thrown) {
      return this.#lost(refusalOf(thrown));
    }
  }

  /** Ask what the campaign is, where it may have changed; a server that cannot be reached throws. */
  async #look() {
    const address = CampaignAddress.parse(this.#address);
    const before = this.#tag;
    const enclosed = takeEnclosed();
    // What is wrong with a server that does not answer is found out below.
    this.#tag = enclosed?.tag ?? (await this.#client.tag(address, before).catch(() => null));
    if (this.#tag !== null && this.#tag === before && this.#offer !== null) return false;
    const content = enclosed?.content ?? (await this.#client.ask(address, []));
    this.#offer = await readOffer(address, content);
    this.#said = readIntroduction(content);
    return true;
  }

  /** @returns {Promise<Participation | null>} this campaign of this browser; null where it has not been joined */
  async #participation() {
    if (this.#device === null) {
      try {
        this.#device = await Device.open({ storage: this.#storage, client: this.#client });
      } catch (problem) {
        if (isRefusal(problem, "budget_missing_error")) return null;
        if (this.#startOver && lossOf(problem) !== undefined) return null;
        throw problem;
      }
    }
    if (this.#mine === null) {
      const campaigns = await this.#device.campaigns();
      this.#mine = campaigns.find(({ address }) => address === String(CampaignAddress.parse(this.#address))) ?? null;
    }
    return this.#mine;
  }

  /**
   * Send what is due, in one tab at a time. To ask twice is safe; it is only not useful.
   *
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
        else await participation.report(this.#offer ?? undefined);
      });
      return null;
    } catch (problem) {
      return refusalOf(problem);
    } finally {
      const after = await participation.details();
      if (JSON.stringify(after.sent) !== JSON.stringify(sent) || after.ended !== ended) this.#tell();
    }
  }

  /**
   * What somebody sees who has not joined.
   *
   * @param {RelaxdpError | null} problem
   */
  async #stranger(problem) {
    if (this.#offer === null || this.#said === null) return this.#failed(problem);
    this.#intro.show(this.#said, this.#offer.state === "paused");
    const closed = await this.#closed(this.#offer, this.#said);
    if (closed !== null) return closed;
    if (this.#offer.needsInvitation && this.#good === null) {
      const wrong = this.#invitation === null ? null : await this.#checkInvitation(this.#invitation);
      this.#invitation = null; // it is good now, or the person is asked for another one
      if (this.#good === null) {
        this.#invitations.show(wrong);
        return problem === null ? "go on" : "failed";
      }
    }
    this.#limits.show(this.#offer, this.#said, await this.#others());
    return problem === null ? "go on" : "failed";
  }

  /**
   * What somebody sees who has joined.
   *
   * @param {Participation} participation
   * @param {RelaxdpError | null} problem
   */
  async #shown(participation, problem) {
    const details = await participation.details();
    const dates = await participation.dates();
    if (this.#said !== null) this.#intro.show(this.#said, !details.answered && this.#offer?.state === "paused");
    if (!details.answered && details.ended === null) {
      if (this.#offer === null || this.#said === null) return this.#failed(problem);
      const closed = await this.#closed(this.#offer, this.#said);
      if (closed !== null) return closed;
      await participation.offer(); // so that an answer can be kept even if the network goes now
      this.#questions.show(this.#offer, details.consent, dates);
      return problem === null ? "go on" : "failed";
    }
    this.#statuses.show({ details, own: await participation.ownAnswer(), offer: this.#offer, problem, dates });
    if (problem !== null) return "failed";
    const known = await this.#learnt(this.#offer, this.#said);
    return details.ended === null || !known ? "go on" : "over";
  }

  /**
   * What is said where no answers are taken; null while they are.
   *
   * @param {Offer} offer
   * @param {import("./introduced.js").Introduction} said
   */
  async #closed({ state }, said) {
    const waits = state !== "finished";
    if (closedWords(state, said.opens) === null) return null;
    showProblem(() => {
      const { title, sentence } = /** @type {{ title: string, sentence: string }} */ (closedWords(state, said.opens));
      return { title, sentences: [sentence], perhapsLater: waits };
    });
    return waits || !(await this.#learnt(this.#offer, said)) ? "go on" : "over";
  }

  /**
   * Show what was learnt, where the survey has ended and shows it.
   *
   * @param {Offer | null} offer
   * @param {import("./introduced.js").Introduction | null} said
   * @returns {Promise<boolean>} whether nothing more is to come
   */
  async #learnt(offer, said) {
    if (offer?.state !== "finished" || !said?.showsResults) return true;
    return this.#results.show(() => this.#client.ask(CampaignAddress.parse(this.#address), ["published"]));
  }

  /**
   * Ask whether an invitation would be taken; no device is named, and nothing is used up.
   *
   * @param {string} invitation
   * @returns {Promise<RelaxdpError | null>} why it would not
   */
  async #checkInvitation(invitation) {
    try {
      await this.#client.ask(CampaignAddress.parse(this.#address), ["invitation"], { invitation });
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

  /**
   * What this browser kept cannot be used: it is said, and nothing begins anew by itself.
   *
   * @param {RelaxdpError} problem
   */
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

  /** What this browser has agreed to in other campaigns, or has spent where they are over. */
  async #others() {
    let [number, amount] = [0, ZERO];
    for (const other of this.#device === null ? [] : await this.#device.campaigns()) {
      const { consent, spent, ended } = await other.details();
      const part = ended === null ? consent : spent;
      if (part === "0") continue;
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
  async #join(upto) {
    const invitation = this.#good;
    try {
      this.#device ??= await this.#opened(upto);
      const { limit } = await this.#device.balance();
      const needed = (await this.#others()).amount.plus(Amount.parse(upto));
      await this.#device.changeLimit(String(most(needed, Amount.parse(limit))));
      this.#mine = await this.#device.join(this.#address, { upto, invitation });
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
    const participation = /** @type {Participation} */ (await this.#participation());
    try {
      await participation.answer(value);
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
      await this.#device?.join(this.#address, { invitation });
    } catch {
      // The next turn says what is wrong.
    }
    await this.#watch.wake();
  }

  /** @param {(participation: Participation) => Promise<void>} deed */
  async #leave(deed) {
    let problem = null;
    const participation = /** @type {Participation} */ (await this.#participation());
    try {
      await inOneTab(this.#address, () => deed(participation));
    } catch (thrown) {
      problem = refusalOf(thrown);
    }
    this.#tell();
    await this.#shown(participation, problem);
    if ((await participation.details()).ended === "withdrawing") await this.#watch.wake();
  }

  async #news() {
    this.#tag = null;
    await this.#watch.wake();
  }

  #tell() {
    this.#channel?.postMessage(this.#address);
  }
}

/**
 * @param {string} name
 * @param {() => Promise<void>} deed
 */
export async function inOneTab(name, deed) {
  // Without locks two tabs may both send the same report, which the server then has once.
  return navigator.locks ? navigator.locks.request(`${CHANNEL} ${name}`, deed) : deed();
}
