"""From a guessing game to a lower bound of epsilon, at a stated confidence.

The auditor tosses a fair coin between two truths, sees the transcript, and guesses which it was, or passes. Whoever
knows the transcript of an epsilon-private mechanism holds each of the two truths with a probability of at most
e^epsilon / (1 + e^epsilon), so that is the most that a guess can be right with, whatever the rule of guessing is. Of a
number of guesses the right ones are a binomial count, and one Clopper-Pearson bound of it is a lower bound of epsilon:
both directions of the guess, and all trials in which one was made, count towards it together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

Floats = NDArray[np.float64]


def chance_low(right: Any, guessed: Any, error: float) -> Floats:
    """Return Clopper and Pearson's lower bound of the chance to be right; it is too high with at most `error`.

    >>> round(float(chance_low(90, 100, 0.05)), 4)
    0.8363
    """
    right, guessed = np.asarray(right, dtype=np.float64), np.asarray(guessed, dtype=np.float64)
    # Both parameters are kept positive: without a right guess the bound is 0 by definition.
    bound = betaincinv(np.maximum(right, 0.5), guessed - right + 1, error)
    return np.asarray(np.where(right > 0, bound, 0.0))


def epsilon_low(right: Any, guessed: Any, error: float) -> Floats:
    """Return the lower bound of epsilon: the log odds of the bound, and 0 where that is no better than a coin.

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
    share, square = right / guessed, float(ndtri(error)) ** 2
    middle, reach = (
        share + square / (2 * guessed),
        np.sqrt(square * (share * (1 - share) + square / (4 * guessed)) / guessed),
    )
    chance = np.clip((middle - reach) / (1 + square / guessed), 0.5, 1 - 1e-15)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def log_odds(right: int, guessed: int) -> float:
    """Return the estimate without a margin: what the share of right guesses is the odds of."""
    wrong = guessed - right
    return float("inf") if wrong == 0 else float(np.log(max(right, 1) / wrong))
