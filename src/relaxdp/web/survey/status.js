/** The third view: exactly what was sent, what is waiting, and how to leave. */

import { h } from "../kit/dom.js";
import { partOf } from "../kit/page.js";
import { reportWords, spentSentence } from "../kit/reports.js";
import { scalePicture } from "../kit/scale.js";
import { input, onSubmit, part, say, show } from "./page.js";
import * as words from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */
/** @typedef {import("../device/offer.js").Offer} Offer */
/** @typedef {import("../device/participation.js").Details} Details */
/** @typedef {import("../device/state.js").Sent} Sent */

const STATUSES = {
  written: "waiting to be sent",
  sent: "received",
  refused: "refused by the server",
  gone: "received, then deleted",
};

/** Shows what the device keeps of this campaign, apart from its secrets. */
export class StatusView {
  #shown = "";

  /**
   * @param {{ check: () => Promise<void>, stop: () => Promise<void>, leave: () => Promise<void>,
   *           invite: (invitation: string) => Promise<void> }} deeds
   */
  constructor({ check, stop, leave, invite }) {
    const button = partOf("status-check", HTMLButtonElement);
    button.addEventListener("click", async () => {
      button.disabled = true;
      await check();
      button.disabled = false;
    });
    confirmFirst("stop", stop);
    confirmFirst("leave", leave);
    onSubmit("status-invited", () => invite(input("status-invitation").value.trim()));
  }

  /**
   * @param {Details} details
   * @param {Offer | null} offer null where the server has not been reached yet
   * @param {RelaxdpError | null} problem what kept the last turn from its end
   * @param {import("../device/participation.js").DateCost[]} dates of its series that this browser joined
   */
  show(details, offer, problem, dates) {
    show("status");
    const { sent, ended, question } = details;
    say(part("status-question"), question);
    say(part("status-now"), nowSentence(details, offer, problem));
    const away = problem?.code === "unreachable_error";
    part("status-now").classList.toggle("warn", away);
    part("status-now").classList.toggle("bad", problem !== null && !away);
    this.#reports(details, offer);
    part("status-nothing").hidden = sent.length > 0;
    part("status-about").hidden = sent.length === 0 || offer === null;
    if (offer !== null && sent.length > 0) {
      say(part("status-spent"), spentSentence(offer.encoding, details.spent));
      const costs = dates.map(({ date, spent }) => ({ date, cost: spent }));
      say(part("status-series"), words.seriesSentence(offer.encoding, details.series?.date, costs, "sent"));
      say(part("status-meaning"), words.meaningOf(offer.encoding, sent[sent.length - 1]));
    }
    part("status-invited").hidden = problem?.fields.error !== "invitation_refused" || ended !== null;
    part("status-check").hidden = ended !== null && ended !== "withdrawing";
    part("status-stop").hidden = ended !== null;
    part("status-leave").hidden =
      ended === "withdrawn" || ended === "withdrawing" || (ended !== null && sent.length === 0);
  }

  /**
   * @param {Details} details
   * @param {Offer | null} offer
   */
  #reports({ sent, ended }, offer) {
    const content = JSON.stringify([sent, ended, offer === null]);
    if (content === this.#shown) return;
    this.#shown = content;
    const items = sent.map((each) =>
      reportItem(each, offer, ended === "withdrawn" && each.status === "sent" ? "gone" : each.status),
    );
    part("status-reports").replaceChildren(...items);
  }
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

/**
 * @param {Sent} sent
 * @param {Offer | null} offer
 * @param {keyof typeof STATUSES} status
 */
function reportItem(sent, offer, status) {
  const unread = { text: String(sent.report), bytes: false, beside: null };
  const { text, bytes, beside } = offer === null ? unread : reportWords(offer.encoding, sent);
  const time = h("time", { datetime: sent.time }, words.moment(sent.time));
  const report = h(bytes ? "code" : "strong", { dir: "auto" }, text);
  return h(
    "li",
    {},
    h("div", { class: "report" }, "reported: ", report, beside === null ? "" : ` (${beside})`),
    offer === null ? null : scalePicture(offer.encoding, sent.report),
    h("div", { class: "small" }, `${stepOf(sent, offer)}epsilon ${sent.epsilon}, `, time),
    h("span", { class: `badge ${status}` }, STATUSES[status]),
  );
}

/**
 * @param {Sent} sent
 * @param {Offer | null} offer
 */
function stepOf({ epsilon }, offer) {
  const place = offer?.levels.findIndex((level) => String(level.epsilon) === epsilon) ?? -1;
  return place < 0 ? "" : `step ${place + 1} of ${offer?.levels.length}, `;
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
    const ending = words.endedSentence(ended, sent.length > 0);
    return problem === null || ended === "withdrawing" ? ending : `${words.problemWords(problem)} ${ending}`;
  }
  if (problem?.code === "unreachable_error") {
    const what = waiting
      ? "Your answer is kept here, and its report is waiting to be sent."
      : "Everything that was to be sent has been received.";
    return `${words.problemWords(problem)} ${what} This page tries again by itself.`;
  }
  if (problem?.code === "consent_error" || problem?.code === "budget_exceeded_error") {
    return "The survey asks for more than your limit allows, so nothing is sent. Your limit stays as it is.";
  }
  if (problem !== null) return words.problemWords(problem);
  if (offer === null) return "Asking the server …";
  if (offer.state !== "open") {
    const what = waiting
      ? "Your answer is kept here; its report is sent when the survey goes on."
      : "Nothing is waiting to be sent.";
    return `The survey ${offer.state === "waiting" ? "has not begun" : "pauses"}. ${what}`;
  }
  if (waiting) return "Sending the report …";
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
  if (here === levels.length) return "Thank you. Your report was received, and it is the last step of this survey.";
  if (here >= most) {
    const gone = open.length > here ? ` The survey has gone on to step ${open.length} without you.` : "";
    return `Thank you. Your report was received. Your limit ends at this step, so nothing clearer will be sent.${gone}`;
  }
  return (
    `Thank you. Your report was received. When the survey opens its next step, this page sends a clearer report by ` +
    `itself, now if it stays open or when you come back, up to step ${most} as your limit says.`
  );
}
