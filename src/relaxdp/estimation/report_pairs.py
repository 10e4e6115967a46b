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
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import BATCH, Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.report_arrays import Packed, code_dtype, count_packed, pack_reports, packed_width
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.level import Level
from relaxdp.theory.randomized_response import compute_blur_retention

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
        return float(compute_blur_retention(self.older.retention, self.newer.retention))

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


Floats = NDArray[np.float64]

_LEAST = 5.0
"""The least expected number in a cell of a chi-squared sum; values that are rarer stand together in one."""
# Which share of those who could have been found out was made up: halved from bet to bet, so that one of them is near.
_BETS = np.array([0.5**power for power in range(1, 17)])
_TINY = 2.0**-52
_OVER_ALL, _SINGLE = 0.25, 0.75
"""What is put on all values together, and on single ones."""
REPEATED, CHANGED, OLDER = "repeated", "changed", "older"
KINDS = (REPEATED, CHANGED, OLDER)
"""What is wrong with a value: it is repeated too often, or too seldom, or reported too often before another one."""


def single_look(tables: Sequence[Pairs], mechanism: Mechanism) -> float:
    """Return the p-value of honest objects at one look that was planned before: uniform where reports are many."""
    tables = [table for table in tables if table.n]
    if not tables:
        return 1.0
    if all(table.labels for table in tables) and (mechanism.joint == "exclusive" or mechanism.symbols > 1):
        distance, freedom = 0.0, 0
        for table in tables:
            for more, terms in _squares(table, mechanism):
                distance, freedom = distance + more, freedom + terms
        return float(scipy.special.chdtrc(freedom, distance)) if freedom else 1.0
    # Hashed values share their reports in unknown ways: the rarest of all that was seen, times their number.
    least = min(_rarest(table, mechanism) for table in tables)
    return min(1.0, len(tables) * least)


def _squares(table: Pairs, mechanism: Mechanism) -> list[tuple[float, int]]:
    """Return squared distances and their degrees of freedom; each is independent of the next ones, given these."""
    stay, leave = chances(table, mechanism)
    first = _binomials(table.news, table.both, stay)
    away = table.olds - table.both
    if mechanism.symbols > 1:
        return [first, _binomials(table.n - table.news, away, leave)]
    return [first, _arrivals(table.news - table.both, away)]


def _binomials(trials: NDArray[np.int64], hits: NDArray[np.int64], chance: float) -> tuple[float, int]:
    """Return the squared distance of independent binomials, the rare ones added up; which are rare is no surprise."""
    enough = trials * min(chance, 1 - chance) >= _LEAST
    cells = [(float(n), float(k)) for n, k in zip(trials[enough], hits[enough], strict=True)]
    rest = float(trials[~enough].sum()), float(hits[~enough].sum())
    if rest[0] * min(chance, 1 - chance) >= _LEAST:
        cells.append(rest)
    if not cells:
        return 0.0, 0
    n, k = np.array(cells).T
    return float(np.sum((k - n * chance) ** 2 / (n * chance * (1 - chance)))), len(cells)


def _arrivals(left: NDArray[np.int64], arrived: NDArray[np.int64]) -> tuple[float, int]:
    """Return the squared distance of where the changed ones went: from each value evenly to all others.

    The covariance is a diagonal minus a matrix of rank two, so it is inverted in closed form; values stand together in
    groups where they are rare, and one group is left out, since all sum up to what is known.
    """
    values, total = len(left), float(left.sum())
    size = max(1, int(np.ceil(_LEAST * values / max(total, 1.0))))
    starts = np.arange(0, values, size)
    if len(starts) > 1 and values % size:
        starts = starts[:-1]  # the last group takes what is left over
    if values < 3 or len(starts) < 3:
        return 0.0, 0
    sizes = np.diff(np.append(starts, values)).astype(float)
    gone = np.add.reduceat(left, starts).astype(float)
    came = np.add.reduceat(arrived, starts).astype(float)
    each = 1 / (values - 1)
    away = (came - each * (total * sizes - gone))[:-1]
    diagonal = (each * (total * sizes - gone) - each**2 * gone)[:-1]
    if np.any(diagonal <= 0):
        return 0.0, 0
    sides = np.stack([sizes, gone], axis=1)[:-1]
    inner = np.linalg.inv(each**2 * np.array([[total, -1.0], [-1.0, 0.0]])) - sides.T @ (sides / diagonal[:, None])
    reach = sides.T @ (away / diagonal)
    return float(away @ (away / diagonal) + reach @ np.linalg.solve(inner, reach)), len(away)


