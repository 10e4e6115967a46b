"""Files of RAPPOR reports: what ours say about themselves, and how all kinds of them are counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.encode.bits import check_padding, unpack_bits
from relaxdp.encode.bloom_filter import BloomShape
from relaxdp.encode.bloom_levels import bit_support, bloom_threshold
from relaxdp.encode.packed import packed_matrix
from relaxdp.errors import CountsError, DescriptionError, MixedFilesError, RapporError
from relaxdp.estimate.rappor_counts import RapporCounts
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.law.support import Support
from relaxdp.table.description import METADATA_KEY, ColumnDescription, FileDescription
from relaxdp.table.formats import Format, Input, format_of, sidecar_of
from relaxdp.table.rappor_files import Parameters, read_counts, read_text

CLIENT, COHORT, REPORT = "client", "cohort", "report"
_GOOGLE_REPORT = "irr"
_FROM_TEXT: dict[str, Any] = {"integer": int, "bytes": str.encode}


@dataclass(frozen=True, slots=True)
class ReportsDescription(FileDescription):
    """What a file of reports says about itself: the level, and the numbers of bits, hashes and cohorts."""

    shape: BloomShape

    @classmethod
    def make(cls, column: ColumnDescription, shape: BloomShape) -> ReportsDescription:
        """Return the description of reports with this level and this shape."""
        return cls(CLIENT, {REPORT: column}, shape)

    @property
    def report(self) -> ColumnDescription:
        """The description of the only released column."""
        return self.columns[REPORT]

    def dumps(self) -> str:
        """Return the description as one JSON text."""
        shape = {"bits": self.shape.bits, "hashes": self.shape.hashes, "cohorts": self.shape.cohorts}
        return json.dumps({"id": CLIENT, "columns": {REPORT: {**self.report.to_json(), "options": shape}}})

    @classmethod
    def of(cls, path: Path) -> ReportsDescription | None:
        """Return what a file says about itself; None where it says nothing, or is no file of reports."""
        if format_of(path) is Format.CSV:
            sidecar = sidecar_of(path)
            text: str | bytes | None = read_text(sidecar, "description") if sidecar.exists() else None
        else:
            text = (Input(path).schema.metadata or {}).get(METADATA_KEY)
        if text is None:
            return None
        try:
            content = json.loads(text)["columns"][REPORT]
            options = content["options"]
            shape = BloomShape(bits=options["bits"], hashes=options["hashes"], cohorts=options["cohorts"])
        except (ValueError, KeyError, TypeError):
            raise DescriptionError(f"the description of {str(path)!r} is not that of RAPPOR reports.") from None
        found = cls.make(ColumnDescription.from_json(content), shape)
        if not 0 < found.report.threshold <= bloom_threshold(shape, found.report.epsilon):
            raise DescriptionError(f"{str(path)!r} says a level and a threshold that do not agree.")
        return found


class Taken(NamedTuple):
    """What a file was taken for, and how many of its devices count: those at a higher level in another one do not."""

    what: str
    devices: int


def count_files(
    files: Sequence[Path], parameters: Parameters, epsilons: Sequence[str] = ()
) -> tuple[RapporCounts, list[Taken]]:
    """Return the counts of all files, each at its own level, and what each was taken for.

    Our files say their level, and a client in several of them counts once, at its highest. Google's reports, and counts
    without a level, were answered as the parameters' f, p and q say; `epsilons` names the level of each file instead.
    """
    if epsilons and len(epsilons) != len(files):
        raise RapporError(f"there are {len(files)} files and {len(epsilons)} levels: name one for each file, or none.")
    for path in files:
        if sum(path.absolute() == other.absolute() for other in files) > 1:
            raise MixedFilesError(f"{str(path)!r} is named twice: its devices would count twice.")
    counts, notes, counted = RapporCounts(parameters.shape), [], {}
    described: list[tuple[int, Path, ReportsDescription]] = []
    for place, path in enumerate(files):
        named = as_epsilon(epsilons[place]) if epsilons else None
        kind, description = _kind(path), None
        if kind == "counts":
            devices, ones = read_counts(path, parameters.shape)
            counts.add(devices, ones, _support(parameters, named))
            counted[path] = int(devices.sum())
        else:
            description = ReportsDescription.of(path) if kind == REPORT else None
            if description is not None:
                if named is not None and named != description.report.epsilon:
                    raise RapporError(f"{str(path)!r} says its level itself, and it is not {epsilon_text(named)}.")
                described.append((description.report.threshold, path, description))
            elif kind == REPORT and named is None:
                raise RapporError(f"{str(path)!r} does not say its level: --epsilon must say it.")
            else:
                devices, ones = _count(path, kind, parameters.shape, None)
                counts.add(devices, ones, _support(parameters, named))
                counted[path] = int(devices.sum())
        notes.append(_note(kind, description, named))
    counted |= _count_described(counts, described)
    return counts, [Taken(note, counted[path]) for note, path in zip(notes, files, strict=True)]


def _count_described(counts: RapporCounts, described: list[tuple[int, Path, ReportsDescription]]) -> dict[Path, int]:
    """Count our own files, the highest level first, each client once; return how many count in each file."""
    counted: dict[Path, int] = {}
    if not described:
        return counted
    first = described[0][2].report
    seen: set[Any] | None = set() if len(described) > 1 else None
    for threshold, path, description in sorted(described, key=lambda each: -each[0]):
        report = description.report
        if description.shape != counts.shape:
            raise RapporError(
                f"the reports in {str(path)!r} have {description.shape}, and the parameters say {counts.shape}."
            )
        if (report.release, report.attribute, report.key_fingerprint, report.id_type) != (
            first.release, first.attribute, first.key_fingerprint, first.id_type
        ):  # fmt: skip
            raise MixedFilesError(
                f"{str(path)!r} is of another release, column or key, or of other kinds of clients, than the first."
            )
        devices, ones = _count(path, REPORT, counts.shape, seen, report.id_type)
        counts.add(devices, ones, bit_support(threshold))
        counted[path] = int(devices.sum())
    return counted


def _support(parameters: Parameters, epsilon: Decimal | None) -> Support:
    if epsilon is None:
        return parameters.responses.support
    return bit_support(bloom_threshold(parameters.shape, epsilon))


def _kind(path: Path) -> str:
    """Return what a file holds: counts, our reports, or Google's."""
    if format_of(path) is Format.CSV:
        header = read_text(path, "file", first_line=True).strip()
        if header and all(field.strip().isdigit() for field in header.split(",")):
            return "counts"
    names = Input(path).schema.names
    for report in (REPORT, _GOOGLE_REPORT):
        if {COHORT, report} <= set(names):
            return report
    raise RapporError(
        f"{str(path)!r} holds neither counts nor reports: reports have the columns {CLIENT}, {COHORT} and {REPORT}."
    )


