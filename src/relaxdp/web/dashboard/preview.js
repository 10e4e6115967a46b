/** A campaign as people will meet it, while it is written: who asks, about what and why; then the question. */

import { h, put } from "../kit/dom.js";
import { textOf } from "../kit/form.js";
import { valuesOf } from "./definition.js";
import { placesOf, questionAt } from "./several.js";

export function previewPart() {
  const body = h("div", { class: "screen" });
  const element = h("details", { class: "preview" }, h("summary", {}, "Preview: what people will see"), body);

  /** @param {FormData} data */
  function update(data) {
    const [asker, about, purpose, contact] = ["asker", "about", "purpose", "contact"].map((name) => textOf(data, name));
    const logo = textOf(data, "logo");
    const colour = data.has("coloured") ? textOf(data, "colour") : "";
    body.style.setProperty("--shown", /^#[0-9a-f]{6}$/i.test(colour) ? colour : "var(--accent)");
    const places = placesOf(data);
    const then =
      places.length === 1
        ? "Then they choose their limit, and then they are asked:"
        : "Then they choose one limit for all questions, and then they are asked one after the other:";
    put(
      body,
      logo === "" ? null : h("img", { src: logo, alt: "" }),
      h("p", { class: "asker" }, asker === "" ? "Nobody says who asks" : `${asker} asks`),
      about === "" ? null : h("p", {}, about),
      purpose === "" ? null : h("p", { class: "small" }, purpose),
      contact === "" ? null : h("p", { class: "small muted" }, `Questions to: ${contact}`),
      h("p", { class: "step small muted" }, then),
      ...places.flatMap((place) => questionPieces(questionAt(data, place))),
    );
  }
  return { element, update };
}

/** @param {FormData} data of one question */
function questionPieces(data) {
  const answers =
    data.get("kind") === "number"
      ? [h("p", {}, `a number from ${textOf(data, "low") || "…"} to ${textOf(data, "high") || "…"}`)]
      : valuesOf(data).map((each) => h("p", { class: "option" }, each));
  return [h("p", { class: "asked" }, textOf(data, "question") || "…"), ...answers];
}
