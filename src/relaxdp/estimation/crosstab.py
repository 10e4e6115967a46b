"""Crosstabs: the shares of all pairs of values of two released columns of the same individuals.

The estimate of a cell is a mean of products of two debiased indicators, over individuals. Its distribution is that of
a sum of many small jumps, skewed where few reports support the cell. A gamma distribution with the same first three
moments has its tails, with one report as with many. Intervals come from inverting it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, EstimationError
from relaxdp.estimation.counts import check_mechanism
from relaxdp.estimation.frequency import WeightedSum, compute_precision
from relaxdp.estimation.result import UNKNOWN, About, Floats, Result, check_about, format_label, get_frame_library
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import BATCH, Codes, count_codes, make_sliceable_reports, read_report_column
from relaxdp.sampling.keyed_stream import Words
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

# Nearer to symmetry than this the gamma law is the normal one, and its shape too large to compute with.
_MIN_SKEWNESS = 1e-5
_STEPS = 100  # many more than it takes


@dataclass(frozen=True, eq=False)
class PairSamplingDistribution:
    """The distribution of the estimated share of a pair of values, for every possible true share.

    `rows` and `columns` are the estimated shares of the two values, each within 0 .. 1.
    """

    rows: Floats
    columns: Floats
    row_support: SupportProbabilities
    column_support: SupportProbabilities
    n: int
    about: About

    def compute_unclipped_interval(self, value: Floats, tail_probability: float) -> tuple[Floats, Floats]:
        """Return the ends of the interval: shares at which an estimate so extreme has this probability.

        Half a report in the cell is the continuity correction. Outside of 0 and 1 the bounds continue with the
        distribution at 0 and at 1.
        """
        half = 0.5 / (self.n * float(self.row_support.gain * self.column_support.gain))
        high = self._find_bound(value + half, tail_probability, is_upper=False)
        return self._find_bound(value - half, tail_probability, is_upper=True), high

    def _find_bound(self, observed: Floats, tail: float, *, is_upper: bool) -> Floats:
        """Return the bound of the share below (above) which an estimate as large (small) as observed is too rare."""
        below, above = (
            observed - self._compute_error_quantile(np.full(observed.shape, share), tail, is_upper=is_upper)
            for share in (0.0, 1.0)
        )
        ends = np.where(below < 0, below, above)
        inside = (below >= 0) & (above <= 1)
        some = replace(self, rows=self.rows[inside], columns=self.columns[inside])
        sign = 1.0 if is_upper else -1.0  # a larger share makes a large estimate likelier, and a small one rarer
        wanted = scipy.special.ndtri(tail)

        def compute_excess(share: Floats) -> Floats:
            return np.asarray(sign * (some._compute_tail_z_score(observed[inside], share, is_upper=is_upper) - wanted))

        ends[inside] = _find_roots(compute_excess, inside.sum())
        return ends

    def _compute_tail_z_score(self, observed: Floats, share: Floats, *, is_upper: bool) -> Floats:
        """Return as a z-score the probability of an estimate at least (at most) as large as the observed one."""
        deviation, skewness = self.compute_deviation_and_skewness(share)
        steps = (observed - share) / deviation
        steps, shape = np.where(skewness < 0, -steps, steps), 4 / np.maximum(np.abs(skewness), _MIN_SKEWNESS) ** 2
        point = np.maximum(shape + np.sqrt(shape) * steps, 0)
        of_upper = (skewness >= 0) == is_upper
        chance = np.empty(observed.shape)
        chance[of_upper] = scipy.special.gammaincc(shape[of_upper], point[of_upper])
        chance[~of_upper] = scipy.special.gammainc(shape[~of_upper], point[~of_upper])
        found = scipy.special.ndtri(np.clip(chance, 1e-300, 1 - 1e-16))
        return np.where(np.abs(skewness) < _MIN_SKEWNESS, np.where(of_upper, -steps, steps), found)

    def _compute_error_quantile(self, share: Floats, tail: float, *, is_upper: bool) -> Floats:
        """Return how far above (below) the share the estimate is with the probability `tail`."""
        deviation, skewness = self.compute_deviation_and_skewness(share)
        shape = 4 / np.maximum(np.abs(skewness), _MIN_SKEWNESS) ** 2
        of_upper = (skewness >= 0) == is_upper
        point = np.where(of_upper, scipy.special.gammainccinv(shape, tail), scipy.special.gammaincinv(shape, tail))
        normal = np.where(of_upper, -1, 1) * scipy.special.ndtri(tail)
        steps = np.where(np.abs(skewness) < _MIN_SKEWNESS, normal, (point - shape) / np.sqrt(shape))
        return np.asarray(deviation * np.where(skewness < 0, -steps, steps))

    def compute_deviation_and_skewness(self, share: Floats) -> tuple[Floats, Floats]:
        """Return the standard deviation and the skewness of the estimate.

        Given the true values the two factors are independent, so their moments multiply. Their means are 1 for an
        individual that has the value and 0 for any other.
        """
        overlap_shares = self._compute_overlap_shares(share)
        supports = self.row_support, self.column_support
        second, third = (
            [row * column for row, column in product(*(_compute_debiased_moments(each, order) for each in supports))]
            for order in (2, 3)
        )
        if self.about == "sample":  # every kind of object around its own mean
            second[0], third[0] = second[0] - 1, third[0] - 3 * second[0] + 2
        variance, skew = np.tensordot([second, third], overlap_shares, axes=1)
        if self.about == "population":
            variance, skew = variance - share**2, skew - 3 * share * variance + 2 * share**3
        return np.sqrt(variance / self.n), np.asarray(skew / variance**1.5 / np.sqrt(self.n))

    def _compute_overlap_shares(self, share: Floats) -> Floats:
        """Return the shares of individuals with both values, the row's only, the column's only and neither.

        The estimated margins may contradict a share: they give way to it as little as possible.
        """
        row, column = np.maximum(self.rows - share, 0), np.maximum(self.columns - share, 0)
        room = np.minimum(1, (1 - share) / np.maximum(row + column, 1e-300))
        row, column = row * room, column * room
        return np.stack([share, row, column, np.maximum(1 - share - row - column, 0)])


def _find_roots(increasing_function: Callable[[Floats], Floats], n_roots: int) -> Floats:
    """Return the roots of an increasing function between 0 and 1, element by element, by the Illinois method."""
    low, high = np.zeros(n_roots), np.ones(n_roots)
    at_low, at_high = increasing_function(low), increasing_function(high)
    found, last = low, np.full(n_roots, 0)
    for _ in range(_STEPS):
        found = np.clip(low - at_low * (high - low) / np.maximum(at_high - at_low, 1e-300), low, high)
        at = increasing_function(found)
        if np.all((np.abs(at) < 1e-7) | (high - low < 1e-12)):
            break
        side = np.where(at < 0, -1, 1)
        again = np.where(side == last, 0.5, 1.0)  # an end that stays twice would hold the others back
        at_low, at_high = np.where(side < 0, at, again * at_low), np.where(side < 0, again * at_high, at)
        low, high, last = np.where(side < 0, found, low), np.where(side < 0, high, found), side
    return found


def _compute_debiased_moments(support: SupportProbabilities, order: int) -> tuple[float, float]:
    """Return a moment of a debiased indicator, for individuals that have the value and for others."""
    noise, gain = float(support.noise), float(support.gain)
    supported, other = ((1 - noise) / gain) ** order, (-noise / gain) ** order
    own, foreign = (chance * supported + (1 - chance) * other for chance in (float(support.hit), noise))
    return own, foreign


@dataclass(frozen=True, eq=False, repr=False)
class Crosstab(Result):
    """Estimated shares of all pairs of values. The two paths are independent, so each axis is debiased on its own.

    A cell counts the individuals whose reports support both values. Where a report supports exactly one value the
    margins are sums of cells. Elsewhere the margins and the number of individuals are counted separately.

    The estimate is the mean, over individuals, of the product of two debiased indicators. Its interval inverts the
    distribution of that mean, which follows from the share and from the estimated margins, with any number of reports.

    Claim: coverage of 94.5 % or more; tests/statistical/estimation/test_coverage.py.
    """

    rows: Sequence[Any]
    columns: Sequence[Any]
    counts: NDArray[np.int64]
    row_support: SupportProbabilities
    column_support: SupportProbabilities
    row_counts: NDArray[np.int64] | None = None
    column_counts: NDArray[np.int64] | None = None
    total: int | None = None
    names: tuple[str, str] = ("row", "column")
    """What the two sides are called."""
    epsilons: tuple[Decimal, Decimal] | None = None
    """The epsilon of each side."""
    max_shown_rows = 200
    sums_to_one = True

    @property
    def key_columns(self) -> dict[str, list[Any]]:
        rows = [row for row in self.rows for _ in self.columns]
        return {self.names[0]: rows, self.names[1]: list(self.columns) * len(self.rows)}

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        return [f"{format_label(row)} & {format_label(column)}" for row in self.rows for column in self.columns]

    @property
    def n(self) -> int:
        return int(self.counts.sum()) if self.total is None else self.total

    @property
    def levels(self) -> dict[str, int]:
        return {UNKNOWN if self.epsilons is None else " and ".join(map(format_epsilon, self.epsilons)): self.n}

    @property
    def table(self) -> Floats:
        """The estimated shares with one row per value of the first column."""
        rows, columns = (margin / self.n for margin in self._marginal_support_counts)
        row_noise, column_noise = float(self.row_support.noise), float(self.column_support.noise)
        noise = column_noise * rows[:, None] + row_noise * columns[None, :] - row_noise * column_noise
        scale = float(self.row_support.gain * self.column_support.gain)
        return np.asarray((self.counts / self.n - noise) / scale)

    @property
    def _marginal_support_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The marginal counts: how many individuals support each row's value, and each column's."""
        rows = self.counts.sum(axis=1) if self.row_counts is None else self.row_counts
        return rows, self.counts.sum(axis=0) if self.column_counts is None else self.column_counts

    @property
    def value(self) -> Floats:
        return self.table.reshape(-1)

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return self.compute_sampling_distribution(about).compute_deviation_and_skewness(np.clip(self.value, 0, 1))[0]

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        return self.compute_sampling_distribution(about).compute_unclipped_interval(self.value, tail_probability)

    def compute_precision(self) -> Fraction:
        """Return the inverse variance of the noise in the product of two debiased reports."""
        return compute_precision(self.row_support) * compute_precision(self.column_support)

    def compute_sampling_distribution(self, about: About) -> PairSamplingDistribution:
        rows, columns = self._marginal_support_counts
        row_shares = np.clip(self.row_support.debias(rows / self.n), 0, 1)
        column_shares = np.clip(self.column_support.debias(columns / self.n), 0, 1)
        pairs = np.repeat(row_shares, len(columns)), np.tile(column_shares, len(rows))
        return PairSamplingDistribution(*pairs, self.row_support, self.column_support, self.n, about)


