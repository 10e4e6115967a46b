"""Releases from a snapshot: the next level of what was released before, without its table; and how one is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.protocol import Truths
from relaxdp.errors import OptionError, SnapshotError, UnknownReleaseError
from relaxdp.lazy import narwhals as nw
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.entries import Entry, Sampler
from relaxdp.ledger.payer import Payer
from relaxdp.mechanisms import mechanism_of
from relaxdp.publication.request import ColumnRequest, Planned, ReleaseRequest, TableRequest, id_type_of
from relaxdp.publication.snapshot import PartWriter, SnapshotTable, damaged, rebuilt
from relaxdp.publication.snapshot_folder import find
from relaxdp.publication.transaction import Drawing, Plan, Progress, Seen, Staged
from relaxdp.table.engine import Engine, joined, read_ahead
from relaxdp.table.formats import BATCH_ROWS, Input
from relaxdp.table.frame_description import describe
from relaxdp.table.growing import Tagger
from relaxdp.table.order import NotAscendingError
from relaxdp.table.release import TableDrawing, refuse_rowless


def released_states(known: Account, release: str, date: str, columns: Sequence[str] | None) -> list[PathState]:
    """Return the paths of a release that go on: all of them, or those of some columns."""
    paths = {state.path.attribute for state in known.paths if (state.path.release, state.path.date) == (release, date)}
    missing = sorted(set(columns or ()) - paths)
    if not paths or missing:
        of = f"{release!r} of {date}" if date else f"{release!r}"
        raise UnknownReleaseError(
            "the ledger knows no release {of} of {subject}." if not paths else "{of} has no column {column!r}.",
            of=of,
            subject=str(known.subject),
            column=missing[0] if missing else None,
        )
    found = (known.last_epoch(PathId(release, name, date=date)) for name in columns or sorted(paths))
    return [state for state in found if state is not None]


def snapshot_of(states: Sequence[PathState], folder: Path | None, key: Key) -> SnapshotTable:
    """Open the one snapshot that paths were released from, or say why there is none."""
    for state in states:
        if state.facts.growing:
            raise SnapshotError(
                "rows of {path} join and leave, so that no snapshot of it is kept.", remedy="table", path=state.path
            )
        if state.facts.sampler is Sampler.ALGORITHM_1:
            raise SnapshotError(
                "{path} went on with Algorithm 1, which has closed its keyed path.",
                remedy="from_reports",
                path=state.path,
            )
        if state.snapshot is None:
            raise SnapshotError("no snapshot was kept of {path}.", remedy="table", path=state.path)
    digests = {str(state.snapshot) for state in states}
    if len(digests) > 1:
        raise OptionError(
            "the columns {columns} were released apart from each other: relax one after the other.",
            remedy="columns_apart",
            columns=", ".join(repr(state.path.attribute) for state in states),
        )
    (digest,) = digests
    if folder is None:
        raise SnapshotError("nobody says where the snapshot of {path} lies.", remedy="snapshots", path=states[0].path)
    place = find(folder, digest)
    if place is None:
        raise SnapshotError(
            "the snapshot of {path} is not in {folder!r}.",
            remedy="snapshots",
            path=states[0].path,
            folder=str(folder),
        )
    return SnapshotTable(place, key, digest)


def column_requests(table: SnapshotTable, states: Sequence[PathState]) -> list[ColumnRequest]:
    """Return the columns that are to be relaxed, as the snapshot describes them."""
    found = []
    for state in states:
        described = table.description.columns.get(state.path.attribute)
        if described is None or described.path != state.path:
            raise SnapshotError("{path!r} is of another release.", path=str(table.path))
        encoding = rebuilt(described)
        if encoding is None:
            raise SnapshotError("no snapshot holds all that {path} is encoded by.", remedy="table", path=state.path)
        found.append(ColumnRequest(state.path.attribute, mechanism_of(encoding)))
    return found


def drawing_of(
    states: Sequence[PathState],
    folder: Path | None,
    key: Key,
    epsilon: Decimal,
    target: Path | None,
    *,
    frame: str,
    threads: int,
    progress: Progress | None,
) -> Drawing:
    """Return what draws the next level of paths from their snapshot, to a file or to a frame."""
    table, path = snapshot_of(states, folder, key), states[0].path
    order = list(table.description.columns)  # as they were released
    states = sorted(states, key=lambda state: order.index(state.path.attribute) if state.path.attribute in order else 0)
    request = ReleaseRequest(
        id_column=table.description.id_column,
        columns=column_requests(table, states),
        epsilon=epsilon,
        key=key,
        release=path.release,
        date=path.date,
    )
    if target is None:
        return SnapshotFrameDrawing(table, request, frame, threads)
    between = TableRequest.between(request, table.path, target)
    return SnapshotFileDrawing(between, threads=threads, progress=progress, table=table)


@dataclass(frozen=True, slots=True)
class Changes:
    """How a table differs from a snapshot of it. These are truths, for whoever holds them and for nobody else."""

    column: str
    as_of: str | None
    changed: int
    joined: int
    left: int


def changes_since(request: ReleaseRequest, table: Input, state: PathState, snapshot: SnapshotTable) -> Changes:
    """Count the rows of one column that are others than they were, and those that joined or left."""
    column = next(each for each in request.planned() if each.path.attribute == state.path.attribute)
    before = replace(column, request=ColumnRequest(column.request.column, column.request.mechanism))
    now = _tags(request, column, table.batches([request.id_column, column.request.column]))
    then = _tags(request, before, snapshot.batches(()))
    common, here, there = np.intersect1d(now[0], then[0], assume_unique=True, return_indices=True)
    changed = int(np.count_nonzero(now[1][here] != then[1][there]))
    return Changes(
        column.request.column, state.facts.as_of, changed, len(now[0]) - len(common), len(then[0]) - len(common)
    )


def _tags(request: ReleaseRequest, column: Planned, batches: Iterable[Any]) -> tuple[Any, Any]:
    tagger = Tagger(request, [column])
    pairs = [tagger.tags(batch)[0] for batch in batches]
    ids, rows = zip(*pairs, strict=True)
    return np.concatenate(ids), np.concatenate(rows)


class SnapshotFileDrawing(TableDrawing):
    """A snapshot to a file. It has what the path was opened with: nothing is derived, and nothing is kept again."""

    seals: ClassVar[bool] = False

    def check_truth(self) -> None:
        """Look no further: what was sealed is the truth."""

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Refuse what asks for it: a snapshot has not changed."""
        raise AssertionError("nobody forces a snapshot")

    def stage(self, plan: Plan) -> Staged:
        """Write the reports of all rows. Only at the end it is known that the snapshot is the right one."""
        with closing(read_ahead(self.table.batches(()), self._threads)) as batches:
            try:
                return self._stage(plan, batches)
            except NotAscendingError:
                raise damaged(self.table.path) from None


