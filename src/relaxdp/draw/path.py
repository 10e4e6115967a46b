"""The path of one object: its report at every level, past and future, as a pure function of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from relaxdp.law.threshold import ONE


class Draw(NamedTuple):
    """One accepted pair of words: at which try, and the position and value that it gave."""

    j: int
    position: int
    value: int


def accept(position_word: int, value_word: int, bound: int, values: int, *, one: int = ONE) -> tuple[int, int] | None:
    """Return (position, value), uniform in [0, bound) x [0, values), or None where the words would be biased.

    Words run over [0, one). The last, incomplete run of `bound` (or of `values`) is rejected, so that every
    remainder is hit by equally many words.

    Claim: exactly uniform; every word is fed in tests/exact/draw/test_path.py.
    """
    if position_word > one - 1 - one % bound or value_word > one - 1 - one % values:
        return None
    return position_word % bound, value_word % values


def accepted_draws(words: Iterable[tuple[int, int]], values: int, *, one: int = ONE) -> Iterator[Draw]:
    """Return the draws of a path: each position is uniform below the one before, down to 0."""
    bound = one
    for j, (position_word, value_word) in enumerate(words):
        drawn = accept(position_word, value_word, bound, values, one=one)
        if drawn is not None:
            bound = drawn[0]
            yield Draw(j, *drawn)
            if bound == 0:
                return


def report_at(draws: Iterable[Draw], threshold: int, *, truth: int) -> int:
    """Return the report at `threshold`: the value of the last draw at or above it, or else the truth.

    Read at several thresholds, in any order, the reports have exactly the joint law of Algorithm 1.

    Claim: path = chain; tests/exact/draw/test_path.py.
    """
    report = truth
    for draw in draws:
        if draw.position < threshold:
            return report
        report = draw.value
    # A path goes down to 0, so this is a source that broke off: what was read so far must not pass as a report.
    raise RuntimeError("the draws of a path ended above the threshold")
