/** The last view: the person's answer, what was sent of it, what is waiting, and how to leave. */

import { Bloom } from "../device/encodings/bloom.js";
import { Ranged } from "../device/encodings/range.js";
import { h } from "../kit/dom.js";
import { decimal, moment, onLanguage, plainNumber } from "../kit/language.js";
import { partOf } from "../kit/page.js";
import { reportWords, spentSentence, valueText } from "../kit/reports.js";
import { numberPicture, scalePicture } from "../kit/scale.js";
import { complaint, input, onSubmit, part, say, show } from "./page.js";
import { endedSentence, meaningOf, pieces, problemWords, word } from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */
/** @typedef {import("../device/offer.js").Offer} Offer */
/** @typedef {import("../device/participation.js").Details} Details */
/** @typedef {import("../device/state.js").Sent} Sent */
/**
 * @typedef {object} Shown
 * @property {Details} details
 * @property {unknown} own what the person answered; undefined where it was erased
 * @property {Offer | null} offer null where the server has not been reached yet
 * @property {RelaxdpError | null} problem what kept the last turn from its end
 */

/**
 * @typedef {{ check: () => Promise<void>, stop: () => Promise<void>, leave: () => Promise<void>,
 *             invite: (invitation: string) => Promise<void> }} Deeds
 */

/**
 * Let the buttons below what was sent do something.
 *
 * @param {Deeds} deeds
 */
export function onDeeds({ check, stop, leave, invite }) {
  const button = partOf("status-check", HTMLButtonElement);
  button.addEventListener("click", async () => {
    button.disabled = true;
    await check();
    button.disabled = false;
  });
  confirmFirst("stop", stop);
  confirmFirst("leave", leave);
  const complain = complaint("status-invited", "status-invitation-wrong");
  onSubmit("status-invited", async () => {
    const field = input("status-invitation");
    const invitation = field.value.trim();
    if (invitation === "") return complain(() => word("invitation.missing"), field);
    await invite(invitation);
  });
}

/** Shows what the device keeps of this campaign, apart from its key. */
export class StatusView {
  #listed = "";
  /** @type {Shown | null} */
  #shown = null;

  /** @param {Deeds} deeds */
  constructor(deeds) {
    onDeeds(deeds);
    onLanguage(() => {
      this.#listed = "";
      this.#say();
    });
  }

  /** Show the answer itself: it was given here a moment ago. Whoever opens the page later has to ask for it. */
  reveal() {
    partOf("status-own", HTMLDetailsElement).open = true;
  }

  /** @param {Shown} shown */
  show(shown) {
    show("status");
    this.#shown = shown;
    this.#say();
  }

  #say() {
    if (this.#shown === null) return;
    const { details, own, offer, problem } = this.#shown;
    const { sent, ended, question } = details;
    say(part("status-question"), question);
    say(part("status-now"), nowSentence(details, offer, problem));
    const away = problem?.code === "unreachable_error";
    part("status-now").classList.toggle("warn", away);
    part("status-now").classList.toggle("bad", problem !== null && !away);
    this.#own(own, offer);
    this.#reports(details, offer);
    const anything = sent.length > 0;
    part("status-nothing").hidden = anything;
    const lead = offer !== null && offer.encoding instanceof Ranged ? "status.sentNumber" : "status.sentLead";
    say(part("status-lead"), anything ? word(lead) : null);
    part("status-counts").hidden = !anything || offer === null;
    part("status-about").hidden = !anything;
    if (offer !== null && anything) {
      say(part("status-spent"), spentSentence(offer.encoding, details.whole.spent));
      say(part("status-meaning"), meaningOf(offer.encoding, sent[sent.length - 1]));
    }
    part("status-invited").hidden = problem?.fields.error !== "invitation_refused" || ended !== null;
    part("status-check").hidden = ended !== null && ended !== "withdrawing";
    part("status-stop").hidden = ended !== null;
    part("status-leave").hidden = ended === "withdrawn" || ended === "withdrawing" || (ended !== null && !anything);
  }

  /**
   * @param {unknown} own
   * @param {Offer | null} offer
   */
  #own(own, offer) {
    const erased = own === undefined;
    part("status-own").hidden = part("status-here").hidden = erased;
    part("status-erased").hidden = !erased;
    const text = erased ? "" : answerText(own, offer);
    say(part("status-answer"), text);
    const picture = erased || offer === null ? null : numberPicture(offer.encoding, Number(own));
    part("status-answer-scale").replaceChildren(...(picture === null ? [] : [picture]));
  }

  /**
   * @param {Details} details
   * @param {Offer | null} offer
   */
  #reports({ sent, ended }, offer) {
    const content = JSON.stringify([sent, ended, offer === null]);
    if (content === this.#listed) return;
    this.#listed = content;
    const items = sent.map((each) =>
      reportItem(each, offer, ended === "withdrawn" && each.status === "sent" ? "gone" : each.status),
    );
    part("status-reports").replaceChildren(...items);
  }
}

