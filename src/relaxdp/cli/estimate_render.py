"""Estimates in words and bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relaxdp.cli.bars import Row, clean, fitted, label_of, print_table
from relaxdp.cli.options import MOST_ROWS
from relaxdp.estimation.mean import PresentMean
from relaxdp.estimation.result import IMPLAUSIBLE, About, Chosen, EstimateRow, Result
from relaxdp.estimation.wave import Distribution
from relaxdp.tables.counting import PairTally, Tally
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.tables.released_files import Axis


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
    """One block of the answer: a group, or everything."""

    group: str | None
    objects: int
    levels: Sequence[tuple[str, str | None, int]]
    result: Result
    rows: list[EstimateRow]
    """Those of the result, or the largest of them."""
    is_implausible: bool
    is_simultaneous: bool
    missing: EstimateRow | None = None
    """Where numbers may be missing: their share."""
    quantiles: Sequence[EstimateRow] = ()
    """Where the distribution is told: the quartiles."""

    def says_nothing(self) -> bool:
        """Tell whether noise outweighs the answer: an interval over nearly everything."""
        most = 0.9 * (self.result.most - self.result.least)
        return not self.is_implausible and any(row.high - row.low > most for row in self.rows)


def blocks_of(tally: Tally | PairTally, asked: Asked, *, most: int | None = MOST_ROWS) -> list[Block]:
    """Return the answer to what is asked, with at most so many rows each: the largest ones."""
    if isinstance(tally, PairTally):
        pairs = [(one, two, table.objects) for (one, two), table in tally.tables.items()]
        return [_part(None, tally.objects, pairs, tally.estimate(asked.method.value), asked, most)]
    parts = []
    for group, counts in tally.groups:
        levels = [(epsilon, None, objects) for epsilon, objects in counts.levels.items()]
        parts.append(_part(group, counts.objects, levels, counts.estimate(asked.method.value), asked, most))
    return parts


def _part(
    group: str | None,
    objects: int,
    levels: Sequence[tuple[str, str | None, int]],
    result: Result,
    asked: Asked,
    most: int | None,
) -> Block:
    intervals: Any = {"confidence_level": asked.confidence, "about": asked.about}
    shown = result if most is None else result.largest(most)
    rows = shown.to_rows(simultaneous=asked.simultaneous, **intervals)
    if asked.consistent:
        estimate = result.consistent()
        places = shown.places if isinstance(shown, Chosen) else range(len(rows))
        rows = [row._replace(estimate=float(estimate[place])) for row, place in zip(rows, places, strict=True)]
    missing, quantiles = None, []
    if isinstance(result, PresentMean):
        (missing,) = result.missing.to_rows(**intervals)
    if isinstance(result, Distribution):
        quantiles = result.quartiles.to_rows(simultaneous=asked.simultaneous, **intervals)
    together = asked.simultaneous or shown.is_chosen
    return Block(group, objects, levels, result, rows, result.is_implausible(), together, missing, quantiles)


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
    shown, rows = sum(len(part.rows) for part in parts), sum(len(part.result.labels) for part in parts)
    if shown < rows:
        console.print(
            f"These are the largest {shown:,} of {rows:,} rows; --json has all of them. They were chosen by their "
            "estimates, so their intervals hold for all values at once."
        )
    for part in parts:
        whose = "" if asked.by is None else f" of {label_of(part.group)}"
        if part.missing is not None:
            share, low, high = (f"{100 * each:.2f}" for each in _interval(part.missing))
            console.print(Text(f"Missing{whose}: {share} % of the objects, from {low} to {high} %."))
        for row in part.quantiles:
            number, low, high = (f"{each:.4g}" for each in _interval(row))
            console.print(Text(f"{row.keys[0].capitalize()}{whose}: {number}, from {low} to {high}."))
    if any(part.is_implausible for part in parts):
        console.print(IMPLAUSIBLE)
    if any(part.says_nothing() for part in parts):
        console.print("Some intervals cover nearly everything that is possible: the noise is larger than the answer.")
    sides = {row.beyond for part in parts if not part.is_implausible for row in part.rows if row.beyond is not None}
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
    return repr(clean(described.path.release))


def _rows(parts: list[Block], asked: Asked, longest: float) -> Iterator[Row]:
    for part in parts:
        for place, row in enumerate(part.rows):
            labels = [label_of(label) for label in row.keys]
            labels[-1] += "" if row.beyond is None else " *"
            if asked.by is not None:
                labels = [f"{label_of(part.group)} ({part.objects:,})" if place == 0 else "", *labels]
            length = min(max(row.estimate - part.result.least, 0.0), longest)
            yield Row(labels, list(map(_number, _interval(row))), length, place == len(part.rows) - 1)


def _table(axis: Axis, parts: list[Block], asked: Asked, room: int) -> tuple[Table, int]:
    """Return the table, and how wide it is: as wide as there is room, but never so narrow that a number is cut."""
    headings = [clean(axis.name), clean(asked.cross)] if asked.cross is not None else ["value"]
    headings = headings if asked.by is None else [clean(asked.by), *headings]
    longest = max(_scale(part) for part in parts)
    return fitted(headings, _NUMBERS, list(_rows(parts, asked, longest)), room, longest)


def _scale(part: Block) -> float:
    """Return what a full bar stands for: the range of a mean, or the largest share."""
    if len(part.result.labels) == 1:
        return part.result.most - part.result.least
    return min(max(1e-9, *(row.estimate for row in part.rows)), part.result.most)


def _interval(row: EstimateRow) -> tuple[float, float, float]:
    return row.estimate, row.low, row.high


def _number(number: float) -> str:
    return f"{number:.4f}" if abs(number) < 10 else f"{number:,.2f}"
