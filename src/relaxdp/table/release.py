"""A release of a table: write aside, charge the ledger durably, rename. What fails before the charge costs nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from relaxdp.errors import TableFileError
from relaxdp.ledger.ledger import Charge
from relaxdp.table.charging import Account, charge, entries, epoch_names, plan_epochs, quote
from relaxdp.table.description import FileDescription
from relaxdp.table.engine import Engine
from relaxdp.table.formats import Format, Input, Output, csv_rows, format_of, sidecar_of
from relaxdp.table.growing import Growth, watched_growth
from relaxdp.table.order import NotAscendingError, counted_by_id, repeated_id, sorted_batches
from relaxdp.table.refusals import check_ending, other_description, refuse_reports, refuse_rowless, refuse_taken
from relaxdp.table.request import TableRequest, id_type_of
from relaxdp.table.temporary import aside, put_in_place, refuse_existing

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a release did: how many rows left, and what each column cost (nothing is known without a ledger)."""

    rows: int
    charges: list[Charge]


def release_table(
    request: TableRequest, account: Account | None, *, threads: int = 1, progress: Progress | None = None
) -> Outcome:
    """Release columns of a table. The same call again gives the identical reports and charges nothing.

    The order is what makes it safe: the output is written aside and made durable; the ledger commits; the file is
    renamed. Killed before the commit, nothing was charged and nothing left. Killed after it, the ledger shows a level
    whose file never appeared, and running again produces that very file.
    """
    table, id_type = open_table(request)
    refuse_taken(request.target, partial(_quoted, request, account, id_type))
    with ExitStack() as stack:
        place = stack.enter_context(aside(request.target))
        growth = _growth(request, account, table, id_type, threads, stack)
        epochs = _epochs(request, account, table, id_type, threads, growth)
        names = epoch_names(request.release, epochs)
        refuse_other(request, request.description(id_type, names))
        engine, rows = _write(request, table, place, id_type, names, threads, progress_of(progress, table))
        prints = [each.text() for each in engine.fingerprints]
        if growth is not None:
            growth.check(prints)
            prints = growth.digests
        charges = charge(request, account, id_type, prints, epochs, () if growth is None else growth.changed)
        finish(request, place, replace(request.description(id_type, names), rows=rows))
    return Outcome(rows, charges)


def quote_table(request: TableRequest, account: Account) -> list[Charge]:
    """Return what a release would cost, from the ledger alone. Nothing is read of the table but its schema."""
    _, id_type = open_table(request)
    return _quoted(request, account, id_type)


def open_table(request: TableRequest) -> tuple[Input, str]:
    """Return the table and the type of its ids, or refuse what cannot be released from it or written."""
    check_ending(request.target)
    table = Input(request.source)
    request.check_columns(table.names)
    request.check_kinds(table.schema)
    refuse_reports(table, [each.column for each in request.columns])
    return table, id_type_of(table.schema.field(request.id_column).type)


def _quoted(request: TableRequest, account: Account | None, id_type: str) -> list[Charge]:
    if account is None:
        return []
    return quote(account, entries(request, account, id_type, [None] * len(request.columns)))


def _write(
    request: TableRequest, table: Input, place: Path, id_type: str, names: list[str], threads: int, progress: Any
) -> tuple[Engine, int]:
    """Write the released rows; where the input turns out not to be sorted by id, once more through a sort."""
    columns = request.input_columns()
    try:
        with closing(table.batches(columns)) as batches:
            return _write_from(request, table, batches, place, id_type, names, threads, progress)
    except NotAscendingError:
        progress(None)
    try:
        with counted_by_id(), closing(sorted_batches(table, columns, request.id_column, threads)) as batches:
            return _write_from(request, table, batches, place, id_type, names, threads, progress)
    except NotAscendingError:
        raise repeated_id() from None


def _write_from(
    request: TableRequest,
    table: Input,
    batches: Iterator[Any],
    place: Path,
    id_type: str,
    names: list[str],
    threads: int,
    progress: Any,
) -> tuple[Engine, int]:
    engine = Engine(request, table.schema, names)
    description = request.description(id_type, names)
    rows = write_rows(request, place, engine.schema, description, engine.run(batches, threads, progress))
    return engine, rows


