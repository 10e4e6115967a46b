"""RAPPOR reports of a table: client and word in, client, cohort and report out, and the ledger knows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.draw.key import Key
from relaxdp.encode.bits import pack_bits
from relaxdp.encode.bloom import BloomEncoding
from relaxdp.encode.bloom_device import bit_strings
from relaxdp.encode.bloom_filter import BloomShape
from relaxdp.encode.bloom_release import BloomReports, release_bloom
from relaxdp.encode.packed import packed_array
from relaxdp.errors import DescriptionError, LevelError, PathChangedError, TableFileError
from relaxdp.front import Mechanism
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.ledger import Charge
from relaxdp.table.charging import Account, charge, entries, epoch_names, plan_epochs, quote
from relaxdp.table.description import ColumnDescription
from relaxdp.table.fingerprint import Fingerprint
from relaxdp.table.formats import Format, Input, format_of
from relaxdp.table.order import IdOrder, NotAscendingError, counted_by_id, repeated_id
from relaxdp.table.pairs import in_order, paired
from relaxdp.table.plain import plain, plain_type
from relaxdp.table.rappor_reports import CLIENT, COHORT, REPORT, ReportsDescription, bits_of_reports
from relaxdp.table.release import Outcome, finish, refuse_other, write_rows
from relaxdp.table.request import ColumnRequest, TableRequest, id_type_of
from relaxdp.table.temporary import aside

Progress = Callable[[int, int | None], None]
_NOTHING = "Nothing was released."


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
        """Return the columns that are written. Bits travel packed, except in CSV."""
        report = pa.string() if format_of(self.table.target) is Format.CSV else pa.binary(-(-self.shape.bits // 8))
        client = plain_type(schema.field(self.table.id_column).type)
        return pa.schema([(CLIENT, client), (COHORT, pa.uint32()), (REPORT, report)])

    def description(self, id_type: str, name: str) -> ReportsDescription:
        """Return what the file of reports will say about itself."""
        encoding = self.table.columns[0].mechanism.encoding
        column = ColumnDescription(
            release=name,
            attribute=self.column,
            encoding=encoding.name,
            epsilon=self.table.epsilon,
            threshold=encoding.threshold(self.table.epsilon),
            id_type=id_type,
            key_fingerprint=self.table.key.fingerprint,
        )
        return ReportsDescription.make(column, self.shape)


def encode_table(
    request: RapporRequest, account: Account | None, *, progress: Progress | None = None, last_name: str | None = None
) -> Outcome:
    """Write the reports of a table: aside first, then the ledger is charged, then the file gets its name.

    The same call again gives the identical reports and charges nothing; a larger epsilon relaxes them.
    """
    table, id_type = _open(request)
    with aside(request.table.target) as place:
        epochs = plan_epochs(request.table, account, id_type, lambda: [_fingerprint(request, table)])
        (name,) = epoch_names(request.table.release, epochs)
        if last_name not in (None, name):
            raise PathChangedError(f"the last reports are of {last_name!r}, and the ledger is at {name!r}. {_NOTHING}")
        description = request.description(id_type, name)
        refuse_other(request.table, description)
        fingerprint = _new_fingerprint(request)
        batches = _batches(request, table, name, fingerprint, progress)
        rows = write_rows(request.table, place, request.schema(table.schema), description, batches)
        charges = charge(request.table, account, id_type, [fingerprint.text()], epochs)
        finish(request.table, place, description)
    return Outcome(rows, charges)


def relax_table(
    request: RapporRequest, last: Path, account: Account | None, *, progress: Progress | None = None
) -> Outcome:
    """Write the reports of a table at a higher level than those in `last`, which must be this table's own.

    On the keyed path that is to encode again: the new reports and the old ones together cost the new level.
    """
    description = check_last(request, last)
    _compare(request, last, description)
    return encode_table(request, account, progress=progress, last_name=description.report.release)


def quote_table(request: RapporRequest, account: Account) -> list[Charge]:
    """Return what it would cost, from the ledger alone."""
    _, id_type = _open(request)
    return quote(account, entries(request.table, account, id_type, [None]))


def check_last(request: RapporRequest, last: Path) -> ReportsDescription:
    """Return what the last reports say, or refuse those of another path, or at a level that is not lower."""
    description = ReportsDescription.of(last)
    if description is None:
        raise DescriptionError(f"{str(last)!r} does not say its level: it is no file of reports made here. {_NOTHING}")
    report = description.report
    if description.shape != request.shape:
        raise PathChangedError(
            f"the last reports have {description.shape}, and the parameters say {request.shape}. {_NOTHING}"
        )
    if report.key_fingerprint != request.table.key.fingerprint:
        raise PathChangedError(f"the last reports were made with another key. {_NOTHING}")
    if report.attribute != request.column:
        raise PathChangedError(f"the last reports are of the column {report.attribute!r}. {_NOTHING}")
    if request.table.epsilon <= report.epsilon:
        raise LevelError(
            f"epsilon may only grow: the last reports are at {epsilon_text(report.epsilon)} and "
            f"{epsilon_text(request.table.epsilon)} was asked for. A report cannot be taken back.",
            previous=epsilon_text(report.epsilon),
            epsilon=epsilon_text(request.table.epsilon),
        )
    return description


def _compare(request: RapporRequest, last: Path, description: ReportsDescription) -> None:
    """Refuse last reports that this key and this table do not give: a word that changed would show."""
    table, old = Input(request.table.source), Input(last)
    id_column = request.table.id_column
    if id_type_of(old.schema.field(CLIENT).type) != id_type_of(table.schema.field(id_column).type):
        raise PathChangedError(
            f"the clients in {str(last)!r} are of another type than those of the table (in CSV all are text): relax "
            f"reports in Parquet or Arrow IPC, or encode at the higher level. {_NOTHING}"
        )
    mine = in_order(table, [id_column, request.column], id_column, 1)
    theirs = in_order(old, [CLIENT, COHORT, REPORT], CLIENT, 1)
    first_row = 0
    with counted_by_id(mine.were_sorted or theirs.were_sorted), closing(mine), closing(theirs):
        for ours, other in paired(mine, id_column, theirs, CLIENT):
            report = description.report
            made = _release(request, ours, report.release, report.epsilon, None, first_row)
            packed = pack_bits(bits_of_reports(other.column(REPORT), request.shape, first_row))
            cohorts = other.column(COHORT).cast(pa.int64()).to_numpy(zero_copy_only=False)
            if not (np.array_equal(made.packed, packed) and np.array_equal(made.cohorts, cohorts)):
                raise TableFileError(
                    f"the last reports are not what this table gives at epsilon {epsilon_text(report.epsilon)}: a word "
                    f"changed, which would show, or the file is of another table. {_NOTHING}"
                )
            first_row += ours.num_rows


def _open(request: RapporRequest) -> tuple[Input, str]:
    table = Input(request.table.source)
    request.table.check_columns(table.names)
    request.table.check_kinds(table.schema)
    return table, id_type_of(table.schema.field(request.table.id_column).type)


def _new_fingerprint(request: RapporRequest) -> Fingerprint:
    encoding = request.table.columns[0].mechanism.encoding
    return Fingerprint(request.table.key, encoding.path_name(request.table.release, request.column))


def _fingerprint(request: RapporRequest, table: Input) -> str:
    """Read the table once without releasing anything."""
    fingerprint = _new_fingerprint(request)
    deque(_batches(request, table, request.table.release, fingerprint, None), maxlen=0)
    return fingerprint.text()


def _batches(
    request: RapporRequest, table: Input, name: str, fingerprint: Fingerprint, progress: Progress | None
) -> Iterator[Any]:
    """Return batches of reports in the order of the ids, which must ascend: two words under one id are refused."""
    id_column, done, order = request.table.id_column, 0, IdOrder()
    schema = request.schema(table.schema)
    batches = in_order(table, [id_column, request.column], id_column, 1)
    with counted_by_id(batches.were_sorted), closing(batches):
        for batch in batches:
            ids = plain(batch.column(id_column))
            try:
                order.check(ids)
            except NotAscendingError:
                raise repeated_id() from None
            made = _release(request, batch, name, request.table.epsilon, fingerprint, done)
            reports = (
                pa.array(bit_strings(made.packed, request.shape.bits), pa.string())
                if pa.types.is_string(schema.field(REPORT).type)
                else packed_array(made.packed)
            )
            done += batch.num_rows
            if progress is not None:
                progress(done, table.rows)
            yield pa.RecordBatch.from_arrays([ids, pa.array(made.cohorts), reports], schema=schema)


def _release(
    request: RapporRequest, batch: Any, name: str, epsilon: Decimal, fingerprint: Fingerprint | None, first_row: int
) -> BloomReports:
    return release_bloom(
        request.shape,
        plain(batch.column(request.column)),
        plain(batch.column(request.table.id_column)),
        key=request.table.key,
        epsilon=epsilon,
        release=name,
        attribute=request.column,
        first_row=first_row,
        watch=None if fingerprint is None else fingerprint.add,
    )
