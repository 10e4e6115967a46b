"""Counts of bits per level and cohort, and the unbiased shares of bits that they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import MetadataError, RapporError
from relaxdp.mechanisms.bloom import BloomShape, bit_support, bloom_threshold
from relaxdp.rappor.reports import REPORT, read_description, report_batches
from relaxdp.theory.epsilon import Epsilon, epsilon_text
from relaxdp.theory.randomized_response import Support

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Method = Literal["average", "precision"]


@dataclass(frozen=True, slots=True, eq=False)
class BitEstimates:
    """Unbiased shares of set bits in the cohorts that have reports, and the variance from the noise."""

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
                "There are counts of {size} cohorts, and the parameters have m = {cohorts}.",
                hint="Pass one count per cohort.",
                size=totals.size,
                cohorts=self.shape.cohorts,
            )
        if ones.shape != (self.shape.cohorts, self.shape.bits):
            bits = ones.shape[1] if ones.ndim == 2 else ones.size
            raise RapporError(
                "There are counts of {counted} bits, and the parameters have k = {bits}.",
                hint="Pass one count per bit.",
                counted=bits,
                bits=self.shape.bits,
            )
        if (totals < 0).any() or (ones < 0).any() or (ones > totals[:, None]).any():
            raise RapporError(
                "A count is negative, or larger than the number of reports in its cohort.",
                hint="Check that the counts of devices and of bits come from the same reports.",
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
            raise RapporError(
                "Unknown method {method!r}. Expected 'average' or 'precision'.",
                hint="Pass method='average' or method='precision'.",
                method=method,
            )
        if not self.devices:
            raise RapporError("There are no reports to decode.", hint="Add reports first, such as counts.add(...).")
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
    """Return 1 over the variance of one debiased bit, given its true value: the same for 0 and 1."""
    return float(support.gain) ** 2 / (float(support.noise) * (1 - float(support.noise)))


def _whole(array: Any) -> Integers:
    numbers = np.asarray(array)
    if numbers.dtype.kind == "f" and np.all(numbers == np.rint(numbers)):
        numbers = numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise RapporError("The counts must be whole numbers.", hint="Convert them, such as counts.astype(int).")
    return numbers.astype(np.int64)


Bits = NDArray[np.uint8]


class BitSums:
    """How many reports there are in each cohort, and how often each bit is set."""

    def __init__(self, shape: BloomShape) -> None:
        self.reports = np.zeros(shape.cohorts, dtype=np.int64)
        self.ones = np.zeros((shape.cohorts, shape.bits), dtype=np.int64)

    def add(self, cohorts: Integers, bits: Bits) -> None:
        """Add reports."""
        self.reports += np.bincount(cohorts, minlength=len(self.reports))
        for cohort in np.unique(cohorts):
            self.ones[cohort] += bits[cohorts == cohort].sum(axis=0, dtype=np.int64)


class CountedFile(NamedTuple):
    """The metadata of a file and the number of its devices: a client in several files counts in one of them."""

    what: str
    devices: int


def count_files(files: Sequence[Path], shape: BloomShape) -> tuple[RapporCounts, list[CountedFile]]:
    """Return the counts of all files, and what each holds. A client in several files counts at its highest level."""
    for path in files:
        if sum(path.absolute() == other.absolute() for other in files) > 1:
            raise MetadataError(
                "The file {path!r} is given twice. Its devices would count twice.",
                hint="Pass each file once.",
                path=str(path),
            )
    descriptions = {path: read_description(path, shape) for path in files}
    described = {path: description.columns[REPORT] for path, description in descriptions.items()}
    first = described[files[0]]
    for path, report in described.items():
        if (report.path, report.key_fingerprint, report.id_type) != (first.path, first.key_fingerprint, first.id_type):
            raise MetadataError(
                "The file {file!r} does not belong to the first one. It has another release, column, key "
                "or type of ids.",
                hint="Decode the files of one release together.",
                file=str(path),
            )
    counts, devices = RapporCounts(shape), {}
    seen: set[str] | None = None if len(files) == 1 else set()
    for path in sorted(files, key=lambda each: -described[each].threshold):
        sums = BitSums(shape)
        for ids, cohorts, bits in report_batches(path, descriptions[path].id_column, shape):
            names = None if seen is None else _client_names(ids, first.id_type)
            fresh = slice(None) if names is None or seen is None else _find_first_rows(names, seen)
            sums.add(cohorts[fresh], bits[fresh])
        counts.add(sums.reports, sums.ones, bit_support(described[path].threshold))
        devices[path] = int(sums.reports.sum())
    levels = {path: epsilon_text(report.epsilon) for path, report in described.items()}
    return counts, [CountedFile(f"reports at epsilon {levels[path]}", devices[path]) for path in files]


def _client_names(clients: Any, id_type: str) -> list[str]:
    """Return clients as texts by which they are compared: in CSV all are text, and 17 is the one "17" stands for."""
    names = clients.to_pylist()
    if pa.types.is_binary(clients.type) or pa.types.is_fixed_size_binary(clients.type):
        return [name.decode("utf-8", "surrogateescape") for name in names]
    if id_type == "integer":
        try:
            return [str(int(name)) for name in names]
        except (ValueError, TypeError):
            raise RapporError(
                "A client id does not have the type that the metadata states.",
                hint="Pass a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote.",
            ) from None
    return [str(name) for name in names]


def _find_first_rows(names: Sequence[str], seen: set[str]) -> NDArray[np.bool_]:
    """Return which clients are new, and remember them."""
    fresh = np.ones(len(names), dtype=np.bool_)
    for row, client in enumerate(names):
        fresh[row] = client not in seen
        seen.add(client)
    return fresh
