/**
 * All words of the survey page, in English. Every other language has the same names and places. What the kit says in
 * English is there in any case, so that only other languages bring it along.
 */

export default {
  "page.title": "A private survey",
  "page.loading": "Asking the server about this survey …",
  "page.stays":
    "What you answer stays in this browser. Only reports leave it, blurred by chance: they are good for counting many " +
    "people, and tell little about you.",

  "steps.label": "Steps",
  "steps.limit": "Your limit",
  "steps.question": "Your answer",
  "steps.status": "What was sent",

  "intro.title": "Who asks, and why",
  "intro.unknown": "This survey does not say who asks.",
  "intro.purpose": "What for",
  "intro.contact": "Questions to",
  "intro.notice": "Privacy notice",
  "intro.read": "Read the privacy notice",
  "intro.logo": "Logo of {asker}",
  "intro.paused":
    "This survey pauses at the moment. You can answer now all the same: your report is sent when it goes on.",

  "problem.title": "This does not work yet",
  "problem.needed": "Something is needed first",
  "problem.frame": "This page is part of another page, which may be the reason.",
  "problem.tab": "Open the survey in a tab of its own",
  "problem.again": "Try again",
  "problem.later": "Nothing was sent. This page tries again by itself.",
  "problem.until": "Until then nothing is asked, and nothing is sent.",
  "problem.noSurvey": "There is no survey at this address. Perhaps a letter of it is missing.",
  "problem.unknown": "Something went wrong that this page does not know. Nothing was sent.",
  "problem.invitation": "The server does not know this invitation, or it was used already. Nothing was counted.",
  "problem.withdrawn": "The server says that this browser has withdrawn. Nothing was counted.",
  "problem.refused": "The server refuses this, and says: {message}",
  "problem.unreachable": "The server cannot be reached at the moment.",
  "problem.answer": "This is not one of the possible answers. Nothing was kept or sent.",
  "problem.changed":
    "The survey is not the same any more as when you joined it, so nothing more is sent. What was sent stays as it is.",
  "problem.offer": "The survey is not described in a way that this page can follow. Nothing was sent.",
  "problem.server": "The server answered in a way that this page does not understand. It is asked again later.",
  "problem.kept": "What this browser keeps cannot be read or written. Nothing was sent.",

  "missing.https":
    "This page came over plain http from another machine, where browsers do not lend their cryptography: without it no " +
    "answer can be protected. Ask for an address that begins with https://, or open the page on the machine that it " +
    "comes from, at http://localhost.",
  "missing.crypto":
    "This browser has no WebCrypto, without which no answer can be protected. A current browser has it.",
  "missing.bigint": "This browser cannot compute with large whole numbers (BigInt). A current browser can.",
  "missing.fetch": "This browser cannot send reports the way this page does (fetch). A current browser can.",
  "missing.storage":
    "This browser keeps nothing for this page, and an answer must be written down before it is sent. Allow this site to " +
    "keep data, or leave the private window.",

  "closed.finished.title": "This survey has finished",
  "closed.finished": "It takes no more answers. Thank you for coming by.",
  "closed.waiting.title": "This survey has not begun",
  "closed.waiting": "It opens on {when}. Nothing was asked, and nothing was sent.",
  "closed.later": "It opens later. Nothing was asked, and nothing was sent.",

  "cleared.gone": "What this browser had kept is gone",
  "cleared.damaged": "What this browser had kept is damaged",
  "cleared.old": "What this browser keeps is older than it was",
  "cleared.text":
    "Reports that were sent before may be there still, and this page does not know them any more: the costs of both add up.",
  "cleared.why":
    "This page cannot go on where you stopped, and it does not begin again by itself: to the server you would be a " +
    "second person, and somebody who connects the two learns more than either limit allows.",
  "cleared.stop": "If you have answered this survey already, close the page. Your reports count as they are.",
  "cleared.understood":
    "I have not answered this survey yet, or I want to answer it twice and know that the costs add up.",
  "cleared.check": "Please confirm this first.",
  "cleared.anew": "Begin anew",

  "invitation.title": "By invitation only",
  "invitation.lead": "Only people with an invitation can take part. Each invitation works once.",
  "invitation.label": "Your invitation",
  "invitation.hint": "It is in the letter, message or link that you were sent.",
  "invitation.send": "Go on",
  "invitation.missing": "Please type in your invitation.",
  "invitation.refused": "This invitation is not known, or it was used already. Nothing was asked or sent.",
  "invitation.unchecked": "Whether the invitation is good cannot be found out now: {problem}",

  "limit.title": "First, your own limit",
  "limit.lead":
    "Reports begin very blurred. Later the survey may ask for clearer ones, step by step. You decide how far that may " +
    "go, and this page never goes further.",
  "limit.legend": "How clear may reports about my answer become?",
  "limit.list": "My limit",
  "limit.choose": "Choose …",
  "limit.single": "This survey has one step, so there is one limit: take it, or close the page.",
  "limit.first": "The first step only",
  "limit.some": "Up to step {step} of {all}",
  "limit.all": "All {all} steps",
  "limit.only": "The one step that there is",
  "limit.beyond": "All steps, and the most that this survey may ever ask for",
  "limit.private": "most private",
  "limit.clear": "clearest",
  "limit.suggested": "suggested by {asker}",
  "limit.suggestedPlain": "suggested by the survey",
  "limit.you": "For you:",
  "limit.bound": "a guess is right {bound}, instead of {blind}.",
  "limit.most": "at most {often}",
  "limit.survey": "For the survey:",
  "limit.needs.share": {
    one: "{number} person at this limit would do to know every share to within {width} percentage points.",
    other: "about {number} people at this limit are needed to know every share to within {width} percentage points.",
  },
  "limit.needs.number": {
    one: "{number} person at this limit would do to know the average to within {width}.",
    other: "about {number} people at this limit are needed to know the average to within {width}.",
  },
  "limit.needs.never": "however many people choose this limit, they tell too little to learn anything.",
  "limit.blind": "There are {answers} possible answers, so somebody who just guesses mine is right {often}.",
  "limit.blind.number":
    "Somebody who guesses in which half of the range my number lies is right {often} by luck alone.",
  "limit.blind.word": "Somebody suspects one particular answer of mine, and such a guess is right {often}.",
  "limit.key.blind": "right by luck",
  "limit.key.bound": "right at most, for whoever saw everything that this page ever sends",
  "limit.missing": "Please choose a limit first. Nothing is chosen for you.",
  "limit.others": {
    one:
      "In this browser you also took part in another survey of this site. Limits add up: together they are then epsilon " +
      "{total}, of which {own} for this one.",
    other:
      "In this browser you also took part in {number} other surveys of this site. Limits add up: together they are then " +
      "epsilon {total}, of which {own} for this one.",
  },
  "limit.published":
    "When it has ended, this survey is to be published once: counts of reports of at least {least} people together, " +
    "without anything that stands for a person. Who withdraws later stays counted there.",
  "limit.before":
    "Have you answered this survey before, perhaps in another browser? Then please stop here: reports of both answers " +
    "together tell more than either limit allows, and this page cannot know.",
  "limit.send": "Set this limit and show the question",
  "limit.why": "Why before the question?",
  "limit.because":
    "If you saw the question first, your limit could depend on your answer and would tell something about it. You cannot " +
    "change the limit later.",
  "limit.known": "What if somebody knows something about me already?",
  "limit.odds":
    "Then they start from a better guess, with or without this survey. Whatever they know, seeing everything that this " +
    "page ever sends multiplies their odds for one answer against another by at most {odds}. In the language of " +
    "differential privacy: epsilon is {epsilon}.",
  "limit.odds.unchosen": "Choose a limit to see by how much reports can improve their guess at most.",
  "limit.million": "more than a million",

  "question.title": "The question",
  "question.first":
    "Take your time: the first answer counts and cannot be changed, because a change would show in the reports.",
  "question.send": "Keep my answer here and send a blurred report",
  "question.limit": "Your limit stays as it is: a guess is right at most {often} (epsilon {epsilon}).",
  "question.paused": "The survey pauses now: your report is sent when it goes on.",
  "question.answer": "My answer",
  "question.word": "My answer, in a word",
  "question.number": "A number from {low} to {high}",
  "question.read": "That is read as {number}.",
  "question.choose": "Choose …",
  "question.yes": "Yes",
  "question.no": "No",
  "question.missing": "Please answer first.",
  "question.notNumber": "This is not a number.",
  "question.outside": "Please give a number from {low} to {high}.",

  "status.title": "Your answer, and what was sent",
  "status.own": "Your answer",
  "status.ownHere": "kept only in this browser, sent to nobody",
  "status.show": "Show or hide",
  "status.erased": "It was erased in this browser.",
  "status.sent": "What was sent, blurred on purpose",
  "status.sentLead": "Chance decided this. It may or may not be your answer, and nobody can tell.",
  "status.sentNumber": "Chance decided this. How near it is to your answer, nobody can tell.",
  "status.nothing": "Nothing has been sent.",
  "status.counts": "How a blurred answer still counts",
  "status.stands": "stands for: {answers}",
  "status.step": "step {step} of {all}, epsilon {epsilon}, {time}",
  "status.stepless": "epsilon {epsilon}, {time}",
  "status.raw": "It travelled as {raw}",
  "status.written": "waiting to be sent",
  "status.received": "received",
  "status.refused": "refused by the server",
  "status.gone": "received, then deleted",
  "status.another": "Another invitation",
  "status.use": "Use this invitation",
  "status.else": "What else does the server learn?",
  "status.elseText":
    "With each report goes a random number that stands for this browser in this survey, and nowhere else, so that a " +
    "later report can take the place of an earlier one; and with the first an invitation, where one is needed. As with " +
    "every web page, the server could also see your network address and the time. There is nothing else that it is sent.",
  "status.check": "Look for news now",
  "status.stop": "Stop here …",
  "status.leave": "Withdraw …",

  "meaning.one":
    "Each report is one of the possible answers. Chance decides whether it is the true one: of a hundred people at your " +
    "last step about {right} report their own answer, and nobody can tell which. How often chance does that is known, so " +
    "it can be taken out again when many people are counted: then it shows how common each answer is.",
  "meaning.ends":
    "Each report is one end of the range, never the number itself. Large numbers report the upper end a little more " +
    "often, and chance does the rest. From many people the average can be worked out, and nothing about one of them.",
  "meaning.place":
    "Each report is a place on the scale, never the number itself. Chance decides how far away it is: of a hundred " +
    "people at your last step about {near} report a place within {distance} of their number, the others any place, and " +
    "nobody can tell which. Reports of many people together show the average, and how the numbers are spread.",
  "meaning.several":
    "Each report stands for several answers at once. Chance has put in answers that are not yours, and may have left out " +
    "yours. How often it does that is known, so that the reports of many people together show how common each answer is.",
  "meaning.marks":
    "Each report is a pattern of marks. Chance has turned over many of them: they fit words that are not yours, and may " +
    "not fit yours. Added up over many people, the marks show how common a word is that the survey looks for.",

  "now.kept": "Your answer is kept here, and its report is waiting to be sent.",
  "now.allSent": "Everything that was to be sent has been received.",
  "now.again": "This page tries again by itself.",
  "now.limit": "The survey asks for more than your limit allows, so nothing is sent. Your limit stays as it is.",
  "now.asking": "Asking the server …",
  "now.waiting": "The survey has not begun.",
  "now.paused": "The survey pauses.",
  "now.onward": "Your answer is kept here; its report is sent when the survey goes on.",
  "now.quiet": "Nothing is waiting to be sent.",
  "now.sending": "Sending the report …",
  "now.last": "Thank you. Your report was received, and it is the last step of this survey.",
  "now.ends": "Thank you. Your report was received. Your limit ends at this step, so nothing clearer will be sent.",
  "now.without": "The survey has gone on to step {step} without you.",
  "now.next":
    "Thank you. Your report was received. When the survey opens its next step, this page sends a clearer report by " +
    "itself, now if it stays open or when you come back, up to step {step} as your limit says.",
  "ended.finished":
    "The survey has finished. Your answer and its key were erased in this browser; nothing more will be sent.",
  "ended.forgotten":
    "You stopped here. Your answer and its key were erased in this browser; nothing more will be sent.",
  "ended.withdrawn": "You have withdrawn. Your answer and its key were erased in this browser.",
  "ended.withdrawing":
    "You have withdrawn, and your answer and its key were erased in this browser. The server does not know yet: this page " +
    "tells it as soon as that is possible. Please leave the page open, or come back.",
  "ended.deleted":
    "The server deleted your reports. The privacy that they cost does not come back: what was seen cannot be unseen.",
  "ended.none": "Nothing had been sent.",

  "results.title": "What was learnt",
  "results.lead": {
    one: "From the reports of {number} person.",
    other: "From the reports of {number} people together. Nobody knows what any one of them answered.",
  },
  "results.answer": "Answer",
  "results.share": "Share",
  "results.between": "Between",
  "results.range": "{low} to {high}",
  "results.mean": "Average",
  "results.sure": "The true value is almost surely (95 times in 100) in the range beside it, for all answers at once.",
  "results.largest": "The {shown} largest of {all} answers.",
  "results.more": "All that is published of this survey",
  "results.later":
    "What was learnt is shown here when it is published. That happens once, if the survey ended as planned and enough " +
    "people took part.",

  "stop.title": "Send nothing more?",
  "stop.text":
    "The reports that were sent go on counting. Your answer and its key are erased in this browser, so no clearer report " +
    "can ever be made of it.",
  "stop.yes": "Send nothing more",
  "leave.title": "Withdraw from this survey?",
  "leave.text":
    "The server deletes your reports, and this browser erases your answer and its key. You cannot take part again from " +
    "this browser.",
  "leave.spent":
    "Privacy that was spent does not come back: whoever has seen the reports, or counts made of them, cannot unsee them.",
  "leave.yes": "Withdraw",
  "dialog.no": "Go back",
};
