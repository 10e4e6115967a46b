"""Classic reports of clients, in whatever files: those of one client are brought together."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.encodings.bloom_filter import BloomShape
from relaxdp.errors import RapporError
from relaxdp.estimation.rappor_classic import Responses
from relaxdp.estimation.rappor_counts import RapporCounts
from relaxdp.estimation.rappor_samples import Samples
from relaxdp.table.rappor_reports import CLIENT, report_batches

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


class ClassicFile:
    """A file of classic reports that says whose they are: which of its rows count, and for whom."""

    def __init__(self, path: Path, column: str, shape: BloomShape, id_type: str, counted: set[str]) -> None:
        """Read the file; clients that are `counted` already, by reports at a level, do not count again."""
        self.path, self.column, self.shape = path, column, shape
        self.sums = BitSums(shape)
        digest = sha256()
        keys, cohorts, kept = [], [], []
        for batch, places, bits in report_batches(path, column, shape):
            names = client_names(batch.column(CLIENT), id_type, strict=False)
            fresh = np.fromiter((name not in counted for name in names), dtype=np.bool_, count=len(names))
            # 64 bits stand for a client, so that memory does not grow with the length of names.
            keys.append(np.fromiter(map(hash, names), dtype=np.int64, count=len(names)))
            cohorts.append(places)
            kept.append(fresh)
            self.sums.add(places[fresh], bits[fresh])
            digest.update(bits.tobytes())
        empty = np.zeros(0, dtype=np.int64)
        self._keys, self._cohorts = (np.concatenate([empty, *each]) for each in (keys, cohorts))
        self.kept = np.concatenate([empty.astype(np.bool_), *kept])
        self._digest = digest.digest()

    @property
    def rows(self) -> tuple[Integers, Integers]:
        """The clients and the cohorts of the rows that count."""
        return self._keys[self.kept], self._cohorts[self.kept]

    def row(self, place: int) -> int:
        """Return the number of a row in the file, from its place among those that count."""
        return int(np.flatnonzero(self.kept)[place]) + 1

    def is_copy(self, other: ClassicFile) -> bool:
        """Whether it holds the same reports of the same clients, in the same order."""
        return (
            self._digest == other._digest
            and np.array_equal(self._keys, other._keys)
            and np.array_equal(self._cohorts, other._cohorts)
        )

    def batches(self) -> Any:
        """Return the bits of the rows that count, batch by batch, each with the place of its first row among them."""
        first_row = first = 0
        for batch, _, bits in report_batches(self.path, self.column, self.shape):
            kept = self.kept[first_row : first_row + batch.num_rows]
            yield first, bits[kept]
            first_row, first = first_row + batch.num_rows, first + int(kept.sum())


def add_classic(counts: RapporCounts, files: Sequence[ClassicFile], responses: Responses) -> list[tuple[int, int]]:
    """Add the clients of all files; return for each file how many of them are new in it, and how many reports count.

    A file that is a copy of another one adds nothing. Where nobody reported twice, counts are all there is to know.
    """
    known = [file for place, file in enumerate(files) if not any(file.is_copy(other) for other in files[:place])]
    keys, cohorts = (np.concatenate(each) for each in zip(*[file.rows for file in known], strict=True))
    _, first, codes, reports = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    edges = np.cumsum([0, *[int(file.kept.sum()) for file in known]])
    moved = np.flatnonzero(cohorts != cohorts[first][codes])
    if len(moved):
        place = int(np.searchsorted(edges, moved[0], side="right")) - 1
        row = known[place].row(int(moved[0] - edges[place]))
        raise RapporError(
            "{other!r}, row {row:,}: the client was in another cohort before, and a client stays in its cohort.",
            other=str(known[place].path),
            row=row,
        )
    if len(reports) and reports.max() > 1:
        counts.add_samples(_samples(known, edges, codes, reports, cohorts[first], responses))
    else:
        for file in known:
            counts.add(file.sums.reports, file.sums.ones, responses.support)
    owners = np.searchsorted(edges, first, side="right") - 1
    taken = {
        id(file): (int((owners == place).sum()), int(stop - start))
        for place, (file, (start, stop)) in enumerate(zip(known, pairwise(edges), strict=True))
    }
    return [taken.get(id(file), (0, 0)) for file in files]


def _samples(
    files: Sequence[ClassicFile],
    edges: Integers,
    codes: Integers,
    reports: Integers,
    cohorts: Integers,
    responses: Responses,
) -> Samples:
    """Return the sums over clients; only those with several reports are held one by one."""
    shape, several = files[0].shape, reports > 1
    slots = np.cumsum(several) - 1
    held = np.zeros((int(several.sum()), shape.bits), dtype=np.min_scalar_type(int(reports.max())))
    single = BitSums(shape)
    for file, start in zip(files, edges, strict=False):
        for first, bits in file.batches():
            owners = codes[start + first : start + first + len(bits)]
            again = several[owners]
            np.add.at(held, slots[owners[again]], bits[again].astype(held.dtype))
            single.add(cohorts[owners[~again]], bits[~again])
    means, squares = single.ones.astype(float), single.ones.astype(float)
    for cohort in range(shape.cohorts):
        inside = several & (cohorts == cohort)
        own = held[slots[inside]] / reports[inside][:, None]
        means[cohort] += own.sum(axis=0)
        squares[cohort] += (own**2).sum(axis=0)
    clients = np.bincount(cohorts, minlength=shape.cohorts).astype(np.int64)
    inverse = np.bincount(cohorts, weights=1 / reports, minlength=shape.cohorts).astype(float)
    return Samples(responses, clients, means, inverse, squares)


def client_names(clients: Any, id_type: str, *, strict: bool = True) -> list[str]:
    """Return clients as texts by which they are compared: in CSV all are text, and 17 is the one "17" stands for."""
    names = clients.to_pylist()
    if pa.types.is_binary(clients.type) or pa.types.is_fixed_size_binary(clients.type):
        return [name.decode("utf-8", "surrogateescape") for name in names]
    if id_type == "integer":
        try:
            return [str(int(name)) for name in names]
        except (ValueError, TypeError):
            if strict:
                raise RapporError("a client is not of the kind that the description says.") from None
    return [str(name) for name in names]
