"""Counts of bits per level and cohort, and unbiased estimates of the share of devices whose bit is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import MetadataError, RapporError
from relaxdp.mechanisms.bloom import BloomShape, compute_bit_support, compute_bit_threshold
from relaxdp.rappor.reports import REPORT, read_report_batches, read_report_description
from relaxdp.theory.epsilon import Epsilon, format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

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
        self.shape = shape
        self.levels: dict[SupportProbabilities, tuple[Integers, Integers]] = {}

    def add_counts(self, device_counts: Any, bit_counts: Any, support: SupportProbabilities) -> None:
        """Add counts: devices per cohort, set bits per (cohort, bit), and how a bit is answered."""
        totals, ones = (_require_whole_numbers(array) for array in (device_counts, bit_counts))
        if totals.shape != (self.shape.cohorts,):
            raise RapporError(
                "There are counts of devices for {found} cohorts. The parameters have m = {cohorts}.",
                hint="Pass one count of devices for each of the {cohorts} cohorts.",
                found=totals.size,
                cohorts=self.shape.cohorts,
            )
        if ones.shape != (self.shape.cohorts, self.shape.bits):
            raise RapporError(
                "There are counts of {found} bits. The parameters have k = {bits}.",
                hint="Pass an array of shape ({cohorts}, {bits}): one count for each cohort and bit.",
                found=ones.shape[1] if ones.ndim == 2 else ones.size,
                bits=self.shape.bits,
                cohorts=self.shape.cohorts,
            )
        if (totals < 0).any() or (ones < 0).any() or (ones > totals[:, None]).any():
            raise RapporError(
                "The count of a bit is negative, or larger than the number of devices in its cohort.",
                hint="Check that the counts of devices and of bits come from the same reports.",
            )
        before = self.levels.get(support)
        self.levels[support] = (totals, ones) if before is None else (before[0] + totals, before[1] + ones)

    def add_level(self, device_counts: Any, bit_counts: Any, *, epsilon: Epsilon) -> None:
        """Add counts of reports that were relaxed to `epsilon`, that of the whole report."""
        self.add_counts(device_counts, bit_counts, compute_bit_support(compute_bit_threshold(self.shape, epsilon)))

    def add_reports(self, cohorts: Integers, bits: NDArray[np.uint8], support: SupportProbabilities) -> None:
        """Count the bits of reports, of shape (reports, bits), and add them."""
        ones = np.zeros((self.shape.cohorts, self.shape.bits), dtype=np.int64)
        for cohort in np.unique(cohorts):
            ones[cohort] = bits[cohorts == cohort].sum(axis=0, dtype=np.int64)
        self.add_counts(np.bincount(cohorts, minlength=self.shape.cohorts), ones, support)

    @property
    def n_devices(self) -> int:
        """How many devices were counted."""
        return sum(int(totals.sum()) for totals, _ in self.levels.values())

    def estimate_bits(self, method: Method = "average") -> BitEstimates:
        """Return the shares of set bits from all levels.

        "average" gives every device the same weight: unbiased also where a device's level depends on its word.
        "precision" gives less noise more weight: better, if levels do not depend on words.
        """
        if method not in ("average", "precision"):
            raise RapporError(
                "Unknown method {method!r} of combining levels. Expected 'average' or 'precision'.",
                hint="Pass method='average' or method='precision'.",
                method=method,
            )
        if not self.n_devices:
            raise make_no_reports_error()
        all_devices = sum(totals for totals, _ in self.levels.values())
        cohorts = np.flatnonzero(all_devices)
        share, variance = np.zeros((2, len(cohorts), self.shape.bits))
        weights = self._compute_weights(method, cohorts)
        for (support, (totals, ones)), weight in zip(self.levels.items(), weights, strict=True):
            n = np.maximum(totals[cohorts], 1)[:, None]
            share += weight * support.debias(ones[cohorts] / n)
            variance += weight**2 / compute_bit_precision(support) / n
        return BitEstimates(self.shape, cohorts, np.asarray(all_devices)[cohorts].astype(float), share, variance)

    def _compute_weights(self, method: Method, cohorts: NDArray[np.intp]) -> list[Floats]:
        """Return the weight of each level in each cohort: from the noise alone, so that nothing is biased."""
        raw = []
        for support, (totals, _) in self.levels.items():
            raw.append(totals[cohorts] * (compute_bit_precision(support) if method == "precision" else 1.0))
        return [np.asarray(each / sum(raw))[:, None] for each in raw]


def compute_bit_precision(support: SupportProbabilities) -> float:
    """Return 1 over the variance of one debiased bit, given its true value: the same for 0 and 1."""
    return float(support.gain) ** 2 / (float(support.noise) * (1 - float(support.noise)))


def make_no_reports_error() -> RapporError:
    """Return the error of decoding without any report."""
    return RapporError(
        "There are no reports to decode.",
        hint="Pass a file with at least one report, or add reports: counts.add_reports(cohorts, bits, support).",
    )


def _require_whole_numbers(array: Any) -> Integers:
    numbers = np.asarray(array)
    if numbers.dtype.kind == "f" and np.all(numbers == np.rint(numbers)):
        numbers = numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise RapporError(
            "The counts of devices and bits must be whole numbers.",
            hint="Pass integers: counts.astype(int), without scaling them first.",
        )
    return numbers.astype(np.int64)


class CountedFile(NamedTuple):
    """The level of a file in words, and the number of its devices: a client in several files counts in one of them."""

    description: str
    n_devices: int


def count_report_files(paths: Sequence[Path], shape: BloomShape) -> tuple[RapporCounts, list[CountedFile]]:
    """Return the counts of all files, and what each holds. A client in several files counts at its highest level."""
    for path in paths:
        if sum(path.absolute() == other.absolute() for other in paths) > 1:
            raise MetadataError(
                "The file {path!r} is given twice. Its devices would count twice.",
                hint="Pass each file once.",
                path=str(path),
            )
    descriptions = {path: read_report_description(path, shape) for path in paths}
    columns = {path: description.columns[REPORT] for path, description in descriptions.items()}
    first = columns[paths[0]]
    for path, column in columns.items():
        if (column.path, column.key_fingerprint, column.id_type) != (first.path, first.key_fingerprint, first.id_type):
            raise MetadataError(
                "The files {file!r} and {first!r} do not belong to the same release: the release, column, key or type "
                "of ids differs.",
                hint="Decode the files of one release together.",
                file=str(path),
                first=str(paths[0]),
            )
    counts, n_devices = RapporCounts(shape), dict.fromkeys(paths, 0)
    seen_ids: set[str] | None = None if len(paths) == 1 else set()
    for path in sorted(paths, key=lambda each: -columns[each].threshold):
        support = compute_bit_support(columns[path].threshold)
        for ids, cohorts, bits in read_report_batches(path, descriptions[path].id_column, shape):
            if seen_ids is not None:
                new = _mark_new_ids(_convert_ids_to_text(ids, first.id_type), seen_ids)
                cohorts, bits = cohorts[new], bits[new]  # noqa: PLW2901 (the reports that count)
            counts.add_reports(cohorts, bits, support)
            n_devices[path] += len(cohorts)
    levels = {path: format_epsilon(column.epsilon) for path, column in columns.items()}
    return counts, [CountedFile(f"reports at epsilon {levels[path]}", n_devices[path]) for path in paths]


def _convert_ids_to_text(ids: Any, id_type: str) -> list[str]:
    """Return ids as texts that are equal for equal ids: in CSV all ids are text, and 17 is the integer of "17"."""
    texts = ids.to_pylist()
    if pa.types.is_binary(ids.type) or pa.types.is_fixed_size_binary(ids.type):
        return [text.decode("utf-8", "surrogateescape") for text in texts]
    if id_type == "integer":
        try:
            return [str(int(text)) for text in texts]
        except (ValueError, TypeError):
            raise RapporError(
                "A client id is not a whole number, although the metadata of the file states that ids are.",
                hint="Pass a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote.",
            ) from None
    return [str(text) for text in texts]


def _mark_new_ids(ids: Sequence[str], seen_ids: set[str]) -> NDArray[np.bool_]:
    """Return which ids are new, and add them to the seen ids."""
    new = np.ones(len(ids), dtype=np.bool_)
    for row, each in enumerate(ids):
        new[row] = each not in seen_ids
        seen_ids.add(each)
    return new
