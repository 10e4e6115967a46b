/** Was eine Umfrage mit mehreren Fragen noch sagt, auf Deutsch. */
export default {
  "several.legend": "Wie klar dürfen die Meldungen über meine Antworten werden, alle zusammen?",
  "several.lead":
    "Diese Umfrage hat {number} Fragen. Sie setzen eine Grenze für alle zusammen, und sie wird unter ihnen aufgeteilt, bevor die erste gezeigt wird.",
  "several.bound":
    "wer alles sähe, was diese Seite je zu allen Fragen sendet, würde Ihre Antwort auf eine einzelne Frage {bound} richtig raten statt {blind}.",
  "several.some": "Nur {number} der {all} Fragen, im ersten Schritt",
  "several.step": "Alle {all} Fragen, bis Schritt {step} von {steps}",
  "several.clearest": "Alle {all} Fragen, alle Schritte",
  "several.odds":
    "Dann rät man von Anfang an besser, mit dieser Umfrage oder ohne sie. Was auch immer jemand weiß: Alles, was diese Seite je zu allen Fragen sendet, vervielfacht die Wettquote für die einen Antworten gegen die anderen höchstens um {odds}. In der Sprache der Differential Privacy: Epsilon ist {epsilon}, über alle Fragen zusammen.",
  "several.together":
    "Die Fragen {questions} werden gemeinsam gezählt, um zu sehen, wie ihre Antworten zusammenhängen: Bei ihnen weiß der Server, welche Meldungen aus einem Browser kommen.",
  "several.others": "Alle anderen Fragen bleiben getrennt.",
  "several.apart":
    "Keine zwei Fragen werden gemeinsam gezählt: Der Server erfährt nicht, welche Meldungen zu zweien davon aus einem Browser kommen.",
  "several.invited":
    "Ihre Einladung geht mit der ersten Meldung zu jeder Frage mit: Wer den Server betreibt, könnte daran erkennen, welche Meldungen aus einem Browser kommen. Der Dienst behält davon nur, dass sie benutzt wurde.",
  "several.progress": "Frage {place} von {all}",
  "several.spent": "Alle Fragen zusammen haben Epsilon {spent} von Ihrer Grenze {limit} gekostet.",
  "several.each": "Was mit jeder Antwort geschieht, steht darunter.",
  "several.left": "Nicht gefragt: Sie passt nicht in Ihre Grenze.",
  "several.unanswered": "Sie haben sie nicht beantwortet.",
  "several.else":
    "Mit jeder Meldung geht eine Zufallszahl, die für diesen Browser steht: dieselbe bei Fragen, die gemeinsam gezählt werden, und eine andere bei jeder anderen Frage, damit eine spätere Meldung an die Stelle einer früheren treten kann; und mit der ersten eine Einladung, wo eine nötig ist. Wie bei jeder Webseite könnte der Server auch Ihre Netzwerkadresse und die Zeit sehen. Sonst wird ihm nichts gesendet.",
  "several.out": {
    one: "Frage {questions} wird dann nicht gestellt: Sie passt nicht in diese Grenze.",
    other: "Die Fragen {questions} werden dann nicht gestellt: Sie passen nicht in diese Grenze.",
  },
};
