/** Who is looking: nobody in particular, a buyer, a seller or the operator. */

import { Api } from "../kit/api.js";

// The tab forgets the token when it is closed, and no other tab or page sees it.
const PLACE = "relaxdp market token";

/** @typedef {{ name: string, role: "buyer" | "seller" | "operator", balance: number }} Account */

export class Session {
  /** @type {Account | null} */
  account = null;
  api = new Api(null);
  #changed;

  /** @param {() => void} changed is called whenever the account or its balance may be another one */
  constructor(changed) {
    this.#changed = changed;
  }

  get role() {
    return this.account === null ? null : this.account.role;
  }

  /** Take up the token that this tab has kept, if it has one. */
  async resume() {
    const kept = sessionStorage.getItem(PLACE);
    if (kept !== null) await this.enter(kept);
  }

  /**
   * Sign in. A token that the service does not know is not kept.
   *
   * @param {string} token
   */
  async enter(token) {
    const tried = new Api(token);
    this.account = await tried.ask("GET", "market/me");
    this.api = tried;
    sessionStorage.setItem(PLACE, token);
    this.#changed();
  }

  /** Ask for the balance again. */
  async refresh() {
    this.account = await this.api.ask("GET", "market/me");
    this.#changed();
  }

  /** Forget the token. */
  leave() {
    sessionStorage.removeItem(PLACE);
    this.account = null;
    this.api = new Api(null);
    this.#changed();
  }
}
