"""Estimates in words and bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relaxdp.cli.bars import Row, clean, fitted, label_of, print_table
from relaxdp.cli.options import MOST_ROWS
from relaxdp.estimation.mean import PresentMean
from relaxdp.estimation.result import BEYOND, IMPLAUSIBLE, About, Chosen, Floats, Result
from relaxdp.estimation.wave import Distribution
from relaxdp.publication.description import ColumnDescription
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
    missing: tuple[float, float, float] | None = None
    """Where numbers may be missing: their share, with the ends of its interval."""
    quantiles: tuple[tuple[float, float, float, float], ...] = ()
    """Where the distribution is told: quartiles, each with its probability and the ends of its interval."""
    distribution: Distribution | None = None

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
        missing=_missing(result, asked) if isinstance(result, PresentMean) else None,
        quantiles=_quantiles(result, asked) if isinstance(result, Distribution) else (),
        distribution=result if isinstance(result, Distribution) else None,
    )


def _missing(result: PresentMean, asked: Asked) -> tuple[float, float, float]:
    (low,), (high,) = result.missing.interval(asked.confidence, about=asked.about)
    (share,) = result.missing.value
    return float(share), float(low), float(high)


def _quantiles(result: Distribution, asked: Asked) -> tuple[tuple[float, float, float, float], ...]:
    found = result.quartiles
    low, high = found.interval(asked.confidence, simultaneous=asked.simultaneous, about=asked.about)
    rows = zip(found.probabilities, found.value.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(rows)


def name_of(axis: Axis, asked: Asked) -> str:
    """Return what is estimated, in words."""
    name = repr(clean(axis.name))
    if asked.cross is not None:
        return f"{name} and {clean(asked.cross)!r}"
    return name if axis.mechanism.encoding.measure is None else f"mean of {name}"


_NUMBERS = ("estimate", "low", "high")


def print_blocks(tally: Tally | PairTally, axis: Axis, parts: list[Block], asked: Asked) -> None:
    """Print what was found: a heading, the table, and what must be known to read it."""
    console = Console()
    console.print(Text(_heading(tally, axis, parts, asked)))
    table, width = _table(axis, parts, asked, console.width)
    print_table(console, table, width)
    shown, rows = sum(len(part.labels) for part in parts), sum(part.rows_in_all for part in parts)
    if shown < rows:
        console.print(
            f"These are the largest {shown:,} of {rows:,} rows; --json has all of them. They were chosen by their "
            "estimates, so their intervals hold for all values at once."
        )
    for part in parts:
        if part.missing is not None:
            whose = "" if asked.by is None else f" of {label_of(part.group)}"
            share, low, high = (f"{100 * each:.2f}" for each in part.missing)
            console.print(Text(f"Missing{whose}: {share} % of the objects, from {low} to {high} %."))
        for probability, number, low_end, high_end in part.quantiles:
            whose = "" if asked.by is None else f" of {label_of(part.group)}"
            name = "Median" if probability == 0.5 else f"Quantile {probability:g}"
            console.print(Text(f"{name}{whose}: {number:.4g}, from {low_end:.4g} to {high_end:.4g}."))
    if any(part.is_implausible for part in parts):
        console.print(IMPLAUSIBLE)
    if any(part.says_nothing() for part in parts):
        console.print("Some intervals cover nearly everything that is possible: the noise is larger than the answer.")
    sides = {side for part in parts if not part.is_implausible for side in part.beyond if side is not None}
    if sides:
        console.print(
            f"* {' or '.join(sorted(sides, reverse=True))} what can be told at this level: the estimate lies farther "
            "outside of what is possible than its error reaches, by noise alone. The interval is the bound that an "
            "estimate at the edge would give."
        )
    if asked.by is not None:
        by = clean(asked.by)
        console.print(Text(f"Groups are made of the kept column {by!r}, which was released as it is, without noise."))


def _heading(tally: Tally | PairTally, axis: Axis, parts: list[Block], asked: Asked) -> str:
    every: dict[tuple[str, str | None], int] = {}
    for part in parts:
        for one, two, objects in part.levels:
            every[one, two] = every.get((one, two), 0) + objects
    texts = {level: level[0] if level[1] is None else f"{level[0]} and {level[1]}" for level in every}
    if len(every) == 1:
        levels = f"at epsilon {next(iter(texts.values()))}"
    else:
        levels = "at epsilon " + ", ".join(f"{texts[level]} ({objects:,})" for level, objects in every.items())
    subject = "these objects" if asked.about == "objects" else "the population that they are a sample of"
    rows = "all values at once" if any(part.is_simultaneous for part in parts) else "each value"
    if axis.mechanism.encoding.measure is not None:
        rows = "the mean"
    return (
        f"{tally.objects:,} objects {levels}: {name_of(axis, asked)} of release {_release(axis.description)}; "
        f"{100 * asked.confidence:g} % intervals of {rows}, about {subject}."
    )


def _release(described: ColumnDescription) -> str:
    path, day = described.path, described.as_of
    of = f" of {clean(path.date)}" if path.date else "" if day is None else f" as of {day}"
    return repr(clean(path.release)) + of + ("" if path.epoch == 1 else f", epoch {path.epoch}")


def _rows(parts: list[Block], asked: Asked, longest: float) -> Iterator[Row]:
    for part in parts:
        for place, row in enumerate(part.labels):
            labels = [label_of(label) for label in row[: 1 if asked.cross is None else 2]]
            labels[-1] += "" if part.beyond[place] is None else " *"
            if asked.by is not None:
                labels = [f"{label_of(part.group)} ({part.objects:,})" if place == 0 else "", *labels]
            numbers = [_number(each[place]) for each in (part.estimate, part.low, part.high)]
            length = min(max(float(part.estimate[place]) - part.least, 0.0), longest)
            yield Row(labels, numbers, length, place == len(part.labels) - 1)


def _table(axis: Axis, parts: list[Block], asked: Asked, room: int) -> tuple[Table, int]:
    """Return the table, and how wide it is: as wide as there is room, but never so narrow that a number is cut."""
    headings = [clean(axis.name), clean(asked.cross)] if asked.cross is not None else ["value"]
    headings = headings if asked.by is None else [clean(asked.by), *headings]
    longest = max(_scale(part) for part in parts)
    return fitted(headings, _NUMBERS, list(_rows(parts, asked, longest)), room, longest)


def _scale(part: Block) -> float:
    """Return what a full bar stands for: the range of a mean, or the largest share."""
    if part.rows_in_all == 1:
        return part.most - part.least
    return float(np.clip(part.estimate.max(), 1e-9, part.most))


def _number(number: float) -> str:
    return f"{number:.4f}" if abs(number) < 10 else f"{number:,.2f}"
