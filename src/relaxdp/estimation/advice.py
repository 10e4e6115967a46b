"""Which encoding for how many values, or for numbers, at which epsilon: the error and the size of their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt

from relaxdp.errors import PlanError
from relaxdp.estimation.spreads import share_variance, spread_of
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.packed import packed_width, whole_bytes
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.theory.epsilon import MAX_VALUES, Epsilon, as_epsilon, epsilon_text, release_threshold
from relaxdp.theory.level import retention
from relaxdp.theory.response import Support

ALIKE = 1.02
"""Errors within two percent are alike: then the smaller report is the better one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One encoding: what its answers and its reports would be like."""

    encoding: str
    std_error: float
    """The standard error of a rare value's share, or of a mean in halves of its range, times the root of the number of
    objects."""
    bytes_per_report: int


@dataclass(frozen=True, slots=True, repr=False)
class MechanismRanking:
    """All encodings of a list of values, or of numbers, at one level, the best one first. `print` shows a table."""

    values: int | None
    """How many there are; None where numbers are asked for."""
    epsilon: str
    choices: Sequence[Choice]

    @property
    def best(self) -> str:
        """The name of the best encoding."""
        return self.choices[0].encoding

    def __str__(self) -> str:
        lines = [
            f"{'numbers' if self.values is None else f'{self.values:,} values'}, epsilon {self.epsilon}",
            f"{'encoding':<16} {'error x sqrt(n)':>15} {'bytes':>8}",
        ]
        lines += [f"{each.encoding:<16} {each.std_error:>15.3f} {each.bytes_per_report:>8,}" for each in self.choices]
        return "\n".join(lines)

    __repr__ = __str__


def rank_mechanisms(m: int, epsilon: Epsilon) -> MechanismRanking:
    """Return what each encoding of `m` values would give at `epsilon`, the last level that is planned.

    The error is that of a rare value, because where there are many values most of them are rare. Few values are best
    sent as they are (below about 3 e^epsilon + 2), more as bits, and very many as a hash, whose reports stay short.

    Claim: measured variances are within 5 % of these; tests/statistical/mechanisms/test_mechanisms.py.

    >>> print(rank_mechanisms(1000, 1))
    1,000 values, epsilon 1
    encoding         error x sqrt(n)    bytes
    local-hash                 1.921        9
    unary-optimised            1.919      125
    unary-symmetric            1.979      125
    categorical               18.410        2
    """
    if not isinstance(m, int) or not 2 <= m <= MAX_VALUES:
        raise PlanError(
            "The number of values must be a whole number from 2 to 2**32, got {type}.",
            hint="Pass the number of values, such as len(values).",
            type=type(m).__name__,
        )
    exact = as_epsilon(epsilon)
    choices = []
    for name in VALUE_MECHANISMS:
        support, size = planned_support(name, m, exact)
        choices.append(Choice(name, sqrt(share_variance(support, 0.0)), size))
    return _ranked(m, exact, choices)


NUMBER_ENCODINGS = ("numeric", "wave")
"""What "auto" chooses from, for numbers that are all there."""


def rank_number_mechanisms(epsilon: Epsilon) -> MechanismRanking:
    """Return what each encoding of numbers in a range would give at `epsilon`, the last level that is planned.

    The error is that of the mean at worst, wherever in their range the numbers lie: as in every plan. Rounded to an end
    they are told worst in the middle, and as places near them at the ends. From about 1.3 on the worst of places is the
    better one; and they tell the whole distribution.

    Claim: measured variances are within 3 % of these; tests/statistical/estimation/test_number_plans.py.

    >>> print(rank_number_mechanisms(2))
    numbers, epsilon 2
    encoding         error x sqrt(n)    bytes
    wave                       1.052        1
    numeric                    1.313        1
    """
    exact = as_epsilon(epsilon)
    choices = []
    for name in NUMBER_ENCODINGS:
        encoding = create_mechanism(name, range=(-1, 1), epsilon=exact)
        choices.append(Choice(name, mean_error(encoding, exact), packed_width(encoding)))
    return _ranked(None, exact, choices)


VALUE_MECHANISMS = ("categorical", "unary-optimised", "unary-symmetric", "local-hash")


def planned_support(name: str, values: int, epsilon: Decimal) -> tuple[Support, int]:
    """Return the support of a mechanism for so many values at a level, and the bytes of a report.

    No list of values is needed for it, so that it is fast for millions of them.
    """
    if name == "categorical":
        keep = retention(release_threshold(epsilon, values))
        return Support.from_one_symbol(keep, values), whole_bytes(values)
    # Bits and hashes support a value with the same probability, however many other values there are.
    mechanism = create_mechanism(name, values=range(2), epsilon=None if name.startswith("unary") else epsilon)
    support = mechanism.support(mechanism.level(epsilon).retention)
    return support, packed_width(mechanism) if name == "local-hash" else -(-values // 8)


def mean_error(encoding: Mechanism, epsilon: Decimal) -> float:
    """Return the standard error of a mean at worst, in halves of its range, times the root of the number of objects."""
    measure = encoding.measure
    assert measure is not None  # noqa: S101 (whoever asks has numbers)
    spread = spread_of(encoding.support(encoding.level(epsilon).retention), "sample", measure=measure)
    return 2 * sqrt(spread.variance) / (measure.most - measure.least)


def _ranked(values: int | None, epsilon: Decimal, choices: list[Choice]) -> MechanismRanking:
    choices = sorted(choices, key=lambda each: each.std_error)
    alike = [each for each in choices if each.std_error <= ALIKE * choices[0].std_error]
    best = min(alike, key=lambda each: each.bytes_per_report)
    return MechanismRanking(values, epsilon_text(epsilon), [best, *(each for each in choices if each is not best)])
