/** The market's page: whose token the tab has, and which view is shown. */

import { Api } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { arrived, failure, followAddress, partOf } from "../kit/page.js";
import { isUnknownToken } from "../kit/problem.js";
import { Session, showSignIn } from "../kit/session.js";
import { makeListing } from "./listing.js";
import { makeListings } from "./listings.js";
import { makeOrders } from "./orders.js";
import { makeSell } from "./sell.js";

/** @typedef {import("../kit/wire.d.ts").MemberView} Member */
/** @typedef {{ api: Api, member: Member | null }} Visitor */
/** @typedef {{ make: (visitor: Visitor, id: string) => Promise<Node[]>, needs?: string[] }} View */

const UNKNOWN = "This token is unknown. Check it, or ask the operator of the market for a new one.";
const HINT = "The operator of the market gives it to sellers and buyers. It stays in this tab.";
/** @type {Record<string, View>} */
const VIEWS = {
  "": { make: makeListings },
  listing: { make: makeListing },
  orders: { make: makeOrders, needs: ["buyer", "seller", "operator"] },
  sell: { make: makeSell, needs: ["seller"] },
};
const LINKS = [
  { name: "Listings", address: "#", roles: ["", "buyer", "seller", "operator"] },
  { name: "My orders", address: "#orders", roles: ["buyer"] },
  { name: "Orders", address: "#orders", roles: ["seller", "operator"] },
  { name: "Sell", address: "#sell", roles: ["seller"] },
  { name: "Campaigns", address: "./", roles: ["operator"] },
];

const main = partOf("main", HTMLElement);
const session = new Session();
/** @type {Member | null} */
let member = null;
let visits = 0;

/** Show the view that the address names. */
async function show() {
  visits += 1;
  const visit = visits;
  drawHead();
  const address = location.hash.slice(1);
  const [name, id = ""] = address.split("/");
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : VIEWS[""];
  if (name === "sign-in") {
    signIn(address.slice("sign-in/".length));
    return;
  }
  if (view.needs !== undefined && !view.needs.includes(member?.role ?? "")) {
    signIn(address, member === null ? "Sign in to see this page." : `This page needs the token of a ${view.needs[0]}.`);
    return;
  }
  main.setAttribute("aria-busy", "true");
  try {
    const parts = await view.make({ api: session.api, member }, id);
    if (visit === visits) put(parts);
  } catch (problem) {
    if (visit === visits) fail(problem);
  }
}

/** @param {Node[]} parts */
function put(parts) {
  main.classList.remove("narrow");
  main.removeAttribute("aria-busy");
  main.replaceChildren(...parts);
  arrived(main);
}

/** @param {unknown} problem */
function fail(problem) {
  if (isUnknownToken(problem)) {
    leave();
    signIn(location.hash.slice(1), UNKNOWN);
  } else put(failure(problem, start));
}

/**
 * @param {string} next the address to go to afterwards
 * @param {string} [sentence] why a token is needed
 */
function signIn(next, sentence) {
  main.classList.add("narrow");
  main.removeAttribute("aria-busy");
  const enter = async (/** @type {string} */ token) => {
    await use(token);
    if (location.hash.slice(1) === next) show();
    else location.hash = next;
  };
  showSignIn(main, { label: "Token", hint: [HINT], unknown: UNKNOWN, sentence, enter });
}

/** @param {string} token */
async function use(token) {
  member = await new Api(token).ask("GET", "market/me");
  session.use(token);
}

function leave() {
  session.leave();
  member = null;
  drawHead();
}

/** Draw who is signed in, and the links to the views. */
function drawHead() {
  const links = LINKS.filter(({ roles }) => roles.includes(member?.role ?? ""));
  const signOut = () => {
    leave();
    show();
  };
  const next = location.hash.startsWith("#sign-in") ? location.hash : `#sign-in/${location.hash.slice(1)}`;
  partOf("who", HTMLElement).textContent = member === null ? "" : `${member.name} (${member.role})`;
  partOf("menu", HTMLElement).replaceChildren(
    ...links.map(({ name, address }) => h("a", { class: "button quiet", href: address }, name)),
    member === null
      ? h("a", { class: "button quiet", href: next }, "Sign in")
      : h("button", { class: "quiet", type: "button", onclick: signOut }, "Sign out"),
  );
}

/** Sign in again if this tab has a token, and show the page. */
async function start() {
  try {
    if (session.token !== null) await use(session.token);
  } catch (problem) {
    fail(problem);
    return;
  }
  show();
}

followAddress(main, show);
drawHead();
main.append(h("p", { class: "muted" }, "One moment …"));
start();
