"""What is asked of counts, and the answer in parts: one for everything, or one for each group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from relaxdp.cli.options import MOST_ROWS
from relaxdp.estimation.result import BEYOND, About, Chosen, Floats, Result
from relaxdp.table.counting import PairTally, Tally
from relaxdp.table.released_files import Axis


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


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the answer: a group, or everything. Rows are labels with four numbers each."""

    group: str | None
    objects: int
    levels: list[tuple[str, str | None, int]]
    labels: list[tuple[Any, Any]]
    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats
    beyond: list[str | None]
    """Which rows lie "below" or "above" what can be told at this level."""
    least: float
    most: float
    is_implausible: bool
    is_simultaneous: bool
    rows_in_all: int
    """How many rows there are in all, of which these may be the largest."""

    def says_nothing(self) -> bool:
        """Tell whether noise outweighs the answer: an interval over nearly everything."""
        width = (self.high - self.low) / (self.most - self.least)
        return not self.is_implausible and bool(np.any(width > 0.9))


def blocks_of(tally: Tally | PairTally, asked: Asked, *, most: int | None = MOST_ROWS) -> list[Block]:
    """Return the answer to what is asked, with at most so many rows each: the largest ones."""
    if isinstance(tally, PairTally):
        labels = [(row, column) for row in tally.rows.labels for column in tally.columns.labels]
        pairs = [(one, two, table.objects) for (one, two), table in tally.tables.items()]
        return [_part(None, tally.objects, pairs, labels, tally.estimate(asked.method.value), asked, most)]
    parts = []
    for group, counts in tally.groups:
        result = counts.estimate(asked.method.value)
        levels = [(epsilon, None, objects) for epsilon, objects in counts.levels.items()]
        parts.append(
            _part(group, counts.objects, levels, [(label, None) for label in result.labels], result, asked, most)
        )
    return parts


def _part(
    group: str | None,
    objects: int,
    levels: Iterable[tuple[str, str | None, int]],
    labels: list[tuple[Any, Any]],
    result: Result,
    asked: Asked,
    most: int | None,
) -> Block:
    value = np.atleast_1d(result.value)
    estimate = result.consistent() if asked.consistent else value
    shown = result if most is None else result.largest(most)
    places = shown.places if isinstance(shown, Chosen) else np.arange(len(labels))
    intervals: dict[str, Any] = {"simultaneous": asked.simultaneous, "about": asked.about}
    low, high = shown.interval(asked.confidence, **intervals)
    return Block(
        group=group,
        objects=objects,
        levels=list(levels),
        labels=[labels[place] for place in places],
        estimate=estimate[places],
        std_error=np.atleast_1d(shown.standard_error(asked.about)),
        low=np.atleast_1d(low),
        high=np.atleast_1d(high),
        beyond=[BEYOND.get(side) for side in shown.beyond(asked.confidence, **intervals).tolist()],
        least=result.least,
        most=result.most,
        is_implausible=result.is_implausible(),
        is_simultaneous=asked.simultaneous or shown.is_chosen,
        rows_in_all=len(labels),
    )


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
