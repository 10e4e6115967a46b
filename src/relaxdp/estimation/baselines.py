"""What relaxation is compared with, at the same guarantee: noisy sampling (RAPPOR) and the split budget.

Noisy sampling keeps one permanent response with epsilon_alpha and sends samples of it, each a response to the response
with epsilon_beta. The split budget makes a fresh response with eps_i - eps_(i-1) at every release. All variances are
about these objects, as in the paper: only the noise is random.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import pairwise
from math import sinh, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import CountsError, ScheduleError
from relaxdp.estimation.frequency import check_counts
from relaxdp.estimation.spreads import categorical_support, share_variance
from relaxdp.law.epsilon import MOST_DIGITS, Epsilon, as_epsilon, epsilon_text
from relaxdp.law.support import Support

Floats = NDArray[np.float64]


def noisy_sampling_epsilon(*, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, samples: int) -> Decimal:
    """Return the guarantee of one bit after `samples` noisy samples, to 40 digits, rounded up.

    It is below epsilon_alpha and below samples * epsilon_beta, and nears the smaller of the two.

    Claim: eps_ns(K) of the paper, and the greatest enumerated likelihood ratio;
    tests/unit/estimation/test_baselines.py.

    >>> round(noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta=0.5, samples=10), 5)
    Decimal('0.98433')
    """
    _check_samples(samples)
    wide = Context(prec=MOST_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    kept, sampled = as_epsilon(epsilon_alpha), wide.multiply(as_epsilon(epsilon_beta), Decimal(samples))
    # The paper's (e^a e^Kb + 1) / (e^a + e^Kb), divided by the larger power so that nothing overflows.
    both = wide.exp(wide.add(kept, sampled).copy_negate())
    apart = wide.exp(wide.subtract(kept, sampled).copy_abs().copy_negate())
    correction = wide.subtract(wide.ln(wide.add(1, both)), wide.ln(wide.add(1, apart)))
    return Context(prec=40, rounding=ROUND_CEILING).plus(wide.add(min(kept, sampled), correction))


def noisy_sampling_variance(*, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, samples: int, objects: int = 1) -> float:
    """Return the variance of the paper's estimate from noisy samples; it is the same whatever the share is.

    Claim: the paper's final formula, and an exact enumeration; tests/unit/estimation/test_baselines.py.

    >>> round(noisy_sampling_variance(epsilon_alpha=1, epsilon_beta=0.5, samples=10), 3)
    2.755
    """
    _check_samples(samples)
    kept, sampled = float(as_epsilon(epsilon_alpha)), float(as_epsilon(epsilon_beta))
    return (_bit_variance(sampled) / samples / tanh(kept / 2) ** 2 + _bit_variance(kept)) / objects


def noisy_sampling_estimate(ones: Any, *, samples: int, epsilon_alpha: Epsilon, epsilon_beta: Epsilon) -> Floats:
    """Return the share of true ones, from how many of each object's `samples` samples were ones.

    The paper's two steps: estimate every object's permanent bit from its samples, then the true share from those
    bits. `ones` has one row per object; with a second axis, each column is a bit of its own.

    >>> float(noisy_sampling_estimate([10, 10, 0, 10], samples=10, epsilon_alpha=50, epsilon_beta=50))
    0.75
    """
    _check_samples(samples)
    counts = np.asarray(ones)
    if counts.ndim == 0 or len(counts) == 0:
        raise CountsError("there are no samples to estimate from.")
    if counts.dtype.kind not in "iu" or counts.min() < 0 or counts.max() > samples:
        raise CountsError("of {samples} samples, a whole number from 0 to {samples} are ones.", samples=samples)
    permanent_bits = categorical_support(epsilon_beta, 2).debias(counts / samples)
    return np.asarray(categorical_support(epsilon_alpha, 2).debias(permanent_bits.mean(axis=0)))


def split_budget(levels: Iterable[Epsilon]) -> list[Decimal]:
    """Return what a split budget spends at each release: the differences between levels, which must grow.

    >>> split_budget(["0.1", "0.5", "1", "2"])
    [Decimal('0.1'), Decimal('0.4'), Decimal('0.5'), Decimal('1')]
    """
    exact = [Decimal(0), *map(as_epsilon, levels)]
    if len(exact) == 1:
        raise ScheduleError("a budget that is split needs at least one level.")
    for old, new in pairwise(exact):
        if new <= old:
            raise ScheduleError(
                "a budget can only be split over levels that grow: {new} follows {old}.",
                new=epsilon_text(new),
                old=epsilon_text(old),
            )
    down = Context(prec=MOST_DIGITS, rounding=ROUND_FLOOR)
    return [as_epsilon(down.subtract(new, old)) for old, new in pairwise(exact)]


def split_budget_variance(levels: Iterable[Epsilon], *, values: int, objects: int = 1, share: float = 0.0) -> float:
    """Return the variance of the best combination of fresh responses with eps_i - eps_(i-1) each.

    `share` is that of the value that is estimated: 0, the default, is a rare one. With two values it does not matter.

    Claim: an exact enumeration of the combination; tests/unit/estimation/test_baselines.py.

    >>> levels = ["0.1", "0.5", "1", "2"]
    >>> round(split_budget_variance(levels, values=5) / relaxation_variance(levels, values=5), 2)
    5.92
    """
    parts = _parts(levels, values)
    variances = np.array([share_variance(part, share) for part in parts])
    return float((_weights(parts) ** 2 * variances).sum()) / objects


def split_budget_estimate(counts: Any, *, levels: Iterable[Epsilon]) -> Floats:
    """Return the shares from the counts of every release: one row per level, one column per value.

    The weights come from the noise alone. Weights that looked at the estimates would bias them.
    """
    table = np.asarray(counts)
    if table.ndim != 2:
        raise CountsError("the counts of a split budget have one row per level and one column per value.")
    parts = _parts(levels, table.shape[1])
    rows = [check_counts(row, table.shape[1]) for row in table]
    if len(rows) != len(parts) or len({int(row.sum()) for row in rows}) != 1:
        raise CountsError("a split budget has one row of counts per level, and the same objects at each.")
    estimates = [part.debias(row / row.sum()) for part, row in zip(parts, rows, strict=True)]
    return np.asarray(np.average(estimates, axis=0, weights=_weights(parts)))


def relaxation_variance(levels: Iterable[Epsilon], *, values: int, objects: int = 1, share: float = 0.0) -> float:
    """Return the variance after relaxing through `levels`: that of a fresh response with the last one.

    The guarantee of all reports together is the last level, as it is for the split budget with the same levels.

    >>> guarantee = noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta=0.5, samples=10)
    >>> round(relaxation_variance([guarantee], values=2), 3)
    0.953
    """
    exact = [as_epsilon(level) for level in levels]
    if not exact:
        raise ScheduleError("a relaxation needs at least one level.")
    return share_variance(categorical_support(exact[-1], values), share) / objects


def _parts(levels: Iterable[Epsilon], values: int) -> list[Support]:
    return [categorical_support(spent, values) for spent in split_budget(levels)]


def _weights(parts: list[Support]) -> Floats:
    precisions = np.array([1 / share_variance(part, 0.0) for part in parts])
    return np.asarray(precisions / precisions.sum())


def _bit_variance(epsilon: float) -> float:
    """Return e^eps / (e^eps - 1)^2, the variance of one debiased bit, in a form that does not overflow early."""
    return 1 / (4 * sinh(epsilon / 2) ** 2)


def _check_samples(samples: int) -> None:
    if not isinstance(samples, int) or samples < 1:
        raise CountsError("the number of samples must be a whole number of at least 1, not {samples}.", samples=samples)
