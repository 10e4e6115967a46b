"""Which encoding for how many values, or for numbers, at which epsilon: the error and the size of their reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt

from relaxdp.encodings.protocol import Encoding
from relaxdp.encodings.registry import advised, made
from relaxdp.estimation.spreads import share_variance, spread_of
from relaxdp.law.epsilon import Epsilon, as_epsilon, check_values, epsilon_text

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
class Advice:
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


def best_encoding(m: int, epsilon: Epsilon) -> Advice:
    """Return what each encoding of `m` values would give at `epsilon`, the last level that is planned.

    The error is that of a rare value, because where there are many values most of them are rare. Few values are best
    sent as they are (below about 3 e^epsilon + 2), more as bits, and very many as a hash, whose reports stay short.

    Claim: measured variances are within 5 % of these; tests/statistical/encodings/test_encodings.py.

    >>> print(best_encoding(1000, 1))
    1,000 values, epsilon 1
    encoding         error x sqrt(n)    bytes
    local-hash                 1.921        9
    unary-optimised            1.919      125
    unary-symmetric            1.979      125
    categorical               18.410        2
    """
    check_values(m)
    exact = as_epsilon(epsilon)
    choices = []
    for member in advised():
        planned = member.planned_support(m, exact)
        if planned is not None:
            support, size = planned
            choices.append(Choice(member.name, sqrt(share_variance(support, 0.0)), size))
    return _ranked(m, exact, choices)


NUMBER_ENCODINGS = ("numeric", "wave")
"""What "auto" chooses from, for numbers that are all there."""


def best_for_numbers(epsilon: Epsilon) -> Advice:
    """Return what each encoding of numbers in a range would give at `epsilon`, the last level that is planned.

    The error is that of the mean at worst, wherever in their range the numbers lie: as in every plan. Rounded to an end
    they are told worst in the middle, and as places near them at the ends. From about 1.3 on the worst of places is the
    better one; and they tell the whole distribution.

    Claim: measured variances are within 3 % of these; tests/statistical/estimation/test_number_plans.py.

    >>> print(best_for_numbers(2))
    numbers, epsilon 2
    encoding         error x sqrt(n)    bytes
    wave                       1.052        1
    numeric                    1.313        1
    """
    exact = as_epsilon(epsilon)
    choices = []
    for name in NUMBER_ENCODINGS:
        encoding = made(name, range=(-1, 1), epsilon=exact)
        choices.append(Choice(name, mean_error(encoding, exact), encoding.packed_width))
    return _ranked(None, exact, choices)


def mean_error(encoding: Encoding, epsilon: Decimal) -> float:
    """Return the standard error of a mean at worst, in halves of its range, times the root of the number of objects."""
    measure = encoding.measure
    assert measure is not None  # noqa: S101 (whoever asks has numbers)
    spread = spread_of(encoding.support(encoding.level(epsilon).retention), "objects", measure=measure)
    return 2 * sqrt(spread.variance) / (measure.most - measure.least)


def _ranked(values: int | None, epsilon: Decimal, choices: list[Choice]) -> Advice:
    choices = sorted(choices, key=lambda each: each.std_error)
    alike = [each for each in choices if each.std_error <= ALIKE * choices[0].std_error]
    best = min(alike, key=lambda each: each.bytes_per_report)
    return Advice(values, epsilon_text(epsilon), [best, *(each for each in choices if each is not best)])