def crosstab(
    rows: Any, row_reports: Any, columns: Any, column_reports: Any, *, row_epsilon: Epsilon, column_epsilon: Epsilon
) -> Crosstab:
    """Estimate the crosstab of two released columns.

    Args:
        rows: The mechanism of the first column.
        row_reports: The reports of the first column.
        columns: The mechanism of the second column.
        column_reports: The reports of the second column, of the same individuals in the same order.
        row_epsilon: The level of the first column.
        column_epsilon: The level of the second column.

    Returns:
        The shares of all pairs of values. `table["flu", "yes"]` is one pair.

    Raises:
        ColumnError: The columns have different lengths.
        EstimationError: There are no reports, or `rows` or `columns` is not a mechanism.

    Example:
        >>> from relaxdp import Categorical
        >>> sick, smokes = Categorical(["flu", "none"]), Categorical(["yes", "no"])
        >>> reports = ["flu"] * 30 + ["none"] * 70, ["yes"] * 40 + ["no"] * 60
        >>> table = crosstab(sick, reports[0], smokes, reports[1], row_epsilon=4, column_epsilon=4)
        >>> round(float(table["flu", "yes"]), 3), table.n
        (0.31, 100)
    """
    for each in (rows, columns):
        check_mechanism(each)
    for reports in (row_reports, column_reports):
        if isinstance(reports, str) or not hasattr(reports, "__len__"):
            raise EstimationError(
                "`row_reports` and `column_reports` must be columns of reports, got {type}.",
                hint='Pass a list, an array or a series, such as df["diagnosis"].',
                type=type(reports).__name__,
            )
    if len(row_reports) != len(column_reports):
        raise ColumnError(
            "The two columns have {row_reports:,} and {column_reports:,} reports. Each row must be one individual.",
            hint="Pass two columns of the same individuals, in the same order.",
            row_reports=len(row_reports),
            column_reports=len(column_reports),
        )
    if not len(row_reports):
        raise EstimationError(
            "There are no reports, because both columns are empty.", hint="Pass columns with at least one report."
        )
    row_support = rows.compute_noise_and_gain(rows.level(row_epsilon).retention)
    column_support = columns.compute_noise_and_gain(columns.level(column_epsilon).retention)
    epsilons = (as_epsilon(row_epsilon), as_epsilon(column_epsilon))
    if rows.joint == columns.joint == "exclusive":
        shape = len(rows.labels), len(columns.labels)
        pairs = rows.read_label_column(row_reports)[:, 0].astype(np.int64) * shape[1]
        pairs += columns.read_label_column(column_reports)[:, 0]
        counts = count_codes(pairs, shape[0] * shape[1]).reshape(shape)
        found = Crosstab(rows.labels, columns.labels, counts, row_support, column_support, epsilons=epsilons)
    else:
        counted = PairSupportCounts(rows, columns)
        sides = make_sliceable_reports(rows, row_reports), make_sliceable_reports(columns, column_reports)
        for start in range(0, len(sides[0]), counted.step):
            parts = [side[start : start + counted.step] for side in sides]
            counted.add_reports(read_report_column(rows, parts[0]), read_report_column(columns, parts[1]))
        found = counted.make_crosstab(row_support, column_support, epsilons=epsilons)
    found.set_frame_library(get_frame_library(row_reports))
    return found


