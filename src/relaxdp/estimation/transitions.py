"""Pairs of reports: how often an older report, given the newer one of the same object, is what an honest blur makes it.

An honest object's older report is its newer one, blurred: with a chance that the two levels decide it was kept, and
otherwise it was drawn anew. The blur never sees the truth, so that this law is known whatever the truths are. What is
kept of a table of pairs are its margins and its diagonal: how often each value is the newer report, the older one, and
both. That is as small as counts are, and nothing that could move a share hides between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, EstimationError
from relaxdp.mechanisms.base import BATCH, Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.packed import Packed, code_dtype, count_packed, pack_reports, packed_width
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.level import Level
from relaxdp.theory.response import blur_ratio

Integers = NDArray[np.int64]

MOST_LABELS = 2_048
"""Of more values than these only the equal pairs are counted, not which values they are: a table stays small."""
_MOST_CODES = 1 << 24


def told_labels(mechanism: Mechanism) -> int:
    """Return for how many values pairs are counted one by one; 0 where only equal symbols are counted.

    Each value must be supported by one code of one symbol: then whether the older report supports it has a known law.
    """
    labels = len(mechanism.labels)
    if isinstance(mechanism, Bloom) or labels > MOST_LABELS:  # a bit means something else in every cohort
        return 0
    if mechanism.symbols > 1 or mechanism.joint == "exclusive":
        return labels
    if labels * mechanism.alphabet > _MOST_CODES:
        return 0
    codes = np.arange(mechanism.alphabet, dtype=code_dtype(mechanism.alphabet))[:, None]
    seeds = np.zeros(len(codes), np.uint64) if mechanism.seeded else None
    return labels if bool(np.all(np.count_nonzero(mechanism.supports(codes, seeds), axis=0) == 1)) else 0


def count_pairs(mechanism: Mechanism, older: Packed, newer: Packed, labels: int | None = None) -> Integers:
    """Return what is kept of packed reports of the same objects, row by row; what is kept of others may be added.

    The number of objects and of equal symbols, and for each value how many newer, older and both reports support it.
    """
    labels = told_labels(mechanism) if labels is None else labels
    parts = [np.array([len(newer), equal_symbols(mechanism, older, newer)], dtype=np.int64)]
    if labels:
        parts += [count_packed(mechanism, newer), count_packed(mechanism, older), count_both(mechanism, older, newer)]
    return np.concatenate(parts)


def equal_symbols(mechanism: Mechanism, older: Packed, newer: Packed) -> int:
    """Return how many symbols are the same in both reports of an object."""
    if mechanism.symbols == 1:
        return int(np.count_nonzero(np.all(older == newer, axis=1)))
    return len(newer) * mechanism.symbols - int(np.bitwise_count(older ^ newer).sum(dtype=np.int64))


def count_both(mechanism: Mechanism, older: Packed, newer: Packed) -> Integers:
    """Return how many objects support each value with both reports."""
    if mechanism.symbols > 1:
        return count_packed(mechanism, older & newer)
    return count_packed(mechanism, np.ascontiguousarray(newer[np.all(older == newer, axis=1)]))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What is kept of all pairs at two levels."""

    older: Level
    newer: Level
    numbers: Integers
    """As `count_pairs` returns them."""

    @property
    def n(self) -> int:
        """How many objects have both reports."""
        return int(self.numbers[0])

    @property
    def equal(self) -> int:
        """How many of all symbols are the same in both."""
        return int(self.numbers[1])

    @property
    def labels(self) -> int:
        """How many values are told apart, 0 if none."""
        return (len(self.numbers) - 2) // 3

    @property
    def news(self) -> Integers:
        """How many newer reports support each value."""
        return self._row(0)

    @property
    def olds(self) -> Integers:
        """How many older reports support each value."""
        return self._row(1)

    @property
    def both(self) -> Integers:
        """How many objects support each value with both."""
        return self._row(2)

    @property
    def kept(self) -> float:
        """With which probability the older report was kept and not drawn anew."""
        return float(blur_ratio(self.older.retention, self.newer.retention))

    def _row(self, place: int) -> Integers:
        return self.numbers[2 + place * self.labels : 2 + (place + 1) * self.labels]


