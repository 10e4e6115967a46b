"""Counts of bits per level and cohort, and the unbiased shares of bits that they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.law.epsilon import Epsilon
from relaxdp.law.support import Support
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
    """

    def __init__(self, shape: BloomShape) -> None:
        """Start with nothing."""
        self.shape = shape
        self.levels: dict[Support, tuple[Integers, Integers]] = {}

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
        before = self.levels.get(support)
        self.levels[support] = (totals, ones) if before is None else (before[0] + totals, before[1] + ones)

    def add_level(self, devices: Any, counts: Any, *, epsilon: Epsilon) -> None:
        """Add counts of reports that were relaxed to `epsilon`, that of the whole report."""
        self.add(devices, counts, bit_support(bloom_threshold(self.shape, epsilon)))

    @property
    def devices(self) -> int:
        """How many devices were counted."""
        return sum(int(totals.sum()) for totals, _ in self.levels.values())

    def estimates(self, method: Method = "average") -> BitEstimates:
        """Return the shares of set bits from all levels.

        "average" gives every device the same weight: unbiased also where a device's level depends on its word.
        "precision" gives less noise more weight: better, if levels do not depend on words.
        """
        if method not in ("average", "precision"):
            raise RapporError("the method is 'average' or 'precision', not {method!r}.", method=method)
        if not self.devices:
            raise RapporError("there are no reports to decode.")
        everyone = sum(totals for totals, _ in self.levels.values())
        cohorts = np.flatnonzero(everyone)
        share, variance = np.zeros((2, len(cohorts), self.shape.bits))
        weights = self._weights(method, cohorts)
        for (support, (totals, ones)), weight in zip(self.levels.items(), weights, strict=True):
            objects = np.maximum(totals[cohorts], 1)[:, None]
            share += weight * support.debias(ones[cohorts] / objects)
            variance += weight**2 / compute_precision(support) / objects
        return BitEstimates(self.shape, cohorts, np.asarray(everyone)[cohorts].astype(float), share, variance)

    def _weights(self, method: Method, cohorts: NDArray[np.intp]) -> list[Floats]:
        """Return the weight of each level in each cohort: from the noise alone, so that nothing is biased."""
        raw = []
        for support, (totals, _) in self.levels.items():
            raw.append(totals[cohorts] * (compute_precision(support) if method == "precision" else 1.0))
        return [np.asarray(each / sum(raw))[:, None] for each in raw]


def compute_precision(support: Support) -> float:
    """Return 1 over the variance of one debiased bit, given its truth: the same for 0 and 1."""
    return float(support.gain) ** 2 / (float(support.noise) * (1 - float(support.noise)))


def _whole(array: Any) -> Integers:
    numbers = np.asarray(array)
    if numbers.dtype.kind == "f" and np.all(numbers == np.rint(numbers)):
        numbers = numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise RapporError("counts must be whole numbers.")
    return numbers.astype(np.int64)
