/** What the kit says, in English. Every other language has the same names and places. */
export default {
  language: "Language",
  times: { one: "{number} time", other: "{number} times" },
  often: { one: "{number} time in {scale}", other: "{number} times in {scale}" },
  "report.caution": "With this limit, the clearest report would be close to saying my answer openly.",
  "report.spent":
    "Whoever saw all of this guesses right at most {bound}, instead of {blind}. That is what it cost: epsilon {epsilon}.",
  "report.none": "none of the answers",
  "report.more": { one: "{named} and {number} more", other: "{named} and {number} more" },
  "report.group": "in group {cohort}, drawn at random",
  "report.lower": "{number}, the lower end",
  "report.upper": "{number}, the upper end",
  "report.scale": "on a scale from {low} to {high}",
  "report.below": "below {number}",
  "report.above": "above {number}",
  "report.near": "near {number}",
  "report.marks": "a pattern of {all} marks, of which {set} are set: very many words fit it",
  "report.yes": "yes",
  "report.no": "no",
};
