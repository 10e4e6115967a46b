"""A release of a table: write aside, charge the ledger durably, rename. What fails before the charge costs nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaxdp.errors import TableFileError
from relaxdp.ledger.ledger import Charge, Ledger
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.subject import Subject
from relaxdp.table.description import FileDescription
from relaxdp.table.engine import Engine
from relaxdp.table.formats import Input, Output, format_of, sidecar_of
from relaxdp.table.growing import Growth, path_states, refuse_growing, watched_growth
from relaxdp.table.order import NotAscendingError, repeated_id, sorted_batches
from relaxdp.table.request import TableRequest, id_type_of
from relaxdp.table.temporary import aside, put_in_place, refuse_existing

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Account:
    """Who is charged, in which ledger, and what the person who releases has agreed to."""

    ledger: Ledger
    subject: Subject
    budget: Any = None
    reason: str = ""
    again: bool = False
    force: bool = False
    growing: Path | None = None
    """The folder of row tags where the table may grow, see `tags_folder`; None where it may not."""


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
    table = Input(request.source)
    request.check_columns(table.schema)
    id_type = id_type_of(table.schema.field(request.id_column).type)
    with ExitStack() as stack:
        place = stack.enter_context(aside(request.target))
        growth = _growth(request, account, table, id_type, threads, stack)
        epochs = _epochs(request, account, table, id_type, threads, growth)
        names = [epoch_name(request.release, epoch) for epoch in epochs]
        refuse_other(request, request.description(id_type, names))
        engine, rows = _write(request, table, place, id_type, names, threads, progress_of(progress, table))
        prints = [each.text() for each in engine.fingerprints]
        if growth is not None:
            growth.check(prints)
            prints = growth.digests
        charges = _charge(request, account, id_type, prints, epochs, growth)
        finish(request, place, request.description(id_type, names))
    return Outcome(rows, charges)


def quote_table(request: TableRequest, account: Account) -> list[Charge]:
    """Return what a release would cost, from the ledger alone. Nothing is read of the table but its schema."""
    table = Input(request.source)
    request.check_columns(table.schema)
    id_type = id_type_of(table.schema.field(request.id_column).type)
    return _quote(account, _entries(request, account, id_type, [None] * len(request.columns)))


def epoch_name(release: str, epoch: int) -> str:
    """Return the release's name in the stream: a table that was forced through has noise of its own."""
    return release if epoch == 1 else f"{release} (epoch {epoch})"


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
        with closing(sorted_batches(table, columns, request.id_column, threads)) as batches:
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
    entries = _entries(request, account, id_type, [None] * len(request.columns))
    if not account.force:
        _quote(account, entries)
    facts = [(identity, facts) for identity, facts, _ in entries]
    watched = watched_growth(
        request, account.growing, account.ledger, account.subject, facts, table, force=account.force, threads=threads
    )
    return stack.enter_context(watched)


def _epochs(
    request: TableRequest, account: Account | None, table: Input, id_type: str, threads: int, growth: Growth | None
) -> list[int]:
    """Return which epoch of each path is to be drawn, and refuse early what the ledger would refuse at the end."""
    if account is None:
        return [1] * len(request.columns)
    prints: list[Any] = [None] * len(request.columns)
    if growth is not None:
        prints = growth.digests
    elif account.force:  # whether the table changed decides the epoch, so its fingerprint is needed first
        prints = _fingerprints(request, table, threads)
    return [charge.epoch for charge in _quote(account, _entries(request, account, id_type, prints), growth)]


def _fingerprints(request: TableRequest, table: Input, threads: int) -> list[str | None]:
    """Read the table once without releasing anything. The order of the rows does not matter here."""
    engine = Engine(request, table.schema, [request.release] * len(request.columns))
    deque(engine.run(table.batches(request.input_columns()), threads, lambda _: None, ordered=False), maxlen=0)
    return [each.text() for each in engine.fingerprints]


def _entries(
    request: TableRequest, account: Account, id_type: str, prints: list[Any]
) -> list[tuple[PathIdentity, PathFacts, Any]]:
    entries = []
    for each, fingerprint in zip(request.columns, prints, strict=True):
        encoding = each.mechanism.encoding
        facts = PathFacts(
            encoding=encoding.name,
            params=encoding.params.hex(),
            key_fingerprint=request.key.fingerprint,
            id_type=id_type,
            table_fingerprint=fingerprint,
            growing=account.growing is not None,
        )
        entries.append((PathIdentity(request.release, each.column), facts, request.epsilon))
    return entries


def _quote(
    account: Account, entries: list[tuple[PathIdentity, PathFacts, Any]], growth: Growth | None = None
) -> list[Charge]:
    if account.growing is None:
        refuse_growing(path_states(account.ledger, account.subject), [identity for identity, _, _ in entries])
    return account.ledger.quote_all(
        account.subject,
        entries,
        again=account.again,
        force=account.force,
        budget=account.budget,
        changed=[] if growth is None else growth.changed,
    )


def _charge(
    request: TableRequest,
    account: Account | None,
    id_type: str,
    prints: list[str],
    epochs: list[int],
    growth: Growth | None,
) -> list[Charge]:
    """Charge everything together. An epoch that moved on while we wrote would not be what we drew: it is refused."""
    if account is None:
        return []
    entries = _entries(request, account, id_type, prints)
    return account.ledger.charge_all(
        account.subject,
        entries,
        again=account.again,
        force=account.force,
        budget=account.budget,
        reason=account.reason,
        epochs=epochs,
        changed=[] if growth is None else growth.changed,
    )


def finish(request: TableRequest, place: Path, description: FileDescription) -> None:
    """Put a finished file, and the description beside a CSV file, under their names."""
    sidecar = sidecar_of(request.target)
    # First, so that no file ever stands without its description; a run that was killed may have come so far.
    if format_of(request.target).value == "csv" and not sidecar.exists():
        with aside(sidecar) as beside:
            beside.write_text(description.dumps(), "utf-8")
            put_in_place(beside, sidecar)
    put_in_place(place, request.target)


def refuse_other(request: TableRequest, description: FileDescription) -> None:
    """Refuse to write over a file, or beside a description of something else."""
    refuse_existing(request.target)
    sidecar = sidecar_of(request.target)
    if format_of(request.target).value != "csv" or not sidecar.exists():
        return
    if sidecar.read_bytes() != description.dumps().encode():
        refuse_existing(sidecar)


def progress_of(progress: Progress | None, table: Input) -> Any:
    """Return a function that is told of every batch, and of a new beginning."""
    done = 0

    def advance(rows: int | None) -> None:
        nonlocal done
        done = 0 if rows is None else done + rows
        if progress is not None:
            progress(done, table.rows)

    return advance