class SnapshotFrameDrawing(Drawing):
    """A snapshot to a data frame, in memory."""

    def __init__(self, table: SnapshotTable, request: ReleaseRequest, frame: str, threads: int) -> None:
        self._table, self.request, self._kind, self._threads = table, request, frame, threads
        self.id_type = id_type_of(table.schema.field(request.id_column).type)

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold nothing: it is staged in memory."""
        yield

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Refuse what asks for it: a snapshot has not changed."""
        raise AssertionError("nobody forces a snapshot")

    def stage(self, plan: Plan) -> Staged:
        """Make the whole frame: after the charge nothing is left to fail."""
        engine = Engine(self.request, self._table.schema, plan.columns)
        with closing(self._table.batches(())) as batches:
            drawn = pa.Table.from_batches(engine.run(batches, self._threads, lambda _: None), engine.schema)
        refuse_rowless(drawn.num_rows)
        made: Any = drawn.unify_dictionaries().combine_chunks()
        if self._kind != "pyarrow":
            made = nw.from_arrow(made, backend=cast("Any", self._kind)).to_native()
        rows = drawn.num_rows
        return Staged(rows, engine.seen(), describe(made, replace(plan.description, rows=rows)))

    def publish(self, plan: Plan, staged: Staged) -> Any:
        """Return the frame."""
        return staged.content


class KeptInMemory:
    """Takes what an engine seals in the order of the rows, and writes it in that of the ids, as snapshots have it."""

    def __init__(self) -> None:
        self._ids: list[Any] = []
        self._truths: list[Sequence[Truths]] = []

    def seal(self, number: int, ids: Any, truths: Sequence[Truths]) -> tuple[Any, Sequence[Truths]]:
        """Return the rows of a batch as they are."""
        return ids, truths

    def write(self, chunk: tuple[Any, Sequence[Truths]]) -> None:
        """Take the next rows."""
        self._ids.append(chunk[0])
        self._truths.append(chunk[1])

    def close(self, part: PartWriter, order: NDArray[np.int64]) -> str:
        """Write all rows in this order, and return the digest."""
        ids = pa.chunked_array(self._ids)
        columns = [joined(each) for each in zip(*self._truths, strict=True)]
        for number, start in enumerate(range(0, len(order), BATCH_ROWS)):
            rows = order[start : start + BATCH_ROWS]
            taken = pa.concat_arrays(ids.take(pa.array(rows)).chunks)
            part.write(part.seal(number, taken, [column[rows] for column in columns]))
        return part.close()
