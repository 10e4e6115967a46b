"""How a truth is guessed: rules of which cells speak for which of two truths, and a simple classifier.

The classifier is for transcripts of which there are too many different ones to count them all. It is written by hand,
so that an audit needs no scikit-learn, which is an extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.bound import promised_low
from relaxdp.audit.laws import Law
from relaxdp.audit.views import MOST_CELLS, Cells, Column, Digits, Transcripts, View

Floats = NDArray[np.float64]
Counts = NDArray[np.integer] | Floats
PASS, FIRST, SECOND = np.uint8(0), np.uint8(1), np.uint8(2)

# Cuts that are tried: enough to be near the best one, few enough to cost nothing.
_CUTS = 256
_PIECE = 1 << 15  # trials whose cells stay in the cache
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of guessing between two truths, fixed before the trials that it is judged on."""

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


def rule_of_counts(view: View, pair: tuple[int, int], learned: Counts, checked: Counts, error: float) -> Rule:
    """Return the best rule that the counts of both truths, each of shape (2, cells), can teach.

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


def rule_of_law(law: Law, columns: int, pair: tuple[int, int], trials: int, error: float) -> Rule | None:
    """Return the best rule of a known law, or None where there are too many transcripts to enumerate.

    By Neyman and Pearson no rule is better than one that guesses where the likelihood ratio is largest.
    """
    if law.values**columns > MOST_CELLS:
        return None
    view = Digits([Column(place, 0, law.values) for place in range(columns)], "likelihood ratio of the law")
    with np.errstate(invalid="ignore"):
        logarithms = law.log_likelihoods(view.decoded().astype(np.intp))[:, list(pair)]
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
