"""Bought files have the exact joint distribution of relaxed reports, in every order of sale, in fractions.

They hold keyed reports, so that the second scenario applies to them.
"""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from tests.golden import recorded
from tests.golden.driver_market import (
    Distribution,
    keyed_distribution,
    relaxed_distribution,
    relaxed_distribution_on_grid,
)

LEVELS = ("0.3", "0.5", "0.7")


def privacy_loss(distributions: list[Distribution]) -> Fraction:
    """Return the largest ratio of the probabilities of the same reports under two true values."""
    return max(
        max(each[seen] for each in distributions) / min(each[seen] for each in distributions)
        for seen in distributions[0]
    )


@pytest.mark.parametrize("values", [2, 3])
def test_a_coalition_learns_what_its_best_buyer_knows(values: int) -> None:
    """0.3, 0.5 and 0.7, as in the paper's scenario."""
    relaxed = [relaxed_distribution(values, LEVELS, true_value) for true_value in range(values)]
    found: dict[str, Any] = {"".join(map(str, seen)): float(chance) for seen, chance in sorted(relaxed[0].items())}
    # A coalition that has all three levels learns exactly as much as the buyer of 0.7 alone, and no more than e^0.7.
    alone = [relaxed_distribution(values, ["0.7"], true_value) for true_value in range(values)]
    assert privacy_loss(relaxed) == privacy_loss(alone)
    with localcontext(prec=60):
        bound = Fraction(Decimal("0.7").exp())
    assert bound * (1 - Fraction(1, 10**15)) < privacy_loss(relaxed) <= bound
    assert sum(relaxed[0].values()) == 1
    if values == 2:
        recorded.check("market-distribution-of-two-values", found)
    else:
        recorded.check("market-distribution-of-three-values", found)


@pytest.mark.parametrize("values", [2, 3])
def test_keyed_reports_have_the_same_distribution(values: int) -> None:
    """All words of a small generator are enumerated: read from a key in any order, reports are relaxed reports."""
    for thresholds in ((2, 5, 9), (1, 8, 15)):
        for order, true_value in itertools.product(itertools.permutations(range(3)), range(values)):
            relaxed = relaxed_distribution_on_grid(values, thresholds, true_value, words=16)
            keyed = keyed_distribution(values, [thresholds[place] for place in order], true_value, words=16)
            assert keyed == {tuple(seen[place] for place in order): chance for seen, chance in relaxed.items()}
