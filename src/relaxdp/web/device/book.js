/** The state of a device in its storage: read and changed in one step, and never taken back to what it was. */

import { ZERO } from "./decimal.js";
import { RelaxdpError } from "./errors.js";
import { amount, dumps, loads, spentIn } from "./state.js";

/** @typedef {import("./state.js").State} State */

// Whoever loses a race starts over, and somebody else has gone on; so many in a row are no race.
const MOST_TURNS = 1000;
const PROBLEMS = {
  busy: "other tabs keep changing what this browser keeps. Nothing was sent; close them and try again.",
  cleared:
    "what this browser had kept is gone (its site data was cleared): answers, keys and what was spent. Reports that " +
    "were sent stay with their servers. To answer again is to be a second device, and the costs of both add up. " +
    "Nothing was sent.",
  damaged: "what this browser had kept is damaged or of another kind. Nothing was sent.",
  "went back":
    "what this browser keeps went back to an earlier state: what was spent since is forgotten. Nothing was sent.",
};

/** Reads, changes and writes a device's state. */
export class Book {
  #storage;
  #seen = 0;

  /** @param {import("./storage.js").DeviceStorage} storage */
  constructor(storage) {
    this.#storage = storage;
  }

  /**
   * Return the state; where there is none yet, that of a new device, for which a limit is needed.
   *
   * @param {string | null} limit
   * @param {boolean} startOver the person knows that something was lost, and wants a new device all the same
   * @returns {Promise<State>}
   */
  async begin(limit, startOver) {
    for (let turn = 0; turn < MOST_TURNS; turn += 1) {
      const { text, known } = await this.#read();
      try {
        if (text !== null || known > 0) {
          const state = await this.#checked(text, known);
          // The second place may be behind: browsers take their time to write it.
          if (this.#storage.remembered() < state.revision) this.#storage.remember(state.revision);
          return state;
        }
      } catch (problem) {
        if (!startOver) throw problem;
      }
      if (limit === null) {
        throw new RelaxdpError(
          "budget_missing_error",
          "a new device needs a limit, the most that all its campaigns together may cost, before its first answer. " +
            "Nothing was written.",
        );
      }
      const state = { limit, revision: known + 1, campaigns: [] };
      if (await this.#write(text, state)) return state;
    }
    throw problem("busy");
  }

  /** @returns {Promise<State>} the state as it is now */
  async state() {
    const { text, known } = await this.#read();
    return this.#checked(text, known);
  }

  /**
   * Return the state after a change, which is durable. A change that returns what it was given writes nothing. It may
   * be asked again, with another state, where another tab was faster.
   *
   * @param {(state: State) => State | Promise<State>} change
   * @returns {Promise<State>}
   */
  async change(change) {
    for (let turn = 0; turn < MOST_TURNS; turn += 1) {
      const { text, known } = await this.#read();
      const state = await this.#checked(text, known);
      const changed = await change(state);
      if (changed === state || (await this.#write(text, changed))) return changed;
    }
    throw problem("busy");
  }

  /** What is known is asked for first: another tab may go on while this one reads, and then what is read is newer. */
  async #read() {
    const known = Math.max(this.#seen, this.#storage.remembered());
    return { text: await this.#storage.read(), known };
  }

  /**
   * @param {string | null} text
   * @param {number} known a revision that had been reached before the text was read
   */
  async #checked(text, known) {
    if (text === null) throw problem("cleared");
    const state = await loads(text);
    if (state === null) throw problem("damaged");
    if (state.revision < known) throw problem("went back");
    this.#seen = Math.max(this.#seen, state.revision);
    return state;
  }

  /**
   * @param {string | null} before
   * @param {State} state
   */
  async #write(before, state) {
    // A second lock behind the rules: what is not written is not sent.
    if (amount(state.limit).compare(spentIn(state)) < 0 || amount(state.limit).compare(ZERO) <= 0) {
      throw new RelaxdpError("device_file_error", "this device would hold more than its limit. Nothing was sent.");
    }
    if (!(await this.#storage.replace(before, await dumps(state)))) return false;
    this.#seen = Math.max(this.#seen, state.revision);
    this.#storage.remember(state.revision);
    return true;
  }
}

/** @param {keyof typeof PROBLEMS} reason */
function problem(reason) {
  return new RelaxdpError("device_file_error", PROBLEMS[reason], { reason });
}