class Transitions:
    """Pairs of reports at two levels each, which can be added to, and asked whether they were made up.

    An object with three reports has two pairs, each report with the next lower one.

    >>> from relaxdp import Categorical
    >>> pairs = Transitions(Categorical(["no", "yes"]))
    >>> pairs.add(["no", "yes"], ["no", "no"], older_epsilon=1, newer_epsilon=2)
    >>> pairs.n
    2
    """

    def __init__(self, mechanism: Mechanism) -> None:
        """Start with nothing; `mechanism` says which values there are."""
        self.mechanism = mechanism
        self.labels = told_labels(self.mechanism)
        self._tables: dict[tuple[Level, Level], Integers] = {}
        self._moved: dict[tuple[Level, Level], Integers] = {}

    @property
    def n(self) -> int:
        """How many objects have a pair."""
        return sum(int(table.n) for table in self.last)

    @property
    def tables(self) -> list[Pairs]:
        """All pairs, by the levels of both reports, ascending."""
        return [Pairs(*levels, self._tables[levels]) for levels in sorted(self._tables)]

    @property
    def last(self) -> list[Pairs]:
        """Of each object only the pair with its newest report."""
        return [
            Pairs(*levels, self._tables[levels] - self._moved.get(levels, np.int64(0)))
            for levels in sorted(self._tables)
        ]

    def add(self, older: Any, newer: Any, *, older_epsilon: Epsilon, newer_epsilon: Epsilon) -> None:
        """Count two columns of reports, row by row those of one object, which has no report at another level."""
        older, newer = (pack_reports(self.mechanism, *self.mechanism.read(column)) for column in (older, newer))
        if len(older) != len(newer):
            raise ColumnError(
                "There are {older:,} older reports and {newer:,} newer ones. They belong together row by row.",
                hint="Pass two columns of the same individuals, in the same order.",
                older=len(older),
                newer=len(newer),
            )
        step = max(1, BATCH // packed_width(self.mechanism))
        for start in range(0, len(newer), step):
            part = slice(start, start + step)
            self._count(self._levels(older_epsilon, newer_epsilon), older[part], newer[part])

    def add_individuals(self, reports: Sequence[Any], *, epsilons: Sequence[Epsilon]) -> None:
        """Count columns of reports of the same objects at growing levels, a column for each, oldest first."""
        packed = [pack_reports(self.mechanism, *self.mechanism.read(column)) for column in reports]
        if len(packed) != len(epsilons) or len({len(each) for each in packed}) != 1:
            raise ColumnError(
                "Each level needs one column, and all columns the same length.",
                hint="Pass as many columns as epsilons, of the same individuals in the same order.",
            )
        for place in range(len(packed) - 1):
            levels = self._levels(epsilons[place], epsilons[place + 1])
            self._count(levels, packed[place], packed[place + 1], moved=place + 2 < len(packed))

    def add_table(self, table: Any, *, older_epsilon: Epsilon, newer_epsilon: Epsilon) -> None:
        """Add a table of counts, a row for each older report and a column for each newer one."""
        counts = np.asarray(table)
        size = len(self.mechanism.labels)
        if self.mechanism.joint != "exclusive":
            raise EstimationError(
                "A table of pairs needs reports that are one value each.",
                hint="Add the reports with add(older, newer).",
            )
        if counts.shape != (size, size) or counts.dtype.kind not in "iu" or np.any(counts < 0):
            raise EstimationError(
                "The table of pairs must have {values} rows and {values} columns of whole numbers, at least 0.",
                hint="Count the pairs of reports in the order of the declared values.",
                values=size,
            )
        equal = np.diagonal(counts).astype(np.int64)
        numbers = [np.array([counts.sum(), equal.sum()])]
        if self.labels:
            numbers += [counts.sum(axis=0), counts.sum(axis=1), equal]
        self.add_numbers(np.concatenate(numbers), self._levels(older_epsilon, newer_epsilon))

    def add_numbers(self, numbers: Integers, levels: tuple[Level, Level], *, moved: bool = False) -> None:
        """Add what was kept of pairs; `moved` where these are known already and their objects went on to a level above.

        Only the pair with an object's newest report says what its share is; all of them are tested.
        """
        where = self._moved if moved else self._tables
        known = where.get(levels)
        where[levels] = numbers.astype(np.int64) if known is None else known + numbers

    def _count(self, levels: tuple[Level, Level], older: Packed, newer: Packed, *, moved: bool = False) -> None:
        numbers = count_pairs(self.mechanism, older, newer, self.labels)
        self.add_numbers(numbers, levels)
        if moved:
            self.add_numbers(numbers, levels, moved=True)

    def _levels(self, older: Epsilon, newer: Epsilon) -> tuple[Level, Level]:
        levels = self.mechanism.level(older), self.mechanism.level(newer)
        if not levels[0] < levels[1]:
            raise EstimationError(
                "The epsilon of the older reports must be lower: {older} is not below {newer}.",
                hint="Exchange the two columns, or check their levels.",
                older=str(levels[0]),
                newer=str(levels[1]),
            )
        return levels
