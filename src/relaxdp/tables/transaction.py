"""The transaction of a vault: draw into a staged file or frame, charge durably, publish.

Every draw is repeatable, because a report is a pure function of key, individual, true value and epsilon. A failure
before the charge costs nothing, and nothing has left. After it, the same call again (or `relax`) hands over the same
reports for free.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn, Protocol
from unicodedata import normalize

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import (
    LedgerUncertainError,
    RelaxdpError,
    RowsChangedError,
    TableFileError,
)
from relaxdp.ledger.account import Account, ColumnState
from relaxdp.ledger.ledger_rules import make_release_event
from relaxdp.tables.metadata import FileDescription
from relaxdp.tables.release_plan import (
    PlannedColumn,
    ReleasePlan,
    SealedColumn,
    StagedRelease,
    detect_concurrent_release,
    reject_useless_columns,
)
from relaxdp.tables.snapshot import (
    ChunkKind,
    PartWriter,
    Snapshot,
    SnapshotComparison,
    StagedSnapshot,
    TrueRows,
    cast_to_common_type,
    concatenate_ids,
    concatenate_values,
    normalize_ids,
    restore_ids,
)
from relaxdp.tables.table_columns import make_record_batch, remove_hidden_values
from relaxdp.tables.table_source import NotAscendingError, TableSource, resize_batches

Progress = Callable[[int, int | None], None]

MAX_RESPELLED = Decimal("0.01")
"""The share of all known rows that may join while others are absent: respelled ids look like that."""
_LEFT_ROWS = 1 << 16
_CHARGED = "The release was charged, but its rows were not written. The same call again writes them at no cost."
_UNCERTAIN = "Nothing was released. The same call again charges nothing twice."


# The transaction.


class Stager(Protocol):
    """Draws the rows of a plan in a temporary place, and hands them over when they are paid for."""

    def stage(self) -> StagedRelease:
        """Draw and seal everything, durably."""

    def publish(self) -> None:
        """Hand over what was staged."""

    def discard(self) -> None:
        """Remove the sealed rows, which were not charged."""


@dataclass(frozen=True, slots=True)
class ReleaseOutcome:
    """The end of a plan; nothing is staged in a dry run."""

    plan: ReleasePlan
    staged: StagedRelease | None
    account: Account


def run_release(plan: ReleasePlan, open_stager: Callable[[], AbstractContextManager[Stager]]) -> ReleaseOutcome:
    """Stage, charge and publish.

    Claim: nothing is drawn twice, charged twice, unpaid or lost, wherever it is killed;
    tests/faults/tables/test_histories.py.
    """
    if plan.request.dry_run:
        return ReleaseOutcome(plan, None, plan.account)
    with plan.vault.lock_snapshots(plan.account), open_stager() as stager:
        staged = _stage(plan, stager)
        account = _charge(plan, staged, stager)
        plan.vault.remove_snapshots(plan.account, account)
        try:
            stager.publish()
        except RelaxdpError as problem:
            problem.consequence = _CHARGED
            raise
    return ReleaseOutcome(plan, staged, account)


def _stage(plan: ReleasePlan, stager: Stager) -> StagedRelease:
    try:
        with detect_concurrent_release(plan.vault, plan.request.name, plan.state):
            staged = stager.stage()
        reject_useless_columns(plan.columns, staged.rows, plan.request.planned_epsilon)
    except BaseException:
        stager.discard()
        raise
    return staged


def _charge(plan: ReleasePlan, staged: StagedRelease, stager: Stager) -> Account:
    """Charge the release by one compare-and-swap. Whatever the ledger may name stays where it is."""
    request = plan.make_charge_request(staged)
    try:
        return plan.vault.append_event(lambda account: make_release_event(account, request, datetime.now(UTC)))
    except LedgerUncertainError as problem:
        problem.consequence = _UNCERTAIN
        raise
    except RelaxdpError:
        stager.discard()
        raise


class Sink(Protocol):
    """Where released rows go."""

    target: Path | None

    def open(self, schema: Any, description: FileDescription) -> AbstractContextManager[None]:
        """Hold the place where rows are staged."""

    def write(self, batch: Any) -> None:
        """Stage one batch."""

    def finish(self) -> None:
        """Make everything durable."""

    def publish(self) -> None:
        """Hand over what was staged: it is paid for."""


# Drawing: the same batches are compared, sealed and drawn.


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Some rows in the order of their ids: cells of a table, or true values of a snapshot."""

    ids: Any
    cells: list[Any]
    passthrough: list[Any]


@dataclass(frozen=True, slots=True)
class DrawnBatch:
    """Released rows, what they were drawn from, and that sealed."""

    batch: Any
    rows: list[TrueRows]
    sealed: list[bytes]
    passthrough: bytes | None


