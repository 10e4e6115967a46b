"""Exact joint laws of whole transcripts, from the two samplers, by enumeration in rationals."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache

from relaxdp.audit.exact_check import compute_transcript_distribution
from relaxdp.sampling.keyed_path import AcceptedDraw, find_report, reduce_word_pair
from relaxdp.theory.randomized_response import (
    compute_blur_retention,
    compute_log_rounded_up,
    compute_odds,
    compute_report_distribution,
    compute_retention,
)

__all__ = [
    "Accept",
    "Law",
    "Step",
    "Transcript",
    "compute_blur_distribution",
    "compute_realised_epsilon",
    "compute_transcript_distribution",
    "level_lists",
    "path_law",
]

Transcript = tuple[int, ...]
Law = dict[Transcript, Fraction]
Step = Callable[..., list[Fraction]]
Accept = Callable[..., "tuple[int, int] | None"]


def compute_blur_distribution(values: int, lower: Fraction, upper: Fraction, *, report: int) -> list[Fraction]:
    """Return the law of a report at retention `upper` after it was blurred to `lower`, without the truth."""
    return compute_report_distribution(values, compute_blur_retention(lower, upper), truth=report)


def compute_realised_epsilon(threshold: int, values: int) -> Decimal:
    """Return the epsilon that a threshold really has, rounded up."""
    return compute_log_rounded_up(compute_odds(compute_retention(threshold), values))


def path_law(values: int, thresholds: Sequence[int], truth: int, *, one: int, rule: Accept = reduce_word_pair) -> Law:
    """The law of all reports read from a path whose words run over [0, one): every word is fed to `rule`."""

    @cache
    def draws_below(bound: int) -> dict[tuple[int, int], Fraction]:
        outcomes: defaultdict[tuple[int, int], int] = defaultdict(int)
        for position_word, value_word in itertools.product(range(one), repeat=2):
            drawn = rule(position_word, value_word, bound, values, base=one)
            if drawn is not None:  # a rejected pair is drawn again, so it only rescales the others
                outcomes[drawn] += 1
        total = sum(outcomes.values())
        return {drawn: Fraction(count, total) for drawn, count in outcomes.items()}

    # Where a path stands is its last position and the reports so far. A new draw lengthens a path, so `report_at` with
    # that one draw and the path's end, and with the report so far in the truth's place, gives the longer path's report.
    standing: dict[int, defaultdict[Transcript, Fraction]] = {place: defaultdict(Fraction) for place in range(one + 1)}
    standing[one][(truth,) * len(thresholds)] = Fraction(1)
    for bound in range(one, 0, -1):
        for reports, probability in standing[bound].items():
            for (position, value), chance in draws_below(bound).items():
                assert position < bound, "a path goes down, and this one does not"
                draw = (AcceptedDraw(0, position, value), AcceptedDraw(1, 0, 0))
                after = tuple(find_report(draw, T, truth=report) for T, report in zip(thresholds, reports, strict=True))
                standing[position][after] += probability * chance
    return dict(standing[0])


def level_lists(levels: Sequence[Fraction], most: int) -> Iterator[tuple[Fraction, ...]]:
    """All non-falling lists of up to `most` levels, equal neighbours included."""

    def extend(prefix: tuple[Fraction, ...]) -> Iterator[tuple[Fraction, ...]]:
        if prefix:
            yield prefix
        if len(prefix) < most:
            for level in levels:
                if not prefix or level >= prefix[-1]:
                    yield from extend((*prefix, level))

    return extend(())
