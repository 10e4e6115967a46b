/** The last view of a survey with several questions: for each the person's answer, above what was sent of it. */

import { h } from "../kit/dom.js";
import { onLanguage } from "../kit/language.js";
import { part, say, show } from "./page.js";
import { answerText, nowSentence, onDeeds, reportItem } from "./status.js";
import { word } from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */
/** @typedef {import("../device/offer.js").Offer} Offer */
/** @typedef {import("../device/participation.js").Details} Details */
/** @typedef {{ details: Details, own: unknown, offer: Offer | null, problem: RelaxdpError | null }} Answered */
/** @typedef {{ answered: Answered[], leftOut: string[], limit: string, spent: string }} Shown */

// What is said of one answer stands in the list below instead.
const SINGLE = ["status-question", "status-own", "status-erased", "status-nothing", "status-counts", "status-reports"];

export class SeveralStatusView {
  /** @type {Shown | null} */
  #shown = null;
  #listed = "";
  #open = false;
  #list = h("ol", { class: "answers" });

  /** @param {import("./status.js").Deeds} deeds */
  constructor(deeds) {
    for (const id of SINGLE) part(id).hidden = true;
    for (const each of part("status").querySelectorAll(".mine, .theirs")) each.toggleAttribute("hidden", true);
    part("status-about").before(this.#list);
    const other = part("status-about").querySelector("p");
    other?.setAttribute("data-word", "several.else");
    if (other) other.textContent = word("several.else");
    onDeeds(deeds);
    onLanguage(() => {
      this.#listed = "";
      this.#say();
    });
  }

  /** Show the answers themselves: they were given here a moment ago. Whoever opens the page later has to ask. */
  reveal() {
    this.#open = true;
  }

  /** @param {Shown} shown */
  show(shown) {
    show("status");
    this.#shown = shown;
    this.#say();
  }

  #say() {
    if (this.#shown === null) return;
    const { answered, leftOut, limit, spent } = this.#shown;
    const problem = answered.find((each) => each.problem !== null)?.problem ?? null;
    const away = problem?.code === "unreachable_error";
    const sentences = new Set(answered.map(({ details, offer, problem }) => nowSentence(details, offer, problem)));
    const cost = word("several.spent", { spent, limit });
    say(part("status-now"), [...(sentences.size === 1 ? sentences : [word("several.each")]), cost].join(" "));
    part("status-now").classList.toggle("warn", away);
    part("status-now").classList.toggle("bad", problem !== null && !away);
    const content = JSON.stringify([answered.map(({ details, own }) => [details, own]), leftOut, sentences.size]);
    if (content !== this.#listed) {
      this.#listed = content;
      const items = answered.map((each) => answeredItem(each, sentences.size > 1, this.#open));
      const out = leftOut.map((question) =>
        h(
          "li",
          {},
          h("p", { class: "asked", dir: "auto" }, question),
          h("p", { class: "small" }, word("several.left")),
        ),
      );
      this.#list.replaceChildren(...items, ...out);
    }
    const going = answered.some(({ details }) => details.ended === null);
    const anything = answered.some(({ details }) => details.sent.length > 0);
    part("status-about").hidden = !anything;
    part("status-invited").hidden = problem?.fields.error !== "invitation_refused";
    part("status-check").hidden = !answered.some(({ details: { ended } }) => ended === null || ended === "withdrawing");
    part("status-stop").hidden = !going;
    part("status-leave").hidden = answered.every(({ details: { ended } }) => ended?.startsWith("withdr"));
  }
}

/**
 * @param {Answered} answered
 * @param {boolean} withNow whether questions stand differently
 * @param {boolean} open
 */
function answeredItem({ details, own, offer, problem }, withNow, open) {
  const { question, sent, ended } = details;
  const answer = h(
    "details",
    { ...(open ? { open: "" } : {}) },
    h("summary", {}, word("status.show")),
    h("p", { class: "own", dir: "auto" }, own === undefined ? "" : answerText(own, offer)),
  );
  return h(
    "li",
    {},
    h("h3", { class: "asked", dir: "auto" }, question),
    withNow ? h("p", { class: "small" }, nowSentence(details, offer, problem)) : null,
    h(
      "div",
      { class: "mine" },
      h("h4", {}, word("status.own")),
      h("p", { class: "small muted" }, word("status.ownHere")),
      own === undefined ? h("p", {}, word(details.answered ? "status.erased" : "several.unanswered")) : answer,
    ),
    h(
      "div",
      { class: "theirs" },
      h("h4", {}, word("status.sent")),
      h("p", { class: "small muted" }, word(sent.length > 0 ? "status.sentLead" : "status.nothing")),
      h(
        "ol",
        { class: "reports" },
        ...sent.map((each) =>
          reportItem(each, offer, ended === "withdrawn" && each.status === "sent" ? "gone" : each.status),
        ),
      ),
    ),
  );
}
