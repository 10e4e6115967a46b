"""Estimates in words and bars, at any width of a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relaxdp.cli.estimate_parts import Asked, Block, clean, label_of, name_of
from relaxdp.draw.stream import PathId
from relaxdp.estimation.result import IMPLAUSIBLE
from relaxdp.table.counting import PairTally, Tally
from relaxdp.table.released_files import Axis

BAR_WIDTH = 24
# Below these widths a bar is of no use, and a label cannot be read; above the last one a label gives way to a bar.
_LEAST_BAR, _LEAST_LABEL, _EASY_LABEL = 6, 6, 24
_NUMBERS = ("estimate", "low", "high")


def print_blocks(tally: Tally | PairTally, axis: Axis, parts: list[Block], asked: Asked) -> None:
    """Print what was found: a heading, the table, and what must be known to read it."""
    console = Console()
    console.print(Text(_heading(tally, axis, parts, asked)))
    table, width = _table(axis, parts, asked, console.width)
    # A number is never cut: where even the least is too wide, the terminal breaks the lines.
    (console if width <= console.width else Console(width=width)).print(table)
    shown, rows = sum(len(part.labels) for part in parts), sum(part.rows_in_all for part in parts)
    if shown < rows:
        console.print(
            f"These are the largest {shown:,} of {rows:,} rows; --json has all of them. They were chosen by their "
            "estimates, so their intervals hold for all values at once."
        )
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
    if axis.description.values is None:
        rows = "the mean"
    return (
        f"{tally.objects:,} objects {levels}: {name_of(axis, asked)} of release {_release(axis.description.path)}; "
        f"{100 * asked.confidence:g} % intervals of {rows}, about {subject}."
    )


def _release(path: PathId) -> str:
    return repr(clean(path.release)) + ("" if path.epoch == 1 else f", epoch {path.epoch}")


@dataclass(frozen=True, slots=True)
class _Row:
    """One row in words, and how long its bar is; the last one of a group has a line below it."""

    labels: list[str]
    numbers: list[str]
    length: float
    is_last: bool


def _rows(parts: list[Block], asked: Asked, longest: float) -> Iterator[_Row]:
    for part in parts:
        for place, row in enumerate(part.labels):
            labels = [label_of(label) for label in row[: 1 if asked.cross is None else 2]]
            labels[-1] += "" if part.beyond[place] is None else " *"
            if asked.by is not None:
                labels = [f"{label_of(part.group)} ({part.objects:,})" if place == 0 else "", *labels]
            numbers = [_number(each[place]) for each in (part.estimate, part.low, part.high)]
            length = min(max(float(part.estimate[place]) - part.least, 0.0), longest)
            yield _Row(labels, numbers, length, place == len(part.labels) - 1)


def _table(axis: Axis, parts: list[Block], asked: Asked, room: int) -> tuple[Table, int]:
    """Return the table, and how wide it is: as wide as there is room, but never so narrow that a number is cut."""
    headings = [clean(axis.name), clean(asked.cross)] if asked.cross is not None else ["value"]
    headings = headings if asked.by is None else [clean(asked.by), *headings]
    longest = max(_scale(part) for part in parts)
    rows = list(_rows(parts, asked, longest))
    numbers = [max(map(cell_len, each)) for each in zip(_NUMBERS, *(row.numbers for row in rows), strict=True)]
    natural = [max(map(cell_len, each)) for each in zip(headings, *(row.labels for row in rows), strict=True)]
    labels, bar = _widths(natural, room - sum(numbers) - _frame(len(headings) + len(numbers)))
    table = Table()
    for heading, width in zip(headings, labels, strict=True):
        table.add_column(Text(heading), overflow="fold", width=width)
    for heading, width in zip(_NUMBERS, numbers, strict=True):
        table.add_column(heading, justify="right", no_wrap=True, width=width)
    if bar:
        table.add_column("", width=bar, no_wrap=True)
    for row in rows:
        bars = [Bar(longest, 0, row.length, width=bar)] if bar else []
        table.add_row(*map(Text, row.labels), *row.numbers, *bars, end_section=row.is_last)
    columns = [*labels, *numbers, *([bar] if bar else [])]
    return table, sum(columns) + _frame(len(columns))


def _frame(columns: int) -> int:
    """Return what the lines around so many columns take, and the blanks beside them."""
    return 3 * columns + 1


def _widths(natural: list[int], room: int) -> tuple[list[int], int]:
    """Return the widths of labels and of the bar, 0 for none: it shrinks and goes before labels are folded."""
    left = room - sum(min(each, _EASY_LABEL) for each in natural) - 3
    bar = min(BAR_WIDTH // len(natural), left)
    if bar < _LEAST_BAR:
        bar = 0
    room -= bar + 3 if bar else 0
    most = max(natural)
    while most > _LEAST_LABEL and sum(min(each, most) for each in natural) > room:
        most -= 1
    return [min(each, most) for each in natural], bar


def _scale(part: Block) -> float:
    """Return what a full bar stands for: the range of a mean, or the largest share."""
    if part.rows_in_all == 1:
        return part.most - part.least
    return float(np.clip(part.estimate.max(), 1e-9, part.most))


def _number(number: float) -> str:
    return f"{number:.4f}" if abs(number) < 10 else f"{number:,.2f}"
