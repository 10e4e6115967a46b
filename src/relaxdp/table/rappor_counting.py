"""Files of RAPPOR reports and counts of all kinds, counted together: every client once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relaxdp.encodings.bloom_levels import bit_support, bloom_threshold
from relaxdp.errors import MixedFilesError, RapporError
from relaxdp.estimation.rappor_counts import RapporCounts
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.law.support import Support
from relaxdp.table.formats import Format, Input, format_of
from relaxdp.table.rappor_clients import BitSums, ClassicFile, add_classic, client_names
from relaxdp.table.rappor_files import Parameters, read_counts, read_text
from relaxdp.table.rappor_reports import CLIENT, COHORT, REPORT, ReportsDescription, report_batches

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
    if format_of(path) is not Format.CSV:
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
