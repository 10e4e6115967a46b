"""Counts of bits per level and cohort, and the unbiased shares of bits that they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.law.epsilon import Epsilon
from relaxdp.law.support import Support
from relaxdp.rappor.classic import Samples
from relaxdp.rappor.filter import BloomShape, bit_support, bloom_threshold

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Method = Literal["average", "precision"]


@dataclass(frozen=True, slots=True, eq=False)
class BitEstimates:
    """Unbiased shares of set bits in the cohorts that anybody is in, and the variance that the noise gives them."""

    shape: BloomShape
    cohorts: NDArray[np.intp]
    """Which cohorts these are: empty ones are left out."""
    devices: Floats
    """How many devices are in each of them."""
    share: Floats
    """The estimated share of devices whose true bit is set: (cohorts, bits)."""
    variance: Floats
    """The variance of each estimate from the responses alone, whoever is in the cohort: (cohorts, bits)."""


class RapporCounts:
    """How many devices there are in each cohort, and how often each bit was set, at every level.

    A device counts once, at its highest level. Devices choose their own levels: each level is debiased by itself.
    Beside them there may be devices that sent classic samples, several each.
    """

    def __init__(self, shape: BloomShape) -> None:
        """Start with nothing."""
        self.shape = shape
        self.levels: dict[Support, tuple[Integers, Integers]] = {}
        self.samples: Samples | None = None

    def add(self, devices: Any, counts: Any, support: Support) -> None:
        """Add counts: devices per cohort, set bits per (cohort, bit), and how a bit is answered."""
        totals, ones = (_whole(array) for array in (devices, counts))
        if totals.shape != (self.shape.cohorts,):
            raise RapporError(
                "there are counts of {size} cohorts, and the parameters say m = {cohorts}.",
                size=totals.size,
                cohorts=self.shape.cohorts,
            )
        if ones.shape != (self.shape.cohorts, self.shape.bits):
            bits = ones.shape[1] if ones.ndim == 2 else ones.size
            raise RapporError(
                "there are counts of {counted} bits, and the parameters say k = {bits}.",
                counted=bits,
                bits=self.shape.bits,
            )
        if (totals < 0).any() or (ones < 0).any() or (ones > totals[:, None]).any():
            raise RapporError(
                "a bit cannot be set less than never, nor more often than there are reports in its cohort."
            )
        _check_support(support)
        before = self.levels.get(support)
        self.levels[support] = (totals, ones) if before is None else (before[0] + totals, before[1] + ones)

    def add_level(self, devices: Any, counts: Any, *, epsilon: Epsilon) -> None:
        """Add counts of reports that were relaxed to `epsilon`, that of the whole report."""
        self.add(devices, counts, bit_support(bloom_threshold(self.shape, epsilon)))

    def add_samples(self, samples: Samples) -> None:
        """Add clients that sent several classic samples each: all of them at once."""
        _check_support(samples.responses.support)
        if self.samples is not None or samples.means.shape != (self.shape.cohorts, self.shape.bits):
            raise RapporError("samples of clients are added once, with all cohorts and bits.")
        self.samples = samples

    @property
    def devices(self) -> int:
        """How many devices were counted."""
        return sum(int(totals.sum()) for totals in self._totals)

    @property
    def _totals(self) -> list[Integers]:
        return [totals for totals, _ in self.levels.values()] + ([self.samples.clients] if self.samples else [])

    def estimates(self, method: Method = "average") -> BitEstimates:
        """Return the shares of set bits from all levels.

        "average" gives every device the same weight: unbiased also where a device's level depends on its word.
        "precision" gives less noise more weight: better, if levels do not depend on words.
        """
        if method not in ("average", "precision"):
            raise RapporError("the method is 'average' or 'precision', not {method!r}.", method=method)
        if not self.devices:
            raise RapporError("there are no reports to decode.")
        everyone = sum(self._totals)
        cohorts = np.flatnonzero(everyone)
        background = self.shape.chances()
        share, variance = np.zeros((2, len(cohorts), self.shape.bits))
        weights = self._weights(method, cohorts)
        for (support, (totals, ones)), weight in zip(self.levels.items(), weights, strict=False):
            objects = np.maximum(totals[cohorts], 1)[:, None]
            share += weight * support.debias(ones[cohorts] / objects)
            variance += weight**2 * _response_variance(support, background) / objects
        if self.samples is not None:
            share += weights[-1] * self.samples.shares(cohorts)
            variance += weights[-1] ** 2 * self.samples.variances(cohorts, background)
        return BitEstimates(self.shape, cohorts, np.asarray(everyone)[cohorts].astype(float), share, variance)

    def _weights(self, method: Method, cohorts: NDArray[np.intp]) -> list[Floats]:
        """Return the weight of each level in each cohort: from the noise alone, so that nothing is biased."""
        raw = []
        for support, (totals, _) in self.levels.items():
            gain, noise = float(support.gain), float(support.noise)
            precision = gain**2 / (noise * (1 - noise)) if method == "precision" else 1.0
            raw.append(totals[cohorts] * precision)
        if self.samples is not None:
            precision = 1 / float(self.samples.client_variance(0.0)) if method == "precision" else 1.0
            raw.append(self.samples.clients[cohorts] * precision)
        return [np.asarray(each / sum(raw))[:, None] for each in raw]


def _check_support(support: Support) -> None:
    if support.gain <= 0:
        raise RapporError("the reports tell nothing of the bits: f, p and q leave no difference between 0 and 1.")
    if support.noise <= 0 or support.hit >= 1:
        raise RapporError("a bit that is answered without noise cannot be from RAPPOR: check f, p and q.")


def _response_variance(support: Support, background: Floats) -> Any:
    """Return the variance of one debiased bit, given its truth: the same for 0 and 1 under relaxation.

    The classic pair of responses has two; there the share of ones that strange words would give is good enough.
    """
    hit, noise = float(support.hit), float(support.noise)
    return (background * hit * (1 - hit) + (1 - background) * noise * (1 - noise)) / float(support.gain) ** 2


def _whole(array: Any) -> Integers:
    numbers = np.asarray(array)
    if numbers.dtype.kind == "f" and np.all(numbers == np.rint(numbers)):
        numbers = numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise RapporError("counts must be whole numbers.")
    return numbers.astype(np.int64)
