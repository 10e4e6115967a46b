"""What a joint law over all truths must satisfy. Each check raises AssertionError; mutants must make one do so."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.exact.enumeration import Law

from relaxdp.theory.randomized_response import compute_odds, compute_report_distribution


def check_sums(laws: Sequence[Law]) -> None:
    for law in laws:
        assert sum(law.values()) == 1


def check_marginals(laws: Sequence[Law], values: int, levels: Sequence[Fraction]) -> None:
    """Every single report is a randomized response at its own level."""
    for truth, law in enumerate(laws):
        for place, level in enumerate(levels):
            marginal = [Fraction(0)] * values
            for reports, chance in law.items():
                marginal[reports[place]] += chance
            assert marginal == compute_report_distribution(values, level, truth=truth)


def check_guarantee(laws: Sequence[Law], values: int | Fraction, last: Fraction) -> None:
    """No transcript is likelier by more than the last odds under another truth, and one reaches them."""
    most = compute_odds(last, values)
    reached = False
    for reports in {reports for law in laws for reports in law}:
        chances = [law.get(reports, Fraction(0)) for law in laws]
        assert max(chances) <= most * min(chances)  # multiplied, not divided: a zero must fail
        reached |= max(chances) == most * min(chances)
    assert reached


def check_posterior(laws: Sequence[Law], values: int, last: Fraction) -> None:
    """All reports together say no more about the truth than the last one alone (collusion-proof)."""
    for reports in {reports for law in laws for reports in law}:
        joint = [law.get(reports, Fraction(0)) for law in laws]
        alone = [compute_report_distribution(values, last, truth=truth)[reports[-1]] for truth in range(values)]
        total = sum(joint)
        assert [chance / total for chance in joint] == [chance / sum(alone) for chance in alone]


def check_all(laws: Sequence[Law], values: int, levels: Sequence[Fraction]) -> None:
    check_sums(laws)
    check_marginals(laws, values, levels)
    check_guarantee(laws, values, levels[-1])
    check_posterior(laws, values, levels[-1])