def write_rows(
    request: TableRequest, place: Path, schema: Any, description: FileDescription, batches: Iterator[Any]
) -> int:
    """Write released batches to a place aside, wait for the disk, and return how many rows there were."""
    output, rows = None, 0
    try:
        output = Output(place, format_of(request.target), schema, description)
        for batch in batches:
            output.write(batch)
            rows += batch.num_rows
        refuse_rowless(rows)
        output.close()
        os.fsync(output.descriptor())
    except OSError as problem:
        if isinstance(problem, TableFileError):
            raise
        raise TableFileError(
            f"{str(request.target)!r} cannot be written: {problem.strerror or 'the disk may be full'}. "
            "Nothing was released."
        ) from None
    finally:
        if output is not None:
            output.abandon()
    return rows


def _growth(
    request: TableRequest, account: Account | None, table: Input, id_type: str, threads: int, stack: ExitStack
) -> Growth | None:
    """Look at the rows of a growing table, until the release is over; first ask the ledger, which is faster."""
    if account is None or account.growing is None:
        return None
    wanted = entries(request, account, id_type, [None] * len(request.columns))
    if not account.force:
        quote(account, wanted)
    facts = [(identity, facts) for identity, facts, _ in wanted]
    watched = watched_growth(
        request, account.growing, account.ledger, account.subject, facts, table, force=account.force, threads=threads
    )
    return stack.enter_context(watched)


def _epochs(
    request: TableRequest, account: Account | None, table: Input, id_type: str, threads: int, growth: Growth | None
) -> list[int]:
    if account is None or growth is None:
        return plan_epochs(request, account, id_type, partial(_fingerprints, request, table, threads))
    wanted = entries(request, account, id_type, growth.digests)
    return [found.epoch for found in quote(account, wanted, growth.changed)]


def _fingerprints(request: TableRequest, table: Input, threads: int) -> list[str]:
    """Read the table once without releasing anything. The order of the rows does not matter here."""
    engine = Engine(request, table.schema, [request.release] * len(request.columns))
    deque(engine.run(table.batches(request.input_columns()), threads, lambda _: None, ordered=False), maxlen=0)
    return [each.text() for each in engine.fingerprints]


def finish(request: TableRequest, place: Path, description: FileDescription) -> None:
    """Put a finished file, and the description beside a CSV file, under their names."""
    # First, so that no file ever stands without its description; a run that was killed may have come so far.
    if format_of(request.target) is Format.CSV:
        rows = csv_rows(place) if description.rows is None else description.rows
        _put_beside(request, replace(description, rows=rows))
    put_in_place(place, request.target)


def _put_beside(request: TableRequest, description: FileDescription) -> None:
    """Write the description of a CSV file, also over one that a killed run left there, whose rows may be others."""
    sidecar, text = sidecar_of(request.target), description.dumps()
    if sidecar.exists() and sidecar.read_bytes() != text.encode():
        refuse_other(request, description)
        sidecar.unlink()
    if not sidecar.exists():
        with aside(sidecar) as beside:
            beside.write_text(text, "utf-8")
            put_in_place(beside, sidecar)


def refuse_other(request: TableRequest, description: FileDescription) -> None:
    """Refuse to write over a file, or beside a description of something else."""
    refuse_existing(request.target)
    sidecar = sidecar_of(request.target)
    if format_of(request.target) is not Format.CSV or not os.path.lexists(sidecar):
        return
    if not sidecar.is_file() or not description.is_said_by(sidecar.read_bytes()):
        raise other_description(sidecar)


def progress_of(progress: Progress | None, table: Input) -> Any:
    """Return a function that is told of every batch, and of a new beginning."""
    done = 0

    def advance(rows: int | None) -> None:
        nonlocal done
        done = 0 if rows is None else done + rows
        if progress is not None:
            progress(done, table.rows)

    return advance
