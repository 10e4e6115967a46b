"""The privacy loss of a whole transcript of reports, compared with sequential composition of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import prod

from relaxdp.errors import LevelError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, check_value_count, compute_nonzero_threshold, format_epsilon
from relaxdp.theory.randomized_response import (
    NOISE,
    TRUTH,
    compute_bridge_mixture,
    compute_log_rounded_up,
    compute_odds,
    compute_retention,
)


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """The privacy loss of one transcript, as logarithms rounded up."""

    spent: Decimal
    """The paper's definition: the largest log ratio of the transcript's probability under any two truths."""
    guarantee: Decimal
    """The largest loss of any transcript at these levels: the realised epsilon of the last level."""
    basic_composition: Decimal
    """The sum of the guarantees of the single steps (sequential composition)."""


def compute_transcript_probability(
    n_values: int, retentions: Sequence[Fraction], reports: Sequence[int], *, truth: int
) -> Fraction:
    """Return the probability of all `reports`, at retentions that do not fall, given the truth."""
    probability = Fraction(1)
    old, last = NOISE, 0  # a relaxation from pure noise is the first report, whatever the noise showed
    for new, report in zip(retentions, reports, strict=True):
        mixture = compute_bridge_mixture(n_values, old, new, TRUTH, ends_agree=truth == last)
        probability *= mixture.compute_probability(n_values, report, lower_report=last, upper_report=truth)
        old, last = new, report
    return probability


def compute_step_odds(n_values: int, old_retention: Fraction, new_retention: Fraction) -> Fraction:
    """Return e^eps_delta: the guarantee of one step looked at alone, as a query with the last report known.

    It is the product of the odds of both levels (the paper's e^(eps_1 + eps_2)), more than the whole transcript
    costs. It is 1 where the level stays, because the report is then repeated for every truth.

    Claim: equals the greatest ratio of `compute_next_report_distribution` under two truths, for every m;
    tests/exact/theory/test_laws.py.

    >>> compute_step_odds(2, Fraction(1, 3), Fraction(1, 2))
    Fraction(6, 1)
    """
    if old_retention == new_retention:
        return Fraction(1)
    return compute_odds(old_retention, n_values) * compute_odds(new_retention, n_values)


def privacy_loss(epsilons: Sequence[Epsilon], reports: Sequence[int], *, m: int) -> PrivacyLoss:
    """Compute the privacy loss of all reports of one individual together.

    Args:
        epsilons: The epsilon of each report. They may only grow.
        reports: The reports, each as the index of one of the values.
        m: The number of values, 2 or more.

    Returns:
        The loss of this transcript, the guarantee of the last level, and the sum of the single steps.

    Raises:
        LevelError: The reports do not fit the epsilons, or cannot occur together.
        EpsilonError: An epsilon is not a positive number, or is too small.
        ValuesError: `m` is not a whole number from 2 to 2**32.

    Example:
        >>> loss = privacy_loss([1, 2], [0, 1], m=2)
        >>> round(loss.spent, 6), round(loss.guarantee, 6), round(loss.basic_composition, 6)
        (Decimal('2.000000'), Decimal('2.000000'), Decimal('4.000000'))
    """
    check_value_count(m)
    exact = [as_epsilon(epsilon) for epsilon in epsilons]
    if not exact or len(exact) != len(reports):
        raise LevelError(
            "Expected one report per epsilon, and at least one, got {reports} reports and {epsilons} epsilons.",
            hint="Pass lists of the same length, such as privacy_loss([0.1, 0.5], [0, 1], m=2).",
            epsilons=len(exact),
            reports=len(reports),
        )
    if not all(isinstance(report, int) and 0 <= report < m for report in reports):
        raise LevelError(
            "A report is not the index of a value. Expected a whole number from 0 to {last}, because m is {m}.",
            hint="Pass the position of each reported value in your list of values.",
            m=m,
            last=m - 1,
        )
    for earlier, later in pairwise(exact):
        if later < earlier:
            raise LevelError(
                "Epsilon falls from {old_epsilon} to {new_epsilon} in the transcript. Epsilon may only grow.",
                hint="Pass the reports in the order of their release.",
                old_epsilon=format_epsilon(earlier),
                new_epsilon=format_epsilon(later),
            )
    levels = [compute_retention(compute_nonzero_threshold(epsilon, m)) for epsilon in exact]
    # Every truth that was never reported has the same probability by symmetry, so one of them stands for all.
    truths = {*reports} | {next((value for value in range(m) if value not in reports), reports[-1])}
    likelihoods = [compute_transcript_probability(m, levels, reports, truth=truth) for truth in truths]
    if not all(likelihoods):
        raise LevelError(
            "The reports cannot occur together. Two different reports have the same epsilon.",
            hint="Check the reports: a release that is repeated at the same epsilon returns the same report.",
        )
    steps = [compute_step_odds(m, old, new) for old, new in pairwise([NOISE, *levels])]
    return PrivacyLoss(
        spent=compute_log_rounded_up(max(likelihoods) / min(likelihoods)),
        guarantee=compute_log_rounded_up(compute_odds(levels[-1], m)),
        basic_composition=compute_log_rounded_up(prod(steps, start=Fraction(1))),
    )
