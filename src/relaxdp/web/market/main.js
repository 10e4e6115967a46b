/** The market's page: who is signed in, and which of its pages is shown. */

import { h } from "../kit/dom.js";
import { arrived, failure, followAddress, partOf } from "../kit/page.js";
import { isUnknownToken } from "../kit/problem.js";
import { showSignIn } from "../kit/session.js";
import { showAccounts } from "./accounts.js";
import { showList } from "./list.js";
import { showListing } from "./listing.js";
import { showOwned } from "./owned.js";
import { showSales } from "./sales.js";
import { showSell } from "./sell.js";
import { MarketSession } from "./session.js";
import { credits } from "./words.js";

const UNKNOWN = "Nobody has this token.";
const main = partOf("main", HTMLElement);
const menu = partOf("menu", HTMLElement);
const purse = partOf("purse", HTMLElement);
const session = new MarketSession(drawHead);

/** @type {Record<string, { role: string, show: (session: MarketSession, main: HTMLElement) => unknown }>} */
const OWN = {
  owned: { role: "buyer", show: showOwned },
  sales: { role: "seller", show: showSales },
  sell: { role: "seller", show: showSell },
  accounts: { role: "operator", show: showAccounts },
};
/** @type {Record<string, string>} */
const HOMES = { buyer: "", seller: "sales", operator: "accounts" };
/** @type {Record<string, string[][]>} */
const LINKS = {
  buyer: [
    ["Listings", "#"],
    ["What I own", "#owned"],
  ],
  seller: [
    ["Listings", "#"],
    ["My sales", "#sales"],
    ["Sell", "#sell"],
  ],
  operator: [
    ["Listings", "#"],
    ["Accounts", "#accounts"],
    ["Campaigns", "./"],
  ],
};
let left = new AbortController();
/** @type {string | null | undefined} */
let headedFor; // nobody has seen the head yet

/** Show the page that the address names. */
async function show() {
  left.abort();
  left = new AbortController();
  const { signal } = left;
  const [name, id] = location.hash.slice(1).split("/");
  if (name === "sign-in") {
    signIn(id);
    return;
  }
  const own = Object.hasOwn(OWN, name) ? OWN[name] : null;
  if (own !== null && session.role !== own.role) {
    const whom = own.role === "operator" ? "the operator" : `a ${own.role}`;
    signIn(undefined, `This page is for ${whom}: sign in with such a token.`);
    return;
  }
  const stage = h("div", {}); // what was left meanwhile is never shown
  main.setAttribute("aria-busy", "true");
  try {
    if (own !== null) await own.show(session, stage);
    else if (name === "listing" && id) await showListing(session, stage, decodeURIComponent(id));
    else await showList(session, stage);
  } catch (problem) {
    if (!signal.aborted) fail(problem);
    return;
  }
  if (!signal.aborted) showStage(stage);
}

/** @param {unknown} problem */
function fail(problem) {
  if (isUnknownToken(problem)) {
    session.leave();
    signIn(undefined, UNKNOWN);
    return;
  }
  showStage(h("div", {}, ...failure(problem, start)));
}

/** @param {HTMLElement} stage */
function showStage(stage) {
  main.classList.remove("narrow");
  main.removeAttribute("aria-busy");
  main.replaceChildren(stage);
  arrived(main);
}

/**
 * @param {string} [listing] where to go afterwards
 * @param {string} [sentence] why somebody has to sign in
 */
function signIn(listing, sentence) {
  main.classList.add("narrow");
  main.removeAttribute("aria-busy");
  const enter = async (/** @type {string} */ token) => {
    await session.enter(token);
    const next = `#${listing === undefined ? HOMES[session.role ?? "buyer"] : `listing/${listing}`}`;
    if (location.hash === next || (next === "#" && location.hash === "")) show();
    else location.hash = next;
  };
  const hint = [
    "The market’s operator gives it to buyers and sellers; the operator uses the service’s own. It stays in this tab.",
  ];
  showSignIn(main, { label: "Token", hint, unknown: UNKNOWN, sentence, enter });
}

/** Draw the head of the page. */
function drawHead() {
  const { account } = session;
  purse.textContent = account === null ? "" : purseText(account);
  if (session.role === headedFor) return; // whoever is in the menu with the keyboard stays there
  headedFor = session.role;
  const links = account === null ? [["Listings", "#"]] : LINKS[account.role];
  const way =
    account === null
      ? h("a", { class: "button quiet", href: "#sign-in" }, "Sign in")
      : h("button", { class: "quiet", type: "button", onclick: leave }, "Sign out");
  menu.replaceChildren(
    ...links.map(([words, address]) => h("a", { class: "button quiet", href: address }, words)),
    way,
  );
}

/** @param {import("../kit/wire.d.ts").Account} account */
const purseText = ({ name, role, balance }) => (role === "operator" ? name : `${name} · ${credits(balance)}`);

function leave() {
  session.leave();
  if (location.hash === "" || location.hash === "#") show();
  else location.hash = "";
}

/** Sign in again where this tab has kept a token, and show the page. */
const start = () => session.resume().then(show, fail);

followAddress(main, show);
drawHead();
main.append(h("p", { class: "muted first" }, "One moment …"));
start();
