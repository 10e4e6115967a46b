/** Watching a campaign without asking more often than is useful: back-off, and quiet while nobody looks. */

const SEEN = 20;
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
  #running = false;
  #again = false;
  #failures = 0;
  #timer = 0;
  #window;

  /**
   * @param {() => Promise<"go on" | "failed" | "over">} turn
   * @param {Window} [scope]
   */
  constructor(turn, scope = globalThis.window) {
    this.#turn = turn;
    this.#window = scope;
  }

  start() {
    this.#window.addEventListener("online", () => this.wake());
    this.#window.document.addEventListener("visibilitychange", () => {
      if (this.#window.document.visibilityState === "visible") void this.wake();
    });
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
    if (outcome !== "over") this.#timer = this.#window.setTimeout(() => void this.wake(), 1000 * this.#pause());
  }

  /** Pages that were all cut off at the same instant must not all come back at the same instant. */
  #pause() {
    if (this.#failures > 0)
      return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (this.#failures - 1)) * (0.5 + Math.random() / 2);
    return (this.#window.document.visibilityState === "visible" ? SEEN : UNSEEN) * (0.75 + Math.random() / 4);
  }
}
