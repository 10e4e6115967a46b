"""Steps of the proofs in the appendices, as printed and as they must read."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import exp

from relaxdp.audit.attacks import compute_retentions
from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, ClaimOutcome
from relaxdp.paper.lab import Lab
from relaxdp.paper.laws import GRID, solution
from relaxdp.theory.privacy_loss import compute_transcript_probability
from relaxdp.theory.randomized_response import (
    compute_next_report_distribution,
    compute_odds,
    compute_report_distribution,
)


def pairs(m: int) -> list[tuple[Fraction, Fraction]]:
    """Return the retentions of all ε_1 < ε_2 of the appendix's grid, as they are really used: fractions."""
    return list(combinations(compute_retentions(GRID, m), 2))


def binary_proof(lab: Lab) -> ClaimOutcome:
    """Check the last case of the binary proof: its two comparisons as printed, and turned round."""
    equal = greater = above = final = True
    ratios = []
    for old, new in pairs(2):
        low, high = compute_odds(old, 2), compute_odds(new, 2)
        p_a, p_b = (compute_next_report_distribution(2, old, new, truth=0, last_report=last)[last] for last in (0, 1))
        equal &= p_a == high / low * p_b
        greater &= p_a > p_b
        above &= low > 1
        final &= p_b <= high * p_a
        ratios.append(float(p_a / p_b))
    return ClaimOutcome(
        f"p_a = e^(ε_2 - ε_1) p_b exactly, so p_a is {min(ratios):.2f} to {max(ratios):.2f} times p_b and not at most "
        "p_b, and e^ε_1 is more than 1. Turned round, they give p_b ≤ p_a ≤ e^ε_2 p_a, which was to be shown.",
        f"Fractions, for {len(ratios)} pairs ε_1 < ε_2 from 0.1 to 2.",
        [
            judge.exact("p_a = e^(ε_2 - ε_1) p_b", equal, f"{len(ratios)} pairs"),
            judge.exact("p_a > p_b, where p_a ≤ p_b is printed", greater, f"{len(ratios)} pairs"),
            judge.exact("e^ε_1 > 1, where e^ε_1 ≤ 1 is printed", above, f"{len(ratios)} pairs"),
            judge.exact("the conclusion p_b ≤ e^ε_2 p_a", final, f"{len(ratios)} pairs"),
        ],
    )


def feasibility_step(lab: Lab) -> ClaimOutcome:
    """Compare the printed form of inequality (ab_ba) at the solution with its value."""
    worst, printed = 0.0, float("inf")
    for m in range(3, 11):
        for new, old in [(float(high), float(low)) for high in GRID for low in GRID if low < high]:
            p_aa, p_ba, _ = solution(m, old, new)
            a, b = exp(old), exp(new)
            difference = a * (1 - p_aa) / (m - 1) - b * p_ba
            worst = max(worst, abs((a - b) * (b + 1) / (b + m - 1) / difference - 1))
            printed = min(printed, abs((a - b) * exp(new + 1) / (b + m - 1) / difference - 1))
    return ClaimOutcome(
        f"With e^ε_2 + 1 the expression is the difference of both sides (to {worst:.0e}); with e^(ε_2 + 1) it is off "
        f"by at least {printed:.0%}. Both are negative, so the inequality holds.",
        "The expressions evaluated for m from 3 to 10 and all ε_1 < ε_2 of the appendix's grid.",
        [
            judge.exact("corrected expression", worst < 1e-9, f"relative difference {worst:.1e}"),
            judge.exact("as printed it is another number", printed > 0.01, f"at least {printed:.2f} off"),
        ],
    )


def feasibility_last_step(lab: Lab) -> ClaimOutcome:
    """Compare both sides of (cb_ca), from whole transcripts, with what is printed once (ca_cb) is put into it."""
    left_side = right_side = holds = True
    cases = [(m, old, new) for m in range(3, 11) for old, new in pairs(m)]
    for m, old, new in cases:
        high = compute_odds(new, m)
        p_ba = compute_next_report_distribution(m, old, new, truth=0, last_report=1)[0]
        # o_1 = c and o_2 = b, given the truths a and b; the probability of o_1 = c is a factor of both sides.
        chance = compute_report_distribution(m, old, truth=0)[2]
        left, right = (compute_transcript_probability(m, (old, new), (2, 1), truth=truth) / chance for truth in (0, 1))
        left_side &= left == p_ba / high
        right_side &= high * right == high * p_ba != high**2 * p_ba
        holds &= left <= high * right
    return ClaimOutcome(
        "(ca_cb) is an equation at the solution, so (cb_ca) is e^(-ε_2) p_ba ≤ e^ε_2 p_ba, which holds. As printed its "
        "right side is e^ε_2 times too large.",
        "Both sides from probabilities of transcripts, in fractions, for m from 3 to 10 and ε_1 < ε_2 from 0.1 to 2.",
        [
            judge.exact("the left side is e^(-ε_2) p_ba", left_side, f"{len(cases):,} cases"),
            judge.exact("the right side is e^ε_2 p_ba, not e^(2 ε_2) p_ba", right_side, f"{len(cases):,} cases"),
            judge.exact("(cb_ca) holds", holds, f"{len(cases):,} cases"),
        ],
    )


CLAIMS = [
    Claim(
        "binary-proof",
        "The last case of the binary proof",
        "Appendix on the binary requirement, o_1 = b and o_2 = b",
        "p_b ≤ e^ε_2 p_a is always satisfied, “since p_a = e^(ε_2 - ε_1) p_b ≤ p_b and e^ε_1 ≤ 1”.",
        binary_proof,
        correction="p_a = e^(ε_2 - ε_1) p_b ≥ p_b and e^ε_2 ≥ 1: both signs are the wrong way round. The conclusion "
        "stands (for o_2 = b, not a).",
    ),
    Claim(
        "feasibility-step",
        "One step of the feasibility proof",
        "Appendix on feasibility, check of (ab_ba)",
        "Both sides differ by (e^ε_1 - e^ε_2) e^(ε_2 + 1) / (e^ε_2 + m - 1) ≤ 0.",
        feasibility_step,
        correction="e^ε_2 + 1 instead of e^(ε_2 + 1).",
    ),
    Claim(
        "feasibility-last-step",
        "Another step of the feasibility proof",
        "Appendix on feasibility, check of (cb_ca)",
        "With (ca_cb) put into it, (cb_ca) is e^(-ε_2) p_ba ≤ e^(2 ε_2) p_ba.",
        feasibility_last_step,
        correction="e^ε_2 instead of e^(2 ε_2) on the right.",
    ),
]
