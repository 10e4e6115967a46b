/** Who is looking at the market: nobody in particular, a buyer, a seller or the operator. */

import { Api } from "../kit/api.js";
import { Session } from "../kit/session.js";

/** @typedef {import("../kit/wire.d.ts").Account} Account */

/** A session that knows its account, and how many credits that has. */
export class MarketSession extends Session {
  /** @type {Account | null} */
  account = null;
  #changed;

  /** @param {() => void} changed is called whenever the account or its balance may be another one */
  constructor(changed) {
    super();
    this.#changed = changed;
  }

  get role() {
    return this.account === null ? null : this.account.role;
  }

  /** Take up the token that this tab has kept, if it has one. */
  async resume() {
    if (this.token !== null) await this.enter(this.token);
  }

  /**
   * Sign in. A token that the service does not know is not kept.
   *
   * @param {string} token
   */
  async enter(token) {
    this.account = await new Api(token).ask("GET", "market/me");
    this.use(token);
    this.#changed();
  }

  /** Ask for the balance again. */
  async refresh() {
    this.account = await this.api.ask("GET", "market/me");
    this.#changed();
  }

  /**
   * Forget the token, and whose it was.
   *
   * @override
   */
  leave() {
    super.leave();
    this.account = null;
    this.#changed();
  }
}
