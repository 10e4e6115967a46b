"""The probability of a randomized response as printed, and one expression of the feasibility appendix."""

from __future__ import annotations

from math import exp

from relaxdp.audit.laws import retentions
from relaxdp.law.report import report_law
from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, Outcome
from relaxdp.paper.lab import Lab
from relaxdp.paper.laws import GRID, solution


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


def feasibility_step(lab: Lab) -> Outcome:
    """Compare the printed form of inequality (ab_ba) at the solution with its value."""
    worst, printed = 0.0, float("inf")
    for m in range(3, 11):
        for new, old in [(float(high), float(low)) for high in GRID for low in GRID if low < high]:
            p_aa, p_ba, _ = solution(m, old, new)
            a, b = exp(old), exp(new)
            difference = a * (1 - p_aa) / (m - 1) - b * p_ba
            worst = max(worst, abs((a - b) * (b + 1) / (b + m - 1) / difference - 1))
            printed = min(printed, abs((a - b) * exp(new + 1) / (b + m - 1) / difference - 1))
    return Outcome(
        f"With e^ε_2 + 1 the expression is the difference of both sides (to {worst:.0e}); with e^(ε_2 + 1) it is off "
        f"by at least {printed:.0%}. Both are negative, so the inequality holds.",
        "The expressions evaluated for m from 3 to 10 and all ε_1 < ε_2 of the appendix's grid.",
        [
            judge.exact("corrected expression", worst < 1e-9, f"relative difference {worst:.1e}"),
            judge.exact("as printed it is another number", printed > 0.01, f"at least {printed:.2f} off"),
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
    Claim(
        "feasibility-step",
        "One step of the feasibility proof",
        "Appendix on feasibility, check of (ab_ba)",
        "Both sides differ by (e^ε_1 - e^ε_2) e^(ε_2 + 1) / (e^ε_2 + m - 1) ≤ 0.",
        feasibility_step,
        correction="e^ε_2 + 1 instead of e^(ε_2 + 1).",
    ),
]