class _ColumnSnapshotWriter:
    """The snapshot of one column that is being made: all rows of the table, and known rows that are absent from it."""

    def __init__(self, plan: ReleasePlan, column: PlannedColumn, staged: StagedSnapshot) -> None:
        vault, self._known = plan.vault, column.state
        old = None if self._known is None else Snapshot(vault.snapshots, self._known.snapshot, vault.key)
        self.comparison = SnapshotComparison(old, has_left=self._known is not None and self._known.left > 0)
        self._plan, self._column, self._old, self._staged = plan, column, old, staged
        self.part: PartWriter = staged.start_part(plan.describe_snapshot(column))
        self._left: list[TrueRows] = []
        self._left_chunks, self._rows = 0, 0

    def add(self, rows: TrueRows, chunk: bytes) -> None:
        """Compare the next rows, and keep them."""
        self._keep_left(self.comparison.compare_rows(rows))
        if self.comparison.changes.changed:
            reject_changed_values(self._plan.request.name, self._column.column)
        self.part.write(chunk)
        self._rows += len(rows)

    def finish(self) -> SealedColumn:
        """Close the snapshot, or reject a table that does not continue what was released."""
        self._keep_left(self.comparison.finish(), is_last=True)
        self.part.close()
        changes = self.comparison.changes
        if self._known is None:
            return SealedColumn(self._staged.close(), self._rows, 0, 0, 0)
        self._reject_respelled()
        return seal_column(self._plan, self._known, self._staged, joined=changes.joined, absent=changes.absent)

    def _keep_left(self, rows: TrueRows | None, *, is_last: bool = False) -> None:
        self._left += [] if rows is None else [rows]
        if self._left and (is_last or sum(map(len, self._left)) >= _LEFT_ROWS):
            ids = concatenate_ids([each.ids for each in self._left])
            joined = TrueRows(ids, concatenate_values([each.values for each in self._left]))
            self.part.write(self.part.seal_rows(ChunkKind.LEFT, self._left_chunks, joined))
            self._left, self._left_chunks = [], self._left_chunks + 1

    def _reject_respelled(self) -> None:
        """Reject new ids that differ from known ones only in spelling."""
        joined = self.comparison.joined_ids
        if self._old is None or not joined or not pa.types.is_large_string(joined[0].type):
            return
        folded = normalize_spelling(pa.concat_arrays(joined))
        for kind in (ChunkKind.PRESENT, ChunkKind.LEFT):
            for rows in self._old.read_rows(kind):
                if pc.any(pc.is_in(normalize_spelling(rows.ids), value_set=folded), min_count=0).as_py():
                    reject_respelled_ids(self._plan.request.name)


def seal_column(
    plan: ReleasePlan, known: ColumnState, staged: StagedSnapshot, *, joined: int, absent: int
) -> SealedColumn:
    """Finish the snapshot of a column, or reject a table in which too many ids were exchanged for others."""
    rows, exchanged = known.known + joined, known.exchanged + min(joined, absent)
    if exchanged > MAX_RESPELLED * rows:
        if not plan.request.accept_new_rows:
            raise RowsChangedError(
                "{joined:,} rows are new, and {left:,} of the rows ever released as {name!r} are absent. If ids were "
                "respelled, the same people would be drawn twice.",
                hint="Check the ids. If the rows are really new, pass accept_new_rows=True (--accept-new-rows). It is "
                "recorded.",
                name=plan.request.name,
                left=absent,
                joined=joined,
            )
        exchanged = 0
    return SealedColumn(staged.close(), rows, known.joined + joined, absent, exchanged)


def reject_changed_values(name: str, column: str) -> NoReturn:
    """Reject a table in which released values have changed."""
    raise RowsChangedError(
        "The values of {column!r} have changed in some rows since they were released as {name!r}. Releasing them again "
        "would show which rows changed.",
        hint="Relax the last accepted release with vault.relax({name!r}, ...) or `relaxdp relax`, or release the whole "
        "table under a new name at full cost. Do not drop the changed rows: their absence shows who changed.",
        column=column,
        name=name,
    )


def reject_respelled_ids(name: str) -> NoReturn:
    """Reject new ids that differ from known ones only in spelling."""
    raise RowsChangedError(
        "New ids differ from released ones only in case, spaces, leading zeros or a trailing .0. The same people would "
        "be drawn twice.",
        hint="Write the ids as in the first release of {name!r}.",
        name=name,
    )


