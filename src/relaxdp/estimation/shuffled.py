"""What a publication costs towards the public: reports of many, without ids and in random order, hide each other.

A report costs its object epsilon towards whoever receives it with an id. The public that sees only an estimate of a
closed group, or its reports shuffled, learns less: nobody can tell whose report is whose. How much less is bounded
here, by the largest delta over all data sets of so many objects, and never from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import partial
from typing import Any

from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import PlanError, refusing
from relaxdp.estimation.hiding import Report, smallest_epsilon
from relaxdp.estimation.planning import MOST_OBJECTS
from relaxdp.estimation.sides import Planned, Side, made_for
from relaxdp.law.epsilon import MOST_DIGITS, Epsilon, as_epsilon, epsilon_text, release_threshold
from relaxdp.law.level import retention
from relaxdp.law.support import Cover
from relaxdp.lazy import pandas as pd
from relaxdp.remedies import IN_PYTHON

DIGITS = 4
"""How many significant digits a bound has; it is rounded up."""


@dataclass(frozen=True, slots=True)
class Shuffled:
    """What one publication of a closed group costs an object towards the public, at most: (epsilon, delta)."""

    epsilon: Decimal
    """Rounded up. Never more than that of the reports."""
    delta: float
    """What may happen beside epsilon: keep it far below one in the number of objects."""
    objects: int
    """How many objects are published together: the smallest group."""
    reports: Decimal
    """The epsilon of the reports: what is paid towards whoever receives them with ids."""
    law: str
    """What is used of the reports' law: an encoding, or that any report keeps its epsilon."""
    publications: int = 1
    """How many publications, each with noise of its own, are paid together."""

    assumes = (
        "The group is closed: nobody joins, leaves or is withdrawn between one publication and the next.",
        "Everybody in it reported at the same level, or each level is a group of its own.",
        "What is published is an estimate, or reports without ids in random order; nobody knows whose a seed or cohort "
        "is.",
        "Nobody is in two published groups of one question; where groups overlap, their smallest intersection or "
        "difference counts.",
        "What is published of other questions, or at other dates, about the same objects adds up.",
        "All other objects drew their reports as they should, and do not tell theirs.",
    )
    """What must be true of the publication, or epsilon is that of the reports."""

    @property
    def gain(self) -> float:
        """How many times less than the epsilon of the reports it is."""
        return float(self.reports * self.publications / self.epsilon) if self.epsilon else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON, with the assumptions."""
        return {
            "epsilon": epsilon_text(self.epsilon),
            "delta": self.delta,
            "objects": self.objects,
            "report_epsilon": epsilon_text(self.reports),
            "law": self.law,
            "publications": self.publications,
            "assumes": list(self.assumes),
        }

    def to_frame(self) -> Any:
        """Return it as a pandas data frame with one row, without the assumptions."""
        row = {name: each for name, each in self.to_dict().items() if name != "assumes"}
        return pd.DataFrame([row | {"epsilon": float(self.epsilon), "report_epsilon": float(self.reports)}])

    def __str__(self) -> str:
        several = self.publications > 1
        many = f"{self.publications:,} publications, each with noise of its own," if several else "one publication"
        verb, each = ("cost", " each time") if several else ("costs", "")
        return (
            f"Towards the public, {many} of a closed group of {self.objects:,} {verb} each of them at most epsilon "
            f"{epsilon_text(self.epsilon)} at delta {self.delta:g}; the reports themselves cost epsilon "
            f"{epsilon_text(self.reports)}{each} ({self.law})."
        )


@refusing("", IN_PYTHON)
def shuffled(
    epsilon: Epsilon | Iterable[Epsilon],
    *,
    objects: int | Iterable[int],
    delta: float | None = None,
    values: Planned | None = None,
    encoding: str | None = None,
    publications: int = 1,
) -> Shuffled:
    """Return what publishing the reports of a closed group costs each of its objects towards the public, at most.

    `epsilon` is that of the last level, or all levels, of which the largest counts: older reports are made from newer
    ones, so that all levels of a path together tell what the last one tells. Where a level was chosen after looking at
    reports, give the largest one that was planned. `objects` is how many are published together, or the size of every
    published group, of which the smallest counts. `values` is how many values an answer can have, with the name of
    their `encoding` (as they are, where it is left out), or the mechanism; without it the bound holds for every report
    that keeps its epsilon. `delta` is by default 10^-6, or a tenth of one in so many objects where that is less.
    `publications` are such with noise of their own, like the dates of a series: they compose. Publishing one group on
    one path again and again costs no more than once.

    Files with ids, live results, and groups that overlap have no such bound: there it is the epsilon of the reports.

    Claim: never below the exact delta of any data set, for up to six objects with two values and four with three;
    tests/exact/estimation/test_shuffled.py.

    >>> print(shuffled(4, objects=100_000, delta=1e-6, values=2).epsilon)
    0.08482
    """
    last = _last(epsilon)
    few = _smallest(objects)
    share = default_delta(few) if delta is None else float(delta)
    if not 0 < share < 1:
        raise PlanError("delta lies between 0 and 1, like 1e-6.")
    if type(publications) is not int or publications < 1:
        raise PlanError("the number of publications is a whole number, at least 1.")
    name, report = _report_of(values, encoding, last)
    found = _composed(partial(smallest_epsilon, report, few), share, publications)
    most = Context(prec=MOST_DIGITS, rounding=ROUND_CEILING).multiply(last, Decimal(publications))
    rounded = Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal_from_float(found * (1 + 1e-9))
    return Shuffled(as_epsilon(min(rounded, most), zero=True), share, few, last, name, publications)


def _last(epsilon: Epsilon | Iterable[Epsilon]) -> Decimal:
    levels = [epsilon] if isinstance(epsilon, str) or not isinstance(epsilon, Iterable) else list(epsilon)
    if not levels:
        raise PlanError("a publication has one level at least.")
    return max(as_epsilon(level) for level in levels)


def _smallest(objects: int | Iterable[int]) -> int:
    sizes = list(objects) if isinstance(objects, Iterable) else [objects]
    if not sizes or not all(type(size) is int and 1 <= size <= MOST_OBJECTS for size in sizes):
        raise PlanError("the number of objects of every group is a whole number from 1 to 10^15.")
    return min(sizes)


def default_delta(objects: int) -> float:
    """Return the largest power of ten that is at most a tenth of one in so many objects, and at most 10^-6."""
    return 10.0 ** -max(6, math.ceil(math.log10(objects)) + 1)


def _report_of(values: Planned | None, encoding: str | None, last: Decimal) -> tuple[str, Report]:
    """Return the name and what is known of reports: of so many values, of a mechanism, or of all with this epsilon."""
    if values is None:
        if encoding is not None:
            raise PlanError("an encoding is one of so many values: say how many.")
        return "whatever the reports are", Report(float(last))
    used = encoding_for(values, encoding, last)
    many = f"{values:,} values, " if isinstance(values, int) else ""
    if used is not None:
        return many + used.name, _encoded(used, last)
    assert isinstance(values, int)  # noqa: S101
    keep = retention(release_threshold(last, values))
    bit = keep if values == 2 else None
    return f"{many}categorical", Report(float(last), keep, Cover.of_one_symbol(keep, values), bit)


def encoding_for(values: Planned, encoding: str | None, last: Decimal) -> Encoding | None:
    """Return the encoding of a last epsilon; None where reports are values themselves, which needs no list of them."""
    side = Side(values, encoding)
    fixed, name = side.encoded(last), side.named_at(last) or side.name
    if fixed is not None or name == "categorical":
        return fixed
    return made_for(name, side.values, last)


def _encoded(encoding: Encoding, last: Decimal) -> Report:
    keep = encoding.level(last).retention
    is_bit = encoding.alphabet == 2 and encoding.symbols == 1 and not encoding.seeded
    return Report(float(last), encoding.distance(keep), encoding.cover(keep), keep if is_bit else None)


def _composed(bound: Callable[[float], float], delta: float, times: int) -> float:
    """Return what so many publications with noise of their own cost: added up, or by advanced composition if less.

    Advanced: k (e, d) are (k e tanh(e/2) + e sqrt(2 k ln(1/d')), k d + d'), Kairouz, Oh and Viswanath 2015.
    """
    if times == 1:
        return bound(delta)
    one = bound(delta / (2 * times))
    advanced = times * one * math.tanh(one / 2) + one * math.sqrt(2 * times * math.log(2 / delta))
    return min(times * bound(delta / times), advanced)
