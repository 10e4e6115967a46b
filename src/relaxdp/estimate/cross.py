"""Two-way tables: how two released columns of the same objects go together, debiased jointly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from relaxdp.encode.histogram import histogram
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

    The estimate is the mean, over objects, of the product of two debiased indicators. Its interval inverts the normal
    score, whose variance follows from the share in question and from the estimated margins; where a cell has few
    reports, the exact intervals of the three counts that it is made of are combined instead, which is wider.
    """

    rows: Sequence[Any]
    columns: Sequence[Any]
    counts: NDArray[np.int64]
    row_support: Support
    column_support: Support

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The pairs, row by row."""
        return [f"{row} & {column}" for row in self.rows for column in self.columns]

    @property
    def objects(self) -> int:
        """How many objects were counted."""
        return int(self.counts.sum())

    @property
    def table(self) -> Floats:
        """The estimated shares with one row per value of the first column."""
        shares = self.counts / self.objects
        across = shares - float(self.column_support.noise) * shares.sum(axis=1, keepdims=True)
        across /= float(self.column_support.gain)
        down = across - float(self.row_support.noise) * across.sum(axis=0, keepdims=True)
        return np.asarray(down / float(self.row_support.gain))

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
        row_low, row_high = self._spread(binomial_interval(self.counts.sum(axis=1), self.objects, tail), axis=1)
        column_low, column_high = self._spread(binomial_interval(self.counts.sum(axis=0), self.objects, tail), axis=0)
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
        row_margin = np.clip(self.row_support.debias(self.counts.sum(axis=1) / self.objects), 0, 1)
        column_margin = np.clip(self.column_support.debias(self.counts.sum(axis=0) / self.objects), 0, 1)
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
    pairs = rows.encoding.codes(row_reports)[:, 0].astype(np.int64) * len(columns.encoding.labels)
    pairs += columns.encoding.codes(column_reports)[:, 0]
    shape = len(rows.encoding.labels), len(columns.encoding.labels)
    return CrossTable(
        rows=rows.encoding.labels,
        columns=columns.encoding.labels,
        counts=histogram(pairs, shape[0] * shape[1]).reshape(shape),
        row_support=_support(rows, row_epsilon),
        column_support=_support(columns, column_epsilon),
    )


def _support(mechanism: Any, epsilon: Epsilon) -> Support:
    level = mechanism.encoding.threshold(as_epsilon(epsilon))
    support: Support = mechanism.encoding.support(retention(level))
    return support
