"""How precise the median of numbers will be, and what a window costs the levels of a schedule: from noise alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from relaxdp.encodings.protocol import Encoding
from relaxdp.encodings.wave import WaveEncoding
from relaxdp.estimation.spreads import place_variance

_DRAWS = 12
_MOST_DRAWN = 10**9
"""With more objects than this the median is told to its bin, and nothing is told better."""


def median_half_width(encoding: Encoding, epsilon: Decimal, objects: int, confidence_level: float) -> float | None:
    """Return the half-width that the median's interval will have; None where reports do not tell it.

    It depends on how many numbers are near the median, so a shape is assumed: numbers that are spread evenly over the
    range. It is the mean of a few intervals that are drawn at random, always the same ones.

    Claim: within 10 % of the mean of many intervals; tests/statistical/estimation/test_number_plans.py.
    """
    if not isinstance(encoding, WaveEncoding):
        return None
    from relaxdp.estimation.counts import Counts  # noqa: PLC0415 (slow to import)

    shares = np.ones(encoding.bins)
    shares[[0, -1]] = 0.5  # a bin at an end has numbers on one side only
    keep = float(encoding.level(epsilon).retention)
    chances = keep * np.convolve(shares / shares.sum(), np.ones(encoding.window)) / encoding.window
    chances += (1 - keep) / encoding.alphabet
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(_DRAWS):
        counts = Counts(_Of(encoding))
        counts.add_counts(rng.multinomial(min(objects, _MOST_DRAWN), chances / chances.sum()), epsilon=epsilon)
        (low,), (high,) = counts.estimate().quantile(0.5).interval(confidence_level)  # type: ignore[attr-defined]
        widths.append(float(high - low) / 2)
    return float(np.mean(widths))


@dataclass(frozen=True)
class _Of:
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class WindowCost:
    """A window, and what it costs the levels of a schedule: a path has one window for all of them.

    Variances are those of what one report adds to the mean of numbers in the middle, in squares of half the range.
    """

    window: int
    is_planned: bool
    """Whether it is the one that is planned: unless another is said, the best one for the last level."""
    best_at: tuple[Decimal, ...]
    """The levels at which no window is better."""
    first: float
    """The variance at the first level."""
    last: float
    first_times: float
    """How many times the variance of the best window for that level it is."""
    last_times: float
    worst_times: float
    """The same at the level where that is largest."""


def windows_for(encoding: WaveEncoding, levels: Sequence[Decimal]) -> tuple[WindowCost, ...]:
    """Return what each window would cost that is the best one for a level of a schedule, and the encoding's own.

    Of these, the one with the smallest `worst_times` is the best for a schedule whose levels all count.

    >>> found = windows_for(WaveEncoding(0, 1, 64, 16), [Decimal("0.5"), Decimal(4)])
    >>> [(each.window, round(each.first_times, 2), round(each.last_times, 2)) for each in found]
    [(64, 1.0, 5.35), (16, 1.9, 1.0)]
    """
    best = {level: _best(encoding, level) for level in levels}
    windows = sorted({each.window for each in best.values()} | {encoding.window}, reverse=True)
    least = {level: _middle(each, level) for level, each in best.items()}
    found = []
    for window in windows:
        wave = WaveEncoding(encoding.low, encoding.high, encoding.bins, window)
        variances = [_middle(wave, level) for level in levels]
        times = [variance / least[level] for variance, level in zip(variances, levels, strict=True)]
        best_at = tuple(level for level in levels if best[level].window == window)
        ends = variances[0], variances[-1], times[0], times[-1]
        found.append(WindowCost(window, window == encoding.window, best_at, *ends, max(times)))
    return tuple(found)


def _best(encoding: WaveEncoding, level: Decimal) -> WaveEncoding:
    options = WaveEncoding.planned_options({"bins": encoding.bins}, level)
    return WaveEncoding(encoding.low, encoding.high, **options)


def _middle(encoding: WaveEncoding, level: Decimal) -> float:
    return place_variance(encoding.measure, float(encoding.level(level).retention), at=0.0)
