/** Who stops early, level by level: the planner counts them at the level where they stop. */

import { h } from "../kit/dom.js";
import { field } from "../kit/form.js";

/**
 * The name under which the form asks how many stop at a level.
 *
 * @param {string} epsilon
 */
export const stopField = (epsilon) => `stop-${epsilon.replace(".", "_")}`;

export function stopsPart() {
  const body = h("div", { class: "pair" });
  const element = h(
    "details",
    {},
    h("summary", {}, "How many stop early?"),
    h(
      "p",
      { class: "small muted" },
      "Some set a lower limit, or never come back. Of 100 devices, how many stay at each level? This is for the forecast only.",
    ),
    body,
  );
  let shown = "";

  /** @param {string[]} levels */
  function update(levels) {
    const lower = [...new Set(levels.slice(0, -1))];
    element.hidden = lower.length === 0;
    if (lower.join() === shown) return;
    shown = lower.join();
    const typed = new Map([...body.querySelectorAll("input")].map((input) => [input.name, input.value]));
    body.replaceChildren(
      ...lower.map((epsilon) => {
        const name = stopField(epsilon);
        const input = h("input", { inputmode: "decimal", autocomplete: "off", placeholder: "0" });
        input.value = typed.get(name) ?? "";
        return field(name, `At ε ${epsilon} (%)`, input);
      }),
    );
  }
  return { element, update };
}
