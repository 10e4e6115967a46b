"""Figure 1: the guarantee of noisy sampling, its variance against that of relaxation, and linear relaxation."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np
from scipy.stats import binom

from relaxdp.estimation.schedules import Linear, compute_noisy_sampling_epsilon
from relaxdp.paper import figures, judge
from relaxdp.paper.baselines import noisy_sampling_variance, relaxation_variance
from relaxdp.paper.claims import Claim, ClaimOutcome, Data, Picture
from relaxdp.paper.lab import Lab

ALPHA = Decimal(1)
BETAS = [Decimal(step) / 10 for step in range(1, 11)]
SHOWN = [BETAS[0], BETAS[1], BETAS[4], BETAS[9]]
ROUNDS = range(1, 51)
LINEAR = (5, 10, 20, 50)


def guarantee(beta: Decimal, rounds: int) -> float:
    """Return ε_ns(K)."""
    return float(compute_noisy_sampling_epsilon(**_where(beta, rounds)))


def enumerated(beta: Decimal, rounds: int) -> tuple[float, float]:
    """Return the least and the greatest log ratio of the number of ones, over all numbers, straight from the law."""
    keep, right = (1 / (1 + exp(-float(each))) for each in (ALPHA, beta))
    ones = np.arange(rounds + 1)
    high, low = binom.pmf(ones, rounds, right), binom.pmf(ones, rounds, 1 - right)
    ratio = np.log((keep * high + (1 - keep) * low) / (keep * low + (1 - keep) * high))
    return float(ratio.min()), float(ratio.max())


def figure_a(lab: Lab) -> ClaimOutcome:
    """Compare ε_ns(K) with an enumeration, and look at where it goes."""
    curves = {beta: [guarantee(beta, rounds) for rounds in ROUNDS] for beta in BETAS}
    worst = lopsided = 0.0
    for beta in BETAS:
        for rounds in (1, 2, 3, 10, 50):
            least, greatest = enumerated(beta, rounds)
            worst = max(worst, abs(greatest - curves[beta][rounds - 1]))
            lopsided = max(lopsided, abs(least + greatest))
    exact = [[compute_noisy_sampling_epsilon(**_where(beta, rounds)) for rounds in ROUNDS] for beta in BETAS]
    rising = all(old < new < ALPHA for curve in exact for old, new in pairwise(curve))
    limit = max(float(ALPHA) - guarantee(beta, 1000) for beta in BETAS)
    rows = [[rounds, *(curves[beta][rounds - 1] for beta in BETAS)] for rounds in ROUNDS]
    return ClaimOutcome(
        f"Formula and enumeration differ by at most {worst:.1e}. The guarantee rises with K, stays below ε_α = 1 and "
        f"reaches it to 12 digits at K = 1,000. The least ratio is the reciprocal of the greatest (to "
        f"{lopsided:.0e}). ε_ns(10) = {curves[BETAS[4]][9]:.5f} at ε_β = 0.5.",
        "Greatest likelihood ratio over all numbers of ones, for ten ε_β and K up to 50.",
        [
            judge.exact("formula = enumeration", worst < 1e-10, f"largest difference {worst:.1e}"),
            judge.exact("the least ratio is the reciprocal of the greatest", lopsided < 1e-10, f"{lopsided:.1e}"),
            judge.exact("rising, below ε_α", rising, "K from 1 to 50"),
            judge.exact("limit ε_α", limit < 1e-12, f"{limit:.1e} below it at K = 1,000"),
        ],
        {"figure-1a": Data(["rounds", *(f"epsilon_beta={beta}" for beta in BETAS)], rows)},
        {
            "figure-1a": Picture(
                "The guarantee ε_ns(K) of one bit after K noisy samples, ε_α = 1. Four of the ten ε_β whose numbers "
                "are in the data.",
                partial(figures.sampling_guarantees, {beta: curves[beta] for beta in SHOWN}, float(ALPHA)),
            )
        },
    )


def figure_b(lab: Lab) -> ClaimOutcome:
    """Compare the variances of relaxation and noisy sampling at equal guarantees."""
    sampling, relaxation = {}, {}
    for beta in BETAS:
        where = [_where(beta, rounds) for rounds in ROUNDS]
        sampling[beta] = np.array([noisy_sampling_variance(**each) for each in where])
        relaxation[beta] = np.array(
            [relaxation_variance([compute_noisy_sampling_epsilon(**each)], values=2) for each in where]
        )
    first = max(abs(sampling[beta][0] / relaxation[beta][0] - 1) for beta in BETAS)
    later = min(float((sampling[beta][1:] / relaxation[beta][1:]).min()) for beta in BETAS)
    most = max(float((sampling[beta] / relaxation[beta]).max()) for beta in BETAS)
    half = BETAS[4]
    rows = [
        [rounds, beta, guarantee(beta, rounds), relaxation[beta][rounds - 1], sampling[beta][rounds - 1]]
        for beta in BETAS
        for rounds in ROUNDS
    ]
    return ClaimOutcome(
        f"At K = 1 both are equal; from K = 2 on noisy sampling has {later:.2f} to {most:.1f} times the variance. At "
        f"ε_β = 0.5 and K = 10: {sampling[half][9]:.3f} against {relaxation[half][9]:.3f} (N = 1).",
        "Formulas, compared at ten ε_β and K up to 50; both are checked by simulation in experiment 1.",
        [
            judge.exact("equal at K = 1", first < 1e-9, f"relative difference {first:.1e}"),
            judge.exact("relaxation is better from K = 2 on", later > 1, f"least ratio {later:.3f}"),
        ],
        {"figure-1b": Data(["rounds", "epsilon_beta", "epsilon", "relaxation", "noisy_sampling"], rows)},
        {
            "figure-1b": Picture(
                "The variance of an estimated bit (N = 1) by noisy sampling (solid) and by relaxation to the same "
                "guarantee (dashed), ε_α = 1. Four of the ten ε_β whose numbers are in the data.",
                partial(
                    figures.sampling_variances,
                    {beta: sampling[beta] for beta in SHOWN},
                    {beta: relaxation[beta] for beta in SHOWN},
                ),
            )
        },
    )


def figure_c(lab: Lab) -> ClaimOutcome:
    """Look at linear relaxation from 0.1 to 1.0 in different numbers of rounds."""
    curves = {}
    for rounds in LINEAR:
        levels = tuple(Linear("0.1", 1, steps=rounds))
        curves[rounds] = [(float(level), relaxation_variance([level], values=2)) for level in levels]
    falling = all(old[1] > new[1] for curve in curves.values() for old, new in pairwise(curve))
    starts, ends = ({curve[place][1] for curve in curves.values()} for place in (0, -1))
    formula = max(
        abs(variance * (exp(level) - 1) ** 2 / exp(level) - 1) for curve in curves.values() for level, variance in curve
    )
    rows = [[rounds, place, *point] for rounds, curve in curves.items() for place, point in enumerate(curve, 1)]
    return ClaimOutcome(
        f"For {', '.join(map(str, LINEAR))} rounds the variance falls at every step from {max(starts):.1f} to "
        f"{max(ends):.3f} (N = 1), the same start and end however many rounds there are.",
        "Variances of the realised levels against e^ε / (1 - e^ε)².",
        [
            judge.exact("falling", falling, f"{len(rows)} steps"),
            judge.exact("same start and end", len(starts) == len(ends) == 1, "whatever the number of rounds"),
            judge.exact("the paper's formula", formula < 1e-9, f"relative difference {formula:.1e}"),
        ],
        {"figure-1c": Data(["rounds", "round", "epsilon", "variance"], rows)},
        {
            "figure-1c": Picture(
                "The variance of an estimated bit (N = 1) while ε is relaxed linearly from 0.1 to 1.0 in K rounds.",
                partial(figures.linear_variances, curves),
            )
        },
    )


def sampling_variance(lab: Lab) -> ClaimOutcome:
    """Compare the formula of noisy sampling's variance with an enumeration of everything that can happen."""
    worst, printed = 0.0, []
    for beta in BETAS:
        for rounds in (1, 2, 5, 10):
            keep, right = (1 / (1 + exp(-float(each))) for each in (ALPHA, beta))
            ones = np.arange(rounds + 1)
            chance = keep * binom.pmf(ones, rounds, right) + (1 - keep) * binom.pmf(ones, rounds, 1 - right)
            debiased = ((ones / rounds - (1 - right)) / (2 * right - 1) - (1 - keep)) / (2 * keep - 1)
            by_hand = float((chance * debiased**2).sum() - (chance * debiased).sum() ** 2)
            formula = noisy_sampling_variance(**_where(beta, rounds))
            spread = right * (1 - right) / rounds / (1 - right) ** 2 + keep * (1 - keep)  # as printed on the way
            worst = max(worst, abs(formula / by_hand - 1))
            printed.append(abs(spread / (2 * keep - 1) ** 2 / by_hand - 1))
    return ClaimOutcome(
        f"The final formula equals the enumerated variance to {worst:.0e}; with the expression printed on the "
        f"way it would be off by {min(printed):.0%} to {max(printed):.0%}.",
        "The variance of the decoder, enumerated over the permanent bit and all numbers of ones.",
        [
            judge.exact("final formula = enumeration", worst < 1e-9, f"relative difference {worst:.1e}"),
            judge.exact(
                "as printed on the way it is another number", min(printed) > 1e-3, f"at least {min(printed):.1%} off"
            ),
        ],
    )