class PairSupportCounts:
    """How many individuals support each pair of values, and each value, where a report may support several."""

    def __init__(self, rows: Mechanism, columns: Mechanism) -> None:
        self._sides = (rows, columns)
        sizes = len(rows.labels), len(columns.labels)
        self.step = max(1, BATCH // max(sizes))
        """How many individuals are added at a time, so that what they support stays in the processor's cache."""
        self.numbers = np.zeros(1 + sum(sizes) + sizes[0] * sizes[1], dtype=np.int64)
        """The number of individuals, those that support each row and each column, and the cells row by row."""

    def add_reports(self, *reports: tuple[Codes, Words | None]) -> None:
        """Count the reports of some individuals: codes and seeds of the one column, and of the other."""
        rows, columns = (side.find_supported_labels(*each) for side, each in zip(self._sides, reports, strict=True))
        # Whole numbers far below 2^24, so a product of 32-bit floats is exact.
        cells = rows.T.astype(np.float32) @ columns.astype(np.float32)
        margins = [np.count_nonzero(each, axis=0) for each in (rows, columns)]
        self.add_counts(np.concatenate([[len(rows)], *margins, cells.astype(np.int64).reshape(-1)]))

    def add_counts(self, counts: NDArray[np.int64]) -> None:
        self.numbers = self.numbers + counts

    def make_crosstab(
        self,
        row_support: SupportProbabilities,
        column_support: SupportProbabilities,
        names: tuple[str, str] = ("row", "column"),
        epsilons: tuple[Decimal, Decimal] | None = None,
    ) -> Crosstab:
        rows, columns = (side.labels for side in self._sides)
        n, in_rows, in_columns, cells = np.split(self.numbers, np.cumsum([1, len(rows), len(columns)]))
        counted = (cells.reshape(len(rows), -1), row_support, column_support, in_rows, in_columns, int(n[0]))
        return Crosstab(rows, columns, *counted, names, epsilons)


def combine_crosstabs(crosstabs: Sequence[Crosstab], method: Literal["average", "precision"] = "average") -> Result:
    """Combine the crosstabs of all pairs of levels into one estimate; the methods are those of `Counts.estimate`."""
    if len(crosstabs) == 1:
        return crosstabs[0]
    weights = [float(table.n * (table.compute_precision() if method == "precision" else 1)) for table in crosstabs]
    return WeightedSum(crosstabs, [weight / sum(weights) for weight in weights])
