"""Which encoding for how many values at which epsilon: the expected error of each, and how large its reports are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from relaxdp.encodings.registry import advised
from relaxdp.estimation.planning import share_variance
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.law.threshold import check_values

_ALIKE = 1.02
"""Errors within two percent are alike: then the smaller report is the better one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One encoding: what its answers and its reports would be like."""

    encoding: str
    std_error: float
    """The standard error of a rare value's share, times the root of the number of objects."""
    bytes_per_report: int


@dataclass(frozen=True, slots=True, repr=False)
class Advice:
    """All encodings of a list of values at one level, the best one first. `print` shows a table."""

    values: int
    epsilon: str
    choices: Sequence[Choice]

    @property
    def best(self) -> str:
        """The name of the best encoding."""
        return self.choices[0].encoding

    def __str__(self) -> str:
        lines = [
            f"{self.values:,} values, epsilon {self.epsilon}",
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
    choices.sort(key=lambda each: each.std_error)
    alike = [each for each in choices if each.std_error <= _ALIKE * choices[0].std_error]
    best = min(alike, key=lambda each: each.bytes_per_report)
    return Advice(m, epsilon_text(exact), [best, *(each for each in choices if each is not best)])