def binary_variance(lab: Lab) -> ClaimOutcome:
    """Compare the three expressions of the variance of a binary estimate."""
    worst, printed = 0.0, []
    first, *others = map(float, Linear("0.1", 1, steps=10))
    for last in others:
        final = exp(last) / (1 - exp(last)) ** 2
        scale = ((exp(last) + 1) / (exp(last) - 1)) ** 2
        as_printed, corrected = (scale * exp(level) / (exp(level) + 1) ** 2 for level in (first, last))
        worst = max(worst, abs(corrected / final - 1))
        printed.append(as_printed / final - 1)
    return ClaimOutcome(
        f"With ε_i throughout, the middle expression is the final one (to {worst:.0e}); with ε_1 = 0.1, as printed, "
        f"it is too large by {min(printed):.2%} at ε_i = 0.2 and by {max(printed):.0%} at ε_i = 1.",
        "The expressions evaluated at nine steps of linear relaxation.",
        [
            judge.exact("middle = final, with ε_i", worst < 1e-12, f"relative difference {worst:.1e}"),
            judge.exact("with ε_1 it is another number", min(printed) > 1e-3, f"at least {min(printed):.2%} off"),
        ],
    )


def _where(beta: Decimal, rounds: int) -> Any:
    return {"epsilon_alpha": ALPHA, "epsilon_beta": beta, "samples": rounds}


