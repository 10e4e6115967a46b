"""The probability of a randomized response as printed, and the law of a report."""

from __future__ import annotations

from math import exp

from relaxdp.audit.laws import retentions
from relaxdp.law.bridge import report_law
from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, Outcome
from relaxdp.paper.lab import Lab
from relaxdp.paper.laws import GRID


def response(lab: Lab) -> Outcome:
    """Compare the printed probability with the law of a report."""
    printed, worst = [], 0.0
    for m in range(2, 11):
        for level in GRID:
            e = exp(float(level))
            printed.append((e + m - 1) / exp(float(level) + m - 1))
            law = report_law(m, retentions([level], m)[0], truth=0)
            worst = max(worst, abs(float(law[0]) - e / (e + m - 1)), abs(float(law[1]) - 1 / (e + m - 1)))
    return Outcome(
        f"With e^ε + m - 1 below, the probabilities are those of a report (to {worst:.0e}) and sum to 1. As printed "
        f"they sum to {min(printed):.2g} to {max(printed):.2g}.",
        "Probabilities for m from 2 to 10 and ε from 0.1 to 2.",
        [
            judge.exact("corrected = law of a report", worst < 1e-12, f"largest difference {worst:.1e}"),
            judge.exact("printed probabilities do not sum to 1", max(printed) < 1, f"at most {max(printed):.3f}"),
        ],
    )


CLAIMS = [
    Claim(
        "response-probability",
        "The probability of a randomized response",
        "Section II-C",
        "The response is the true value with probability e^ε / e^(ε + m - 1), any other with 1 / e^(ε + m - 1).",
        response,
        correction="The denominator is e^ε + m - 1.",
    ),
]
