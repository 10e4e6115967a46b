/** When the survey cannot be shown: what is missing, and what helps. It needs nothing that an old browser lacks. */

import { made, part, say, show } from "./survey-page.js";

/** The view that says what is wrong. */
export class Problem {
  /**
   * What this browser or this connection lacks.
   *
   * @param {string[]} missing
   */
  missing(missing) {
    this.sentences([...missing, "Until then nothing is asked, and nothing is sent."]);
    say(part("problem-title"), "Something is needed first");
  }

  /**
   * @param {string[]} sentences
   * @param {boolean} [perhapsLater] whether it is worth trying again
   * @param {string} [title]
   */
  sentences(sentences, perhapsLater = false, title = "This does not work yet") {
    show("problem");
    say(part("problem-title"), title);
    part("problem-text").replaceChildren(...sentences.map((sentence) => made("p", { class: "notice" }, sentence)));
    part("problem-again").hidden = !perhapsLater;
    part("problem-new-tab").hidden = window.top === window;
    part("problem-link").href = location.href;
  }
}