CLAIMS = [
    Claim(
        "figure-1a",
        "Figure 1a: the guarantee of noisy sampling",
        "Section V-A and the appendix on its guarantee",
        "After K samples the guarantee is ε_ns(K), which tends to ε_α; the least ratio “actually equals” the greatest.",
        figure_a,
        correction="The least ratio is the reciprocal of the greatest. The formula of ε_ns(K) stands.",
    ),
    Claim(
        "figure-1b",
        "Figure 1b: variance of relaxation and of noisy sampling",
        "Section V-A",
        "For ε_β from 0.1 to 1.0, relaxation at the guarantee of noisy sampling has the smaller variance, and it falls "
        "much faster.",
        figure_b,
    ),
    Claim(
        "figure-1c",
        "Figure 1c: linear relaxation",
        "Section V-A",
        "Relaxed linearly from 0.1 to 1.0 in different numbers of rounds K, the variance falls at different rates.",
        figure_c,
    ),
    Claim(
        "noisy-sampling-variance",
        "The variance of noisy sampling",
        "Section V-A and the appendix on its variance",
        "Var = β(1-β) / (NK (1-2β)² (1-2α)²) + α(1-α) / (N (1-2α)²).",
        sampling_variance,
        correction="On the way (1-β)² should read (1-2β)², and N in the sum over clients N². The final formula stands.",
    ),
    Claim(
        "binary-variance",
        "The variance of the binary estimate",
        "Section V-A",
        "Var = ((e^ε_i + 1) / (e^ε_i - 1))² · e^ε_1 / (N (e^ε_1 + 1)²) = e^ε_i / (N (1 - e^ε_i)²).",
        binary_variance,
        correction="The middle expression needs ε_i where it has ε_1.",
    ),
]
