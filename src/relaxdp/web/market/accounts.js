/** The operator's page: who trades, who has how many credits, and whether the books balance. */

import { copyPart } from "../kit/copy.js";
import { attempt, confirmed, h, notice, tableHead, tableRow } from "../kit/dom.js";
import { field, formPart, NAME, textOf } from "../kit/form.js";
import { tell } from "../kit/page.js";
import { plural, whole } from "../kit/words.js";
import { credits } from "./words.js";

/** @typedef {import("../kit/wire.d.ts").Account} Account */
/** @typedef {import("../kit/wire.d.ts").Books} Books */
/** @typedef {import("../kit/wire.d.ts").NewAccount} NewAccount */

const ISSUE = "issue";
const MOST_ROWS = 20;
const MOST_NAMES = 1000;
const NOBODY = "Nobody trades here yet. Make an account for a seller and one for a buyer above.";
const NONE_FITS = "No account has this in its name.";

/**
 * @param {import("./session.js").MarketSession} session
 * @param {HTMLElement} main
 */
export async function showAccounts(session, main) {
  const { api } = session;
  const books = h("div", { class: "answer-room" });
  const body = h("tbody", {});
  const more = h("p", { class: "small muted" });
  const find = h("input", { type: "search", autocomplete: "off", oninput: draw });
  /** @type {Account[]} */
  let people = [];
  const names = h("datalist", { id: "accounts" });
  const token = h("div", { "aria-live": "polite" });

  async function refresh() {
    /** @type {[import("../kit/wire.d.ts").Accounts, Books]} */
    const [{ accounts }, now] = await Promise.all([api.ask("GET", "market/accounts"), api.ask("GET", "market/books")]);
    people = accounts.filter(({ name }) => name !== ISSUE);
    books.replaceChildren(balanceNotice(now));
    names.replaceChildren(...people.slice(0, MOST_NAMES).map(({ name }) => h("option", { value: name })));
    draw();
  }

  function draw() {
    const fitting = people.filter(({ name, role }) => `${name} ${role}`.includes(find.value.trim().toLowerCase()));
    const hidden = fitting.length - MOST_ROWS;
    body.replaceChildren(
      ...(fitting.length > 0
        ? fitting.slice(0, MOST_ROWS).map(row)
        : [h("tr", {}, h("td", { colspan: 3, class: "muted" }, people.length > 0 ? NONE_FITS : NOBODY))]),
    );
    more.textContent = hidden > 0 ? `${whole(hidden)} more: type a part of the name.` : "";
  }

  /** @param {Account} account */
  function row({ name, role, balance }) {
    const button = h(
      "button",
      { class: "quiet", type: "button", "aria-label": `New token for ${name}`, onclick: () => renew(name) },
      "New\u00a0token\u00a0…",
    );
    const row = tableRow(name, whole(balance), button);
    row.cells[0].append(h("span", { class: "hint" }, role));
    return row;
  }

  /** @param {string} name */
  async function renew(name) {
    const sure = await confirmed({
      title: `A new token for ${name}?`,
      text: ["The old one ends at once: whoever uses it has to sign in again."],
      yes: "Make a new token",
    });
    if (!sure) return;
    await attempt(token, async () => {
      token.replaceChildren(tokenField(await api.ask("POST", `market/accounts/${encodeURIComponent(name)}/token`)));
    });
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
        NAME.test(textOf(data, "name")) ? {} : { name: "Small letters, digits and hyphens, at most 64, like anna." },
      work: async (data) => {
        const account = { name: textOf(data, "name"), role: textOf(data, "role") };
        /** @type {NewAccount} */
        const created = await api.ask("POST", "market/accounts", account);
        create.reset();
        await refresh();
        return tokenField(created);
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
        ...(NAME.test(textOf(data, "account")) ? {} : { account: "The name of an account, like anna." }),
        ...(/^[1-9][0-9]{0,14}$/.test(textOf(data, "amount")) ? {} : { amount: "A whole number, from 1 on." }),
        ...(textOf(data, "reason") === "" ? { reason: "Say why, in a few words." } : {}),
      }),
      work: async (data) => {
        const [name, reason] = [textOf(data, "account"), textOf(data, "reason")];
        const gift = { account: name, amount: Number(textOf(data, "amount")), reason };
        /** @type {Account} */
        const account = await api.ask("POST", "market/credits", gift);
        give.reset();
        await refresh();
        tell(`${account.name} has ${credits(account.balance)} now.`);
        return notice(`${account.name} has ${credits(account.balance)} now.`, "good");
      },
    },
  );

  await refresh();
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
      h("table", { class: "people" }, tableHead("Account", "Credits", "Token"), body),
      more,
    ),
  );
}

/** @param {Books} books */
function balanceNotice(books) {
  const numbers = `${plural(books.transactions, "transaction")}, ${credits(books.credits)} in circulation.`;
  return books.balanced
    ? notice(`The books balance: ${numbers}`, "good")
    : notice(`The books do not balance: ${numbers} Stop the service and look at its database.`);
}

/** @param {NewAccount} account whose token is shown this once */
function tokenField({ name, role, token }) {
  const once = "It is shown this once. Hand it over in private, and keep no copy.";
  return h("div", {}, copyPart(`Token of ${name} (${role})`, token), h("p", { class: "small muted" }, once));
}
