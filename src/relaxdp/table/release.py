"""Columns of a table in a file, released on the keyed path."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from relaxdp.ledger.account import Account
from relaxdp.ledger.paths import Entry
from relaxdp.table.engine import Engine
from relaxdp.table.file_release import FileDrawing
from relaxdp.table.growing import Growth, watched_growth
from relaxdp.table.order import NotAscendingError, counted_by_id, repeated_id, sorted_batches
from relaxdp.table.payer import Payer
from relaxdp.table.publication import Outcome, Plan, Progress, Seen, Staged, publish
from relaxdp.table.refusals import refuse_reports
from relaxdp.table.request import TableRequest


class TableDrawing(FileDrawing):
    """A file to a file: in the order of the ids, on several cores, with flat memory."""

    def __init__(self, request: TableRequest, *, threads: int = 1, progress: Progress | None = None) -> None:
        super().__init__(request, progress)
        refuse_reports(self.table, [each.column for each in request.columns])
        self._threads = threads
        self._stack = ExitStack()
        self._growth: Growth | None = None

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold a place beside the target; the tags of a growing table are held from the look at its rows on."""
        with super().held(payer), self._stack:
            yield

    def look(self, entries: Sequence[Entry], payer: Payer, known: Account) -> list[Seen]:
        """Read the table once without releasing anything. The order of the rows does not matter here."""
        if payer.growing is not None:
            watched = watched_growth(self.request, entries, payer, self.table, threads=self._threads)
            self._growth = self._stack.enter_context(watched)
            return self._growth.seen
        engine = Engine(self.request, self.table.schema, self.request.planned())
        batches = self.table.batches(self.request.input_columns())
        deque(engine.run(batches, self._threads, lambda _: None, ordered=False), maxlen=0)
        return engine.seen()

    def stage(self, plan: Plan) -> Staged:
        """Write the released rows; where the input turns out not to be sorted by id, once more through a sort."""
        columns = self.request.input_columns()
        try:
            with closing(self.table.batches(columns)) as batches:
                return self._stage(plan, batches)
        except NotAscendingError:
            self.advance(None)
        ordered = sorted_batches(self.table, columns, self.request.id_column, self._threads)
        try:
            with counted_by_id(), closing(ordered) as batches:
                return self._stage(plan, batches)
        except NotAscendingError:
            raise repeated_id() from None

    def _stage(self, plan: Plan, batches: Iterator[Any]) -> Staged:
        engine = Engine(self.request, self.table.schema, plan.columns)
        rows = self.write(plan, engine.schema, engine.run(batches, self._threads, self.advance))
        seen = engine.seen()
        if self._growth is not None:
            self._growth.check(seen)
            seen = self._growth.seen
        return Staged(rows, seen, self._place)


def release_table(
    request: TableRequest, payer: Payer | None, *, threads: int = 1, progress: Progress | None = None
) -> Outcome:
    """Release columns of a table. The same call again gives the identical reports and charges nothing."""
    return publish(TableDrawing(request, threads=threads, progress=progress), payer)
