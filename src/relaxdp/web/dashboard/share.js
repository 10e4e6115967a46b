/** How people come to a campaign, or to a survey of several questions: its address, as a link and a piece of a site. */

import { ROOT } from "../kit/api.js";
import { copyPart } from "../kit/copy.js";
import { h } from "../kit/dom.js";

/** @param {string} id of a campaign */
export const surveyAddress = (id) => new URL(`survey/${id}`, ROOT).href;

/** @param {string} name of a survey of several questions */
export const severalAddress = (name) => new URL(`surveys/${name}`, ROOT).href;

/**
 * @param {{ id: string, needs_invitation: boolean }} asked a campaign, or a survey
 * @param {string} [address]
 */
export function sharePart({ id, needs_invitation: invited }, address = surveyAddress(id)) {
  const snippet = `<iframe src="${address}" title="Survey" width="100%" height="900" referrerpolicy="no-referrer"></iframe>`;
  const words = invited
    ? "Only people with an invitation can take part: make them below, each is a link of its own. Without one this page says so."
    : "Whoever opens this link can take part. Their answer stays in their browser.";
  return h(
    "section",
    { class: "card share" },
    h("h2", {}, "Share the survey"),
    h("p", {}, words),
    copyPart("Link", address),
    h(
      "p",
      { class: "row" },
      h("a", { class: "button", href: address, target: "_blank", rel: "noopener" }, "Open it as people see it"),
    ),
    h("p", { class: "small muted" }, "It is the real page: an answer that you send there counts."),
    h(
      "details",
      {},
      h("summary", {}, "Show it inside your own site"),
      copyPart("A piece of HTML", snippet, { lines: true }),
      h(
        "p",
        { class: "small muted" },
        "The service must know your site: start it with ",
        h("code", {}, "relaxdp serve --embed https://www.your-site.example"),
        ". Use either the link or the site for one campaign: a person who comes both ways counts twice.",
      ),
    ),
  );
}
