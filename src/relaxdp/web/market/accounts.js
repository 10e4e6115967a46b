/** The operator's page: who trades, who has how many credits, and whether the books balance. */

import { confirmed, h, notice } from "../kit/dom.js";
import { field, formPart, NAME, read } from "../kit/form.js";
import { whole } from "../kit/words.js";
import { credits, tell } from "./words.js";

const ISSUE = "issue";
const MOST_ROWS = 20;
const MOST_NAMES = 1000;

/**
 * @param {import("./session.js").Session} session
 * @param {HTMLElement} main
 */
export async function showAccounts(session, main) {
  const { api } = session;
  const books = h("div", { class: "answer-room" });
  const body = h("tbody", {});
  const more = h("p", { class: "small muted" });
  const find = h("input", { type: "search", autocomplete: "off", oninput: draw });
  /** @type {any[]} */
  let people = [];
  const names = h("datalist", { id: "accounts" });
  const token = h("div", { "aria-live": "polite" });

  async function refresh() {
    const [{ accounts }, found] = await Promise.all([
      api.ask("GET", "market/accounts"),
      api.ask("GET", "market/books"),
    ]);
    people = accounts.filter((/** @type {any} */ each) => each.name !== ISSUE);
    books.replaceChildren(balance(found));
    names.replaceChildren(...people.slice(0, MOST_NAMES).map(({ name }) => h("option", { value: name })));
    draw();
  }

  function draw() {
    const fitting = people.filter(({ name, role }) => `${name} ${role}`.includes(find.value.trim().toLowerCase()));
    const hidden = fitting.length - MOST_ROWS;
    body.replaceChildren(
      ...(fitting.length > 0
        ? fitting.slice(0, MOST_ROWS).map(row)
        : [h("tr", {}, h("td", { colspan: 3, class: "muted" }, "No account."))]),
    );
    more.textContent = hidden > 0 ? `${whole(hidden)} more: type a part of the name.` : "";
  }

  /** @param {any} account */
  function row({ name, role, balance: has }) {
    const button = h(
      "button",
      { class: "quiet", type: "button", "aria-label": `New token for ${name}`, onclick: () => renew(name) },
      "New\u00a0token\u00a0…",
    );
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name, h("span", { class: "hint" }, role)),
      h("td", {}, whole(has)),
      h("td", {}, button),
    );
  }

  /** @param {string} name */
  async function renew(name) {
    const sure = await confirmed({
      title: `A new token for ${name}?`,
      text: ["The old one ends at once: whoever uses it has to sign in again."],
      yes: "Make a new token",
    });
    if (!sure) return;
    try {
      token.replaceChildren(once(await api.ask("POST", `market/accounts/${encodeURIComponent(name)}/token`)));
    } catch (refusal) {
      token.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
  }

  const create = formPart(
    [
      field("name", "Name", h("input", { autocomplete: "off" }), "Small letters, digits and hyphens."),
      field(
        "role",
        "Role",
        h("select", {}, h("option", { value: "buyer" }, "buyer"), h("option", { value: "seller" }, "seller")),
      ),
    ],
    {
      yes: "Make the account",
      check: (data) =>
        NAME.test(read(data, "name")) ? {} : { name: "Small letters, digits and hyphens, at most 64, like anna." },
      work: async (data) => {
        const made = await api.ask("POST", "market/accounts", { name: read(data, "name"), role: read(data, "role") });
        create.reset();
        await refresh();
        return once(made);
      },
    },
  );
  const give = formPart(
    [
      field("account", "Account", h("input", { list: "accounts", autocomplete: "off" })),
      names,
      field("amount", "Credits", h("input", { type: "number", min: 1, step: 1, inputmode: "numeric" })),
      field(
        "reason",
        "Reason",
        h("input", { autocomplete: "off", maxlength: 200 }),
        "It stands in the statement of the account.",
      ),
    ],
    {
      yes: "Give credits",
      check: (data) => ({
        ...(NAME.test(read(data, "account")) ? {} : { account: "The name of an account, like anna." }),
        ...(/^[1-9][0-9]{0,14}$/.test(read(data, "amount")) ? {} : { amount: "A whole number, from 1 on." }),
        ...(read(data, "reason") === "" ? { reason: "Say why, in a few words." } : {}),
      }),
      work: async (data) => {
        const amount = Number(read(data, "amount"));
        const account = await api.ask("POST", "market/credits", {
          account: read(data, "account"),
          amount,
          reason: read(data, "reason"),
        });
        give.reset();
        await refresh();
        tell(`${account.name} has ${credits(account.balance)} now.`);
        return notice(`${account.name} has ${credits(account.balance)} now.`, "good");
      },
    },
  );

  await refresh();
  const heads = ["Account", "Credits", "Token"].map((each) => h("th", { scope: "col" }, each));
  main.replaceChildren(
    h("h1", { tabindex: -1 }, "Accounts"),
    books,
    h(
      "div",
      { class: "grid" },
      h("section", { class: "card" }, h("h2", {}, "New account"), create),
      h("section", { class: "card" }, h("h2", {}, "Give credits"), give),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "All accounts"),
      field("find", "Find", find),
      token,
      h("table", { class: "people" }, h("thead", {}, h("tr", {}, ...heads)), body),
      more,
    ),
  );
}

/** @param {{ balanced: boolean, transactions: number, credits: number }} books */
function balance(books) {
  const numbers = `${whole(books.transactions)} transactions, ${credits(books.credits)} in circulation.`;
  return books.balanced
    ? notice(`The books balance: ${numbers}`, "good")
    : notice(`The books do not balance: ${numbers} Stop the service and look at its database.`);
}

/** @param {{ name: string, role: string, token: string }} account */
function once({ name, role, token }) {
  const shown = h("textarea", {
    id: `token-of-${name}`,
    class: "code",
    rows: 2,
    readonly: true,
    onfocus: () => shown.select(),
  });
  shown.value = token;
  return h(
    "div",
    { class: "field" },
    h("label", { for: `token-of-${name}` }, `Token of ${name} (${role}), shown this once`),
    shown,
  );
}