def _note(kind: str, description: ReportsDescription | None, named: Decimal | None) -> str:
    what = {"counts": "counts", REPORT: "reports", _GOOGLE_REPORT: "classic reports"}[kind]
    level = description.report.epsilon if description else named
    return f"{what} as the parameters' f, p and q say" if level is None else f"{what} at epsilon {epsilon_text(level)}"


def _count(
    path: Path, column: str, shape: BloomShape, seen: set[Any] | None, id_type: str = "text"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    devices = np.zeros(shape.cohorts, dtype=np.int64)
    ones = np.zeros((shape.cohorts, shape.bits), dtype=np.int64)
    for batch, cohorts, bits in report_batches(path, column, shape):
        fresh = slice(None) if seen is None else _first_seen(batch.column(CLIENT), id_type, seen)
        counted, rows = cohorts[fresh], bits[fresh]
        devices += np.bincount(counted, minlength=shape.cohorts)
        for cohort in np.unique(counted):
            ones[cohort] += rows[counted == cohort].sum(axis=0, dtype=np.int64)
    return devices, ones


def _first_seen(clients: Any, id_type: str, seen: set[Any]) -> NDArray[np.bool_]:
    """Return which clients are new. In CSV everything is text, and 17 is the client that "17" stands for."""
    names = clients.to_pylist()
    if pa.types.is_string(clients.type) and id_type in _FROM_TEXT:
        try:
            names = [_FROM_TEXT[id_type](name) for name in names]
        except (ValueError, TypeError, AttributeError):
            raise RapporError("a client is not of the kind that the description says. Nothing was counted.") from None
    fresh = np.ones(len(clients), dtype=np.bool_)
    for row, client in enumerate(names):
        fresh[row] = client not in seen
        seen.add(client)
    return fresh


def report_batches(
    path: Path, column: str, shape: BloomShape
) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.uint8]]]:
    """Return batches of a file of reports with their cohorts and bits (bit 0 first), or refuse what does not fit."""
    table, first_row = Input(path), 0
    names = [name for name in (CLIENT, COHORT, column) if name in table.schema.names]
    with closing(table.batches(names)) as batches:
        for batch in batches:
            cohorts = _cohorts(batch.column(COHORT), shape, first_row)
            yield batch, cohorts, bits_of_reports(batch.column(column), shape, first_row)
            first_row += batch.num_rows


def _cohorts(column: Any, shape: BloomShape, first_row: int) -> NDArray[np.int64]:
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowException:
        numbers = None
    if numbers is None or numbers.null_count:
        raise RapporError("a cohort is missing or not a whole number. Nothing was counted.")
    cohorts = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)
    outside = (cohorts < 0) | (cohorts >= shape.cohorts)
    if outside.any():
        row = int(np.argmax(outside))
        raise RapporError(
            f"row {first_row + row + 1:,}: cohorts go from 0 to {shape.cohorts - 1}, and {cohorts[row]} is none of "
            "them. Nothing was counted.",
            row=first_row + row + 1,
        )
    return cohorts


def bits_of_reports(column: Any, shape: BloomShape, first_row: int = 0) -> NDArray[np.uint8]:
    """Return the bits of packed reports, or of text with the highest bit first, as (reports, bits)."""
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary(column.type):
        try:
            packed = packed_matrix(column, -(-shape.bits // 8), first_row)
            check_padding(packed, shape.bits)
        except CountsError:
            raise RapporError(
                f"the reports do not have the k = {shape.bits} bits that the parameters say. Nothing was counted."
            ) from None
        return unpack_bits(packed, shape.bits)
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    if (lengths != shape.bits).any():
        row = int(np.argmax(lengths != shape.bits))
        raise RapporError(
            f"row {first_row + row + 1:,}: the report has {lengths[row]} bits, and the parameters say k = "
            f"{shape.bits}. Nothing was counted.",
            row=first_row + row + 1,
        )
    letters = np.frombuffer("".join(column.to_pylist()).encode(), dtype=np.uint8)
    if len(letters) != len(column) * shape.bits or not np.isin(letters, (48, 49)).all():
        raise RapporError("a report is not made of zeros and ones. Nothing was counted.")
    return np.ascontiguousarray((letters - 48).reshape(len(column), shape.bits)[:, ::-1])
