"""Reports of RAPPOR: read from files, counted per level and cohort, and made by a device at growing levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import LevelError, MetadataError, RapporError
from relaxdp.mechanisms.bloom import Bloom, BloomShape, compute_bit_support
from relaxdp.mechanisms.report_arrays import format_bits, read_report_column
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.tables.files import TableFile, get_sidecar_path, read_description
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Method = Literal["average", "precision"]

CLIENT, COHORT, REPORT = "client", "cohort", "report"
"""Columns of a file of reports."""
_ENCODED_FILE_HINT = "Pass a file that `relaxdp rappor encode` or `relaxdp rappor relax` wrote."


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

    def add_counts(self, device_counts: Any, bit_counts: Any, support_probabilities: SupportProbabilities) -> None:
        """Add counts: devices per cohort, set bits per (cohort, bit), and how a bit is answered."""
        totals, ones = np.asarray(device_counts, np.int64), np.asarray(bit_counts, np.int64)
        devices, bits = self.levels.get(support_probabilities, (0, 0))
        self.levels[support_probabilities] = devices + totals, bits + ones

    def add_reports(
        self, cohorts: Integers, bits: NDArray[np.uint8], support_probabilities: SupportProbabilities
    ) -> None:
        """Count the bits of reports, of shape (reports, bits), and add them."""
        ones = np.zeros((self.shape.cohorts, self.shape.bits), dtype=np.int64)
        for cohort in np.unique(cohorts):
            ones[cohort] = bits[cohorts == cohort].sum(axis=0, dtype=np.int64)
        self.add_counts(np.bincount(cohorts, minlength=self.shape.cohorts), ones, support_probabilities)

    @property
    def n_devices(self) -> int:
        """How many devices were counted."""
        return sum(int(totals.sum()) for totals, _ in self.levels.values())

    def estimate_bit_shares(self, method: Method = "average") -> BitEstimates:
        """Return the shares of set bits from all levels, of at least one device.

        "average" gives every device the same weight: unbiased also where a device's level depends on its word.
        "precision" gives less noise more weight: better, if levels do not depend on words.
        """
        all_devices = np.sum([totals for totals, _ in self.levels.values()], axis=0)
        cohorts = np.flatnonzero(all_devices)
        # Weights follow from the noise alone, so that nothing is biased.
        weights = [
            totals[cohorts] * (compute_inverse_bit_variance(support) if method == "precision" else 1.0)
            for support, (totals, _) in self.levels.items()
        ]
        share, variance = np.zeros((2, len(cohorts), self.shape.bits))
        for (support, (totals, ones)), level_weights in zip(self.levels.items(), weights, strict=True):
            n, weight = np.maximum(totals[cohorts], 1)[:, None], (level_weights / sum(weights))[:, None]
            share += weight * support.debias(ones[cohorts] / n)
            variance += weight**2 / compute_inverse_bit_variance(support) / n
        return BitEstimates(self.shape, cohorts, all_devices[cohorts].astype(float), share, variance)


def compute_inverse_bit_variance(support: SupportProbabilities) -> float:
    """Return 1 over the variance of one debiased bit, given its true value: the same for 0 and 1."""
    return float(support.gain) ** 2 / (float(support.noise) * (1 - float(support.noise)))


class CountedFile(NamedTuple):
    """A file that was counted: its level in words, and how many devices count in it. Each counts in one file."""

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
    id_columns, columns = {}, {}
    for path in paths:
        id_columns[path], columns[path] = _read_report_description(path, shape)
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
    counts, n_devices, seen_ids = RapporCounts(shape), dict.fromkeys(paths, 0), set[str]()
    for path in sorted(paths, key=lambda each: -columns[each].threshold):
        support = compute_bit_support(columns[path].threshold)
        for ids, cohorts, bits in _read_report_batches(path, id_columns[path], shape):
            new: Any = slice(None)
            if len(paths) > 1:
                new = _mark_new_ids(_convert_ids_to_text(ids, first.id_type), seen_ids)
            counts.add_reports(cohorts[new], bits[new], support)
            n_devices[path] += len(cohorts[new])
    levels = {path: format_epsilon(column.epsilon) for path, column in columns.items()}
    return counts, [CountedFile(f"reports at epsilon {levels[path]}", n_devices[path]) for path in paths]


def _read_report_description(path: Path, shape: BloomShape) -> tuple[str, ColumnDescription]:
    """Return the id column and the metadata of a file of reports, or reject other files and other parameters."""
    table, description = TableFile(path), read_description(path)
    column = None if description is None else description.columns.get(REPORT)
    if (
        description is None
        or column is None
        or column.encoding != Bloom.name
        or not {description.id_column, COHORT, REPORT} <= set(table.schema.names)
    ):
        raise MetadataError(
            "The file {path!r} does not contain RAPPOR reports, or does not state their epsilon.",
            hint=f"{_ENCODED_FILE_HINT} Keep {{sidecar!r}} next to a CSV file.",
            path=str(path),
            sidecar=get_sidecar_path(path).name,
        )
    mechanism: Any = column.mechanism()
    if mechanism.shape != shape:
        raise RapporError(
            "The reports in {file!r} were made with the parameters {found}, but the parameter file has {shape}.",
            hint="Pass the parameter file with which the reports were made: --params params.csv.",
            file=str(path),
            found=mechanism.shape,
            shape=shape,
        )
    try:
        mechanism.level(column.epsilon, column.threshold)
    except LevelError:
        raise MetadataError(
            "The metadata of {path!r} is damaged: its threshold (the amount of noise) does not belong to its epsilon.",
            hint="Write the file again, such as with `relaxdp rappor relax NAME again.csv --epsilon 2`.",
            path=str(path),
        ) from None
    return description.id_column, column


def _read_report_batches(
    path: Path, id_column: str, shape: BloomShape
) -> Iterator[tuple[Any, Integers, NDArray[np.uint8]]]:
    """Yield the ids, cohorts and bits (bit 0 first) of a file of reports, batch by batch."""
    first_row = 0
    with closing(TableFile(path).batches((id_column, COHORT, REPORT))) as batches:
        for batch in batches:
            ids, cohorts, reports = batch.column(id_column), batch.column(COHORT), batch.column(REPORT)
            _require_valid_rows(pc.is_valid(ids), "the id of the client is missing", path, first_row)
            cohorts = cohorts.cast(pa.string())
            is_number = pc.match_substring_regex(cohorts, "^[0-9]{1,9}$")
            numbers = pc.if_else(is_number, cohorts, None).cast(pa.int64())
            what = f"the cohort must be a whole number from 0 to {shape.cohorts - 1}"
            _require_valid_rows(pc.less(numbers, shape.cohorts), what, path, first_row)
            yield ids, numbers.to_numpy(), _read_bits(reports, shape, path, first_row)
            first_row += batch.num_rows


def _read_bits(reports: Any, shape: BloomShape, path: Path, first_row: int) -> NDArray[np.uint8]:
    """Return the bits of packed reports, or of text with the highest bit first, as (reports, bits)."""
    if not pa.types.is_string(reports.type) and not pa.types.is_large_string(reports.type):
        return read_report_column(Bloom(shape), reports)[0]
    is_complete = pc.equal(pc.binary_length(reports), shape.bits)
    is_valid = pc.and_(is_complete, pc.match_substring_regex(reports, "^[01]*$"))
    _require_valid_rows(is_valid, f"the report must have {shape.bits} bits, each 0 or 1", path, first_row)
    letters = np.frombuffer("".join(reports.to_pylist()).encode(), dtype=np.uint8)
    return np.ascontiguousarray((letters - ord("0")).reshape(len(reports), shape.bits)[:, ::-1])


def _require_valid_rows(is_valid: Any, problem: str, path: Path, first_row: int) -> None:
    """Reject a file with a row that is not valid."""
    row = pc.index(pc.fill_null(is_valid, False), False).as_py()
    if row >= 0:
        raise RapporError(
            "Row {row:,} of {path!r}: {problem}.",
            hint=_ENCODED_FILE_HINT,
            row=first_row + row + 1,
            path=str(path),
            problem=problem,
        )


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
                hint=_ENCODED_FILE_HINT,
            ) from None
    return [str(text) for text in texts]


def _mark_new_ids(ids: Sequence[str], seen_ids: set[str]) -> NDArray[np.bool_]:
    """Return which ids are new, and add them to the seen ids."""
    new = np.ones(len(ids), dtype=np.bool_)
    for row, each in enumerate(ids):
        new[row] = each not in seen_ids
        seen_ids.add(each)
    return new


class RapporReport(NamedTuple):
    """A report: the cohort of the device, the bits as text (the highest first, as in RAPPOR's files), and the level."""

    cohort: int
    bits: str
    epsilon: Decimal


class RapporDevice:
    """A device that reports its word at growing levels, at its own pace and up to its own limit.

    All its reports together cost the largest epsilon among them. The `repr` shows neither word nor key.

    Args:
        shape: Bits, hashes and cohorts of the Bloom filter.
        word: The true value; true or false if the shape has one bit.
        key: The secret key of the device.
        id: The id of the device, from which its cohort is drawn.
        name: The name of the release. Another name is another path, whose cost adds up.
        column: The name of the column, or of the question, that the word belongs to.
        limit: The largest epsilon that the device will ever report at. Set it before the word is known.

    >>> shape = BloomShape(bits=16, hashes=2, cohorts=64)
    >>> device = RapporDevice(
    ...     shape, "cheese", key=Key.from_bytes(bytes(range(32))), id="d-1", name="words-2026",
    ...     column="word", limit=6,
    ... )
    >>> [report.bits for report in device.iterate_reports([2, 4, 6])]
    ['1111101001000101', '0111100000011111', '0000001000001110']
    >>> device.get_report(7)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: Epsilon 7 is above 6, the limit of this device. Request a report at 6 or less.
    """

    def __init__(
        self,
        shape: BloomShape,
        word: str | bool,
        *,
        key: Key,
        id: object,
        name: str,
        column: str,
        limit: Epsilon | None = None,
    ) -> None:
        self.limit = None if limit is None else as_epsilon(limit)
        self._bloom = Bloom(shape).for_device(id, key=key, path=PathId(name, column))
        self.cohort = self._bloom.cohort
        """Public, and drawn from the id alone."""
        self._path = self._bloom.path(word, key=key, id=id, name=name, column=column)

    def get_report(self, epsilon: Epsilon) -> RapporReport:
        """Return the report at the epsilon of a whole report. The same epsilon gives the same report again.

        Raises:
            LevelError: Epsilon is above the limit of the device.
        """
        level = self._bloom.level(epsilon)
        if self.limit is not None and level.epsilon > self.limit:
            raise LevelError(
                "Epsilon {epsilon} is above {limit}, the limit of this device.",
                hint="Request a report at {limit} or less.",
                limit=format_epsilon(self.limit),
                epsilon=format_epsilon(level.epsilon),
            )
        packed = np.frombuffer(self._path.at(level.epsilon), dtype=np.uint8)
        return RapporReport(self.cohort, format_bits(packed[None], self._bloom.symbols)[0], level.epsilon)

    def iterate_reports(self, schedule: Iterable[Epsilon]) -> Iterator[RapporReport]:
        """Yield a report for every level of a schedule, up to the limit."""
        for level in map(as_epsilon, schedule):
            if self.limit is not None and level > self.limit:
                return
            yield self.get_report(level)
