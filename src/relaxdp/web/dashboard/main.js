/** The operator's dashboard: signing in, and which page is shown. */

import { Api, Problem } from "../kit/api.js";
import { h, notice } from "../kit/dom.js";
import { showSignIn } from "../kit/session.js";
import { showCampaign } from "./campaign.js";
import { showForm } from "./form.js";
import { showList } from "./list.js";

// The tab forgets the token when it is closed, and no other tab or page sees it.
const PLACE = "relaxdp operator token";
const UNKNOWN = "This is not the operator’s token.";
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const menu = /** @type {HTMLElement} */ (document.getElementById("menu"));

/** @type {Api | null} */
let api = null;
let left = new AbortController();

/** Show the page that the address names. */
async function show() {
  left.abort();
  left = new AbortController();
  const { signal } = left;
  menu.hidden = api === null;
  main.classList.toggle("narrow", api === null);
  if (api === null) {
    signIn();
    return;
  }
  const [page, id] = location.hash.slice(1).split("/");
  main.replaceChildren(h("p", { class: "muted" }, "One moment …"));
  try {
    if (page === "new") showForm(api, main);
    else if (page === "campaign" && id) await showCampaign(api, main, id, { signal, fail });
    else await showList(api, main);
  } catch (problem) {
    if (!signal.aborted) fail(problem);
    return;
  }
  if (!signal.aborted) arrived();
}

/** @param {unknown} problem */
function fail(problem) {
  if (problem instanceof Problem && problem.status === 401) {
    leave();
    signIn(UNKNOWN);
    return;
  }
  const sentence = problem instanceof Error ? problem.message : String(problem);
  const again = h("button", { type: "button", onclick: show }, "Try again");
  main.replaceChildren(h("h1", { tabindex: -1 }, "That did not work"), notice(sentence), again);
  arrived();
}

/** Say where we are, to the tab and to whoever cannot see the page. */
function arrived() {
  const heading = main.querySelector("h1");
  document.title = heading === null ? "relaxdp" : `${heading.textContent} · relaxdp`;
  heading?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
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
    const tried = new Api(token);
    await tried.ask("GET", "campaigns");
    sessionStorage.setItem(PLACE, token);
    api = tried;
    show();
  };
  showSignIn(main, { label: "Operator’s token", hint, unknown: UNKNOWN, sentence, enter });
}

function leave() {
  sessionStorage.removeItem(PLACE);
  api = null;
  left.abort();
  menu.hidden = true;
}

const kept = sessionStorage.getItem(PLACE);
if (kept !== null) api = new Api(kept);
document.getElementById("leave")?.addEventListener("click", () => (leave(), signIn()));
document.getElementById("skip")?.addEventListener("click", (event) => (event.preventDefault(), main.focus()));
window.addEventListener("hashchange", show);
show();
