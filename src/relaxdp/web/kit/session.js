/** Who is looking, and how they sign in: with a token, which is typed once and stays in its tab. */

import { Api } from "./api.js";
import { h, notice } from "./dom.js";
import { field, formPart, textOf } from "./form.js";
import { isUnknownToken, Problem } from "./problem.js";

const PLACE = "relaxdp token";

/**
 * The tab forgets the token when it is closed, and no other tab sees it. The dashboard and the market share it: who goes
 * from one to the other signs in once, and out of both.
 */
export class Session {
  api = new Api(null);
  signedIn = false;

  /** The token that this tab has kept, if it has one. */
  get token() {
    return sessionStorage.getItem(PLACE);
  }

  /** @param {string} token */
  use(token) {
    sessionStorage.setItem(PLACE, token);
    this.api = new Api(token);
    this.signedIn = true;
  }

  /** Forget the token. */
  leave() {
    sessionStorage.removeItem(PLACE);
    this.api = new Api(null);
    this.signedIn = false;
  }
}

/**
 * Show the form, and hand over what was typed until it is accepted.
 *
 * @param {HTMLElement} main
 * @param {{ label: string, hint: (Node | string)[], unknown: string, sentence?: string,
 *           enter: (token: string) => Promise<void> }} page
 *   `sentence` says why somebody has to sign in; `enter` throws where the service does not know the token, which is
 *   `unknown` to people (the service's own sentence is for programs)
 */
export function showSignIn(main, { label, hint, unknown, sentence, enter }) {
  const place = h("div", {}, sentence === undefined ? null : notice(sentence));
  const token = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const form = formPart([field("token", label, token, ...hint)], {
    yes: "Sign in",
    primary: true,
    attributes: { class: "card" },
    place,
    work: async (data) => {
      try {
        const text = textOf(data, "token");
        if (!/^[!-~]+$/.test(text)) throw new Problem("This is not a token: it has only letters, digits, - and _.");
        await enter(text);
        return null;
      } catch (problem) {
        token.focus();
        throw isUnknownToken(problem) ? new Problem(unknown) : problem;
      }
    },
  });
  main.replaceChildren(h("h1", { tabindex: -1 }, "Sign in"), place, form);
  document.title = "Sign in · relaxdp";
  token.focus();
}
