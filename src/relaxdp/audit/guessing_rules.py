"""How a truth is guessed: rules of which cells speak for which of two truths, and a simple classifier.

The classifier is for transcripts of which there are too many different ones to count them all. It is written by hand,
so that an audit needs no scikit-learn, which is an extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import Law
from relaxdp.errors import ArgumentError
from relaxdp.lazy_imports import scipy

Floats = NDArray[np.float64]


def chance_low(right: Any, guessed: Any, error: float) -> Floats:
    """Return Clopper and Pearson's lower bound of the chance to be right; it is too high with at most `error`.

    >>> round(float(chance_low(90, 100, 0.05)), 4)
    0.8363
    """
    right, guessed = np.asarray(right, dtype=np.float64), np.asarray(guessed, dtype=np.float64)
    # Both parameters are kept positive: without a right guess the bound is 0 by definition.
    bound = scipy.special.betaincinv(np.maximum(right, 0.5), guessed - right + 1, error)
    return np.asarray(np.where(right > 0, bound, 0.0))


def epsilon_low(right: Any, guessed: Any, error: float) -> Floats:
    """Return the lower bound of epsilon: the log odds of the bound, and 0 where that is not better than a coin.

    Claim: it exceeds the epsilon of a mechanism with at most `error`, for every rule of guessing; summed exactly over
    the binomial in tests/exact/audit/test_bound.py.

    >>> round(float(epsilon_low(73_106, 100_000, 0.001)), 3)
    0.978
    """
    chance = np.maximum(chance_low(right, guessed, error), 0.5)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def promised_low(right: Any, guessed: Any, error: float) -> Floats:
    """Return nearly the same (Wilson's bound), a hundred times faster: to choose among rules, never to judge one."""
    right, guessed = np.asarray(right, dtype=np.float64), np.maximum(np.asarray(guessed, dtype=np.float64), 1)
    share, square = right / guessed, float(scipy.special.ndtri(error)) ** 2
    middle, reach = (
        share + square / (2 * guessed),
        np.sqrt(square * (share * (1 - share) + square / (4 * guessed)) / guessed),
    )
    chance = np.clip((middle - reach) / (1 + square / guessed), 0.5, 1 - 1e-15)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def log_odds(right: int, guessed: int) -> float:
    """Return the estimate without a margin: the log odds of the share of right guesses."""
    wrong = guessed - right
    return float("inf") if wrong == 0 else float(np.log(max(right, 1) / wrong))


Counts = NDArray[np.integer] | Floats
PASS, FIRST, SECOND = np.uint8(0), np.uint8(1), np.uint8(2)

# Cuts that are tried: enough to be near the best one, few enough to cost nothing.
_CUTS = 256
_PIECE = 1 << 15  # trials whose cells stay in the cache
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of guessing between two true values, fixed before the trials that it is judged on."""

    view: View
    first: int
    second: int
    table: NDArray[np.uint8]
    """For each cell: pass, guess the first truth, or guess the second."""
    worth: float
    """The bound that the rule promises, from what it was made of."""

    def score(self, transcripts: Transcripts, is_second: NDArray[np.uint8]) -> tuple[int, int]:
        """Return how many guesses are right, and how many are made; `is_second` is 0 or 1 for each trial."""
        right = guessed = 0
        for start in range(0, len(is_second), _PIECE):
            piece = slice(start, start + _PIECE)
            guess = self.table.take(self.view(transcripts[piece]))
            right += int(np.count_nonzero(guess == is_second[piece] + FIRST))
            guessed += int(np.count_nonzero(guess))
        return right, guessed


def learn_rule(view: View, pair: tuple[int, int], learned: Counts, checked: Counts, error: float) -> Rule:
    """Return the best rule that the counts of both true values, each of shape (2, cells), can teach.

    The first counts order the cells by how clearly they speak; the second ones, which did not choose the order, say how
    far down the order guessing pays. The promised worth is a little too good, so the rule is judged on other trials.
    """
    smooth = learned.astype(np.float64) + 0.5
    evidence = np.log(smooth[0] / smooth[1])
    clear = np.abs(evidence) - np.sqrt((1 / smooth).sum(axis=0))  # one standard error on the safe side
    order = np.argsort(-clear, kind="stable")
    second = (evidence < 0).astype(np.intp)
    places = np.arange(len(evidence))
    right, wrong = checked[second, places][order].cumsum(), checked[1 - second, places][order].cumsum()
    steps = np.unique(np.geomspace(1, len(order), _CUTS).astype(np.intp)) - 1
    worth = promised_low(right[steps], right[steps] + wrong[steps], error)
    best = int(worth.argmax())
    table = np.zeros(len(order), dtype=np.uint8)
    chosen = order[: steps[best] + 1]
    table[chosen] = FIRST + second[chosen].astype(np.uint8)
    return Rule(view, *pair, table, float(worth[best]))


def derive_rule(law: Law, columns: int, pair: tuple[int, int], trials: int, error: float) -> Rule | None:
    """Return the best rule for a known distribution, or None where there are too many transcripts to enumerate.

    By Neyman and Pearson no rule is better than one that guesses where the likelihood ratio is largest.
    """
    if law.values**columns > MOST_CELLS:
        return None
    view = Digits([Column(place, 0, law.values) for place in range(columns)], "likelihood ratio")
    with np.errstate(invalid="ignore"):
        logarithms = law.log_likelihoods(view.decode_cells().astype(np.intp))[:, list(pair)]
        evidence = np.nan_to_num(logarithms[:, 0] - logarithms[:, 1], nan=0.0)
    chances = np.exp(logarithms)
    order = np.argsort(-np.abs(evidence), kind="stable")
    sorted_evidence = np.abs(evidence)[order]
    # Cells of one ratio belong together, and rounding must not tear them apart.
    steps = np.append(np.flatnonzero(-np.diff(sorted_evidence) > _SAME), len(order) - 1)
    right, wrong = (kind[order].cumsum()[steps] * trials / 2 for kind in (chances.max(axis=1), chances.min(axis=1)))
    worth = promised_low(right, right + wrong, error)
    best = int(worth.argmax())
    table = np.zeros(len(order), dtype=np.uint8)
    chosen = order[: steps[best] + 1]
    table[chosen] = np.where(evidence[chosen] < 0, SECOND, FIRST)
    return Rule(view, *pair, table, float(worth[best]))


_ROWS = 40_000
_MOST_FEATURES = 160
_MOST_PAIRED = 16
_BINS = 512
_ROUNDS = 12


class LinearScore:
    """Logistic regression on the columns' digits (and, where there are few, on pairs of them), in bins of its score."""

    name = "a linear score of all columns"

    def __init__(self, columns: Sequence[Column], transcripts: Transcripts, is_second: NDArray[np.bool_]) -> None:
        """Fit the score to transcripts of two truths."""
        self._columns = tuple(columns)
        step = max(1, len(transcripts) // _ROWS)
        features = self._features(transcripts[::step])
        self._weights = _fit(features, is_second[::step].astype(np.float64))
        self._edges = np.unique(np.quantile(features @ self._weights, np.linspace(0, 1, _BINS + 1)[1:-1]))
        self.cells = len(self._edges) + 1

    @staticmethod
    def fits(columns: Sequence[Column]) -> bool:
        """Return whether there are few enough features."""
        return len(columns) > 1 and sum(column.size - 1 for column in columns) <= _MOST_FEATURES

    def __call__(self, transcripts: Transcripts) -> Cells:
        """Return the bin of each transcript's score."""
        cells = np.empty(len(transcripts), dtype=np.uint16)
        for start in range(0, len(transcripts), _ROWS):  # features are wide, so a piece at a time
            score = self._features(transcripts[start : start + _ROWS]) @ self._weights
            cells[start : start + _ROWS] = np.searchsorted(self._edges, score, side="right")
        return cells

    def _features(self, transcripts: Transcripts) -> Floats:
        single = [
            column.digits(transcripts) == digit for column in self._columns for digit in range(1, column.size)
        ]  # the first digit is what the others are compared with
        paired = []
        if len(single) <= _MOST_PAIRED:
            paired = [a & b for place, a in enumerate(single) for b in single[:place]]
        ones = np.ones(len(transcripts), dtype=np.bool_)
        return np.stack([ones, *single, *paired], axis=1).astype(np.float64)


def _fit(features: Floats, is_second: Floats) -> Floats:
    """Return the weights of a ridge logistic regression, by Newton's method."""
    weights = np.zeros(features.shape[1])
    ridge = np.eye(features.shape[1])
    for _ in range(_ROUNDS):
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

MOST_CELLS = 1 << 20
_MOST_CODES = 256
_CELL_BINS = 32


class View(Protocol):
    """How a transcript is looked at."""

    @property
    def name(self) -> str:
        """The name of the view for people."""
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
        edges = np.unique(np.quantile(column, np.linspace(0, 1, _CELL_BINS + 1)[1:-1]))
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
    """Some columns, as the digits of one number: every combination of reports is a separate cell."""

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
        first, *others = (_join_digits(group, transcripts) for group in self._groups)
        cells = first.astype(self._type, copy=False)
        for digits, group in zip(others, self._groups[1:], strict=True):
            cells *= self._type.type(prod(column.size for column in group))
            cells += digits.astype(self._type, copy=False)
        return cells

    def decode_cells(self) -> NDArray[np.intp]:
        """Return the digits of every cell, of shape (cells, columns)."""
        sizes = [column.size for column in self.columns]
        return np.stack(np.unravel_index(np.arange(self.cells), sizes), axis=1)


def _join_digits(group: Sequence[Column], transcripts: Transcripts) -> NDArray[np.uint8]:
    """Return the digits of some columns as one byte."""
    joined = group[0].digits(transcripts)
    for column in group[1:]:
        joined = joined * np.uint8(column.size)
        joined += column.digits(transcripts)
    return joined


def check_mechanism(transcripts: Any, trials: int) -> Transcripts:
    """Return the output of a mechanism as a matrix with one row for each trial, or reject it."""
    matrix = np.asarray(transcripts)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or len(matrix) != trials or matrix.shape[1] == 0 or matrix.dtype.kind not in "iubf":
        raise ArgumentError(
            "The mechanism must return a table of numbers, with one row per true value and one column per output.",
            hint="Return one row per input, such as np.array(reports)[:, None].",
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
