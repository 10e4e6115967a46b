/** What a survey of several questions says beside, in English: who answers a single one does not wait for it. */
export default {
  "several.legend": "How clear may reports about my answers become, all together?",
  "several.lead":
    "This survey has {number} questions. You set one limit for all of them, and it is divided among them before the first one is shown.",
  "several.bound":
    "with everything that this page ever sends to all questions, a guess at your answer to any one of them is right {bound}, instead of {blind}.",
  "several.some": "Only {number} of the {all} questions, at the first step",
  "several.step": "All {all} questions, up to step {step} of {steps}",
  "several.clearest": "All {all} questions, all steps",
  "several.odds":
    "Then they start from a better guess, with or without this survey. Whatever they know, seeing everything that this page ever sends to all questions multiplies their odds for one set of answers against another by at most {odds}. In the language of differential privacy: epsilon is {epsilon}, over all questions together.",
  "several.together":
    "Questions {questions} are counted together, to see how their answers go together: for these the server knows which reports come from one browser.",
  "several.others": "All other questions are kept apart.",
  "several.apart":
    "No two questions are counted together: the server is not told which reports to two of them come from one browser.",
  "several.invited":
    "Your invitation goes along with the first report to each question: whoever runs the server could tell by it which reports come from one browser. Of it the service keeps only that it was used.",
  "several.progress": "Question {place} of {all}",
  "several.spent": "All questions together have cost epsilon {spent} of your limit, {limit}.",
  "several.each": "What happens to each answer stands below.",
  "several.left": "Not asked: it does not fit into your limit.",
  "several.unanswered": "You have not answered it.",
  "several.else":
    "With each report goes a random number that stands for this browser: the same one in questions that are counted together, and another one in every other question, so that a later report can take the place of an earlier one; and with the first an invitation, where one is needed. As with every web page, the server could also see your network address and the time. There is nothing else that it is sent.",
  "several.out": {
    one: "Question {questions} is then not asked: it does not fit into this limit.",
    other: "Questions {questions} are then not asked: they do not fit into this limit.",
  },
};
