"""The transaction of a vault: draw into a staged file or frame, charge durably, publish.

Every draw is repeatable, because a report is a pure function of key, individual, true value and epsilon. A failure
before the charge costs nothing, and nothing has left. After it, the same call again (or `relax`) hands over the same
reports for free.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, NoReturn

from relaxdp.errors import LedgerUncertainError, RelaxdpError, RowsChangedError, TableFileError
from relaxdp.ledger.account import Account, make_release_event
from relaxdp.ledger.events import SnapshotSummary
from relaxdp.tables.determined_columns import PassthroughCheck
from relaxdp.tables.release_output import FileSink, MemorySink
from relaxdp.tables.release_plan import (
    DrawnBatch,
    InputBatch,
    ReleasePlan,
    StagedRelease,
    reject_concurrent_release,
    reject_useless_columns,
)
from relaxdp.tables.release_result import Release
from relaxdp.tables.snapshot import ChunkKind, Snapshot, StagedSnapshot, TrueRows, cast_to_common_type, restore_ids
from relaxdp.tables.snapshot_comparison import ColumnSnapshotWriter
from relaxdp.tables.table_source import NotAscendingError, TableSource, resize_batches

Progress = Callable[[int, int | None], None]

_CHARGED = "The release was charged, but its rows were not written. The same call again writes them at no cost."
_UNCERTAIN = "Nothing was released. The same call again charges nothing twice."


class Stager(ABC):
    """Stages a release: draws its rows in a temporary place, and hands them over when they are paid for."""

    target: Path | None = None
    """The file of the released rows."""
    table: Any = None
    """The released rows, if not in a file."""

    def __init__(self, plan: ReleasePlan) -> None:
        self.plan = plan
        self.resources = ExitStack()
        """What holds the staged rows, until they are published."""
        self._snapshots: list[StagedSnapshot] = []

    @abstractmethod
    def stage_release(self) -> StagedRelease:
        """Stage the release: draw and seal everything, durably."""

    @abstractmethod
    def hand_over(self) -> None:
        """Hand over what was staged."""

    def discard(self) -> None:
        """Discard the sealed rows, which were not charged."""
        for each in self._snapshots:
            each.discard()

    def start_snapshot(self) -> StagedSnapshot:
        """Start a new snapshot."""
        self._snapshots.append(StagedSnapshot(self.plan.vault.snapshots, self.plan.vault.key))
        return self._snapshots[-1]


def run_release(plan: ReleasePlan, stager: Stager, source: Any) -> Release:
    """Run a release: stage it, charge it and publish it.

    Claim: nothing is drawn twice, charged twice, unpaid or lost, wherever it is killed;
    tests/faults/tables/test_histories.py.
    """
    if plan.request.dry_run:
        _warn_of_determined_columns(plan, source)
        return Release.from_plan(plan, source)
    with plan.vault.lock_snapshots(plan.account), stager.resources:
        staged = _stage(plan, stager)
        account = _charge(plan, staged, stager)
        plan.vault.remove_superseded_snapshots(plan.account, account)
        try:
            stager.hand_over()
        except RelaxdpError as problem:
            problem.consequence = _CHARGED
            raise
    return Release.from_plan(plan, source, staged, account, output=stager.target, table=stager.table)


def _warn_of_determined_columns(plan: ReleasePlan, source: Any) -> None:
    """Warn in a dry run of pass-through columns that determine a protected one. Other faults show in the release."""
    check = PassthroughCheck(plan)
    if plan.passthrough and isinstance(source, TableSource):
        with suppress(RelaxdpError), closing(source.read_sample(plan.input_columns)) as batches:
            for batch in batches:
                if not check.add(plan.read_batch(batch)):
                    break
        check.warn()


def _stage(plan: ReleasePlan, stager: Stager) -> StagedRelease:
    try:
        with reject_concurrent_release(plan.vault, plan.request.name, plan.state):
            staged = stager.stage_release()
        reject_useless_columns(plan.columns, staged.rows, plan.request.planned_epsilon)
    except BaseException:
        stager.discard()
        raise
    return staged


def _charge(plan: ReleasePlan, staged: StagedRelease, stager: Stager) -> Account:
    """Charge the release by one compare-and-swap. Whatever the ledger may name stays where it is."""
    try:
        return plan.vault.append_event(
            lambda account: make_release_event(account, plan.draft_event(staged), plan.state)
        )
    except LedgerUncertainError as problem:
        problem.consequence = _UNCERTAIN
        raise
    except RelaxdpError:
        stager.discard()
        raise


class LocalStager(Stager):
    """Stages a release on this machine: draws rows of a table, or of snapshots, into a file or into memory."""

    def __init__(
        self, plan: ReleasePlan, source: TableSource | None, sink: FileSink | MemorySink, progress: Progress | None
    ) -> None:
        super().__init__(plan)
        self._source, self._sink, self._progress = source, sink, progress
        self.target = sink.target

    def stage_release(self) -> StagedRelease:
        """Stage the release: draw, compare and seal all rows. A table in another order than its ids is sorted first."""
        if self._source is None:
            return self._stage(read_snapshot_rows(self.plan), None)
        with suppress(NotAscendingError):
            return self._stage_source(self._source)
        self.discard()
        self.resources.close()
        self._source.sort_from_now_on()
        return self._stage_source(self._source)

    def hand_over(self) -> None:
        self._sink.publish()
        self.table = self._sink.table

    def _stage_source(self, source: TableSource) -> StagedRelease:
        check = PassthroughCheck(self.plan)
        try:
            with source.batches(self.plan.input_columns, self.plan.id_column) as batches:
                rows = map(self.plan.read_batch, resize_batches(batches))
                staged = self._stage(check.examine(rows), source.rows)
        except RelaxdpError as problem:
            row = problem.fields.get("row")
            if isinstance(row, int):
                original = source.find_original_row(row)
                problem.fields |= {"counted": "by id"} if original is None else {"row": original}
            raise
        check.warn()
        return staged

    def _stage(self, batches: Iterator[InputBatch], expected_rows: int | None) -> StagedRelease:
        plan, rows = self.plan, 0
        described = [] if plan.is_relaxation else plan.describe_snapshots()  # the old snapshots remain
        staged = [self.start_snapshot() for _ in described]
        parts = [each.start_part(description) for each, description in zip(staged, described, strict=True)]
        passthrough = parts[-1] if parts and plan.passthrough else None
        writers = [ColumnSnapshotWriter(plan, *each) for each in zip(plan.columns, staged, parts, strict=False)]

        def draw(batch: InputBatch, first_row: int, number: int) -> DrawnBatch:
            return plan.draw_batch(plan.vault.key, batch, first_row, number, parts)

        self.resources.enter_context(self._sink.open(plan.schema, plan.description))
        with closing(_draw_in_parallel(draw, batches)) as drawn_batches:
            for drawn in drawn_batches:
                for writer, part, chunk in zip(writers, drawn.rows, drawn.sealed, strict=False):
                    writer.add(part, chunk)
                if passthrough is not None:
                    passthrough.write(drawn.sealed[-1])
                self._sink.write(drawn.released)
                rows += drawn.released.num_rows
                if self._progress is not None:
                    self._progress(rows, expected_rows)
        if not rows:
            raise TableFileError("The table has no rows.", hint="Check the file, or the query that made it.")
        self._sink.finish()
        if plan.is_relaxation:
            kept = [each.state for each in plan.columns if each.state is not None]
            columns = [SnapshotSummary(one.snapshot, one.known, one.joined, one.left, one.exchanged) for one in kept]
            return StagedRelease(rows, tuple(columns), None if plan.state is None else plan.state.passthrough_snapshot)
        sealed = tuple(each.finish() for each in writers)
        digest = None
        if passthrough is not None:
            passthrough.close()
            digest = staged[-1].close()
        joined, left = (max(changes) for changes in zip(*(each.joined_and_left for each in writers), strict=True))
        return StagedRelease(rows, sealed, digest, joined, left)


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
    states = [each.state for each in plan.columns if each.state is not None]
    runs = [Snapshot(vault.snapshots, each.snapshot, vault.key) for each in states]
    streams: list[Iterator[Any]] = [each.read_rows(ChunkKind.PRESENT) for each in runs]
    if state is not None and state.passthrough_snapshot is not None:
        sealed = Snapshot(vault.snapshots, state.passthrough_snapshot, vault.key)
        streams.append(sealed.read_batches(ChunkKind.PASSTHROUGH))
    kind = plan.schema.field(plan.id_column).type
    for parts in _align_parts(streams):
        ids = [part.ids if isinstance(part, TrueRows) else part.column(0) for part in parts]
        pairs = [cast_to_common_type(ids[0], other) for other in ids[1:]]
        if not parts or not all(one.equals(other) for one, other in pairs):
            reject_different_rows(plan)
        passthrough = [] if len(parts) == len(runs) else parts[-1].columns[1:]
        yield InputBatch(restore_ids(ids[0], kind), [part.values for part in parts[: len(runs)]], passthrough)


def _align_parts(streams: list[Iterator[Any]]) -> Iterator[list[Any]]:
    """Align the parts of all streams to the same numbers of rows; an empty list where one stream ends early."""
    parts: list[Any] = [()] * len(streams)
    while True:
        for place, stream in enumerate(streams):
            while parts[place] is not None and not len(parts[place]):
                parts[place] = next(stream, None)
        lengths = [0 if part is None else len(part) for part in parts]
        if not any(lengths):
            return
        count = min(lengths)
        yield [part.slice(0, count) for part in parts] if count else []
        parts = [part.slice(count) for part in parts]


def reject_different_rows(plan: ReleasePlan) -> NoReturn:
    """Reject a relaxation of columns, or of a column and pass-through columns, that have different rows."""
    last = max(plan.columns, key=lambda each: 0 if each.state is None else each.state.last_event).column
    raise RowsChangedError(
        "The columns of the release {name!r} were last released from different rows, so one output cannot hold them.",
        hint="Relax {column!r} alone: columns=[{column!r}] (--column {column})."
        if len(plan.columns) > 1
        else "Release {column!r} again from the last table. A level that was released before costs nothing.",
        name=plan.request.name,
        column=last,
    )
