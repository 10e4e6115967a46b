/** The operator's dashboard: signing in, and which page is shown. */

import { Api } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { arrived, failure, followAddress, partOf } from "../kit/page.js";
import { isUnknownToken, Problem } from "../kit/problem.js";
import { Session, showSignIn } from "../kit/session.js";
import { showCampaign } from "./campaign.js";
import { showForm } from "./form.js";
import { showList } from "./list.js";
import { showSurvey } from "./surveys.js";

const UNKNOWN = "This is not the operator’s token.";
const main = partOf("main", HTMLElement);
const menu = partOf("menu", HTMLElement);
const session = new Session();
let left = new AbortController();

/** Show the page that the address names. */
async function show() {
  left.abort();
  left = new AbortController();
  const { signal } = left;
  menu.hidden = !session.signedIn;
  main.classList.toggle("narrow", !session.signedIn);
  if (!session.signedIn) {
    signIn();
    return;
  }
  const { api } = session;
  const [page, id] = location.hash.slice(1).split("/");
  main.replaceChildren(h("p", { class: "muted" }, "One moment …"));
  try {
    if (page === "new") await showForm(api, main);
    else if (page === "copy" && id) await showForm(api, main, id);
    else if (page === "campaign" && id) await showCampaign(api, main, id, { signal, fail });
    else if (page === "survey" && id) await showSurvey(api, main, id, { signal, fail });
    else await showList(api, main);
  } catch (problem) {
    if (!signal.aborted) fail(problem);
    return;
  }
  if (!signal.aborted) arrived(main);
}

/** @param {unknown} problem */
async function fail(problem) {
  if (isUnknownToken(problem)) {
    const account = await accountOf(session.token);
    if (account === null) leave(); // an account of the market stays signed in there
    menu.hidden = true;
    signIn(
      account === null ? UNKNOWN : `You are signed in to the market as ${account.name}. This page is the operator’s.`,
    );
    return;
  }
  if (problem instanceof Problem && problem.status === 404) {
    const back = h("p", {}, h("a", { class: "button", href: "#" }, "All campaigns"));
    main.replaceChildren(h("h1", { tabindex: -1 }, "There is no such campaign"), back);
  } else main.replaceChildren(...failure(problem, show));
  arrived(main);
}

/**
 * Return whose token of the market it is; null where it is nobody's.
 *
 * @param {string | null} token
 * @returns {Promise<import("../kit/wire.d.ts").MemberView | null>}
 */
async function accountOf(token) {
  return new Api(token).ask("GET", "market/me").catch(() => null);
}

/** @param {string} [sentence] why the last token was refused */
function signIn(sentence) {
  const hint = [
    h("code", {}, "relaxdp serve"),
    " showed it at its first start, or wrote it to its ",
    h("code", {}, "--token-file"),
    "; ",
    h("code", {}, "relaxdp admin token"),
    " makes a new one. It stays in this tab.",
  ];
  const enter = async (/** @type {string} */ token) => {
    await new Api(token).ask("GET", "campaigns");
    session.use(token);
    show();
  };
  showSignIn(main, { label: "Operator’s token", hint, unknown: UNKNOWN, sentence, enter });
}

function leave() {
  session.leave();
  left.abort();
  menu.hidden = true;
}

if (session.token !== null) session.use(session.token);
partOf("leave", HTMLElement).addEventListener("click", () => {
  leave();
  signIn();
});
followAddress(main, show);
show();
