/** Was der Baukasten sagt, auf Deutsch. */
export default {
  language: "Sprache",
  times: { one: "{number} Mal", other: "{number} Mal" },
  often: { one: "{number} von {scale} Mal", other: "{number} von {scale} Mal" },
  "report.caution": "Mit dieser Grenze wäre die klarste Meldung fast so, als würde ich meine Antwort offen sagen.",
  "report.spent":
    "Wer all das gesehen hat, rät höchstens {bound} richtig, statt {blind}. Das hat es gekostet: Epsilon {epsilon}.",
  "report.none": "keine der Antworten",
  "report.more": { one: "{named} und {number} weitere", other: "{named} und {number} weitere" },
  "report.group": "in Gruppe {cohort}, die gelost wurde",
  "report.lower": "{number}, das untere Ende",
  "report.upper": "{number}, das obere Ende",
  "report.scale": "auf einer Skala von {low} bis {high}",
  "report.below": "unter {number}",
  "report.above": "über {number}",
  "report.near": "etwa {number}",
  "report.marks": "ein Muster aus {all} Zeichen, von denen {set} gesetzt sind: sehr viele Wörter passen dazu",
  "report.yes": "ja",
  "report.no": "nein",
};
