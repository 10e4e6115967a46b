"""Optimal utility, which the paper takes from another one: what follows from that, and where it must end."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, ClaimOutcome
from relaxdp.paper.lab import Lab
from relaxdp.theory.privacy_loss import compute_transcript_probability
from relaxdp.theory.randomized_response import SupportProbabilities, compute_report_distribution

KEEPS = tuple(Fraction(*pair) for pair in ((1, 10), (1, 4), (1, 2)))
SHARES = [Fraction(*pair) for pair in ((1, 100), (1, 5), (1, 2), (9, 10))]
MANY, ODDS = 100, Fraction(3)


def information(laws: Sequence[Sequence[Fraction]], share: Fraction) -> Fraction:
    """Return what one object's output says about the share of ones (Fisher), from its laws under the truths 0 and 1."""
    terms = ((one - zero) ** 2 / (share * one + (1 - share) * zero) for zero, one in zip(*laws, strict=True))
    return sum(terms, start=Fraction(0))


def variance(support: SupportProbabilities, share: Fraction) -> Fraction:
    """Return the variance of one object's debiased report about the population."""
    chance = support.noise + support.gain * share
    return chance * (1 - chance) / support.gain**2


def optimal_utility(lab: Lab) -> ClaimOutcome:
    """Check the step from one response to a relaxation, and that a response is not the best for many values."""
    outputs = list(product(range(2), repeat=len(KEEPS)))
    everything = [[compute_transcript_probability(2, KEEPS, each, truth=truth) for each in outputs] for truth in (0, 1)]
    last = [compute_report_distribution(2, KEEPS[-1], truth=truth) for truth in (0, 1)]
    same = all(information(everything, share) == information(last, share) for share in SHARES)
    bit = SupportProbabilities.from_one_symbol(KEEPS[-1], 2)
    least = all(variance(bit, share) == 1 / information(last, share) for share in SHARES)
    response = SupportProbabilities.from_one_symbol((ODDS - 1) / (ODDS - 1 + MANY), MANY)
    noise = 1 / (ODDS + 1)
    bits = SupportProbabilities(noise=noise, gain=Fraction(1, 2) - noise)
    ratio = variance(response, Fraction(1, MANY)) / variance(bits, Fraction(1, MANY))
    return ClaimOutcome(
        "For bits, all outputs together say as much about the share as the last one, and the estimate from it has the "
        "least variance that an unbiased estimate from these outputs can have: relaxing loses nothing. Whether another "
        f"{MANY}-valued mechanism does better is another question, and there one does: at e^ε = {ODDS} a response has "
        f"{float(ratio):.1f} times the variance of optimised unary encoding.",
        "Fisher information of all outputs and of the last one, and variances, in fractions.",
        [
            judge.exact("all outputs say as much as the last one", same, f"{len(SHARES)} shares, {len(KEEPS)} levels"),
            judge.exact("the estimate reaches the least variance", least, f"{len(SHARES)} shares"),
            judge.exact("a response is not optimal for many values", ratio > 1, f"m = {MANY}"),
        ],
    )


CLAIMS = [
    Claim(
        "optimal-utility",
        "Optimal utility of the estimate",
        "Section V-A",
        "Frequency estimation from randomized responses has been proved to have optimal utility elsewhere; “thus, the "
        "frequency estimation from the outputs of the DP relaxation is also optimal”.",
        optimal_utility,
        unchecked="The optimality is cited from another paper and is not proved in this one; for many values it cannot "
        "mean all mechanisms with the same guarantee.",
    ),
]
