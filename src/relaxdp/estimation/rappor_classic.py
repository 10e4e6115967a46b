"""The baseline: RAPPOR's classic pair of a permanent response and noisy samples of it. For comparison only.

Nothing here protects anybody: responses are simulated from a NumPy generator, so that an experiment can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.encodings.bloom_filter import BloomShape
from relaxdp.encodings.bloom_levels import guarantee_of
from relaxdp.errors import RapporError
from relaxdp.law.level import log_up
from relaxdp.law.support import Support

Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Responses:
    """How classic RAPPOR answers: f, p and q, as exact fractions.

    With p = 0 and q = 1 the permanent response is sent as it is, as relaxation does.
    """

    noise: Fraction
    """f: with this probability a permanent bit is a fair coin."""
    one_from_zero: Fraction = Fraction(0)
    """p: the probability that a sample of a permanent 0 is 1."""
    one_from_one: Fraction = Fraction(1)
    """q: the probability that a sample of a permanent 1 is 1."""

    def __post_init__(self) -> None:
        for letter, number in zip("fpq", (self.noise, self.one_from_zero, self.one_from_one), strict=True):
            if not 0 <= number <= 1:
                raise RapporError(
                    "{letter} is a probability from 0 to 1, not {number:g}.", letter=letter, number=float(number)
                )

    @property
    def is_permanent(self) -> bool:
        """Whether the permanent response is sent as it is."""
        return self.one_from_zero == 0 and self.one_from_one == 1

    @property
    def support(self) -> Support:
        """The chances that a reported bit is 1: p01 whatever the truth, and p11 - p01 more if the true bit is 1."""
        half = self.noise / 2
        low = self.one_from_zero * (1 - half) + self.one_from_one * half
        high = self.one_from_one * (1 - half) + self.one_from_zero * half
        return Support(noise=low, gain=high - low)

    def mean_variance(self, share: Any, inverse: Any) -> Any:
        """Return the variance of the debiased mean of the samples that a device sends of one permanent bit.

        `inverse` is 1 over their number, and `share` that of devices whose true bit is set. The permanent noise stays
        however many samples are sent; only the rest is averaged away.
        """
        half = float(self.noise / 2)
        zero, one = float(self.one_from_zero), float(self.one_from_one)
        permanent_one = half + float(1 - self.noise) * share
        sampled = permanent_one * one * (1 - one) + (1 - permanent_one) * zero * (1 - zero)
        return (half * (1 - half) * (one - zero) ** 2 + sampled * inverse) / float(self.support.gain) ** 2

    def guarantee(self, shape: BloomShape, samples: int | None = None) -> Decimal:
        """Return what a device spends with so many samples of one permanent response; None is for ever. Rounded up.

        The number of ones among the samples of a bit says all that they say. Two words differ in h bits that are 1
        for the one and in h that are 1 for the other, so both directions count h times.

        Claim: the greatest enumerated likelihood ratio; tests/exact/test_rappor_classic.py.

        >>> shape = BloomShape(bits=128, hashes=2, cohorts=64)
        >>> classic = Responses(Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
        >>> round(classic.guarantee(shape, 1), 3), round(classic.guarantee(shape), 3)
        (Decimal('1.074'), Decimal('4.394'))
        """
        if samples is None or self.is_permanent:
            return guarantee_of(shape, self.noise)
        laws = [self._sample_law(truth, samples) for truth in (1, 0)]
        pairs = [(one, zero) for one, zero in zip(*laws, strict=True) if one or zero]
        if not all(one and zero for one, zero in pairs):
            raise RapporError("these responses guarantee nothing: a sample can give its true bit away.")
        directions = max(one / zero for one, zero in pairs), max(zero / one for one, zero in pairs)
        often = min(shape.hashes, shape.bits)
        return log_up(max(directions) ** often * min(directions) ** (shape.differing - often))

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


def baseline_permanent(truth: Bits, noise: Fraction, generator: np.random.Generator) -> Bits:
    """Simulate the permanent response: every bit is kept, or with probability f a fair coin."""
    flips = generator.random(truth.shape, dtype=np.float32) < float(noise) / 2
    return np.asarray(truth ^ flips, dtype=np.uint8)


def baseline_sample(permanent: Bits, responses: Responses, generator: np.random.Generator) -> Bits:
    """Simulate one noisy sample (an instantaneous response) of permanent bits."""
    chances = np.array([responses.one_from_zero, responses.one_from_one], dtype=np.float32)
    return np.asarray(generator.random(permanent.shape, dtype=np.float32) < chances[permanent], dtype=np.uint8)
