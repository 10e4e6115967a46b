/** How people come to a campaign, or to a survey of several questions: its address, as a link, a picture to scan and a piece of a site. */

import { ROOT } from "../kit/api.js";
import { copyPart } from "../kit/copy.js";
import { attempt, h, s, save } from "../kit/dom.js";
import { pngOf } from "../kit/picture.js";

/** @typedef {import("../kit/api.js").Api} Api */

const QUIET = 4; // modules of light around the code, without which many cameras do not find it
const PRINTED = 1024;

/** @param {string} id of a campaign */
export const surveyAddress = (id) => new URL(`survey/${id}`, ROOT).href;

/** @param {string} name of a survey of several questions */
export const severalAddress = (name) => new URL(`surveys/${name}`, ROOT).href;

/**
 * @param {Api} api
 * @param {{ id: string, needs_invitation: boolean }} asked a campaign, or a survey
 * @param {string} [address]
 */
export function sharePart(api, { id, needs_invitation: invited }, address = surveyAddress(id)) {
  const refusal = h("div", {});
  const code = h("div", { class: "qr" });
  const snippet = `<iframe src="${address}" title="Survey" width="100%" height="900" referrerpolicy="no-referrer"></iframe>`;
  const words = invited
    ? "Only people with an invitation can take part: make them below, each is a link of its own. Without one this page says so."
    : "Whoever opens this link can take part. Their answer stays in their browser.";
  const element = h(
    "section",
    { class: "card share" },
    h("h2", {}, "Share the survey"),
    h("p", {}, words),
    h(
      "div",
      { class: "sharing" },
      h(
        "div",
        {},
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
      ),
      invited ? null : code,
    ),
    refusal,
  );
  if (!invited) attempt(refusal, async () => code.replaceChildren(...(await codePieces(api, address, id))));
  return element;
}

/**
 * @param {Api} api
 * @param {string} address
 * @param {string} id
 */
async function codePieces(api, address, id) {
  /** @type {import("../kit/wire.d.ts").Code} */
  const { rows } = await api.ask("POST", "qr-code", { address });
  const picture = codePicture(rows, `QR code of ${address}`);
  const keep = async () => save(await pngOf(picture, PRINTED, PRINTED), `${id}-qr-code.png`);
  return [picture, h("button", { type: "button", onclick: keep }, "Save as picture")];
}

/**
 * Dark on light also where the page is dark: scanners want it so.
 *
 * @param {string[]} rows
 * @param {string} text
 */
export function codePicture(rows, text) {
  const size = rows.length + 2 * QUIET;
  const dark = rows.flatMap((row, y) =>
    [...row].flatMap((module, x) => (module === "1" ? [`M${x + QUIET},${y + QUIET}h1v1h-1z`] : [])),
  );
  return s(
    "svg",
    { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": text, "shape-rendering": "crispEdges" },
    s("rect", { width: size, height: size, fill: "#fff" }),
    s("path", { d: dark.join(""), fill: "#000" }),
  );
}
