"""How precise a campaign's answer is, whatever it turns out to be: from the numbers of devices and the noise alone.

No report is looked at. That is what makes a stop that follows from it honest: the intervals after the stop cover as
often as any others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from relaxdp.estimation.mechanism_choice import VariancePerReport, compute_variance_per_report
from relaxdp.estimation.result import compute_tail_probability, count_comparisons
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.rappor.parameters import compute_word_std_error
from relaxdp.service.wire import Method, Target
from relaxdp.theory.randomized_response import Level

MOST_DEVICES = 10**15
DEFAULT = Target(half_width=0.0)
"""What is shown where a campaign has no target: 95 % intervals of each value about these devices, all alike."""


class Precision:
    """The half-width of the pooled interval at worst, for any numbers of devices at the levels of a schedule.

    Claim: not smaller than that of the interval of the estimate (but for 1 % from 1,000 devices on);
    tests/unit/collector/test_rules.py.
    """

    def __init__(self, encoding: Mechanism, epsilons: Sequence[str], target: Target, candidates: int = 0) -> None:
        labels, mean_weights = candidates or len(encoding.labels), encoding.mean_weights
        exclusive = encoding.joint == "exclusive"
        together = target.simultaneous and mean_weights is None
        questions = count_comparisons(labels, exclusive=exclusive) if together else 1
        self._quantile = -float(scipy.special.ndtri(compute_tail_probability(target.confidence_level, questions)))
        self._method: Method = target.method
        self._width = 1.0 if mean_weights is None else mean_weights.maximum - mean_weights.minimum
        levels = [encoding.level(each) for each in epsilons]
        if isinstance(encoding, Bloom):
            self._spreads = [_of_words(encoding.shape, level, candidates) for level in levels]
        else:
            supports = [encoding.compute_noise_and_gain(level.retention) for level in levels]
            self._spreads = [
                compute_variance_per_report(support, target.about, mean_weights=mean_weights) for support in supports
            ]

    @property
    def widest(self) -> float:
        """The half-width of knowing nothing."""
        return 0.5 * self._width

    def half_width(self, devices: Sequence[int]) -> float | None:
        """Return the half-width with so many devices at each level; None without any device."""
        parts = [(number, spread) for number, spread in zip(devices, self._spreads, strict=True) if number]
        if not parts:
            return None
        weights = [number * (spread.precision if self._method == "precision" else 1.0) for number, spread in parts]
        total, squares = sum(weights), 0.0
        for weight, (number, spread) in zip(weights, parts, strict=True):
            own = self._quantile * sqrt(spread.variance / number) + spread.half_step / number
            squares += (weight / total * own) ** 2
        return min(self.widest, sqrt(squares))

    @property
    def readable(self) -> float:
        """The half-width from which on an estimate is worth showing: a tenth of what there is to know either way."""
        return 0.1 * self._width

    def more_for(self, half_width: float, devices: Sequence[int], place: int) -> int | None:
        """Return how many more devices at a level would do; None where no number does.

        >>> from relaxdp.service.wire import EncodingRequest, encoding_of
        >>> precision = Precision(encoding_of(EncodingRequest("categorical", ["a", "b", "c"])), ["0.5", "1"], DEFAULT)
        >>> precision.more_for(0.1, [3, 0], 0)
        3063
        """

        def width(more: int) -> float:
            return self._told([number + more * (each == place) for each, number in enumerate(devices)])

        return _fewest(width, half_width)

    def half_width_at(self, place: int, devices: int) -> float:
        """Return the half-width when all devices report at one level."""
        return self._told([devices * (each == place) for each in range(len(self._spreads))])

    def needed(self, place: int, half_width: float) -> int | None:
        """Return how many devices at one level would do; None where no number does."""
        return self.more_for(half_width, [0] * len(self._spreads), place)

    def _told(self, devices: Sequence[int]) -> float:
        found = self.half_width(devices)
        return self.widest if found is None else found


def _fewest(width: Callable[[int], float], wanted: float) -> int | None:
    """Return the smallest number of devices that gives a half-width, which falls as their number grows."""
    few, many = -1, MOST_DEVICES
    if width(many) > wanted:
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if width(middle) <= wanted else (middle, many)
    return many


def _of_words(shape: BloomShape, level: Level, candidates: int) -> VariancePerReport:
    variance = compute_word_std_error(shape, epsilon=str(level), n_devices=1, n_candidates=candidates) ** 2
    return VariancePerReport(variance, 0.0, 1 / variance)
