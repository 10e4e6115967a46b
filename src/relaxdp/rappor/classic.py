"""The baseline: RAPPOR's classic pair of a permanent response and noisy samples of it. For comparison only.

Nothing here protects anybody: responses are simulated from a NumPy generator, so that an experiment can be repeated.

All samples of a client are of one permanent response, whose noise is in each of them. So they are no reports of
different devices: only the clients are independent of each other, and the variance is that between clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.estimation import special
from relaxdp.estimation.result import About, Result, check_about
from relaxdp.law.level import log_up
from relaxdp.law.support import Support
from relaxdp.rappor.filter import BloomShape, guarantee_of

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

        Claim: the greatest enumerated likelihood ratio; tests/exact/rappor/test_classic.py.

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


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Sums over the clients of each cohort."""

    responses: Responses
    clients: NDArray[np.int64]
    """How many clients are in each cohort."""
    means: Floats
    """The sums of the clients' mean bits: (cohorts, bits)."""
    inverse: Floats
    """The sums of 1 over the number of a client's reports, by cohort."""
    squares: Floats | None = None
    """The sums of the squares of the clients' mean bits; None where only the sums are known."""

    @classmethod
    def of_sums(cls, clients: Any, ones: Any, *, samples: int, responses: Responses) -> Samples:
        """Return them for clients that all sent equally many samples, from the sums of all these."""
        numbers = np.asarray(clients, dtype=np.int64)
        return cls(responses, numbers, np.asarray(ones) / samples, numbers / samples)

    def shares(self, cohorts: NDArray[np.intp]) -> Floats:
        """Return the unbiased shares of set bits in some of the cohorts."""
        numbers = np.maximum(self.clients[cohorts], 1)[:, None]
        return np.asarray(self.responses.support.debias(self.means[cohorts] / numbers))

    def variances(self, cohorts: NDArray[np.intp], share: Any) -> Floats:
        """Return the variance of these shares from the responses alone, where a `share` of true bits is set."""
        numbers = np.maximum(self.clients[cohorts], 1)[:, None]
        mean = self.responses.mean_variance(share, self.inverse[cohorts][:, None] / numbers)
        return np.asarray(self.excess * mean / numbers)

    def client_variance(self, share: Any) -> Any:
        """Return the variance of what one client says, on average over all clients."""
        return self.excess * self.responses.mean_variance(share, float(self.inverse.sum() / self.clients.sum()))

    @cached_property
    def excess(self) -> float:
        """How many times larger the noise is than that of fresh samples of one permanent response, as clients show.

        It is larger where samples were repeated, and smaller where a client reported several words, each with a
        permanent response of its own; but not smaller than if all samples had one. The clients of a cohort differ by
        their noise and by their truths, so the noise explains at most all of their differences, and at least what is
        left if each has a truth of its own.
        """
        known = np.flatnonzero(self.clients > 1)
        if self.squares is None or not len(known):
            return 1.0
        numbers = self.clients[known].astype(float)[:, None]
        between = self.squares[known] - self.means[known] ** 2 / numbers
        freedom = float((numbers - 1).sum()) * self.means.shape[1]
        seen = float(between.sum()) / freedom / float(self.responses.support.gain) ** 2
        share = self.shares(known)
        inverse = self.inverse[known][:, None] / numbers
        noise = self.responses.mean_variance(np.clip(share, 0, 1), inverse)
        fresh = self.responses.mean_variance(np.clip(share, 0, 1), 1.0) * inverse
        squares = share - share**2 + noise / numbers
        expected, least, truths = (float(((numbers - 1) * each).sum()) / freedom for each in (noise, fresh, squares))
        return float(max(least, min(max(expected, seen - max(0.0, truths)), seen)) / expected)


@dataclass(frozen=True, eq=False, repr=False)
class SampledShares(Result):
    """Shares of words that have a bit of their own in every cohort: normal intervals around the mean of the clients."""

    labels: Sequence[str]
    samples: Samples
    own: Floats
    """For each word the sum of the clients' mean bits, at its own bit."""

    @property
    def value(self) -> Floats:
        """The unbiased estimates."""
        return np.asarray(self.samples.responses.support.debias(self.own / self._clients))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors; the unknown shares in the formulas are the estimated ones."""
        check_about(about)
        share = np.clip(self.value, 0, 1)
        sampled = share * (1 - share) if about == "population" else 0.0
        return np.asarray(np.sqrt((self.samples.client_variance(share) + sampled) / self._clients))

    @property
    def null_variance(self) -> float:
        """The variance of an estimate of a word that no client has."""
        return float(self.samples.client_variance(0.0)) / self._clients

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the intervals."""
        reach = -float(special.ndtri(tail)) * self.standard_error(about)
        return self.value - reach, self.value + reach

    @property
    def _clients(self) -> int:
        return int(self.samples.clients.sum())
