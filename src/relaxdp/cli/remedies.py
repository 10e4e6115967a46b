"""Ways out in the words of the command line: which option helps where something was rejected."""

from __future__ import annotations

ON_COMMAND_LINE = {
    "booleans": "Declare the values true,false.",
    "chosen_rows": (
        "Group by a pass-through column with --by. If rows were chosen without a look at reports, add "
        "--description {name}."
    ),
    "clip": "Widen the range, or add --clip NAME to move numbers into it.",
    "column": "Name it with --column.",
    "cross": "Name the second one with --cross.",
    "dates": "Declare dates like 2026-01-31.",
    "description": "Name a file that describes it with --description FILE.",
    "missing_number": "Add --missing NAME: a missing number is then a report of its own.",
    "numbers": "Declare a range such as --column age=0..120.",
    "plan_boolean": "Run `relaxdp plan --values 2`.",
    "schedule": "Give --objects, and not --epsilon.",
    "two_of_three": "Give two of --half-width, --objects and --epsilon.",
}
