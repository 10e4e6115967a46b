/** A survey by invitation: says so at once, and whether an invitation is good before anything is asked. */

import { complaint, input, onSubmit, show } from "./page.js";
import { problemWords, word } from "./words.js";

/** @typedef {import("../device/errors.js").RelaxdpError} RelaxdpError */

/** Asks for the invitation that a link did not carry, or that was not good. */
export class InvitationView {
  #complain = complaint("invitation-form", "invitation-wrong");

  /** @param {(invitation: string) => Promise<RelaxdpError | null>} use returns why it was not taken */
  constructor(use) {
    onSubmit("invitation-form", async () => {
      const field = input("invitation-text");
      const invitation = field.value.trim();
      if (invitation === "") return this.#complain(() => word("invitation.missing"), field);
      const problem = await use(invitation);
      if (problem !== null) this.#complain(() => refusalWords(problem), field);
    });
  }

  /** @param {RelaxdpError | null} problem with the invitation of the link */
  show(problem) {
    if (!show("invitation") || problem === null) return;
    this.#complain(() => refusalWords(problem));
  }
}

/** @param {RelaxdpError} problem */
function refusalWords(problem) {
  if (problem.fields.error === "invitation_refused") return word("invitation.refused");
  return word("invitation.unchecked", { problem: problemWords(problem) });
}
