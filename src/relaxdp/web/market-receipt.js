/** Whether a receipt was signed by this market, and whether it still holds. Anybody may ask. */

import { h, notice } from "./dashboard-dom.js";

const LARGEST = 100_000;
const HOLDS = { owned: "It holds.", upgraded: "It was upgraded since, and a later receipt holds.", refunded: "It was paid back since." };

/** @param {import("./market-session.js").Session} session */
export function receiptPart(session) {
  const file = h("input", { id: "receipt-file", type: "file", accept: "application/json,.json", onchange: check });
  const told = h("div", { class: "answer-room", "aria-live": "polite" });

  async function check() {
    const chosen = file.files[0];
    if (chosen === undefined) return;
    try {
      if (chosen.size > LARGEST) throw new Error("This file is too large for a receipt. Nothing was sent.");
      const { receipt, signature } = read(await chosen.text());
      const { state } = await session.api.ask("POST", "market/receipts/verify", { receipt, signature });
      const holds = HOLDS[/** @type {keyof HOLDS} */ (state)] ?? state;
      told.replaceChildren(notice(`This market signed it: purchase ${receipt.number}, ε ${receipt.epsilon} of ${receipt.listing}, for ${receipt.buyer}. ${holds}`, "good"));
    } catch (refusal) {
      told.replaceChildren(notice(/** @type {Error} */ (refusal).message));
    }
    file.value = ""; // so that the same file can be chosen again
  }

  return h(
    "details",
    { class: "card receipt" },
    h("summary", {}, "Check a receipt"),
    h("p", {}, "A receipt names what was bought and the fingerprint of its file, and the market has signed it."),
    h("div", { class: "field" }, h("label", { for: "receipt-file" }, "Receipt (JSON)"), file),
    told,
  );
}

/** @param {string} text */
function read(text) {
  try {
    const { receipt, signature } = JSON.parse(text);
    if (typeof receipt === "object" && receipt !== null && typeof signature === "string") return { receipt, signature };
  } catch {
    // It is not even JSON; the sentence is the same.
  }
  throw new Error("This file is no receipt of a market: it has no receipt and no signature in it. Nothing was sent.");
}
