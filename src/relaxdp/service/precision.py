"""How precise a campaign's answer is, whatever it turns out to be: from the numbers of devices and the noise alone.

No report is looked at. That is what makes a stop that follows from it honest: the intervals after the stop cover as
often as any others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from scipy.special import ndtri

from relaxdp.encodings.numeric import NumericEncoding
from relaxdp.encodings.protocol import Encoding
from relaxdp.estimation.planning import share_variance
from relaxdp.estimation.result import About, questions_of, tail_of
from relaxdp.law.support import Support
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.plan import word_error
from relaxdp.service.wire import Method, Target

DEFAULT = Target(half_width=0.0)
"""What is shown where a campaign has no target: 95 % intervals of each value about these devices, all alike."""


@dataclass(frozen=True, slots=True)
class _Spread:
    """What one device at one level adds: its variance at worst, half a report, and how precise it is."""

    variance: float
    step: float
    precision: float


class Precision:
    """The half-width of the pooled interval at worst, for any numbers of devices at the levels of a schedule.

    Claim: not smaller than that of the interval of the estimate (but for 1 % from 1,000 devices on);
    tests/unit/test_collector_rules.py.
    """

    def __init__(self, encoding: Encoding, epsilons: Sequence[str], target: Target, candidates: int = 0) -> None:
        exclusive = encoding.joint == "exclusive"
        labels = candidates or len(encoding.labels)
        numeric = isinstance(encoding, NumericEncoding)
        questions = questions_of(1 if numeric else labels, exclusive=exclusive) if target.simultaneous else 1
        self._quantile = -float(ndtri(tail_of(target.confidence_level, questions)))
        self._method: Method = target.method
        self._width = encoding.high - encoding.low if isinstance(encoding, NumericEncoding) else 1.0
        # The mean's interval covers the kept rounding, so it is always the one about the population.
        about: About = "population" if numeric else target.about
        if isinstance(encoding, BloomEncoding):
            self._spreads = [_bloom_spread(encoding, epsilon, candidates) for epsilon in epsilons]
        else:
            supports = [encoding.support(encoding.level(each).retention) for each in epsilons]
            self._spreads = [_spread(support, about) for support in supports]

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
            own = self._quantile * sqrt(spread.variance / number) + spread.step / number
            squares += (weight / total * own) ** 2
        return min(self.widest, self._width * sqrt(squares))


def _spread(support: Support, about: About) -> _Spread:
    noise, gain = float(support.noise), float(support.gain)
    if about == "population":  # a report is as uncertain as can be where its chance is nearest to one half
        share = min(1.0, max(0.0, (0.5 - noise) / gain))
        variance = share_variance(support, share, about)
    else:  # linear in the share, so it is largest at one of the ends
        variance = max(share_variance(support, share, about) for share in (0.0, 1.0))
    return _Spread(variance, 0.5 / gain, gain**2 / (noise * (1 - noise)))


def _bloom_spread(encoding: BloomEncoding, epsilon: str, candidates: int) -> _Spread:
    variance = word_error(encoding.shape, epsilon=epsilon, devices=1, candidates=candidates) ** 2
    return _Spread(variance, 0.0, 1 / variance)
