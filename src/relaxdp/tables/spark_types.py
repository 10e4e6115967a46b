"""Spark's types and errors: what it hands over instead of types that it does not have, and what its errors say.

Unsigned numbers come as wider ones, those of 64 bits as decimals, and UUIDs as bytes. As such they would be the ids of
other people than the same file's on a laptop.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from relaxdp.errors import ArgumentError, IdError, SparkError
from relaxdp.tables.plain import plain_type

Types = Mapping[str, Any]
"""The own types of those columns that Spark hands over as others."""

UNSIGNED = pa.decimal128(20, 0)
"""What Spark makes of unsigned 64-bit numbers."""
_NEAREST = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): UNSIGNED}


def spark_type(kind: Any) -> Any:
    """Return the nearest type that Spark has: no dictionaries, and bytes of any width."""
    kind = plain_type(kind)
    if _is_uuid(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _NEAREST.get(kind, kind)


def spark_schema(schema: Any) -> Any:
    """Return Spark's own words for columns of types that it has."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    try:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except Exception:
        raise unreadable() from None


def unreadable() -> ArgumentError:
    """Return the refusal of a table with a column that can be handed over neither way."""
    return ArgumentError("The table has a column of a type that Spark cannot hand over.", hint="Convert it to text.")


def own_schema(schema: Any, types: Types) -> Any:
    """Return a schema of Spark's with the own types of the columns."""
    return pa.schema([(field.name, types.get(field.name, field.type)) for field in schema])


def restored(batch: Any, types: Types) -> Any:
    """Return a batch of Spark's with columns of their own types; one that was read from a file has them."""
    for place, name in enumerate(batch.schema.names):
        kind = types.get(name)
        if kind is not None and batch.schema.field(place).type != kind:
            column = _restored(batch.column(place), kind)
            if column is None:  # raised here, because Arrow's own message quotes the number
                raise IdError(
                    "Ids of type decimal(20,0) are read as unsigned 64-bit numbers. An id is negative or too large.",
                    hint="Convert the ids to text.",
                )
            batch = batch.set_column(place, name, column)
    return batch


def _restored(column: Any, kind: Any) -> Any | None:
    try:
        column = column.cast(getattr(kind, "storage_type", kind))
    except pa.ArrowException:
        return None
    return pa.ExtensionArray.from_storage(kind, column) if isinstance(kind, pa.BaseExtensionType) else column


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"


def quoted(name: str) -> str:
    """Return a column's name as Spark takes it."""
    return "`" + name.replace("`", "``") + "`"


_NO_UUIDS = "FIXED_LEN_BYTE_ARRAY (UUID)"
"""What Spark calls a column that it does not read without being told its schema."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """Replace what Spark raises by one sentence: its own text has pages, and may show plans, paths and cells."""
    with _quiet():
        try:
            yield
        except Exception as problem:
            is_gone = isinstance(problem, ConnectionError)
            if not is_gone and type(problem).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            kind = "UUID" if _NO_UUIDS in str(problem) else type(problem).__name__
        else:
            return
    what = {
        "UUID": "reads UUIDs only from a file, or a folder of files, whose path is on this machine",
        "AnalysisException": "could not read the table: it is not there, or is not Parquet",
        "PythonException": "gave up on a task that failed",
    }.get(kind, "stopped before the work was done")
    hint = "Look at the log of Spark. Its workers (PYSPARK_PYTHON) need the same version of relaxdp as the driver."
    error = SparkError("Spark {what}.", hint=hint, what=what)
    try:
        raise error
    finally:
        # What Spark raised would come along, and it quotes cells.
        error.__context__ = None


@contextmanager
def _no_contexts() -> Iterator[None]:
    """Keep pyspark from logging what it raises: the text quotes the cell that an expression could not take."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415
    except ImportError:  # before Spark 4 nothing is logged
        yield
        return
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]

    def nothing(_: Any) -> bool:
        return False

    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), _no_contexts():
        # pyspark warns of pandas 3, which it only needs for functions that are not used here.
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        warnings.filterwarnings("ignore", message=".*pandas >= 3.*")
        yield
