/** Signing in with a token. Where it is kept is the page's affair; here it is only typed. */

import { Problem } from "./api.js";
import { h, notice } from "./dom.js";

/**
 * Show the form, and hand over what was typed until it is accepted.
 *
 * @param {HTMLElement} main
 * @param {{ label: string, hint: (Node | string)[], unknown?: string, sentence?: string, enter: (token: string) => Promise<void> }} page
 *   `sentence` says why the last token was refused; `enter` throws where the service does not know this one, which is
 *   `unknown` to people (the service's own sentence is for programs)
 */
export function showSignIn(main, { label, hint, unknown = "Nobody has this token.", sentence, enter }) {
  const token = h("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
    "aria-describedby": "token-hint",
  });
  const problem = h("div", {}, sentence === undefined ? null : notice(sentence));
  const button = h("button", { class: "primary", type: "submit" }, "Sign in");
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const text = token.value.trim();
      if (!/^[!-~]+$/.test(text)) throw new Error("This is not a token: it has only letters, digits, - and _.");
      await enter(text);
    } catch (refusal) {
      const refused = refusal instanceof Problem && refusal.status === 401;
      problem.replaceChildren(notice(refused ? unknown : /** @type {Error} */ (refusal).message));
      token.focus();
    } finally {
      button.disabled = false;
    }
  };
  main.replaceChildren(
    h("h1", { tabindex: -1 }, "Sign in"),
    problem,
    h(
      "form",
      { class: "card", onsubmit: send },
      h(
        "div",
        { class: "field" },
        h("label", { for: "token" }, label),
        token,
        h("span", { class: "hint", id: "token-hint" }, ...hint),
      ),
      button,
    ),
  );
  document.title = "Sign in · relaxdp";
  token.focus();
}
