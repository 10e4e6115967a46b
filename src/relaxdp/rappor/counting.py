"""Files of RAPPOR reports, counted together: every client once, at its highest level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import MixedFilesError, RapporError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.rappor.counts import RapporCounts
from relaxdp.rappor.filter import BloomShape, bit_support
from relaxdp.rappor.reports import REPORT, read_description, report_batches

Integers = NDArray[np.int64]
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


class Taken(NamedTuple):
    """What a file holds, and how many devices count in it: a client in several files counts in one of them."""

    what: str
    devices: int


def count_files(files: Sequence[Path], shape: BloomShape) -> tuple[RapporCounts, list[Taken]]:
    """Return the counts of all files, and what each holds. A client in several files counts at its highest level."""
    for path in files:
        if sum(path.absolute() == other.absolute() for other in files) > 1:
            raise MixedFilesError("{path!r} is named twice: its devices would count twice.", path=str(path))
    descriptions = {path: read_description(path, shape) for path in files}
    described = {path: description.columns[REPORT] for path, description in descriptions.items()}
    first = described[files[0]]
    for path, report in described.items():
        if (report.path, report.key_fingerprint, report.id_type) != (first.path, first.key_fingerprint, first.id_type):
            raise MixedFilesError(
                "{file!r} is of another release, column or key, or of other kinds of clients, than the first.",
                file=str(path),
            )
    counts, devices = RapporCounts(shape), {}
    seen: set[str] | None = None if len(files) == 1 else set()
    for path in sorted(files, key=lambda each: -described[each].threshold):
        sums = BitSums(shape)
        for ids, cohorts, bits in report_batches(path, descriptions[path].id_column, shape):
            names = None if seen is None else _client_names(ids, first.id_type)
            fresh = slice(None) if names is None or seen is None else _first_seen(names, seen)
            sums.add(cohorts[fresh], bits[fresh])
        counts.add(sums.reports, sums.ones, bit_support(described[path].threshold))
        devices[path] = int(sums.reports.sum())
    levels = {path: epsilon_text(report.epsilon) for path, report in described.items()}
    return counts, [Taken(f"reports at epsilon {levels[path]}", devices[path]) for path in files]


def _client_names(clients: Any, id_type: str) -> list[str]:
    """Return clients as texts by which they are compared: in CSV all are text, and 17 is the one "17" stands for."""
    names = clients.to_pylist()
    if pa.types.is_binary(clients.type) or pa.types.is_fixed_size_binary(clients.type):
        return [name.decode("utf-8", "surrogateescape") for name in names]
    if id_type == "integer":
        try:
            return [str(int(name)) for name in names]
        except (ValueError, TypeError):
            raise RapporError("a client is not of the kind that the description says.") from None
    return [str(name) for name in names]


def _first_seen(names: Sequence[str], seen: set[str]) -> NDArray[np.bool_]:
    """Return which clients are new, and remember them."""
    fresh = np.ones(len(names), dtype=np.bool_)
    for row, client in enumerate(names):
        fresh[row] = client not in seen
        seen.add(client)
    return fresh
