/** The market's page: who is signed in, and which of its pages is shown. */

import { Problem } from "../kit/api.js";
import { h, notice } from "../kit/dom.js";
import { showSignIn } from "../kit/session.js";
import { showAccounts } from "./accounts.js";
import { showList } from "./list.js";
import { showListing } from "./listing.js";
import { showOwned } from "./owned.js";
import { showSales } from "./sales.js";
import { showSell } from "./sell.js";
import { Session } from "./session.js";
import { credits } from "./words.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const menu = /** @type {HTMLElement} */ (document.getElementById("menu"));
const purse = /** @type {HTMLElement} */ (document.getElementById("purse"));
const session = new Session(headed);

/** @type {Record<string, { role: string, show: (session: Session, main: HTMLElement) => unknown }>} */
const OWN = {
  owned: { role: "buyer", show: showOwned },
  sales: { role: "seller", show: showSales },
  sell: { role: "seller", show: showSell },
  accounts: { role: "operator", show: showAccounts },
};
const HOMES = { buyer: "", seller: "sales", operator: "accounts" };
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
let headedFor;

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
    signIn(
      undefined,
      `This page is for ${own.role === "operator" ? "the operator" : `a ${own.role}`}: sign in with such a token.`,
    );
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
  if (!signal.aborted) arrived(stage);
}

/** @param {unknown} problem */
function fail(problem) {
  const sentence = problem instanceof Error ? problem.message : String(problem);
  if (problem instanceof Problem && problem.status === 401) {
    session.leave();
    signIn(undefined, "Nobody has this token.");
    return;
  }
  const again = h("button", { type: "button", onclick: start }, "Try again");
  arrived(h("div", {}, h("h1", { tabindex: -1 }, "That did not work"), notice(sentence), again));
}

/**
 * Show a page, and say where we are, to the tab and to whoever cannot see it.
 *
 * @param {HTMLElement} stage
 */
function arrived(stage) {
  main.classList.remove("narrow");
  main.removeAttribute("aria-busy");
  main.replaceChildren(stage);
  const heading = main.querySelector("h1");
  document.title = heading === null ? "relaxdp" : `${heading.textContent} · relaxdp`;
  heading?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
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
    const next = `#${listing === undefined ? HOMES[/** @type {keyof HOMES} */ (session.role)] : `listing/${listing}`}`;
    if (location.hash === next || (next === "#" && location.hash === "")) show();
    else location.hash = next;
  };
  const hint = [
    "The market’s operator gives it to buyers and sellers; the operator uses the service’s own. It stays in this tab.",
  ];
  showSignIn(main, { label: "Token", hint, sentence, enter });
}

/** Draw the head of the page. */
function headed() {
  const { account } = session;
  purse.textContent =
    account === null
      ? ""
      : [account.name, account.role === "operator" ? null : credits(account.balance)]
          .filter((each) => each)
          .join(" · ");
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

function leave() {
  session.leave();
  if (location.hash === "" || location.hash === "#") show();
  else location.hash = "";
}

/** Sign in again where this tab has kept a token, and show the page. */
const start = () => session.resume().then(show, fail);

document.getElementById("skip")?.addEventListener("click", (event) => (event.preventDefault(), main.focus()));
window.addEventListener("hashchange", show);
headed();
main.append(h("p", { class: "muted first" }, "One moment …"));
start();
