/** Every credit that came and went. */

import { h, notice } from "../kit/dom.js";
import { moment, whole } from "../kit/words.js";

/** @param {import("./session.js").Session} session */
export function statementPart(session) {
  const told = h("div", {}, h("p", { class: "muted" }, "One moment …"));
  const element = h(
    "details",
    { class: "card", ontoggle: opened },
    h("summary", {}, "Every credit that came and went"),
    told,
  );

  async function opened() {
    if (!element.open) return;
    try {
      const { entries } = await session.api.ask("GET", "market/statement");
      told.replaceChildren(entries.length > 0 ? tableOf(entries) : h("p", { class: "muted" }, "None yet."));
    } catch (refusal) {
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
  }
  return element;
}

/** @param {any[]} entries */
function tableOf(entries) {
  const heads = ["What for", "Credits"].map((each) => h("th", { scope: "col" }, each));
  const rows = entries.map(({ issued, reason, purchase, amount }) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        reason,
        h(
          "span",
          { class: "hint" },
          [moment(issued), purchase === null ? null : `purchase ${purchase}`]
            .filter((each) => each !== null)
            .join(", "),
        ),
      ),
      h("td", {}, `${amount > 0 ? "+" : ""}${whole(amount)}`),
    ),
  );
  return h(
    "table",
    {},
    h("caption", {}, "The newest first, at most 1,000."),
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows),
  );
}
