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
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from relaxdp.errors import DeliveryError, RelaxdpError, ServerAnswerError, TableFileError
from relaxdp.table.description import FileDescription
from relaxdp.table.formats import Format, Output
from relaxdp.table.released_files import ReleasedFile, open_all
from relaxdp.table.temporary import aside, put_in_place, temporary_folder

_NOTHING = "Nothing was sent."


@contextmanager
def sendable(file: Path, column: str | None = None) -> Iterator[tuple[Path, str, Decimal]]:
    """Give a file to send, the name of its released column, and the level that it is at.

    A file that relaxdp did not release never leaves this machine: it could hold truths. Kept columns and other released
    columns do not leave either, for nobody keeps account of what they tell the market.
    """
    try:
        found = open_all([file])[0]
        name = found.released_name(column)
        level = found.description.columns[name].epsilon
    except RelaxdpError as problem:
        raise type(problem)(f"{problem.message} {_NOTHING}", **problem.fields) from None
    if found.table.format is not Format.PARQUET or file.is_dir():
        raise DeliveryError(f"a release is delivered as one Parquet file, and {str(file)!r} is none. {_NOTHING}")
    if set(found.table.schema.names) == {found.description.id_column, name}:
        yield file, name, level
        return
    with temporary_folder() as folder:
        place = folder / "delivery.parquet"
        try:
            _write(found, name, place)
        except OSError as problem:
            if isinstance(problem, TableFileError):
                raise
            raise TableFileError(f"{str(place)!r} cannot be written: {problem.strerror}. {_NOTHING}") from None
        yield place, name, level


def _write(found: ReleasedFile, name: str, place: Path) -> None:
    wanted = [found.description.id_column, name]
    schema = pa.schema([found.table.schema.field(each) for each in wanted])
    description = FileDescription(wanted[0], {name: found.description.columns[name]})
    output = Output(place, Format.PARQUET, schema, description)
    try:
        with closing(found.table.batches(wanted)) as batches:
            for batch in batches:
                output.write(batch.select(wanted).cast(output.schema))
        output.close()
    finally:
        output.abandon()


Ask = Callable[[Callable[[http.client.HTTPResponse], None]], None]
_PART = 1 << 20


def save(ask: Ask, target: Path, digest: str, moved: Callable[[int], None] | None = None) -> None:
    """Let `ask` hand an answer over, and write it to `target` if its SHA-256 is `digest`."""
    found = ""

    def receive(response: http.client.HTTPResponse) -> None:
        nonlocal found
        found = _written(response, place, target, moved)

    try:
        with aside(target) as place:
            ask(receive)
            if not hmac.compare_digest(found.encode(), digest.encode()):
                raise ServerAnswerError(
                    "the file that the market sent is not the one that its receipt is about: the digest is another. "
                    "Nothing was written."
                )
            put_in_place(place, target)
    except TableFileError as problem:
        raise TableFileError(problem.message.replace("released", "written"), **problem.fields) from None


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
    raise TableFileError(f"{str(target)!r} cannot be written: {problem.strerror}. Nothing was written.") from None
