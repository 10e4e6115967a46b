"""Files on their way: what a seller sends, and what a buyer gets.

Of a file that is sent, the ids and the one released column that is for sale leave, and nothing else that it may hold.
One that was bought appears when it is whole, and when it is the one that the receipt is about.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from relaxdp.errors import TableFileError, add_consequence
from relaxdp.server_errors import DeliveryError, ServerAnswerError
from relaxdp.tables.atomic_files import make_temporary_folder, make_unfinished_file, move_to_target
from relaxdp.tables.files import FileKind, TableFormat
from relaxdp.tables.metadata import FileDescription
from relaxdp.tables.release_output import ReleaseWriter
from relaxdp.tables.released_files import ReleasedFile, open_released_files


@contextmanager
def sendable(file: Path, column: str | None = None) -> Iterator[tuple[Path, str, Decimal]]:
    """Give a file to send, the name of its released column, and the level that it is at.

    A file that relaxdp did not release never leaves this machine: it could hold truths. Kept columns and other released
    columns do not leave either, for nobody keeps account of what they tell the market.
    """
    with ExitStack() as opened:
        yield _prepared(opened, file, column)


@add_consequence("Nothing was sent.")
def _prepared(opened: ExitStack, file: Path, column: str | None) -> tuple[Path, str, Decimal]:
    found = open_released_files([file])[0]
    name = found.find_released_column(column)
    level = found.description.columns[name].epsilon
    if found.table.format is not TableFormat.PARQUET or file.is_dir():
        raise DeliveryError("a release is delivered as one Parquet file, and {path!r} is none.", path=str(file))
    if set(found.table.schema.names) == {found.description.id_column, name}:
        return file, name, level
    place = opened.enter_context(make_temporary_folder()) / "delivery.parquet"
    try:
        _write(found, name, place)
    except OSError as problem:
        if isinstance(problem, TableFileError):
            raise
        _unwritable(place, problem)
    return place, name, level


def _write(found: ReleasedFile, name: str, place: Path) -> None:
    wanted = [found.description.id_column, name]
    schema = pa.schema([found.table.schema.field(each) for each in wanted])
    description = FileDescription(wanted[0], {name: found.description.columns[name]})
    output = ReleaseWriter(place, FileKind(TableFormat.PARQUET), schema, description)
    try:
        with closing(found.table.batches(wanted)) as batches:
            for batch in batches:
                output.write(batch.select(wanted).cast(output.schema))
        output.close()
    finally:
        output.close_unfinished()


Ask = Callable[[Callable[[http.client.HTTPResponse], None]], None]
_PART = 1 << 20
_unless_written = add_consequence("Nothing was written.")


def save(ask: Ask, target: Path, digest: str, moved: Callable[[int], None] | None = None) -> None:
    """Let `ask` hand an answer over, and write it to `target` if its SHA-256 is `digest`."""
    found = ""

    def receive(response: http.client.HTTPResponse) -> None:
        nonlocal found
        found = _written(response, place, target, moved)

    with ExitStack() as opened:
        with _unless_written:
            place = opened.enter_context(make_unfinished_file(target))
        ask(receive)  # what the market refuses, it says itself
        with _unless_written:
            if not hmac.compare_digest(found.encode(), digest.encode()):
                raise ServerAnswerError(
                    "the file that the market sent is not the one that its receipt is about: the digest is another."
                )
            move_to_target(place, target)


@_unless_written
def _written(response: http.client.HTTPResponse, place: Path, target: Path, moved: Callable[[int], None] | None) -> str:
    """Write an answer and return its digest. Problems of the disk and of the connection are told apart."""
    digest = hashlib.sha256()
    try:
        file = place.open("wb")
    except OSError as problem:
        _unwritable(target, problem)
    with file:
        while part := response.read(_PART):
            digest.update(part)
            try:
                file.write(part)
            except OSError as problem:
                _unwritable(target, problem)
            if moved is not None:
                moved(len(part))
        if response.length:  # what is shorter than it was announced is asked for again
            raise http.client.IncompleteRead(b"", response.length)
        try:
            file.flush()
            os.fsync(file.fileno())
        except OSError as problem:
            _unwritable(target, problem)
    return digest.hexdigest()


def _unwritable(target: Path, problem: OSError) -> NoReturn:
    raise TableFileError("{path!r} cannot be written: {why}.", path=str(target), why=problem.strerror) from None
