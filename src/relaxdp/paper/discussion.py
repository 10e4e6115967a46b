"""The discussion's numbers: the guarantee of one step, basic composition, collusion, and the comparison with 2009."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

from relaxdp.audit.attacks import compute_minimum_error_rate, compute_retentions
from relaxdp.paper import figures, judge
from relaxdp.paper.claims import Claim, ClaimOutcome, Data, Picture
from relaxdp.paper.lab import Lab
from relaxdp.theory.epsilon import compute_threshold
from relaxdp.theory.privacy_loss import compute_step_odds, compute_transcript_probability
from relaxdp.theory.randomized_response import (
    NOISE,
    compute_log_rounded_up,
    compute_odds,
    compute_report_distribution,
    compute_retention,
)

LEVELS = (Decimal(1), Decimal(2))
PRIORS: dict[int, list[tuple[int, ...]]] = {
    2: [(1, 1), (9, 1)],
    3: [(1, 1, 1), (7, 2, 1), (1, 50, 49)],
    4: [(1, 1, 1, 1), (1, 2, 3, 94)],
}


def guarantees(first: Decimal, second: Decimal, values: int) -> tuple[float, float, float]:
    """Return the logarithms of: the step alone, both steps added up (basic composition), and both outputs in truth."""
    low, high = compute_retentions([first, second], values)
    alone = compute_step_odds(values, low, high)
    added = compute_step_odds(values, NOISE, low) * alone
    return (
        float(compute_log_rounded_up(alone)),
        float(compute_log_rounded_up(added)),
        float(compute_log_rounded_up(compute_odds(high, values))),
    )


def one_step(lab: Lab) -> ClaimOutcome:
    """Check the guarantee of one step and of basic composition, at ε 1 and 2."""
    found = {values: guarantees(*LEVELS, values) for values in range(2, 11)}
    right = all(abs(alone - 3) < 1e-12 and abs(added - 4) < 1e-12 for alone, added, _ in found.values())
    alone, added, together = found[2]
    seconds = [Decimal(step) / 20 for step in range(21, 61)]
    curve = [(float(second), *guarantees(LEVELS[0], second, 2)) for second in seconds]
    return ClaimOutcome(
        f"ε_Δ = {alone:.6f}, so e^ε_Δ = {2.718281828459045**alone:.4f} and not 3; basic composition says {added:.6f}; "
        f"both outputs together have {together:.6f}. The same for m from 2 to 10.",
        "Greatest likelihood ratios in fractions.",
        [
            judge.exact("one step has ε_1 + ε_2 = 3, basic composition 4", right, f"{len(found)} alphabets"),
            judge.exact("both outputs have ε_2 = 2", all(abs(each[2] - 2) < 1e-12 for each in found.values()), ""),
            judge.exact("e^ε_Δ is not 3, as is printed", abs(2.718281828459045**alone - 3) > 1, ""),
        ],
        {"one-step": Data(["epsilon_2", "one_step", "basic_composition", "both_outputs"], curve)},
        {
            "discussion-guarantees": Picture(
                "What one relaxation from ε₁ = 1 seems to cost, and what it costs: the step looked at alone, basic "
                "composition, and the guarantee of both outputs.",
                partial(figures.guarantees, curve),
            )
        },
    )


def collusion(lab: Lab) -> ClaimOutcome:
    """Check that the posterior given all outputs is the posterior given the last one, for every transcript."""
    levels = tuple(map(Decimal, ("0.1", "0.5", "1", "2")))
    compared = different = 0
    for values, priors in PRIORS.items():
        keeps = compute_retentions(levels, values)
        for reports in product(range(values), repeat=len(levels)):
            all_outputs = [
                compute_transcript_probability(values, keeps, reports, truth=truth) for truth in range(values)
            ]
            last = [compute_report_distribution(values, keeps[-1], truth=truth)[reports[-1]] for truth in range(values)]
            for prior in priors:
                compared += 1
                different += _posterior(all_outputs, prior) != _posterior(last, prior)
    return ClaimOutcome(
        f"{compared:,} posteriors (all transcripts of four levels, m = 2, 3, 4, {sum(map(len, PRIORS.values()))} "
        f"priors): {different} differ.",
        "Posteriors in fractions, compared exactly.",
        [judge.exact("posterior given all outputs = given the last", different == 0, f"{different} differ")],
    )


def collusion_proof_2009(lab: Lab) -> ClaimOutcome:
    """Check what can be checked of the comparison: the retentions that the paper quotes."""
    first, second = (float(compute_retention(compute_threshold(level, 3))) for level in LEVELS)
    return ClaimOutcome(
        f"The quoted 0.36 and 0.68 are the retentions of ε 1 and 2 for m = 3 ({first:.4f}, {second:.4f}). If that work "
        "is collusion-proof with the same marginals, its law must be this one: the law is unique (see the linear "
        "program).",
        "Retentions rounded to two digits.",
        [judge.exact("retentions of ε 1 and 2", (f"{first:.2f}", f"{second:.2f}") == ("0.36", "0.68"), "m = 3")],
    )


def least_error(lab: Lab) -> ClaimOutcome:
    """Check the theorem on error rates: the error of the best guess, summed over all outputs."""
    worst, rows = 0.0, []
    for values in range(2, 11):
        for level in map(Decimal, ("0.1", "0.5", "1", "2", "4")):
            laws = [
                compute_report_distribution(values, compute_retention(compute_threshold(level, values)), truth=truth)
                for truth in range(values)
            ]
            best = sum((max(column) for column in zip(*laws, strict=True)), start=Fraction(0)) / values
            error, formula = float(1 - best), compute_minimum_error_rate(values, level)
            rows.append([values, level, error, formula])
            worst = max(worst, abs(error - formula))
    return ClaimOutcome(
        f"The Bayes error equals 1 - e^ε / (e^ε + m - 1) to {worst:.1e}, for m from 2 to 10 and five levels.",
        "Errors of the likeliest guess summed over all outputs, in fractions.",
        [judge.exact("least error rate", worst < 1e-12, f"largest difference {worst:.1e}")],
        {"least-error-rate": Data(["m", "epsilon", "bayes_error", "formula"], rows)},
    )


def _posterior(likelihoods: list[Fraction], prior: tuple[int, ...]) -> list[Fraction]:
    joint = [likelihood * weight for likelihood, weight in zip(likelihoods, prior, strict=True)]
    return [each / sum(joint) for each in joint]


CLAIMS = [
    Claim(
        "one-step",
        "The guarantee of one step",
        "Section IV-A",
        "From ε_1 = 1 to ε_2 = 2, “e^ε_Δ is calculated to be 3”, and basic composition gives 4 where the truth is 2.",
        one_step,
        correction="ε_Δ = ε_1 + ε_2 is 3; e^ε_Δ is 20.09.",
    ),
    Claim(
        "collusion-proof",
        "Collusion-proofness",
        "Section IV-B and its appendix",
        "The belief in the truth given all outputs equals the belief given the last output alone.",
        collusion,
    ),
    Claim(
        "collusion-proof-2009",
        "Comparison with the collusion-proof perturbation of Xiao et al. (2009)",
        "Section IV-B",
        "At ε 1 and 2 (0.36 and 0.68 in the notation of that work), its equation (7) gives another law and other "
        "marginals.",
        collusion_proof_2009,
        unchecked="The equation of the other paper is not part of this one.",
    ),
    Claim(
        "least-error-rate",
        "The theoretical minimum of error rates",
        "Section VI-A, theorem",
        "Guessing a uniform truth from an ε-LDP randomized response is wrong with probability at least "
        "1 - e^ε / (e^ε + m - 1).",
        least_error,
    ),
]