/**
 * @param {unknown} own
 * @param {Offer | null} offer
 */
export function answerText(own, offer) {
  const boolean = offer !== null && offer.encoding instanceof Bloom && offer.encoding.isBoolean;
  if (boolean) return word(own === "true" ? "question.yes" : "question.no");
  return typeof own === "number" ? plainNumber(own) : valueText(own);
}

/**
 * A deed that is asked about first.
 *
 * @param {"stop" | "leave"} name
 * @param {() => Promise<void>} deed
 */
function confirmFirst(name, deed) {
  const dialog = partOf(`${name}-dialog`, HTMLDialogElement);
  part(`status-${name}`).addEventListener("click", () => {
    dialog.returnValue = "no";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes") void deed();
  });
}

const STATUSES = /** @type {const} */ ({
  written: "status.written",
  sent: "status.received",
  refused: "status.refused",
  gone: "status.gone",
});

/**
 * @param {Sent} sent
 * @param {Offer | null} offer
 * @param {keyof typeof STATUSES} status
 */
export function reportItem(sent, offer, status) {
  const unread = { text: String(sent.report), beside: null, raw: null };
  const { text, beside, raw } = offer === null ? unread : reportWords(offer.encoding, sent);
  const several = offer !== null && raw !== null && offer.encoding.values !== null;
  const time = h("time", { datetime: sent.time }, moment(sent.time));
  const said = several ? word("status.stands", { answers: text }) : text;
  return h(
    "li",
    {},
    h("div", { class: "report", dir: "auto" }, said, beside === null ? "" : ` (${beside})`),
    offer === null ? null : scalePicture(offer.encoding, sent.report),
    h("div", { class: "small" }, ...stepOf(sent, offer, time)),
    raw === null ? null : h("div", { class: "small" }, ...pieces("status.raw", { raw: h("code", {}, raw) })),
    h("span", { class: `badge ${status}` }, word(STATUSES[status])),
  );
}

/**
 * @param {Sent} sent
 * @param {Offer | null} offer
 * @param {HTMLElement} time
 */
function stepOf({ epsilon }, offer, time) {
  const place = offer?.levels.findIndex((level) => String(level.epsilon) === epsilon) ?? -1;
  if (offer === null || place < 0) return pieces("status.stepless", { epsilon: decimal(epsilon), time });
  return pieces("status.step", { step: place + 1, all: offer.levels.length, epsilon: decimal(epsilon), time });
}

/**
 * What is going on, in a sentence or two.
 *
 * @param {Details} details
 * @param {Offer | null} offer
 * @param {RelaxdpError | null} problem
 */
export function nowSentence(details, offer, problem) {
  const { ended, sent } = details;
  const waiting = sent.length === 0 || sent.some(({ status }) => status === "written");
  if (ended !== null) {
    const ending = endedSentence(ended, sent.length > 0);
    return problem === null || ended === "withdrawing" ? ending : `${problemWords(problem)} ${ending}`;
  }
  if (problem?.code === "unreachable_error") {
    return `${problemWords(problem)} ${word(waiting ? "now.kept" : "now.allSent")} ${word("now.again")}`;
  }
  if (problem !== null) return problemWords(problem);
  if (offer === null) return word("now.asking");
  if (offer.state !== "open") {
    const begun = word(offer.state === "waiting" ? "now.waiting" : "now.paused");
    return `${begun} ${word(waiting ? "now.onward" : "now.quiet")}`;
  }
  if (waiting) return word("now.sending");
  return openSentence(details, offer);
}

/**
 * @param {Details} details
 * @param {Offer} offer
 */
function openSentence({ spent, consent }, { levels, open }) {
  const epsilonOf = (/** @type {Offer["levels"][number]} */ level) => String(level.epsilon);
  const here = levels.findIndex((level) => epsilonOf(level) === spent) + 1;
  const most = levels.filter((level) => Number(epsilonOf(level)) <= Number(consent)).length;
  if (here === levels.length) return word("now.last");
  if (here < most) return word("now.next", { step: most });
  return open.length > here ? `${word("now.ends")} ${word("now.without", { step: open.length })}` : word("now.ends");
}
