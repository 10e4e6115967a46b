"""Two-way tables: how two released columns of the same objects go together, debiased jointly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from relaxdp.draw.columns import column_slice
from relaxdp.encode.histogram import histogram
from relaxdp.encode.protocol import BATCH, Encoding
from relaxdp.errors import CountsError, LengthError
from relaxdp.estimate.result import About, Result, check_about
from relaxdp.estimate.tails import binomial_interval
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.law.support import Support
from relaxdp.law.threshold import retention

Floats = NDArray[np.float64]

# Below so many reports in a cell the normal score interval is not trusted and the exact bound is taken.
_FEW = 25


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable(Result):
    """Estimated shares of all pairs of values. The two paths are independent, so each axis is debiased on its own.

    A cell counts the objects whose reports support both values. Where a report supports exactly one value the margins
    are sums of cells; elsewhere they, and the number of objects, are counts of their own.

    The estimate is the mean, over objects, of the product of two debiased indicators. Its interval inverts the normal
    score, whose variance follows from the share in question and from the estimated margins; where a cell has few
    reports, the exact intervals of the three counts that it is made of are combined instead, which is wider.
    """

    rows: Sequence[Any]
    columns: Sequence[Any]
    counts: NDArray[np.int64]
    row_support: Support
    column_support: Support
    row_counts: NDArray[np.int64] | None = None
    column_counts: NDArray[np.int64] | None = None
    all_objects: int | None = None

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The pairs, row by row."""
        return [f"{row} & {column}" for row in self.rows for column in self.columns]

    @property
    def objects(self) -> int:
        """How many objects were counted."""
        return int(self.counts.sum()) if self.all_objects is None else self.all_objects

    @property
    def table(self) -> Floats:
        """The estimated shares with one row per value of the first column."""
        rows, columns = (margin / self.objects for margin in self._margins)
        row_noise, column_noise = float(self.row_support.noise), float(self.column_support.noise)
        noise = column_noise * rows[:, None] + row_noise * columns[None, :] - row_noise * column_noise
        scale = float(self.row_support.gain * self.column_support.gain)
        return np.asarray((self.counts / self.objects - noise) / scale)

    @property
    def _margins(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many objects support each row's value, and each column's."""
        rows = self.counts.sum(axis=1) if self.row_counts is None else self.row_counts
        return rows, self.counts.sum(axis=0) if self.column_counts is None else self.column_counts

    @property
    def value(self) -> Floats:
        """The estimated shares, row by row."""
        return self.table.reshape(-1)

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors."""
        check_about(about)
        base, slope = self._variance_line()
        share = np.clip(self.value, 0, 1)
        extra = share * (1 - share) if about == "population" else 0.0
        return np.asarray(np.sqrt((base + slope * share + extra) / self.objects))

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the intervals, before they are cut at 0 and 1."""
        low, high = self._score_ends(tail, about)
        few = np.minimum(self._cells(), self.objects - self._cells()) < _FEW
        exact_low, exact_high = self._exact_ends(tail / 3)
        return np.where(few, np.minimum(exact_low, low), low), np.where(few, np.maximum(exact_high, high), high)

    def _score_ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Solve objects * (value - share)^2 = z^2 * variance(share), a quadratic in the share."""
        base, slope = self._variance_line()
        squared = ndtri(1 - tail) ** 2 / self.objects
        bend = 1.0 if about == "population" else 0.0  # variance = base + (slope + bend) * share - bend * share^2
        a = 1 + squared * bend
        b = 2 * self.value + squared * (slope + bend)
        root = np.sqrt(np.maximum(b * b - 4 * a * (self.value**2 - squared * base), 0))
        return (b - root) / (2 * a), (b + root) / (2 * a)

    def _exact_ends(self, tail: float) -> tuple[Floats, Floats]:
        """Combine exact intervals of the three counts behind a cell, each with a third of the error."""
        row_noise, column_noise = float(self.row_support.noise), float(self.column_support.noise)
        scale = float(self.row_support.gain * self.column_support.gain)
        cell_low, cell_high = binomial_interval(self._cells(), self.objects, tail)
        rows, columns = self._margins
        row_low, row_high = self._spread(binomial_interval(rows, self.objects, tail), axis=1)
        column_low, column_high = self._spread(binomial_interval(columns, self.objects, tail), axis=0)
        both = row_noise * column_noise
        return (
            (cell_low - column_noise * row_high - row_noise * column_high + both) / scale,
            (cell_high - column_noise * row_low - row_noise * column_low + both) / scale,
        )

    def _cells(self) -> NDArray[np.int64]:
        return self.counts.reshape(-1)

    def _spread(self, ends: tuple[Floats, Floats], axis: int) -> tuple[Floats, Floats]:
        low, high = (np.expand_dims(end, axis) + np.zeros(self.counts.shape) for end in ends)
        return low.reshape(-1), high.reshape(-1)

    def _variance_line(self) -> tuple[Floats, float]:
        """Return the variance of one object's product about these objects, as base + slope * share.

        Given the truths, both factors are independent with mean 1 (match) or 0, so squares multiply.
        """
        row_match, row_other = _squares(self.row_support)
        column_match, column_other = _squares(self.column_support)
        rows, columns = self._margins
        row_margin = np.clip(self.row_support.debias(rows / self.objects), 0, 1)
        column_margin = np.clip(self.column_support.debias(columns / self.objects), 0, 1)
        base = (
            row_other * column_other
            + row_margin[:, None] * column_other * (row_match - row_other)
            + column_margin[None, :] * row_other * (column_match - column_other)
        )
        return base.reshape(-1), (row_match - row_other) * (column_match - column_other) - 1


def _squares(support: Support) -> tuple[float, float]:
    """Return the mean square of a debiased indicator, for objects that have the value and for others."""
    gain = support.gain**2
    return float(1 + support.hit * (1 - support.hit) / gain), float(support.noise * (1 - support.noise) / gain)


def cross(
    rows: Any, row_reports: Any, columns: Any, column_reports: Any, *, row_epsilon: Epsilon, column_epsilon: Epsilon
) -> CrossTable:
    """Return the two-way table of two released columns of the same objects, in the same order.

    `rows` and `columns` are the mechanisms that the columns were released with.
    """
    if len(row_reports) != len(column_reports):
        raise LengthError(
            f"the two columns must be of the same objects; they have {len(row_reports):,} and {len(column_reports):,}."
        )
    if not len(row_reports):
        raise CountsError("there are no reports to estimate from.")
    supports = (_support(rows, row_epsilon), _support(columns, column_epsilon))
    labels = (rows.encoding.labels, columns.encoding.labels)
    if rows.encoding.joint == columns.encoding.joint == "exclusive":
        pairs = rows.encoding.codes(row_reports)[:, 0].astype(np.int64) * len(labels[1])
        pairs += columns.encoding.codes(column_reports)[:, 0]
        shape = len(labels[0]), len(labels[1])
        return CrossTable(*labels, histogram(pairs, shape[0] * shape[1]).reshape(shape), *supports)
    return CrossTable(*labels, *_joint_counts(rows.encoding, row_reports, columns.encoding, column_reports, supports))


def _joint_counts(
    rows: Encoding, row_reports: Any, columns: Encoding, column_reports: Any, supports: tuple[Support, Support]
) -> tuple[Any, ...]:
    """Return the cells, the supports, the margins and the number of objects, a batch of them at a time."""
    sizes = len(rows.labels), len(columns.labels)
    cells, objects = np.zeros(sizes), len(row_reports)
    margins = [np.zeros(size, dtype=np.int64) for size in sizes]
    step = max(1, BATCH // max(sizes))
    for start in range(0, objects, step):
        held = [
            encoding.supports(*encoding.read(column_slice(reports, start, start + step)))
            for encoding, reports in ((rows, row_reports), (columns, column_reports))
        ]
        # Whole numbers far below 2^24, so a product of 32-bit floats is exact.
        cells += held[0].T.astype(np.float32) @ held[1].astype(np.float32)
        margins = [margin + np.count_nonzero(each, axis=0) for margin, each in zip(margins, held, strict=True)]
    return cells.astype(np.int64), *supports, *margins, objects


def _support(mechanism: Any, epsilon: Epsilon) -> Support:
    level = mechanism.encoding.threshold(as_epsilon(epsilon))
    support: Support = mechanism.encoding.support(retention(level))
    return support
