"""RAPPOR reports of a table: client and word in, client, cohort and report out, and the ledger knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.bits import pack_bits
from relaxdp.encodings.packed import packed_array
from relaxdp.encodings.release import Fingerprint
from relaxdp.errors import DescriptionError, LevelError, PathChangedError, TableFileError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.level import Level
from relaxdp.ledger.account import Account
from relaxdp.ledger.entries import Entry
from relaxdp.ledger.payer import Payer
from relaxdp.mechanisms import Mechanism
from relaxdp.publication.description import ColumnDescription
from relaxdp.publication.plain import plain, plain_type
from relaxdp.publication.request import ColumnRequest, Planned, TableRequest, id_type_of
from relaxdp.publication.transaction import Plan, Progress, Seen, Staged
from relaxdp.rappor.device import bit_strings
from relaxdp.rappor.encoding import BloomEncoding, BloomReports, release_bloom
from relaxdp.rappor.filter import BloomShape
from relaxdp.rappor.reports import CLIENT, COHORT, REPORT, ReportsDescription, bits_of_reports
from relaxdp.table.formats import Input
from relaxdp.table.kinds import Format, format_of
from relaxdp.table.order import IdOrder, counted_by_id, in_order, paired
from relaxdp.table.release import FileDrawing


@dataclass(frozen=True, slots=True)
class RapporRequest:
    """A table of clients and words, and the reports that are to be made of it."""

    shape: BloomShape
    table: TableRequest

    @classmethod
    def make(
        cls, shape: BloomShape, source: Path, target: Path, *, id_column: str, column: str, epsilon: Decimal,
        key: Key, release: str,
    ) -> RapporRequest:  # fmt: skip
        """Return the request; the whole release is one path in the ledger, whatever cohorts its clients are in."""
        columns = [ColumnRequest(column, Mechanism(BloomEncoding(shape)))]
        return cls(
            shape,
            TableRequest(
                id_column=id_column, columns=columns, epsilon=epsilon, key=key, release=release,
                source=source, target=target,
            ),
        )  # fmt: skip

    @property
    def column(self) -> str:
        """The column of words, which names the path."""
        return self.table.columns[0].column

    def schema(self, schema: Any) -> Any:
        """Return the columns that are written. Bits travel packed, except in text."""
        report = pa.string() if format_of(self.table.target) is Format.CSV else pa.binary(-(-self.shape.bits // 8))
        client = plain_type(schema.field(self.table.id_column).type)
        return pa.schema([(CLIENT, client), (COHORT, pa.uint32()), (REPORT, report)])


class RapporDrawing(FileDrawing):
    """A table of clients and words to a file of clients, cohorts and reports."""

    request: TableRequest

    def __init__(self, rappor: RapporRequest, *, last: Path | None = None, progress: Progress | None = None) -> None:
        """Open the table; `last` are reports of this very table at a lower level, which these are to go on from.

        On the keyed path that is to encode again: the new reports and the old ones together cost the new level.
        """
        super().__init__(rappor.table, progress)
        self._rappor = rappor
        self._last = None if last is None else check_last(rappor, last)
        if last is not None and self._last is not None:
            self._compare(last, self._last)

    def check_known(self, known: Account | None) -> None:
        """Refuse last reports of another path, or of another epoch than the one that will be drawn."""
        here = PathId(self.request.release, self._rappor.column)
        state = None if known is None else known.last_epoch(here)
        self._check_last(here if state is None else state.path)

    def _check_last(self, here: PathId) -> None:
        given = here if self._last is None else self._last.report.path
        if given != here:
            raise PathChangedError(
                "the last reports are {given}, and these would be {here}: what both tell would add up.",
                given=given,
                here=here,
                release=given.release,
                epoch=given.epoch,
            )

    def describe(self, columns: Sequence[Planned]) -> ReportsDescription:
        """Return what the file of reports will say about itself."""
        (each,) = columns
        column = ColumnDescription.of(
            each.encoding,
            each.level,
            path=each.path,
            id_type=self.id_type,
            key_fingerprint=self.request.key.fingerprint,
        )
        return ReportsDescription.make(column, self._rappor.shape)

    def look(self, entries: Sequence[Entry], payer: Payer) -> list[Seen]:
        """Read the table once without releasing anything."""
        (column,) = self.request.planned()
        fingerprint = Fingerprint.of(self.request.key, column.encoding, column.path)
        deque(self._batches(column, fingerprint), maxlen=0)
        return [Seen(fingerprint.text())]

    def stage(self, plan: Plan) -> Staged:
        """Write the reports, in the order of the clients."""
        (column,) = plan.columns
        fingerprint = Fingerprint.of(self.request.key, column.encoding, column.path)
        self._check_last(column.path)  # a forced epoch is another one than that of the last reports
        batches = self._batches(column, fingerprint, self.advance)
        rows = self.write(plan, self._rappor.schema(self.table.schema), batches)
        return Staged(rows, [Seen(fingerprint.text())], self._place)

    def _batches(
        self, column: Planned, fingerprint: Fingerprint, advance: Callable[[int], None] = lambda _: None
    ) -> Iterator[Any]:
        """Return batches of reports in the order of the ids, which must ascend: two words under one id are refused."""
        id_column, done, order = self.request.id_column, 0, IdOrder(is_sorted=True)
        schema = self._rappor.schema(self.table.schema)
        batches = in_order(self.table, [id_column, self._rappor.column], id_column, 1)
        with counted_by_id(batches.were_sorted), closing(batches):
            for batch in batches:
                ids = plain(batch.column(id_column))
                order.check(ids)
                made = self._drawn(batch, column.path, column.level, done, fingerprint)
                reports = (
                    pa.array(bit_strings(made.packed, self._rappor.shape.bits), pa.string())
                    if pa.types.is_string(schema.field(REPORT).type)
                    else packed_array(made.packed)
                )
                done += batch.num_rows
                advance(batch.num_rows)
                yield pa.RecordBatch.from_arrays([ids, pa.array(made.cohorts), reports], schema=schema)

    def _compare(self, last: Path, description: ReportsDescription) -> None:
        """Refuse last reports that this key and this table do not give: a word that changed would show."""
        table, old, report = self.table, Input(last), description.report
        id_column = self.request.id_column
        if id_type_of(old.schema.field(CLIENT).type) != self.id_type:
            raise PathChangedError(
                "the clients in {last!r} are of another type than those of the table (in CSV all are text): "
                "relax reports in Parquet, or encode at the higher level.",
                last=str(last),
            )
        level = BloomEncoding(self._rappor.shape).level(report.epsilon, report.threshold)
        mine = in_order(table, [id_column, self._rappor.column], id_column, 1)
        theirs = in_order(old, [CLIENT, COHORT, REPORT], CLIENT, 1)
        first_row = 0
        with counted_by_id(mine.were_sorted or theirs.were_sorted), closing(mine), closing(theirs):
            for ours, other in paired(mine, id_column, theirs, CLIENT):
                made = self._drawn(ours, report.path, level, first_row)
                packed = pack_bits(bits_of_reports(other.column(REPORT), self._rappor.shape, first_row))
                cohorts = other.column(COHORT).cast(pa.int64()).to_numpy(zero_copy_only=False)
                if not (np.array_equal(made.packed, packed) and np.array_equal(made.cohorts, cohorts)):
                    raise TableFileError(
                        "the last reports are not what this table gives at epsilon {level}: a word changed, "
                        "which would show, or the file is of another table.",
                        level=level,
                    )
                first_row += ours.num_rows

    def _drawn(
        self, batch: Any, path: PathId, level: Level, first_row: int, fingerprint: Fingerprint | None = None
    ) -> BloomReports:
        return release_bloom(
            self._rappor.shape,
            plain(batch.column(self._rappor.column)),
            plain(batch.column(self.request.id_column)),
            key=self.request.key,
            level=level,
            path=path,
            first_row=first_row,
            watch=None if fingerprint is None else fingerprint.add,
        )


def check_last(request: RapporRequest, last: Path) -> ReportsDescription:
    """Return what the last reports say, or refuse those of another path, or at a level that is not lower."""
    description = ReportsDescription.of(last)
    if description is None:
        raise DescriptionError("{last!r} does not say its level: it is no file of reports made here.", last=str(last))
    report = description.report
    if description.shape != request.shape:
        raise PathChangedError(
            "the last reports have {found}, and the parameters say {shape}.",
            found=description.shape,
            shape=request.shape,
        )
    if report.key_fingerprint != request.table.key.fingerprint:
        raise PathChangedError("the last reports were made with another key.")
    if report.path.attribute != request.column:
        raise PathChangedError("the last reports are of the column {attribute!r}.", attribute=report.path.attribute)
    if request.table.epsilon <= report.epsilon:
        raise LevelError(
            "epsilon may only grow: the last reports are at {previous} and {epsilon} was asked for. A report "
            "cannot be taken back.",
            previous=epsilon_text(report.epsilon),
            epsilon=epsilon_text(request.table.epsilon),
        )
    return description
