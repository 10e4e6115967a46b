"""What relaxation is compared with, at the same guarantee: noisy sampling (RAPPOR) and the split budget.

Noisy sampling keeps one permanent response with epsilon_alpha and sends samples of it, each a response to the response
with epsilon_beta. The split budget makes a fresh response with eps_i - eps_(i-1) at every release. All variances are
about these objects, as in the paper: only the noise is random.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_FLOOR, Context, Decimal
from itertools import pairwise
from math import sinh, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation.mechanism_choice import compute_categorical_support, compute_debiased_variance
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

Floats = NDArray[np.float64]


def noisy_sampling_variance(*, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, samples: int, objects: int = 1) -> float:
    """Return the variance of the paper's estimate from noisy samples; it is the same whatever the share is.

    Claim: the paper's final formula, and an exact enumeration; tests/unit/paper/test_baselines.py.

    >>> round(noisy_sampling_variance(epsilon_alpha=1, epsilon_beta=0.5, samples=10), 3)
    2.755
    """
    kept, sampled = float(as_epsilon(epsilon_alpha)), float(as_epsilon(epsilon_beta))
    return (_bit_variance(sampled) / samples / tanh(kept / 2) ** 2 + _bit_variance(kept)) / objects


def noisy_sampling_estimate(ones: Any, *, samples: int, epsilon_alpha: Epsilon, epsilon_beta: Epsilon) -> Floats:
    """Return the share of true ones, from how many of each object's `samples` samples were ones.

    The paper's two steps: estimate every object's permanent bit from its samples, then the true share from those
    bits. `ones` has one row per object; with a second axis, each column is a bit of its own.

    >>> float(noisy_sampling_estimate([10, 10, 0, 10], samples=10, epsilon_alpha=50, epsilon_beta=50))
    0.75
    """
    permanent_bits = compute_categorical_support(epsilon_beta, 2).debias(np.asarray(ones) / samples)
    return np.asarray(compute_categorical_support(epsilon_alpha, 2).debias(permanent_bits.mean(axis=0)))


def split_budget(levels: Iterable[Epsilon]) -> list[Decimal]:
    """Return what a split budget spends at each release: the differences between levels, which grow.

    >>> split_budget(["0.1", "0.5", "1", "2"])
    [Decimal('0.1'), Decimal('0.4'), Decimal('0.5'), Decimal('1')]
    """
    exact = [Decimal(0), *map(as_epsilon, levels)]
    down = Context(prec=MAX_DIGITS, rounding=ROUND_FLOOR)
    return [as_epsilon(down.subtract(new, old)) for old, new in pairwise(exact)]


def split_budget_variance(levels: Iterable[Epsilon], *, values: int, objects: int = 1, share: float = 0.0) -> float:
    """Return the variance of the best combination of fresh responses with eps_i - eps_(i-1) each.

    `share` is that of the value that is estimated: 0, the default, is a rare one. With two values it does not matter.

    Claim: an exact enumeration of the combination; tests/unit/paper/test_baselines.py.

    >>> levels = ["0.1", "0.5", "1", "2"]
    >>> round(split_budget_variance(levels, values=5) / relaxation_variance(levels, values=5), 2)
    5.92
    """
    parts = _parts(levels, values)
    variances = np.array([compute_debiased_variance(part, share) for part in parts])
    return float((_weights(parts) ** 2 * variances).sum()) / objects


def split_budget_estimate(counts: Any, *, levels: Iterable[Epsilon]) -> Floats:
    """Return the shares from the counts of every release: one row per level, one column per value.

    The weights come from the noise alone. Weights that looked at the estimates would bias them.
    """
    table = np.asarray(counts)
    parts = _parts(levels, table.shape[1])
    estimates = [part.debias(row / row.sum()) for part, row in zip(parts, table, strict=True)]
    return np.asarray(np.average(estimates, axis=0, weights=_weights(parts)))


def relaxation_variance(levels: Iterable[Epsilon], *, values: int, objects: int = 1, share: float = 0.0) -> float:
    """Return the variance after relaxing through `levels`: that of a fresh response with the last one.

    The guarantee of all reports together is the last level, as it is for the split budget with the same levels.

    >>> round(relaxation_variance(["0.98433"], values=2), 3)
    0.953
    """
    return compute_debiased_variance(compute_categorical_support(list(levels)[-1], values), share) / objects


def _parts(levels: Iterable[Epsilon], values: int) -> list[SupportProbabilities]:
    return [compute_categorical_support(spent, values) for spent in split_budget(levels)]


def _weights(parts: list[SupportProbabilities]) -> Floats:
    precisions = np.array([1 / compute_debiased_variance(part, 0.0) for part in parts])
    return np.asarray(precisions / precisions.sum())


def _bit_variance(epsilon: float) -> float:
    """Return e^eps / (e^eps - 1)^2, the variance of one debiased bit, in a form that does not overflow early."""
    return 1 / (4 * sinh(epsilon / 2) ** 2)
