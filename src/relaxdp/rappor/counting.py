"""Files of RAPPOR reports and counts of all kinds, counted together: every client once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.errors import MixedFilesError, RapporError
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.law.support import Support
from relaxdp.rappor.classic import Responses, Samples
from relaxdp.rappor.counts import RapporCounts
from relaxdp.rappor.files import Parameters, read_counts, read_text
from relaxdp.rappor.filter import BloomShape, bit_support, bloom_threshold
from relaxdp.rappor.reports import CLIENT, COHORT, REPORT, ReportsDescription, report_batches
from relaxdp.table.formats import Input
from relaxdp.table.kinds import Format, Kind, kind_of

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


_GOOGLE_REPORT = "irr"


class Taken(NamedTuple):
    """What a file was taken for, and what of it counts: a client in several files counts in one of them."""

    what: str
    devices: int
    reports: int
    says_whose: bool
    """Whether it says which reports are of one client; where it does not, each is taken for a client of its own."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    column: str | None
    """The column of reports; None where there are counts."""
    epsilon: Decimal | None
    """The level that was named for it."""
    description: ReportsDescription | None = None
    says_whose: bool = False

    @property
    def level(self) -> Decimal | None:
        return self.description.report.epsilon if self.description else self.epsilon

    @property
    def what(self) -> str:
        name = "counts" if self.column is None else "reports" if self.column == REPORT else "classic reports"
        if self.level is None:
            return f"{name} as the parameters' f, p and q say"
        return f"{name} at epsilon {epsilon_text(self.level)}"

    def threshold(self, counts: RapporCounts) -> int:
        """Return the threshold of its level."""
        if self.description is not None:
            return self.description.report.threshold
        assert self.epsilon is not None  # noqa: S101 (asked only of files at a level)
        return bloom_threshold(counts.shape, self.epsilon)


def count_files(
    files: Sequence[Path], parameters: Parameters, epsilons: Sequence[str] = (), *, column: str | None = None
) -> tuple[RapporCounts, list[Taken]]:
    """Return the counts of all files, and what each was taken for.

    Our files say their level, and a client in several of them counts once, at its highest. Google's reports, and counts
    without a level, were answered as the parameters' f, p and q say; `epsilons` names the level of each file instead.
    Classic reports of one client are averaged, over all files, and count once. A client that has reports at a level too
    counts by those alone.
    """
    if epsilons and len(epsilons) != len(files):
        raise RapporError(
            "there are {files} files and {epsilons} levels: name one for each file, or none.",
            files=len(files),
            epsilons=len(epsilons),
        )
    for path in files:
        if sum(path.absolute() == other.absolute() for other in files) > 1:
            raise MixedFilesError("{path!r} is named twice: its devices would count twice.", path=str(path))
    counts = RapporCounts(parameters.shape)
    levels = [as_epsilon(each) for each in epsilons] if epsilons else [None] * len(files)
    opened = [_open(path, level, column) for path, level in zip(files, levels, strict=True)]
    taken = _count_nameless(counts, [file for file in opened if not file.says_whose], parameters)
    named = [file for file in opened if file.says_whose]
    described = next((file.description for file in named if file.description), None)
    id_type = described.report.id_type if described else "text"
    seen: set[str] | None = None if len(named) == 1 and described else set()
    taken |= _count_levels(counts, [file for file in named if file.level is not None], seen, id_type)
    classic = [file for file in named if file.level is None]
    if classic:
        read = [ClassicFile(file.path, str(file.column), counts.shape, id_type, seen or set()) for file in classic]
        taken |= zip([file.path for file in classic], add_classic(counts, read, parameters.responses), strict=True)
    return counts, [Taken(file.what, *taken[file.path], file.says_whose) for file in opened]


