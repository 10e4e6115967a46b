"""A simple classifier, for transcripts of which there are too many different ones to count them all.

By hand, so that an audit needs no scikit-learn, which is an extra.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.views import Cells, Column, Transcripts

Floats = NDArray[np.float64]

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
