/** Alle Wörter der Umfrageseite auf Deutsch. */

import KIT from "../../kit/words/de.js";

export default {
  ...KIT,
  "page.title": "Eine private Umfrage",
  "page.loading": "Der Server wird nach dieser Umfrage gefragt …",
  "page.stays":
    "Ihre Antwort bleibt in diesem Browser. Nur Meldungen verlassen ihn, vom Zufall verwischt: Sie taugen, um viele " +
    "Menschen zu zählen, und verraten wenig über Sie.",

  "steps.label": "Schritte",
  "steps.limit": "Ihre Grenze",
  "steps.question": "Ihre Antwort",
  "steps.status": "Was gesendet wurde",

  "intro.title": "Wer fragt, und warum",
  "intro.unknown": "Diese Umfrage sagt nicht, wer fragt.",
  "intro.purpose": "Wozu",
  "intro.contact": "Fragen an",
  "intro.notice": "Datenschutz",
  "intro.read": "Hinweise zum Datenschutz lesen",
  "intro.logo": "Logo von {asker}",
  "intro.paused":
    "Diese Umfrage macht gerade Pause. Sie können trotzdem jetzt antworten: Ihre Meldung wird gesendet, wenn es " +
    "weitergeht.",

  "problem.title": "Das geht noch nicht",
  "problem.needed": "Vorher wird etwas gebraucht",
  "problem.frame": "Diese Seite ist Teil einer anderen Seite, und das ist vielleicht der Grund.",
  "problem.tab": "Die Umfrage in einem eigenen Tab öffnen",
  "problem.again": "Noch einmal versuchen",
  "problem.later": "Nichts wurde gesendet. Diese Seite versucht es von selbst wieder.",
  "problem.until": "Bis dahin wird nichts gefragt und nichts gesendet.",
  "problem.noSurvey": "An dieser Adresse gibt es keine Umfrage. Vielleicht fehlt ihr ein Buchstabe.",
  "problem.unknown": "Etwas ging schief, das diese Seite nicht kennt. Nichts wurde gesendet.",
  "problem.invitation": "Der Server kennt diese Einladung nicht, oder sie ist schon verbraucht. Nichts wurde gezählt.",
  "problem.withdrawn": "Der Server sagt, dass dieser Browser seine Teilnahme widerrufen hat. Nichts wurde gezählt.",
  "problem.refused": "Der Server lehnt das ab und sagt: {message}",
  "problem.unreachable": "Der Server ist gerade nicht zu erreichen.",
  "problem.answer": "Das ist keine der möglichen Antworten. Nichts wurde behalten oder gesendet.",
  "problem.changed":
    "Die Umfrage ist nicht mehr die, an der Sie teilgenommen haben, also wird nichts mehr gesendet. Was gesendet wurde, " +
    "bleibt, wie es ist.",
  "problem.offer": "Die Umfrage ist so beschrieben, dass diese Seite ihr nicht folgen kann. Nichts wurde gesendet.",
  "problem.server": "Der Server antwortete so, dass diese Seite es nicht versteht. Er wird später wieder gefragt.",
  "problem.kept": "Was dieser Browser behält, lässt sich nicht lesen oder schreiben. Nichts wurde gesendet.",

  "missing.https":
    "Diese Seite kam über einfaches http von einem anderen Rechner. Dort geben Browser ihre Verschlüsselung nicht her, " +
    "und ohne sie lässt sich keine Antwort schützen. Fragen Sie nach einer Adresse, die mit https:// beginnt, oder öffnen " +
    "Sie die Seite auf dem Rechner, von dem sie kommt, unter http://localhost.",
  "missing.crypto":
    "Diesem Browser fehlt WebCrypto, und ohne das lässt sich keine Antwort schützen. Ein aktueller Browser hat es.",
  "missing.bigint":
    "Dieser Browser kann nicht mit großen ganzen Zahlen rechnen (BigInt). Ein aktueller Browser kann es.",
  "missing.fetch":
    "Dieser Browser kann Meldungen nicht so senden, wie diese Seite es tut (fetch). Ein aktueller Browser kann es.",
  "missing.storage":
    "Dieser Browser behält nichts für diese Seite, und eine Antwort muss aufgeschrieben sein, bevor etwas gesendet wird. " +
    "Erlauben Sie dieser Seite, Daten zu behalten, oder verlassen Sie das private Fenster.",

  "closed.finished.title": "Diese Umfrage ist beendet",
  "closed.finished": "Sie nimmt keine Antworten mehr an. Danke, dass Sie vorbeigekommen sind.",
  "closed.waiting.title": "Diese Umfrage hat noch nicht begonnen",
  "closed.waiting": "Sie öffnet am {when}. Nichts wurde gefragt, und nichts wurde gesendet.",
  "closed.later": "Sie öffnet später. Nichts wurde gefragt, und nichts wurde gesendet.",

  "cleared.gone": "Was dieser Browser behalten hatte, ist weg",
  "cleared.damaged": "Was dieser Browser behalten hatte, ist beschädigt",
  "cleared.old": "Was dieser Browser behält, ist älter, als es war",
  "cleared.text":
    "Meldungen, die früher gesendet wurden, gibt es vielleicht noch, und diese Seite kennt sie nicht mehr: Was beide " +
    "kosten, kommt zusammen.",
  "cleared.why":
    "Diese Seite kann nicht dort weitermachen, wo Sie aufgehört haben, und sie beginnt nicht von selbst neu: Für den " +
    "Server wären Sie eine zweite Person, und wer beide in Verbindung bringt, erfährt mehr, als jede der Grenzen erlaubt.",
  "cleared.stop":
    "Wenn Sie diese Umfrage schon beantwortet haben, schließen Sie die Seite. Ihre Meldungen zählen weiter.",
  "cleared.understood":
    "Ich habe diese Umfrage noch nicht beantwortet, oder ich will zweimal antworten und weiß, dass die Kosten " +
    "zusammenkommen.",
  "cleared.check": "Bitte bestätigen Sie das zuerst.",
  "cleared.anew": "Neu beginnen",

  "invitation.title": "Nur mit Einladung",
  "invitation.lead": "Teilnehmen kann nur, wer eine Einladung hat. Jede Einladung gilt einmal.",
  "invitation.label": "Ihre Einladung",
  "invitation.hint": "Sie steht in dem Brief, der Nachricht oder dem Link, den Sie bekommen haben.",
  "invitation.send": "Weiter",
  "invitation.missing": "Bitte geben Sie Ihre Einladung ein.",
  "invitation.refused": "Diese Einladung ist nicht bekannt oder schon verbraucht. Nichts wurde gefragt oder gesendet.",
  "invitation.unchecked": "Ob die Einladung gilt, lässt sich gerade nicht feststellen: {problem}",

  "limit.title": "Zuerst Ihre eigene Grenze",
  "limit.lead":
    "Meldungen sind anfangs sehr verwischt. Später bittet die Umfrage vielleicht Schritt für Schritt um klarere. Sie " +
    "entscheiden, wie weit das gehen darf, und diese Seite geht nie weiter.",
  "limit.legend": "Wie klar dürfen Meldungen über meine Antwort werden?",
  "limit.list": "Meine Grenze",
  "limit.choose": "Bitte wählen …",
  "limit.single":
    "Diese Umfrage hat einen Schritt, also gibt es eine Grenze: Nehmen Sie sie, oder schließen Sie die Seite.",
  "limit.first": "Nur der erste Schritt",
  "limit.some": "Bis Schritt {step} von {all}",
  "limit.all": "Alle {all} Schritte",
  "limit.only": "Der einzige Schritt",
  "limit.beyond": "Alle Schritte, und das Äußerste, worum diese Umfrage je bitten darf",
  "limit.private": "am privatesten",
  "limit.clear": "am klarsten",
  "limit.suggested": "Vorschlag: {asker}",
  "limit.suggestedPlain": "Vorschlag der Umfrage",
  "limit.you": "Für Sie:",
  "limit.bound": "Wer rät, hat {bound} recht, statt {blind}.",
  "limit.most": "höchstens {often}",
  "limit.survey": "Für die Umfrage:",
  "limit.needs.share": {
    one: "{number} Person mit dieser Grenze genügt, um jeden Anteil auf {width} Prozentpunkte genau zu kennen.",
    other:
      "Es braucht etwa {number} Menschen mit dieser Grenze, um jeden Anteil auf {width} Prozentpunkte genau zu kennen.",
  },
  "limit.needs.number": {
    one: "{number} Person mit dieser Grenze genügt, um den Durchschnitt auf {width} genau zu kennen.",
    other: "Es braucht etwa {number} Menschen mit dieser Grenze, um den Durchschnitt auf {width} genau zu kennen.",
  },
  "limit.needs.never": "So viele Menschen diese Grenze auch wählen, sie verraten zu wenig, um etwas zu lernen.",
  "limit.blind": "Es gibt {answers} mögliche Antworten. Wer meine einfach rät, hat also {often} recht.",
  "limit.blind.number":
    "Wer rät, in welcher Hälfte des Bereichs meine Zahl liegt, hat {often} recht, allein durch Glück.",
  "limit.blind.word": "Jemand vermutet eine bestimmte Antwort von mir und hat mit so einer Vermutung {often} recht.",
  "limit.key.blind": "richtig durch Glück",
  "limit.key.bound": "richtig höchstens, wenn jemand alles sähe, was diese Seite je sendet",
  "limit.missing": "Bitte wählen Sie zuerst eine Grenze. Es ist keine für Sie vorgewählt.",
  "limit.others": {
    one:
      "In diesem Browser haben Sie noch an einer anderen Umfrage dieser Website teilgenommen. Grenzen kommen zusammen: " +
      "Gemeinsam sind es dann Epsilon {total}, davon {own} für diese.",
    other:
      "In diesem Browser haben Sie noch an {number} anderen Umfragen dieser Website teilgenommen. Grenzen kommen zusammen: " +
      "Gemeinsam sind es dann Epsilon {total}, davon {own} für diese.",
  },
  "limit.published":
    "Wenn sie beendet ist, soll diese Umfrage einmal veröffentlicht werden: Zählungen der Meldungen von mindestens " +
    "{least} Menschen zusammen, ohne etwas, das für eine Person steht. Wer später widerruft, bleibt dort mitgezählt.",
  "limit.before":
    "Haben Sie diese Umfrage schon einmal beantwortet, vielleicht in einem anderen Browser? Dann hören Sie bitte hier auf: " +
    "Meldungen beider Antworten verraten zusammen mehr, als jede der Grenzen erlaubt, und diese Seite kann es nicht wissen.",
  "limit.send": "Diese Grenze setzen und die Frage zeigen",
  "limit.why": "Warum vor der Frage?",
  "limit.because":
    "Sähen Sie die Frage zuerst, könnte Ihre Grenze von der Antwort abhängen und etwas über sie verraten. Später können " +
    "Sie die Grenze nicht ändern.",
  "limit.known": "Und wenn jemand schon etwas über mich weiß?",
  "limit.odds":
    "Dann beginnt diese Person mit einer besseren Vermutung, mit oder ohne diese Umfrage. Was immer sie weiß: Alles zu " +
    "sehen, was diese Seite je sendet, vervielfacht ihre Chancen für eine Antwort gegen eine andere höchstens um {odds}. " +
    "In der Sprache der Differential Privacy: Epsilon ist {epsilon}.",
  "limit.odds.unchosen": "Wählen Sie eine Grenze, um zu sehen, wie sehr Meldungen eine Vermutung höchstens verbessern.",
  "limit.million": "mehr als eine Million",

  "question.title": "Die Frage",
  "question.first":
    "Lassen Sie sich Zeit: Die erste Antwort zählt und lässt sich nicht ändern, denn eine Änderung wäre in den Meldungen " +
    "zu sehen.",
  "question.send": "Meine Antwort hier behalten und eine verwischte Meldung senden",
  "question.limit": "Ihre Grenze bleibt, wie sie ist: Wer rät, hat höchstens {often} recht (Epsilon {epsilon}).",
  "question.paused": "Die Umfrage macht gerade Pause: Ihre Meldung wird gesendet, wenn es weitergeht.",
  "question.answer": "Meine Antwort",
  "question.word": "Meine Antwort, in einem Wort",
  "question.number": "Eine Zahl von {low} bis {high}",
  "question.read": "Das wird als {number} gelesen.",
  "question.choose": "Bitte wählen …",
  "question.yes": "Ja",
  "question.no": "Nein",
  "question.missing": "Bitte antworten Sie zuerst.",
  "question.notNumber": "Das ist keine Zahl.",
  "question.outside": "Bitte geben Sie eine Zahl von {low} bis {high} an.",

  "status.title": "Ihre Antwort, und was gesendet wurde",
  "status.own": "Ihre Antwort",
  "status.ownHere": "nur in diesem Browser behalten, an niemanden gesendet",
  "status.show": "Zeigen oder verbergen",
  "status.erased": "Sie wurde in diesem Browser gelöscht.",
  "status.sent": "Was gesendet wurde, mit Absicht verwischt",
  "status.sentLead":
    "Das hat der Zufall entschieden. Es ist vielleicht Ihre Antwort und vielleicht nicht, und niemand weiß es.",
  "status.sentNumber": "Das hat der Zufall entschieden. Wie nah es an Ihrer Antwort liegt, weiß niemand.",
  "status.nothing": "Es wurde nichts gesendet.",
  "status.counts": "Wie eine verwischte Antwort trotzdem zählt",
  "status.stands": "steht für: {answers}",
  "status.step": "Schritt {step} von {all}, Epsilon {epsilon}, {time}",
  "status.stepless": "Epsilon {epsilon}, {time}",
  "status.raw": "Gesendet wurde es als {raw}",
  "status.written": "wartet darauf, gesendet zu werden",
  "status.received": "angekommen",
  "status.refused": "vom Server abgelehnt",
  "status.gone": "angekommen, dann gelöscht",
  "status.another": "Eine andere Einladung",
  "status.use": "Diese Einladung verwenden",
  "status.else": "Was erfährt der Server sonst?",
  "status.elseText":
    "Mit jeder Meldung geht eine Zufallszahl mit, die für diesen Browser in dieser Umfrage steht und nirgends sonst, damit " +
    "eine spätere Meldung an die Stelle einer früheren treten kann; und mit der ersten eine Einladung, wo eine nötig ist. " +
    "Wie bei jeder Webseite könnte der Server auch Ihre Netzadresse und die Zeit sehen. Sonst wird ihm nichts gesendet.",
  "status.check": "Jetzt nach Neuem sehen",
  "status.stop": "Hier aufhören …",
  "status.leave": "Widerrufen …",

  "meaning.one":
    "Jede Meldung ist eine der möglichen Antworten. Der Zufall entscheidet, ob es die wahre ist: Von hundert Menschen bei " +
    "Ihrem letzten Schritt melden etwa {right} ihre eigene Antwort, und niemand weiß, welche. Wie oft der Zufall das tut, " +
    "ist bekannt. Darum lässt es sich wieder herausrechnen, wenn viele gezählt werden: Dann zeigt sich, wie häufig jede " +
    "Antwort ist.",
  "meaning.ends":
    "Jede Meldung ist ein Ende des Bereichs, nie die Zahl selbst. Große Zahlen melden das obere Ende etwas öfter, und den " +
    "Rest macht der Zufall. Aus den Meldungen vieler lässt sich der Durchschnitt berechnen, und nichts über Einzelne.",
  "meaning.place":
    "Jede Meldung ist eine Stelle auf der Skala, nie die Zahl selbst. Der Zufall entscheidet, wie weit weg sie liegt: Von " +
    "hundert Menschen bei Ihrem letzten Schritt melden etwa {near} eine Stelle, die höchstens {distance} von ihrer Zahl " +
    "entfernt ist, die anderen irgendeine, und niemand weiß, welche. Die Meldungen vieler zeigen zusammen den Durchschnitt " +
    "und wie die Zahlen verteilt sind.",
  "meaning.several":
    "Jede Meldung steht für mehrere Antworten zugleich. Der Zufall hat Antworten dazugetan, die nicht Ihre sind, und Ihre " +
    "vielleicht weggelassen. Wie oft er das tut, ist bekannt. Darum zeigen die Meldungen vieler zusammen, wie häufig jede " +
    "Antwort ist.",
  "meaning.marks":
    "Jede Meldung ist ein Muster aus Zeichen. Der Zufall hat viele davon umgedreht: Sie passen zu Wörtern, die nicht Ihre " +
    "sind, und vielleicht nicht zu Ihrem. Über viele Menschen zusammengezählt, zeigen die Zeichen, wie häufig ein Wort " +
    "ist, nach dem die Umfrage sucht.",

  "now.kept": "Ihre Antwort ist hier aufbewahrt, und die Meldung wartet darauf, gesendet zu werden.",
  "now.allSent": "Alles, was zu senden war, ist angekommen.",
  "now.again": "Diese Seite versucht es von selbst wieder.",
  "now.limit":
    "Die Umfrage bittet um mehr, als Ihre Grenze erlaubt, also wird nichts gesendet. Ihre Grenze bleibt, wie sie ist.",
  "now.asking": "Der Server wird gefragt …",
  "now.waiting": "Die Umfrage hat noch nicht begonnen.",
  "now.paused": "Die Umfrage macht Pause.",
  "now.onward": "Ihre Antwort ist hier aufbewahrt; die Meldung wird gesendet, wenn es weitergeht.",
  "now.quiet": "Nichts wartet darauf, gesendet zu werden.",
  "now.sending": "Die Meldung wird gesendet …",
  "now.last": "Danke. Ihre Meldung ist angekommen, und es ist der letzte Schritt dieser Umfrage.",
  "now.ends":
    "Danke. Ihre Meldung ist angekommen. Ihre Grenze endet bei diesem Schritt, also wird nichts Klareres gesendet.",
  "now.without": "Die Umfrage ist ohne Sie zu Schritt {step} weitergegangen.",
  "now.next":
    "Danke. Ihre Meldung ist angekommen. Wenn die Umfrage ihren nächsten Schritt öffnet, sendet diese Seite von selbst eine " +
    "klarere Meldung, gleich, wenn sie offen bleibt, oder wenn Sie wiederkommen, bis Schritt {step}, wie Ihre Grenze sagt.",
  "ended.finished":
    "Die Umfrage ist beendet. Ihre Antwort und ihr Schlüssel wurden in diesem Browser gelöscht; es wird nichts mehr gesendet.",
  "ended.forgotten":
    "Sie haben hier aufgehört. Ihre Antwort und ihr Schlüssel wurden in diesem Browser gelöscht; es wird nichts mehr " +
    "gesendet.",
  "ended.withdrawn": "Sie haben widerrufen. Ihre Antwort und ihr Schlüssel wurden in diesem Browser gelöscht.",
  "ended.withdrawing":
    "Sie haben widerrufen, und Ihre Antwort und ihr Schlüssel wurden in diesem Browser gelöscht. Der Server weiß es noch " +
    "nicht: Diese Seite sagt es ihm, sobald das geht. Bitte lassen Sie die Seite offen, oder kommen Sie wieder.",
  "ended.deleted":
    "Der Server hat Ihre Meldungen gelöscht. Die Privatheit, die sie gekostet haben, kommt nicht zurück: Was gesehen wurde, " +
    "lässt sich nicht ungesehen machen.",
  "ended.none": "Es war nichts gesendet worden.",

  "results.title": "Was gelernt wurde",
  "results.lead": {
    one: "Aus den Meldungen von {number} Person.",
    other: "Aus den Meldungen von {number} Menschen zusammen. Niemand weiß, was eine einzelne Person geantwortet hat.",
  },
  "results.answer": "Antwort",
  "results.share": "Anteil",
  "results.between": "Zwischen",
  "results.range": "{low} bis {high}",
  "results.mean": "Durchschnitt",
  "results.sure":
    "Der wahre Wert liegt fast sicher (95 von 100 Mal) in dem Bereich daneben, für alle Antworten zugleich.",
  "results.largest": "Die {shown} größten von {all} Antworten.",
  "results.more": "Alles, was von dieser Umfrage veröffentlicht ist",
  "results.later":
    "Was gelernt wurde, steht hier, wenn es veröffentlicht ist. Das geschieht einmal, wenn die Umfrage wie geplant endete " +
    "und genug Menschen teilnahmen.",

  "stop.title": "Nichts mehr senden?",
  "stop.text":
    "Die Meldungen, die gesendet wurden, zählen weiter. Ihre Antwort und ihr Schlüssel werden in diesem Browser gelöscht, " +
    "also kann nie mehr eine klarere Meldung daraus werden.",
  "stop.yes": "Nichts mehr senden",
  "leave.title": "Die Teilnahme widerrufen?",
  "leave.text":
    "Der Server löscht Ihre Meldungen, und dieser Browser löscht Ihre Antwort und ihren Schlüssel. Sie können von diesem " +
    "Browser aus nicht noch einmal teilnehmen.",
  "leave.spent":
    "Privatheit, die verbraucht ist, kommt nicht zurück: Wer die Meldungen gesehen hat, oder Zählungen daraus, kann sie " +
    "nicht ungesehen machen.",
  "leave.yes": "Widerrufen",
  "dialog.no": "Zurück",
};
