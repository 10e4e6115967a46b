"""Ways out in the words of the library: which argument helps where something was rejected."""

from __future__ import annotations

IN_PYTHON = {
    "booleans": "Declare the values 'true' and 'false'.",
    "chosen_rows": (
        "Group by a pass-through column with by=. If rows were chosen without a look at reports, pass "
        "description=rx.description(frame)."
    ),
    "clip": "Widen the range, or pass clip=True to move numbers into it.",
    "column": "Name it with column=.",
    "cross": "Name the second one with cross=.",
    "dates": "Declare dates like '2026-01-31'.",
    "description": "Pass description=; for one frame, mechanism= and epsilon= do as well.",
    "missing_number": "Pass missing=True: a missing number is then a report of its own.",
    "numbers": "Use rx.Numeric, which is for numbers.",
    "schedule": "Give objects=, and not epsilon=.",
    "two_of_three": "Give two of half_width=, objects= and epsilon=.",
}
