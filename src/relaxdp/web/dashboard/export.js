/** What leaves the dashboard: files for the operator's own use, what is published for everybody, and the end of reports. */

import { ROOT } from "../kit/api.js";
import { copyPart } from "../kit/copy.js";
import { attempt, confirmed, h, put, save } from "../kit/dom.js";
import { moment, plural } from "../kit/words.js";

/** @typedef {import("../kit/wire.d.ts").OperatorCampaign} Campaign */

const REDUCE = {
  title: "Delete the reports?",
  text: [
    "All reports are deleted and only counts are kept. The estimates stay.",
    "This cannot be undone: afterwards no report can be saved, and no one can withdraw.",
  ],
  yes: "Delete the reports",
};

/**
 * @param {import("../kit/api.js").Api} api
 * @param {string} path
 * @param {string} id
 */
export function exportPart(api, path, id) {
  const refusal = h("div", {});

  /**
   * @param {string} file
   * @param {string} name
   */
  const download = (file, name) => attempt(refusal, async () => save(await api.file(`${path}/${file}`), name));
  const button = (/** @type {string} */ words, /** @type {() => unknown} */ onclick) =>
    h("button", { type: "button", onclick }, words);
  const reduce = async () => {
    if (await confirmed(REDUCE)) await attempt(refusal, async () => update(await api.ask("POST", `${path}/reduce`)));
  };
  let chosen = ""; // by the operator: a newer level is not chosen in place of it
  const choose = () => {
    chosen = level.value;
  };
  const level = h("select", { id: "export-level", onchange: choose });
  const estimates = h(
    "div",
    {},
    h("h3", {}, "Estimates"),
    h(
      "p",
      {},
      button("Table (CSV)", () => download("estimate.csv", `${id}-estimate.csv`)),
    ),
  );
  const choice = h(
    "div",
    {},
    h("h3", {}, "Reports"),
    h("p", { class: "small muted" }, "Protected as they are. The command relaxdp estimate reads them."),
    h("div", { class: "field" }, h("label", { for: "export-level" }, "Of level"), level),
    h(
      "p",
      {},
      button("Download reports", () => download(`export?level=${level.value}`, `${id}-${level.value}.parquet`)),
    ),
  );
  const gone = h(
    "p",
    {},
    h("button", { type: "button", class: "danger quiet", onclick: reduce }, "Delete the reports …"),
  );
  const deleted = h("p", { class: "muted" }, "The reports are deleted.");
  const none = h("p", { class: "muted" }, "There are files as soon as somebody has answered.");
  const element = h(
    "section",
    { class: "card" },
    h("h2", {}, "Files"),
    h(
      "p",
      { class: "small muted" },
      "For you and your team: they change with single reports. For everybody there is what is published.",
    ),
    none,
    estimates,
    choice,
    gone,
    deleted,
    refusal,
  );

  /** @param {Campaign} campaign */
  function update(campaign) {
    const { levels, reduced, open_level: open, devices, state } = campaign;
    const some = devices.total > 0;
    none.hidden = some;
    estimates.hidden = !some;
    choice.hidden = reduced || !some;
    gone.hidden = reduced || state !== "finished" || !some;
    deleted.hidden = !reduced;
    const offered = levels.flatMap(({ epsilon }, place) =>
      open !== null && place <= open && devices.reports[place] > 0 ? [{ epsilon, place }] : [],
    );
    const counted = offered.map(({ epsilon, place }) => ({
      place,
      words: `ε ${epsilon} (${plural(devices.reports[place], "report")})`,
    }));
    counted.reverse(); // the clearest one first
    if (level.options.length === counted.length) {
      // An option changes in place, so that a list that is open stays open.
      for (const [index, { place, words }] of counted.entries())
        Object.assign(level.options[index], { value: place, textContent: words });
      return;
    }
    level.replaceChildren(...counted.map(({ place, words }) => h("option", { value: place }, words)));
    if (offered.some(({ place }) => String(place) === chosen)) level.value = chosen;
  }
  return { element, update };
}

/** What everybody sees, and when: once, at a stated moment, and never what the live page shows. */
export function publicationPart() {
  const body = h("div", {});
  const element = h("section", { class: "card" }, h("h2", {}, "Results for everybody"), body);
  let shown = "";

  /** @param {Campaign} campaign */
  function update(campaign) {
    const { published, publish, closes, id } = campaign;
    if (shown === published) return;
    shown = published;
    const address = new URL(`published/${id}`, ROOT).href;
    const least = publish === null ? "" : ` Levels with fewer than ${plural(publish.least, "device")} are left out.`;
    if (published === "done") {
      const words = "Published once, from all who had answered when the campaign ended. It never changes.";
      const link = h("a", { class: "button", href: address, target: "_blank", rel: "noopener" }, "Open the page");
      put(body, h("p", {}, words), copyPart("Link to the results", address), h("p", {}, link));
    } else if (published === "never") {
      const why =
        publish === null
          ? "This campaign publishes nothing: that is chosen when one is created. Live results are for you alone, since they change with single answers."
          : "Nothing was published: the campaign was ended by hand, or every level had too few devices.";
      put(body, h("p", {}, why));
    } else {
      const when =
        closes === null
          ? "when the answer is precise enough"
          : `when it closes, ${moment(closes)}, or before if the answer is precise enough`;
      const words = published === "soon" ? "It is being written, within seconds." : `Published once, ${when}.`;
      put(body, h("p", {}, `${words}${least}`), copyPart("The link will be", address));
    }
  }
  return { element, update };
}
