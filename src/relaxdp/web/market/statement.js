/** Every credit that came and went. */

import { attempt, h, tableHead, tableRow } from "../kit/dom.js";
import { moment, whole } from "../kit/words.js";

/** @param {import("./session.js").MarketSession} session */
export function statementPart(session) {
  const body = h("div", {});
  const element = h(
    "details",
    { class: "card", ontoggle: opened },
    h("summary", {}, "Every credit that came and went"),
    body,
  );

  async function opened() {
    if (!element.open) return;
    await attempt(body, async () => {
      body.replaceChildren(h("p", { class: "muted" }, "One moment …"));
      /** @type {import("../kit/wire.d.ts").Statement} */
      const { entries } = await session.api.ask("GET", "market/statement");
      body.replaceChildren(entries.length > 0 ? entriesTable(entries) : h("p", { class: "muted" }, "None yet."));
    });
  }
  return element;
}

/** @param {import("../kit/wire.d.ts").Entry[]} entries */
function entriesTable(entries) {
  const rows = entries.map(({ issued, reason, purchase, amount }) => {
    const row = tableRow(reason, `${amount > 0 ? "+" : ""}${whole(amount)}`);
    row.cells[0].append(
      h("span", { class: "hint" }, purchase === null ? moment(issued) : `${moment(issued)}, purchase ${purchase}`),
    );
    return row;
  });
  const caption = h("caption", {}, "The newest first, at most 1,000.");
  return h("table", {}, caption, tableHead("What for", "Credits"), h("tbody", {}, ...rows));
}
