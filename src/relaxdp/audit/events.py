"""Rules of guessing: which cells speak for which of two truths, and which are better passed over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.bound import promised_low
from relaxdp.audit.laws import Law
from relaxdp.audit.views import MOST_CELLS, Column, Digits, Transcripts, View

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