def _rarest(table: Pairs, mechanism: Mechanism) -> float:
    """Return the p-value of equal reports and of all values, each with its exact binomial law."""
    stay, leave = chances(table, mechanism)
    over_all = _two_sided(np.array([table.n * mechanism.symbols]), np.array([table.equal]), stay).min()
    if not table.labels:
        return float(over_all)
    single = min(
        _two_sided(table.news, table.both, stay).min(),
        _two_sided(table.n - table.news, table.olds - table.both, leave).min(),
    )
    return 2 * min(float(over_all), 2 * table.labels * float(single))


def _two_sided(trials: NDArray[np.int64], hits: NDArray[np.int64], chance: float) -> Floats:
    lower = np.where(hits < trials, scipy.special.bdtr(hits, np.maximum(trials, 1), chance), 1.0)
    upper = np.where(hits > 0, scipy.special.bdtrc(hits - 1, np.maximum(trials, 1), chance), 1.0)
    return np.where(trials > 0, np.minimum(1.0, 2 * np.minimum(lower, upper)), 1.0)


def chances(table: Pairs, mechanism: Mechanism) -> tuple[float, float]:
    """Return with which probability an older symbol is the newer one, and is one certain other one.

    Of levels so close that a float does not tell them apart the second is not 0: what is unlikely is not impossible.
    """
    leave = max((1 - table.kept) / mechanism.alphabet, _TINY)
    return min(table.kept + leave, 1 - _TINY), leave


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The capital of all bets against honest objects, as logarithms that include how little was put on each."""

    stakes: tuple[float, ...]
    """What all bets on a table have made of its part of the stake, for each table."""
    values: Floats
    """Of each kind of bet (see `KINDS`) and each value: the most that it has made in any table."""

    @property
    def p_value(self) -> float:
        """At most this is the chance that honest objects ever show as much, however often somebody looks."""
        return float(np.exp(-max([0.0, *self.stakes])))


def every_look(tables: Sequence[Pairs], mechanism: Mechanism, levels: Sequence[Level] = ()) -> Evidence:
    """Return what bets against honest objects have made. Of the `levels` of a schedule neighbours are bet on most.

    Whoever looks more than once names all levels of the schedule each time: stakes must not depend on what came.

    In every table each pair is bet on once, when it is complete, so that each table's capital is a martingale; tables
    share objects, and therefore divide the stake and are not added.
    """
    width = max([table.labels for table in tables], default=0)
    stakes, best = [], np.full((len(KINDS), width), -np.inf)
    used = {each for table in tables for each in (table.older, table.newer)}
    places = {level: place for place, level in enumerate(sorted(used.union(levels)))}
    for table in tables:
        stake = np.log(_stake(places[table.newer] - places[table.older], len(places)))
        stay, leave = chances(table, mechanism)
        symbols = np.array([table.n * mechanism.symbols])
        equal = np.array([table.equal])
        sides = np.array([_capital(symbols, equal, stay, up=up)[0] for up in (True, False)]) - np.log(2)
        single = np.log(_SINGLE / (len(KINDS) * max(1, table.labels)))
        rows = single + (
            np.stack([
                _capital(table.news, table.both, stay, up=True),
                _capital(table.news, table.both, stay, up=False),
                _capital(table.n - table.news, table.olds - table.both, leave, up=True),
            ])
            if table.labels
            else np.empty((len(KINDS), 0))
        )  # fmt: skip
        shared = np.log(_OVER_ALL if table.labels else 1.0)
        stakes.append(stake + float(scipy.special.logsumexp([*(sides + shared), *rows.reshape(-1)])))
        if table.labels:
            best = np.maximum(best, rows + stake)
    return Evidence(tuple(stakes), best)


def _stake(distance: int, levels: int) -> float:
    """Return what is put on a table: on neighbouring levels one half, or all where there are no others."""
    others = (levels - 1) * (levels - 2) // 2
    if distance == 1:
        return (0.5 if others else 1.0) / max(1, levels - 1)
    return 0.5 / others


def _capital(trials: NDArray[np.int64], hits: NDArray[np.int64], chance: float, *, up: bool) -> Floats:
    """Return the logarithm of what bets on more (or fewer) hits made of 1: a mixture of likelihood ratios."""
    if up:
        win, lose = np.log1p(_BETS * (1 / chance - 1)), np.log1p(-_BETS)
    else:
        win, lose = np.log1p(-_BETS), np.log1p(_BETS * (1 / (1 - chance) - 1))
    gains = hits[:, None] * win + (trials - hits)[:, None] * lose
    return np.asarray(scipy.special.logsumexp(gains, axis=1) - np.log(len(_BETS)))