def _open(path: Path, epsilon: Decimal | None, column: str | None) -> _File:
    if _holds_counts(path):
        return _File(path, None, epsilon)
    names = Input(path).schema.names
    wanted = (REPORT, _GOOGLE_REPORT) if column is None else (column,)
    found = next((each for each in wanted if {COHORT, each} <= set(names)), None)
    if found is None:
        raise RapporError(
            "{path!r} holds neither counts nor reports: reports have the columns {columns}.",
            remedy="report_column" if column is None else "",
            path=str(path),
            columns=f"{CLIENT}, {COHORT} and {REPORT if column is None else column}",
        )
    description = ReportsDescription.of(path) if found == REPORT else None
    if description is not None and epsilon is not None and epsilon != description.report.epsilon:
        raise RapporError(
            "{path!r} says its level itself, and it is not {epsilon}.", path=str(path), epsilon=epsilon_text(epsilon)
        )
    if found == REPORT and description is None and epsilon is None:
        raise RapporError("{path!r} does not say its level.", remedy="epsilon", path=str(path))
    return _File(path, found, epsilon, description, CLIENT in names)


def _holds_counts(path: Path) -> bool:
    """Whether a file has no header: its first line is numbers."""
    if kind_of(path) != Kind(Format.CSV):
        return False
    fields = [field.strip(' "\r\n') for field in read_text(path, "file", first_line=True).split(",")]
    return fields[0].isdigit() and all(field.isdigit() for field in fields if field)


def _count_nameless(
    counts: RapporCounts, files: Sequence[_File], parameters: Parameters
) -> dict[Path, tuple[int, int]]:
    """Count files that do not say whose reports they hold; two of them with the same content are refused."""
    taken: dict[Path, tuple[int, int]] = {}
    known: dict[Any, Path] = {}
    for file in files:
        sums, content = BitSums(counts.shape), sha256()
        if file.column is None:
            sums.reports, sums.ones = read_counts(file.path, counts.shape)
        else:
            for _, cohorts, bits in report_batches(file.path, file.column, counts.shape):
                sums.add(cohorts, bits)
                content.update(bits.tobytes())
        key = (sums.reports.tobytes(), sums.ones.tobytes(), content.digest())
        if key in known:
            raise MixedFilesError(
                "{file!r} holds the same as {other!r}: its devices would count twice. If they are other "
                "devices after all, put both into one file.",
                file=str(file.path),
                other=str(known[key]),
            )
        known[key] = file.path
        counts.add(sums.reports, sums.ones, _support(file, counts, parameters))
        taken[file.path] = int(sums.reports.sum()), int(sums.reports.sum())
    return taken


def _support(file: _File, counts: RapporCounts, parameters: Parameters) -> Support:
    return parameters.responses.support if file.level is None else bit_support(file.threshold(counts))


def _count_levels(
    counts: RapporCounts, files: Sequence[_File], seen: set[str] | None, id_type: str
) -> dict[Path, tuple[int, int]]:
    """Count reports at levels, the highest first, each client once; return how many count in each file."""
    taken: dict[Path, tuple[int, int]] = {}
    first = next((file.description.report for file in files if file.description), None)
    for file in sorted(files, key=lambda each: -each.threshold(counts)):
        if file.description is not None and first is not None:
            report = file.description.report
            if file.description.shape != counts.shape:
                raise RapporError(
                    "the reports in {file!r} have {found}, and the parameters say {shape}.",
                    file=str(file.path),
                    found=file.description.shape,
                    shape=counts.shape,
                )
            if (report.path, report.key_fingerprint, report.id_type) != (
                first.path, first.key_fingerprint, first.id_type
            ):  # fmt: skip
                raise MixedFilesError(
                    "{file!r} is of another release, column or key, or of other kinds of clients, than the first.",
                    file=str(file.path),
                )
        sums = BitSums(counts.shape)
        for batch, cohorts, bits in report_batches(file.path, str(file.column), counts.shape):
            names = None if seen is None else client_names(
                batch.column(CLIENT), id_type, strict=file.description is not None
            )  # fmt: skip
            fresh = slice(None) if names is None or seen is None else _first_seen(names, seen)
            sums.add(cohorts[fresh], bits[fresh])
        counts.add(sums.reports, sums.ones, bit_support(file.threshold(counts)))
        taken[file.path] = int(sums.reports.sum()), int(sums.reports.sum())
    return taken


def _first_seen(names: Sequence[str], seen: set[str]) -> NDArray[np.bool_]:
    """Return which clients are new, and remember them."""
    fresh = np.ones(len(names), dtype=np.bool_)
    for row, client in enumerate(names):
        fresh[row] = client not in seen
        seen.add(client)
    return fresh
