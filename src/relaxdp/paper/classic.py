"""RAPPOR's classic pair of a permanent response and noisy samples of it, simulated for comparison only.

Nothing here protects anybody: responses are drawn from a NumPy generator, so that an experiment can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.mechanisms.bloom import BloomShape
from relaxdp.theory.randomized_response import SupportProbabilities, compute_log_rounded_up

Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Responses:
    """How classic RAPPOR answers: f, p and q, as exact fractions."""

    noise: Fraction
    """f: with this probability a permanent bit is a fair coin."""
    one_from_zero: Fraction
    """p: the probability that a sample of a permanent 0 is 1."""
    one_from_one: Fraction
    """q: the probability that a sample of a permanent 1 is 1."""

    @property
    def support(self) -> SupportProbabilities:
        """The chances that a reported bit is 1: p01 whatever the truth, and p11 - p01 more if the true bit is 1."""
        half = self.noise / 2
        low = self.one_from_zero * (1 - half) + self.one_from_one * half
        high = self.one_from_one * (1 - half) + self.one_from_zero * half
        return SupportProbabilities(noise=low, gain=high - low)

    def mean_variance(self, share: Any, samples: int) -> Any:
        """Return the variance of the debiased mean of the samples that a device sends of one permanent bit.

        `share` is that of devices whose true bit is set. The permanent noise stays however many samples are sent; only
        the rest is averaged away.
        """
        half = float(self.noise / 2)
        zero, one = float(self.one_from_zero), float(self.one_from_one)
        permanent_one = half + float(1 - self.noise) * share
        sampled = permanent_one * one * (1 - one) + (1 - permanent_one) * zero * (1 - zero)
        return (half * (1 - half) * (one - zero) ** 2 + sampled / samples) / float(self.support.gain) ** 2

    def guarantee(self, shape: BloomShape, samples: int) -> Decimal:
        """Return what a device spends with so many samples of one permanent response, rounded up.

        The number of ones among the samples of a bit says all that they say. Two words differ in h bits that are 1
        for the one and in h that are 1 for the other, so both directions count h times.

        Claim: the greatest enumerated likelihood ratio; tests/exact/paper/test_classic.py.

        >>> classic = Responses(Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
        >>> round(classic.guarantee(BloomShape(bits=128, hashes=2, cohorts=64), samples=1), 3)
        Decimal('1.074')
        """
        pairs = list(zip(self._sample_law(1, samples), self._sample_law(0, samples), strict=True))
        directions = max(one / zero for one, zero in pairs), max(zero / one for one, zero in pairs)
        often = min(shape.hashes, shape.bits)
        return compute_log_rounded_up(max(directions) ** often * min(directions) ** (shape.max_differing_bits - often))

    def _sample_law(self, truth: int, samples: int) -> list[Fraction]:
        """Return the law of the number of ones among the samples of a bit."""
        permanent_one = self.noise / 2 + (1 - self.noise) * truth
        law = []
        for count in range(samples + 1):
            parts = [
                chance * comb(samples, count) * one**count * (1 - one) ** (samples - count)
                for chance, one in ((permanent_one, self.one_from_one), (1 - permanent_one, self.one_from_zero))
            ]
            law.append(sum(parts, Fraction(0)))
        return law


def draw_permanent(truth: Bits, noise: Fraction, generator: np.random.Generator) -> Bits:
    """Return permanent responses: every bit is kept, or with probability f a fair coin."""
    flips = generator.random(truth.shape, dtype=np.float32) < float(noise) / 2
    return np.asarray(truth ^ flips, dtype=np.uint8)
