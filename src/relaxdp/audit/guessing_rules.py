"""Rules that guess which of two true values a transcript comes from, and the lower bound of epsilon that they prove.

Transcripts are sorted into cells, and a rule has a guess for each cell. Where there are too many different transcripts,
a linear score is learned and its bins are the cells. It is written here, so that an audit does not need scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import TranscriptDistribution
from relaxdp.errors import ArgumentError
from relaxdp.lazy_imports import scipy

Floats = NDArray[np.float64]


def compute_epsilon_lower_bound(n_right: Any, n_guesses: Any, error_rate: float) -> Floats:
    """Return the lower bound of epsilon: the log odds of a right guess, and 0 if guesses are not better than a coin.

    The chance of a right guess has the lower bound of Clopper and Pearson.

    Claim: it exceeds the epsilon of a mechanism with at most `error_rate`, for every rule of guessing; summed exactly
    over the binomial in tests/exact/audit/test_bound.py.

    >>> round(float(compute_epsilon_lower_bound(73_106, 100_000, 0.001)), 3)
    0.978
    """
    n_right, n_guesses = np.asarray(n_right, dtype=np.float64), np.asarray(n_guesses, dtype=np.float64)
    # Both parameters are kept positive: without a right guess the bound is 0 by definition.
    chance = scipy.special.betaincinv(np.maximum(n_right, 0.5), n_guesses - n_right + 1, error_rate)
    chance = np.where(n_right > 0, np.maximum(chance, 0.5), 0.5)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def approximate_epsilon_lower_bound(n_right: Any, n_guesses: Any, error_rate: float) -> Floats:
    """Approximate the lower bound of epsilon (by Wilson's), much faster: to choose among rules, never to judge one."""
    n_right, n_guesses = np.asarray(n_right, dtype=np.float64), np.maximum(np.asarray(n_guesses, dtype=np.float64), 1)
    share, square = n_right / n_guesses, float(scipy.special.ndtri(error_rate)) ** 2
    center = share + square / (2 * n_guesses)
    margin = np.sqrt(square * (share * (1 - share) + square / (4 * n_guesses)) / n_guesses)
    chance = np.clip((center - margin) / (1 + square / n_guesses), 0.5, 1 - 1e-15)
    return np.asarray(np.log(chance) - np.log1p(-chance))


Counts = NDArray[np.integer] | Floats
NO_GUESS, FIRST, SECOND = np.uint8(0), np.uint8(1), np.uint8(2)

# Prefixes of the ordered cells that are tried: enough to be near the best one, few enough to cost nothing.
_PREFIXES = 256
_PART = 1 << 15  # Trials whose cells stay in the cache.
_SAME_RATIO = 1e-9


@dataclass(frozen=True, slots=True)
class GuessingRule:
    """A rule of guessing between two true values, fixed before the trials that it is judged on."""

    binning: TranscriptBinning
    pair: tuple[int, int]
    """The indices of the two true values."""
    table: NDArray[np.uint8]
    """For each cell: no guess, the first true value, or the second."""
    expected_bound: float
    """The lower bound of epsilon on the trials that the rule was learned from."""

    def count_guesses(self, transcripts: Transcripts, is_second: NDArray[np.uint8]) -> tuple[int, int]:
        """Count the guesses: return how many are right, and how many are made; `is_second` is 0 or 1 for each trial."""
        right = guessed = 0
        for start in range(0, len(is_second), _PART):
            part = slice(start, start + _PART)
            guess = self.table.take(self.binning(transcripts[part]))
            right += int(np.count_nonzero(guess == is_second[part] + FIRST))
            guessed += int(np.count_nonzero(guess))
        return right, guessed


def learn_rule(
    binning: TranscriptBinning,
    pair: tuple[int, int],
    learning_counts: Counts,
    checking_counts: Counts,
    error_rate: float,
) -> GuessingRule:
    """Return the best rule for two tables of counts, each of shape (2, cells): one row per true value.

    The learning counts order the cells by their evidence. The checking counts, which did not choose the order, decide
    for how many cells guessing pays. The expected bound is a little too good, so the rule is judged on other trials.
    """
    smooth = learning_counts.astype(np.float64) + 0.5
    evidence = np.log(smooth[0] / smooth[1])
    clear = np.abs(evidence) - np.sqrt((1 / smooth).sum(axis=0))  # one standard error on the safe side
    order = np.argsort(-clear, kind="stable")
    last = np.unique(np.geomspace(1, len(order), _PREFIXES).astype(np.intp)) - 1
    return _make_best_rule(binning, pair, checking_counts, evidence < 0, order, last, error_rate)


def derive_optimal_rule(
    distribution: TranscriptDistribution, n_columns: int, pair: tuple[int, int], trials: int, error_rate: float
) -> GuessingRule | None:
    """Return the best rule for a known distribution, or None where there are too many transcripts to enumerate.

    By Neyman and Pearson no rule is better than one that guesses where the likelihood ratio is largest.
    """
    if distribution.n_values**n_columns > MAX_CELLS:
        return None
    columns = [ColumnBinning(index, 0, distribution.n_values) for index in range(n_columns)]
    binning = ProductBinning(columns, "likelihood ratio")
    with np.errstate(invalid="ignore"):
        logarithms = distribution.compute_log_likelihoods(binning.list_cell_bins().astype(np.intp)).T[list(pair)]
        evidence = np.nan_to_num(logarithms[0] - logarithms[1], nan=0.0)
    order = np.argsort(-np.abs(evidence), kind="stable")
    # Cells of the same ratio stay together, whatever the rounding.
    last = np.append(np.flatnonzero(-np.diff(np.abs(evidence)[order]) > _SAME_RATIO), len(order) - 1)
    return _make_best_rule(binning, pair, np.exp(logarithms) * (trials / 2), evidence < 0, order, last, error_rate)


def _make_best_rule(
    binning: TranscriptBinning,
    pair: tuple[int, int],
    counts: Counts,
    is_second: NDArray[np.bool_],
    cell_order: NDArray[np.intp],
    prefix_ends: NDArray[np.intp],
    error_rate: float,
) -> GuessingRule:
    """Return the rule with the largest expected bound that guesses in the cells of `cell_order` up to a prefix end.

    In each cell it guesses the true value that `is_second` names. `counts` has a row for each of the two.
    """
    second, cells = is_second.astype(np.intp), np.arange(len(cell_order))
    right, wrong = (counts[value, cells][cell_order].cumsum()[prefix_ends] for value in (second, 1 - second))
    expected_bound = approximate_epsilon_lower_bound(right, right + wrong, error_rate)
    best = int(expected_bound.argmax())
    table = np.zeros(len(cell_order), dtype=np.uint8)
    chosen = cell_order[: prefix_ends[best] + 1]
    table[chosen] = np.where(is_second[chosen], SECOND, FIRST)
    return GuessingRule(binning, pair, table, float(expected_bound[best]))


_MAX_FITTED_ROWS = 40_000
_MAX_FEATURES = 160
_MAX_PAIRED = 16
_SCORE_BINS = 512
_NEWTON_STEPS = 12


class ScoreBinning:
    """A binning by a score of each transcript, into cells of about the same size."""

    def __init__(self, name: str, compute_score: Callable[[Transcripts], Any], transcripts: Transcripts) -> None:
        self.name, self._compute_score = name, compute_score
        scores = np.asarray(compute_score(transcripts), dtype=np.float64)
        self._edges = np.unique(np.quantile(scores, np.linspace(0, 1, _SCORE_BINS + 1)[1:-1]))
        self.cells = len(self._edges) + 1

    def __call__(self, transcripts: Transcripts) -> Cells:
        """Return the cell of each transcript."""
        scores = np.asarray(self._compute_score(transcripts), dtype=np.float64)
        return np.searchsorted(self._edges, scores, side="right").astype(np.uint16)


def can_learn_linear_score(columns: Sequence[ColumnBinning]) -> bool:
    """Return whether a linear score can be learned: there are several columns, and few enough features."""
    return len(columns) > 1 and sum(column.size - 1 for column in columns) <= _MAX_FEATURES


def learn_linear_score(
    columns: Sequence[ColumnBinning], transcripts: Transcripts, is_second: NDArray[np.bool_]
) -> ScoreBinning:
    """Return a binning by the score of a logistic regression on the columns' bins (if few, also on their pairs)."""
    step = max(1, len(transcripts) // _MAX_FITTED_ROWS)
    sample = transcripts[::step]
    weights = _fit_logistic_regression(_make_features(columns, sample), is_second[::step].astype(np.float64))

    def compute_score(rows: Transcripts) -> Floats:
        # Features are wide, so only a part at a time.
        parts = (rows[start : start + _MAX_FITTED_ROWS] for start in range(0, len(rows), _MAX_FITTED_ROWS))
        return np.concatenate([_make_features(columns, part) @ weights for part in parts])

    return ScoreBinning("a linear score of all columns", compute_score, sample)


def _make_features(columns: Sequence[ColumnBinning], transcripts: Transcripts) -> Floats:
    # The first bin is the reference of the others.
    single = [column.compute_bins(transcripts) == number for column in columns for number in range(1, column.size)]
    paired = []
    if len(single) <= _MAX_PAIRED:
        paired = [a & b for index, a in enumerate(single) for b in single[:index]]
    ones = np.ones(len(transcripts), dtype=np.bool_)
    return np.stack([ones, *single, *paired], axis=1).astype(np.float64)


def _fit_logistic_regression(features: Floats, is_second: Floats) -> Floats:
    """Return the weights of a ridge logistic regression, by Newton's method."""
    weights = np.zeros(features.shape[1])
    ridge = np.eye(features.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (is_second - chance) - weights
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features + ridge
        step = np.linalg.solve(curvature, slope)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(weights)


Transcripts = NDArray[Any]
Cells = NDArray[np.unsignedinteger]

MAX_CELLS = 1 << 20
_MAX_CODES = 256
_BINS_PER_COLUMN = 32


@dataclass(frozen=True, slots=True)
class ColumnBinning:
    """A binning of one column: a bin for each small whole number, or else bins between quantiles."""

    index: int
    low: int
    size: int
    edges: NDArray[Any] | None = None

    @classmethod
    def from_data(cls, index: int, column: NDArray[Any]) -> ColumnBinning:
        """Return the binning that fits the column of some transcripts."""
        if column.dtype.kind in "iub":
            low, high = int(column.min()), int(column.max())
            if high - low < _MAX_CODES:
                return cls(index, low, high - low + 1)
        edges = np.unique(np.quantile(column, np.linspace(0, 1, _BINS_PER_COLUMN + 1)[1:-1]))
        return cls(index, 0, len(edges) + 1, edges)

    def compute_bins(self, transcripts: Transcripts) -> NDArray[np.uint8]:
        """Return the bin of each transcript, a number below `size`; unknown codes count as the nearest."""
        column = transcripts[:, self.index]
        if self.edges is not None:
            return np.searchsorted(self.edges, column, side="right").astype(np.uint8)
        if column.dtype == np.bool_:
            column = column.view(np.uint8)
        if column.dtype == np.uint8 and self.low == 0 and int(column.max(initial=0)) < self.size:
            return column  # Nearly always: the check is much faster than clipping.
        return np.asarray(np.clip(column, self.low, self.low + self.size - 1) - self.low).astype(np.uint8)


class ProductBinning:
    """A binning of several columns: every combination of their bins is a separate cell."""

    def __init__(self, columns: Sequence[ColumnBinning], name: str) -> None:
        self.columns, self.name = tuple(columns), name
        self.cells = prod(column.size for column in columns)
        self._type = np.min_scalar_type(self.cells)

    def __call__(self, transcripts: Transcripts) -> Cells:
        """Return the cell of each transcript."""
        cells = np.zeros(len(transcripts), dtype=self._type)
        for column in self.columns:
            cells *= self._type.type(column.size)
            cells += column.compute_bins(transcripts)
        return cells

    def list_cell_bins(self) -> NDArray[np.intp]:
        """Return the bins of every cell, of shape (cells, columns)."""
        sizes = [column.size for column in self.columns]
        return np.stack(np.unravel_index(np.arange(self.cells), sizes), axis=1)


TranscriptBinning = ProductBinning | ScoreBinning
"""A way to sort transcripts into cells, from 0 to `cells` - 1, with a `name` to show."""


def require_output_matrix(output: Any, trials: int) -> Transcripts:
    """Return the output of a mechanism as a matrix with one row for each trial, or reject it."""
    matrix = np.asarray(output)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or len(matrix) != trials or matrix.shape[1] == 0 or matrix.dtype.kind not in "iubf":
        raise ArgumentError(
            "The audited mechanism must return a table of numbers, with one row per true value. For {trials:,} "
            "true values, it returned an array of shape {shape} and type {type}.",
            hint="Return one row per true value, such as np.array(reports)[:, None].",
            trials=trials,
            shape=matrix.shape,
            type=matrix.dtype,
        )
    return matrix


def list_candidate_binnings(columns: Sequence[ColumnBinning]) -> Iterator[ProductBinning]:
    """Yield binnings that can be counted: each of the last columns alone, the last few together, and all together."""
    count = len(columns)
    lengths = sorted({min(1 << power, count) for power in range(count.bit_length() + 1)})
    for length in lengths[1:]:
        binning = ProductBinning(columns[-length:], "all columns" if length == count else f"the last {length} columns")
        if binning.cells <= MAX_CELLS:
            yield binning
    for index in range(max(0, count - 16), count):
        yield ProductBinning([columns[index]], f"column {index + 1}")
