"""What is asked of counts, and the answer in parts: one for everything, or one for each group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from relaxdp.errors import CountsError
from relaxdp.estimate.result import About, Floats, Result
from relaxdp.estimate.simplex import nearest_shares
from relaxdp.table.counting import PairTally, Tally
from relaxdp.table.released_files import Axis

MOST_ROWS = 50


class MethodChoice(StrEnum):
    """How levels are weighted."""

    AVERAGE = "average"
    PRECISION = "precision"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the counts."""

    confidence: float
    simultaneous: bool
    about: About
    method: MethodChoice
    consistent: bool
    by: str | None
    cross: str | None

    def of_the_largest(self, tally: Tally | PairTally) -> Asked:
        """Return what is asked where only the largest values are shown.

        They were chosen because they came out large, and noise helped them: the interval of a single value, which
        knows nothing of the choice, would miss them far more often than it says. One that holds for all values at once
        holds for any of them that are chosen.
        """
        rows = len(tally.rows.labels) * len(tally.columns.labels) if isinstance(tally, PairTally) else _values(tally)
        return replace(self, simultaneous=self.simultaneous or rows > MOST_ROWS)


@dataclass(frozen=True, slots=True)
class Part:
    """One block of the answer: a group, or everything. Rows are labels with four numbers each."""

    group: str | None
    objects: int
    levels: list[tuple[str, str | None, int]]
    labels: list[tuple[Any, Any]]
    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats
    least: float
    most: float
    is_implausible: bool

    def largest(self) -> list[int]:
        """Return the rows to show: all in their order, or the largest ones of very many."""
        if len(self.labels) <= MOST_ROWS:
            return list(range(len(self.labels)))
        order = np.argsort(-self.estimate, kind="stable")[:MOST_ROWS]
        return [int(row) for row in order]

    def says_nothing(self) -> bool:
        """Tell whether noise outweighs the answer: an interval over nearly everything, or squeezed against an end."""
        width = (self.high - self.low) / (self.most - self.least)
        squeezed = (width < 1e-9) & (self.std_error > 0.05 * (self.most - self.least))
        return not self.is_implausible and bool(np.any(width > 0.9) or np.any(squeezed))


def parts_of(tally: Tally | PairTally, asked: Asked) -> list[Part]:
    """Return the answer to what is asked."""
    if isinstance(tally, PairTally):
        labels = [(row, column) for row in tally.rows.labels for column in tally.columns.labels]
        pairs = [(one, two, table.objects) for (one, two), table in tally.tables.items()]
        return [_part(None, tally.objects, pairs, labels, tally.estimate(asked.method.value), asked)]
    if asked.consistent and tally.axis.description.values is None:
        raise CountsError("--consistent is about shares, and this column holds numbers: its answer is a mean.")
    parts = []
    for group, counts in tally.groups:
        result = counts.estimate(asked.method.value)
        levels = [(epsilon, None, objects) for epsilon, objects in counts.levels.items()]
        parts.append(_part(group, counts.objects, levels, [(label, None) for label in result.labels], result, asked))
    return parts


def _part(
    group: str | None,
    objects: int,
    levels: Iterable[tuple[str, str | None, int]],
    labels: list[tuple[Any, Any]],
    result: Result,
    asked: Asked,
) -> Part:
    ends = result.interval(asked.confidence, simultaneous=asked.simultaneous, about=asked.about)
    low, high = map(np.atleast_1d, ends)
    value = np.atleast_1d(result.value)
    return Part(
        group=group,
        objects=objects,
        levels=list(levels),
        labels=labels,
        estimate=nearest_shares(value) if asked.consistent else value,
        std_error=np.atleast_1d(result.standard_error(asked.about)),
        low=low,
        high=high,
        least=result.least,
        most=result.most,
        is_implausible=result.is_implausible(),
    )


def _values(tally: Tally) -> int:
    return 1 if tally.axis.description.values is None else len(tally.axis.labels)


# Words that the table and the picture share.


def name_of(axis: Axis, asked: Asked) -> str:
    """Return what is estimated, in words."""
    name = repr(clean(axis.name))
    if asked.cross is not None:
        return f"{name} and {clean(asked.cross)!r}"
    function = axis.description.function
    if axis.description.values is None:
        return f"mean of {name}" if function in (None, "identity") else f"mean of {clean(str(function))} of {name}"
    return name


def label_of(label: Any) -> str:
    """Return a value or a group as it is shown."""
    if label is None:
        return "(missing)"
    return label.hex() if isinstance(label, bytes) else clean(str(label))


def clean(text: str) -> str:
    """Return text that a terminal only shows: a file may come from anybody."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
