/** Watching a campaign without asking more often than is useful: back-off, and quiet while nobody looks. */

const UNSEEN = 120;
const FIRST_WAIT = 4;
const LONGEST_WAIT = 300;

/**
 * Calls `turn` now and whenever it is worth it, one turn at a time, until one says that it is over.
 *
 * A turn is told to come soon by `wake`: a person pressed a button, the network came back, the page is looked at again.
 */
export class Watch {
  #turn;
  #seconds;
  #signal;
  #running = false;
  #again = false;
  #failures = 0;
  #timer = 0;
  #window;

  /**
   * @param {() => Promise<"go on" | "failed" | "over">} turn
   * @param {{ seconds: number, signal?: AbortSignal, scope?: Window }} options
   *   seconds between two turns while the page is visible; the signal ends the watch
   */
  constructor(turn, { seconds, signal, scope = globalThis.window }) {
    this.#turn = turn;
    this.#seconds = seconds;
    this.#signal = signal;
    this.#window = scope;
  }

  start() {
    const options = { signal: this.#signal };
    const looked = () => this.#window.document.visibilityState === "visible" && void this.wake();
    this.#window.addEventListener("online", () => void this.wake(), options);
    this.#window.document.addEventListener("visibilitychange", looked, options);
    this.#signal?.addEventListener("abort", () => this.#window.clearTimeout(this.#timer));
    return this.wake();
  }

  /** Take a turn now; where one is under way, take another one after it. */
  async wake() {
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#window.clearTimeout(this.#timer);
    this.#running = true;
    /** @type {"go on" | "failed" | "over"} */
    let outcome = "failed";
    try {
      do {
        this.#again = false;
        outcome = await this.#turn();
        this.#failures = outcome === "failed" ? this.#failures + 1 : 0;
      } while (this.#again);
    } finally {
      this.#running = false;
    }
    if (outcome !== "over" && !this.#signal?.aborted)
      this.#timer = this.#window.setTimeout(() => void this.wake(), 1000 * this.#pause());
  }

  /** Pages that were all cut off at the same instant must not all come back at the same instant. */
  #pause() {
    if (this.#failures > 0)
      return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (this.#failures - 1)) * (0.5 + Math.random() / 2);
    return (this.#window.document.visibilityState === "visible" ? this.#seconds : UNSEEN) * (0.75 + Math.random() / 4);
  }
}
