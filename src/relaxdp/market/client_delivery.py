"""What a seller sends: the ids and the one released column that is for sale, and nothing else that a file may hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from relaxdp.errors import DeliveryError, RelaxdpError, TableFileError
from relaxdp.table.description import FileDescription
from relaxdp.table.formats import Format, Output
from relaxdp.table.released_files import ReleasedFile, open_all
from relaxdp.table.temporary import temporary_folder

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