def normalize_spelling(ids: Any) -> Any:
    """Return text ids in a form in which different spellings are equal."""
    if not pc.all(pc.string_is_ascii(ids), min_count=0).as_py():  # Arrow's lower case leaves ß and ς as they are
        ids = pa.array([normalize("NFKC", normalize("NFKC", each).casefold()) for each in ids.to_pylist()], ids.type)
    folded = pc.utf8_lower(ids)
    folded = pc.replace_substring_regex(folded, r"[\s\p{Z}\p{Cc}\p{Cf}]+", "")  # also characters that are not seen
    folded = pc.replace_substring_regex(folded, r"\.0+$", "")
    return pc.replace_substring_regex(folded, r"^0+", "")


class LocalStager:
    """Draws the rows of a table or of snapshots into a sink, and seals what they were drawn from."""

    def __init__(self, plan: ReleasePlan, source: TableSource | None, sink: Sink, progress: Progress | None) -> None:
        self._plan, self._source, self._sink, self._progress = plan, source, sink, progress
        self._columns: list[_ColumnSnapshotWriter] = []
        self._passthrough: StagedSnapshot | None = None
        self._snapshots: list[StagedSnapshot] = []
        self._exit_stack = ExitStack()

    @contextmanager
    def open(self) -> Iterator[LocalStager]:
        """Hold what is staged until it is published."""
        try:
            yield self
        finally:
            self._exit_stack.close()

    def stage(self) -> StagedRelease:
        """Draw, compare and seal all rows. A table that is not in the order of its ids is sorted first."""
        if self._source is None:
            return self._stage(read_snapshot_rows(self._plan), None)
        with suppress(NotAscendingError):
            return self._stage_source(self._source)
        self.discard()
        self._exit_stack.close()
        self._source.sort()
        return self._stage_source(self._source)

    def publish(self) -> None:
        """Hand over what was staged."""
        self._sink.publish()

    def discard(self) -> None:
        """Remove what was sealed."""
        for each in self._snapshots:
            each.discard()

    def _stage_source(self, source: TableSource) -> StagedRelease:
        plan = self._plan
        names = [each.column for each in plan.columns]

        def read(batches: Iterator[Any]) -> Iterator[InputBatch]:
            for batch in resize_batches(batches):
                yield InputBatch(
                    remove_hidden_values(batch.column(plan.id_column)),
                    [batch.column(name) for name in names],
                    [remove_hidden_values(batch.column(name)) for name in plan.passthrough],
                )

        try:
            with source.batches([plan.id_column, *names, *plan.passthrough], plan.id_column) as batches:
                return self._stage(read(batches), source.rows)
        except RelaxdpError as problem:
            row = problem.fields.get("row")
            if isinstance(row, int):
                original = source.get_original_row(row)
                problem.fields |= {"counted": "by id"} if original is None else {"row": original}
            raise

    def _stage(self, batches: Iterator[InputBatch], expected_rows: int | None) -> StagedRelease:
        plan, rows = self._plan, 0
        if not plan.is_relaxation:
            self._columns = [_ColumnSnapshotWriter(plan, each, self._start_snapshot()) for each in plan.columns]
            if plan.passthrough:
                self._passthrough = self._start_snapshot()
                self._part = self._passthrough.start_part({"release": plan.request.name})
        self._exit_stack.enter_context(self._sink.open(plan.schema, plan.description))
        with closing(_draw_in_parallel(self._draw, batches)) as drawn_batches:
            for drawn in drawn_batches:
                for column, part, chunk in zip(self._columns, drawn.rows, drawn.sealed, strict=False):
                    column.add(part, chunk)
                if self._passthrough is not None and drawn.passthrough is not None:
                    self._part.write(drawn.passthrough)
                self._sink.write(drawn.batch)
                rows += drawn.batch.num_rows
                if self._progress is not None:
                    self._progress(rows, expected_rows)
        if not rows:
            raise TableFileError("The table has no rows.", hint="Check the file, or the query that made it.")
        self._sink.finish()
        return self._finish(rows)

    def _start_snapshot(self) -> StagedSnapshot:
        staged = StagedSnapshot(self._plan.vault.snapshots, self._plan.vault.key)
        self._snapshots.append(staged)
        return staged

    def _finish(self, rows: int) -> StagedRelease:
        plan = self._plan
        if plan.is_relaxation:
            kept = [each.state for each in plan.columns if each.state is not None]
            columns = [SealedColumn(each.snapshot, each.known, each.joined, each.left, each.exchanged) for each in kept]
            return StagedRelease(rows, tuple(columns), None if plan.state is None else plan.state.passthrough_snapshot)
        sealed = tuple(each.finish() for each in self._columns)
        digest = None
        if self._passthrough is not None:
            self._part.close()
            digest = self._passthrough.close()
        changes = [each.comparison.changes for each in self._columns]
        return StagedRelease(
            rows, sealed, digest, max(each.joined for each in changes), max(each.left for each in changes)
        )

    def _draw(self, batch: InputBatch, first_row: int, number: int) -> DrawnBatch:
        arrays, rows, sealed = [batch.ids], [], []
        ids = normalize_ids(batch.ids)
        for planned, cells in zip(self._plan.columns, batch.cells, strict=True):
            reports, values = planned.draw(self._plan.vault, cells, batch.ids, first_row)
            arrays += reports
            rows.append(TrueRows(ids, values))
        for column, part in zip(self._columns, rows, strict=False):
            sealed.append(column.part.seal_rows(ChunkKind.PRESENT, number, part))
        released, passthrough = make_record_batch([*arrays, *batch.passthrough], self._plan.schema), None
        if self._passthrough is not None:
            passthrough = self._part.seal_batch(
                ChunkKind.PASSTHROUGH, number, make_passthrough_batch(released, ids, self._plan.passthrough)
            )
        return DrawnBatch(released, rows, sealed, passthrough)


