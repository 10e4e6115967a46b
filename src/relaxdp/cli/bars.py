"""Tables of labels, numbers and bars at any width of a terminal, and labels as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_BAR = 24
# Below these widths a bar is of no use, and a label cannot be read; above the last one a label gives way to a bar.
_LEAST_BAR, _LEAST_LABEL, _EASY_LABEL = 6, 6, 24


def label_of(label: Any) -> str:
    """Return a value or a group as it is shown."""
    if label is None:
        return "(missing)"
    return label.hex() if isinstance(label, bytes) else clean(str(label))


def plain_label(label: Any) -> Any:
    """Return a value as JSON knows it."""
    if label is None or isinstance(label, str | int | float):
        return label
    return label.hex() if isinstance(label, bytes) else str(label)


def clean(text: str) -> str:
    """Return text that a terminal only shows: a file may come from anybody."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


@dataclass(frozen=True, slots=True)
class Row:
    """One row in words, and how long its bar is; the last one of a group has a line below it."""

    labels: list[str]
    numbers: list[str]
    length: float = 0.0
    is_last: bool = False


def fitted(
    headings: Sequence[str], number_headings: Sequence[str], rows: Sequence[Row], room: int, longest: float
) -> tuple[Table, int]:
    """Return a table of labels, numbers and bars, and how wide it is.

    It is as wide as there is room, but never so narrow that a number is cut.
    """
    numbers = [max(map(cell_len, each)) for each in zip(number_headings, *(row.numbers for row in rows), strict=True)]
    natural = [max(map(cell_len, each)) for each in zip(headings, *(row.labels for row in rows), strict=True)]
    left = room - sum(numbers) - _frame(len(headings) + len(numbers))
    labels, bar = _widths(natural, left, _BAR)
    table = Table()
    for heading, width in zip(headings, labels, strict=True):
        table.add_column(Text(heading), overflow="fold", width=width)
    for heading, width in zip(number_headings, numbers, strict=True):
        table.add_column(Text(heading), justify="right", no_wrap=True, width=width)
    if bar:
        table.add_column("", width=bar, no_wrap=True)
    for row in rows:
        bars = [Bar(longest, 0, row.length, width=bar)] if bar else []
        table.add_row(*map(Text, row.labels), *map(Text, row.numbers), *bars, end_section=row.is_last)
    columns = [*labels, *numbers, *([bar] if bar else [])]
    return table, sum(columns) + _frame(len(columns))


def print_table(console: Console, table: Table, width: int) -> None:
    """Print a table. A number is never cut: where even the least is too wide, the terminal breaks the lines."""
    (console if width <= console.width else Console(width=width)).print(table)


def _frame(columns: int) -> int:
    """Return what the lines around so many columns take, and the blanks beside them."""
    return 3 * columns + 1


def _widths(natural: list[int], room: int, most_bar: int) -> tuple[list[int], int]:
    """Return the widths of labels and of the bar, 0 for none: it shrinks and goes before labels are folded."""
    left = room - sum(min(each, _EASY_LABEL) for each in natural) - 3
    bar = min(most_bar // len(natural), left)
    if bar < _LEAST_BAR:
        bar = 0
    room -= bar + 3 if bar else 0
    most = max(natural)
    while most > _LEAST_LABEL and sum(min(each, most) for each in natural) > room:
        most -= 1
    return [min(each, most) for each in natural], bar
