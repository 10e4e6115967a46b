"""Transcripts -> cells: small numbers that can be counted. A view says which part of a transcript is looked at.

Whatever a view merges or leaves out only hides something, so a bound that is measured through it stays valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import AuditError

Transcripts = NDArray[Any]
Cells = NDArray[np.unsignedinteger]

MOST_CELLS = 1 << 20
_MOST_CODES = 256
_BINS = 32


class View(Protocol):
    """How a transcript is looked at."""

    @property
    def name(self) -> str:
        """What is looked at, in words."""
        ...

    @property
    def cells(self) -> int:
        """How many cells there are."""
        ...

    def __call__(self, transcripts: Transcripts) -> Cells:
        """Return the cell of each transcript, from 0 to cells - 1."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """How one column becomes digits: small whole numbers as they are, anything else in bins."""

    place: int
    low: int
    size: int
    edges: NDArray[Any] | None = None

    @classmethod
    def fit(cls, place: int, column: NDArray[Any]) -> Column:
        """Look at the column of some transcripts."""
        if column.dtype.kind in "iub":
            low, high = int(column.min()), int(column.max())
            if high - low < _MOST_CODES:
                return cls(place, low, high - low + 1)
        edges = np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1]))
        return cls(place, 0, len(edges) + 1, edges)

    def digits(self, transcripts: Transcripts) -> NDArray[np.uint8]:
        """Return a digit below `size` for each transcript; codes that were never seen count as the nearest."""
        column = transcripts[:, self.place]
        if self.edges is not None:
            return np.searchsorted(self.edges, column, side="right").astype(np.uint8)
        if column.dtype == np.bool_:
            column = column.view(np.uint8)
        if column.dtype == np.uint8 and self.low == 0 and int(column.max(initial=0)) < self.size:
            return column  # nearly always, and looking is much faster than clipping
        return np.asarray(np.clip(column, self.low, self.low + self.size - 1) - self.low).astype(np.uint8)


class Digits:
    """Some columns, as the digits of one number: every combination of reports is a cell of its own."""

    def __init__(self, columns: Sequence[Column], name: str) -> None:
        self.columns, self.name = tuple(columns), name
        self.cells = prod(column.size for column in columns)
        self._type = np.min_scalar_type(max(self.cells - 1, 1))
        # Columns whose digits fit into one byte together are put together as bytes, which is several times faster.
        self._groups: list[list[Column]] = []
        for column in columns:
            group = self._groups[-1] if self._groups else []
            if group and column.size * prod(each.size for each in group) <= _MOST_CODES:
                group.append(column)
            else:
                self._groups.append([column])

    def __call__(self, transcripts: Transcripts) -> Cells:
        """Return the cell of each transcript."""
        first, *others = (_joined(group, transcripts) for group in self._groups)
        cells = first.astype(self._type, copy=False)
        for digits, group in zip(others, self._groups[1:], strict=True):
            cells *= self._type.type(prod(column.size for column in group))
            cells += digits.astype(self._type, copy=False)
        return cells

    def decoded(self) -> NDArray[np.intp]:
        """Return the digits of every cell, of shape (cells, columns)."""
        sizes = [column.size for column in self.columns]
        return np.stack(np.unravel_index(np.arange(self.cells), sizes), axis=1)


def _joined(group: Sequence[Column], transcripts: Transcripts) -> NDArray[np.uint8]:
    """Return the digits of some columns as one byte."""
    joined = group[0].digits(transcripts)
    for column in group[1:]:
        joined = joined * np.uint8(column.size)
        joined += column.digits(transcripts)
    return joined


def check_mechanism(transcripts: Any, trials: int) -> Transcripts:
    """Return what a mechanism returned as a matrix with one row for each trial, or refuse it."""
    matrix = np.asarray(transcripts)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or len(matrix) != trials or matrix.shape[1] == 0 or matrix.dtype.kind not in "iubf":
        raise AuditError(
            "a mechanism must return numbers, one row for each truth and one column for each thing it lets out."
        )
    return matrix


def candidate_views(columns: Sequence[Column]) -> Iterator[Digits]:
    """Return what is worth a look: each column alone, the last few, and all together, as far as they can be counted."""
    count = len(columns)
    lengths = sorted({min(1 << power, count) for power in range(count.bit_length() + 1)})
    for length in lengths[1:]:
        view = Digits(columns[-length:], "all columns" if length == count else f"the last {length} columns")
        if view.cells <= MOST_CELLS:
            yield view
    for place in range(max(0, count - 16), count):
        yield Digits([columns[place]], f"column {place + 1}")