def make_passthrough_batch(released: Any, ids: Any, names: Sequence[str]) -> Any:
    """Return the pass-through columns of released rows as they are sealed: with the ids, to compare them later."""
    columns = [released.column(name) for name in names]
    fields = [pa.field("", ids.type), *(released.schema.field(name) for name in names)]
    return pa.RecordBatch.from_arrays([ids, *columns], schema=pa.schema(fields))


def _draw_in_parallel(
    draw: Callable[[InputBatch, int, int], DrawnBatch], batches: Iterator[InputBatch]
) -> Generator[DrawnBatch]:
    """Draw batches on all cores, and return them in their order, a few under way at a time."""
    threads = os.cpu_count() or 1
    first_row, number = 0, 0
    with ThreadPoolExecutor(threads) as pool:
        under_way: deque[Future[DrawnBatch]] = deque()
        try:
            for batch in batches:
                if not len(batch.ids):
                    continue
                under_way.append(pool.submit(draw, batch, first_row, number))
                first_row, number = first_row + len(batch.ids), number + 1
                if len(under_way) > 3 * threads:  # so many that no core waits while this thread writes
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def read_snapshot_rows(plan: ReleasePlan) -> Iterator[InputBatch]:
    """Return the rows of the last release of all columns, from their snapshots."""
    vault, state = plan.vault, plan.state
    runs = [Snapshot(vault.snapshots, str(each.state and each.state.snapshot), vault.key) for each in plan.columns]
    readers = [_RowStream(each.read_rows(ChunkKind.PRESENT)) for each in runs]
    kept: _RowStream | None = None
    if state is not None and state.passthrough_snapshot is not None:
        kept = _RowStream(
            Snapshot(vault.snapshots, state.passthrough_snapshot, vault.key).read_batches(ChunkKind.PASSTHROUGH)
        )
    kind = plan.schema.field(plan.id_column).type
    while True:
        everything = [*readers, *([] if kept is None else [kept])]
        counts = [each.count_available() for each in everything]
        if not any(counts):
            return
        parts = [each.take(min(counts)) for each in everything] if min(counts) else []
        ids = [part.ids if isinstance(part, TrueRows) else part.column(0) for part in parts]
        pairs = [cast_to_common_type(ids[0], other) for other in ids[1:]]
        if not parts or not all(one.equals(other) for one, other in pairs):
            reject_different_rows(plan)
        through = [] if kept is None else [parts[-1].column(name) for name in plan.passthrough]
        yield InputBatch(restore_ids(ids[0], kind), [part.values for part in parts[: len(readers)]], through)


def reject_different_rows(plan: ReleasePlan) -> NoReturn:
    """Reject a relaxation of columns, or of a column and pass-through columns, that have different rows."""
    last = max(plan.columns, key=lambda each: 0 if each.state is None else each.state.last_event).column
    raise RowsChangedError(
        "The columns of the release {name!r} were last released from different rows.",
        hint="Relax {column!r} alone: columns=[{column!r}] (--column {column})."
        if len(plan.columns) > 1
        else "Release {column!r} again from the last table. A level that was released before costs nothing.",
        name=plan.request.name,
        column=last,
    )


class _RowStream:
    """The rest of a stream of rows or batches."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts = parts
        self._part: Any = None

    def count_available(self) -> int:
        """Return how many rows the next part has; 0 only at the end."""
        while self._part is None or not len(self._part):
            self._part = next(self._parts, None)
            if self._part is None:
                return 0
        return len(self._part)

    def take(self, count: int) -> Any:
        """Return this many rows of the next part."""
        part = self._part
        if isinstance(part, TrueRows):
            self._part = part.slice(count, len(part))
            return part.slice(0, count)
        self._part = part.slice(count)
        return part.slice(0, count)
