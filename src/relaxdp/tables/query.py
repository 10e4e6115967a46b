"""A file shaped by one SELECT in DuckDB, which can read this file and nothing else.

The result is kept in a private file and read like any other table: a query that is run twice may give other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from relaxdp.errors import QueryError
from relaxdp.lazy_imports import duckdb
from relaxdp.tables.columns import suggest_read_csv
from relaxdp.tables.files import BATCH_ROWS, Format, get_kind, list_files
from relaxdp.tables.frames import select_column, write_uuids
from relaxdp.tables.interrupts import interruptible, is_interrupt
from relaxdp.tables.sorting import MEMORY, quote_text
from relaxdp.tables.staging import temporary_folder

_EXAMPLE = "SELECT patient, diagnosis FROM input"
_KINDS = (
    "Parser",
    "Binder",
    "Catalog",
    "IO",
    "Permission",
    "Conversion",
    "Invalid Input",
    "Out of Range",
    "Out of Memory",
)


@contextmanager
def run_query(sql: str, path: Path) -> Iterator[Path]:
    """Give a Parquet file with the result of a query about a file, and remove it in the end."""
    statement = _parse(sql)
    with temporary_folder() as folder:
        result, problem = folder / "result.parquet", None
        with _connect(path, folder) as connection, interruptible(connection):
            try:
                unreadable = _create_view(connection, path)
                try:
                    _write(connection.sql(statement), result)
                except duckdb.CatalogException as error:
                    if unreadable is None or "Table with name input does not exist" not in str(error):
                        raise
                    problem = _replace_error(unreadable)
            except Exception as error:
                if isinstance(error, MemoryError) or is_interrupt(error):
                    raise
                problem = _replace_error(error)
        if problem is not None:  # raised here, without a context
            raise problem
        yield result


def _create_view(connection: Any, path: Path) -> Exception | None:
    """Make the relation `input`, or return why DuckDB cannot: a query may read the path in another way."""
    try:
        if get_kind(path).format is Format.PARQUET:
            rows = "read_parquet(getvariable('input'), hive_partitioning = false)"
        else:
            rows = "read_csv(getvariable('input'), header = true)"
        connection.execute(f"CREATE TEMP VIEW input AS FROM {rows}")
    except duckdb.Error as error:
        if is_interrupt(error):
            raise
        return error
    return None


def _parse(sql: str) -> Any:
    problem, statements = None, []
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        problem = _replace_error(error)
    if problem is not None:
        raise problem
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError(
            "Expected one SELECT, got {found}.",
            hint=f'Write one query, such as --sql "{_EXAMPLE}".',
            found=f"{len(statements)} statements" if len(statements) != 1 else "another statement",
        )
    return statements[0]


@contextmanager
def _connect(path: Path, folder: Path) -> Iterator[Any]:
    """Open DuckDB so that it can read the files of a table and nothing else, and load no extension."""
    spill = folder / "spill"
    spill.mkdir(0o700)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    files = [str(file.absolute()) for file in list_files(path)]
    listed = "[" + ", ".join(map(quote_text, files)) + "]"
    with duckdb.connect(":memory:", config=settings) as connection:
        # A bar would be drawn into what a program reads. A notebook without ipywidgets rejects the setting.
        with suppress(duckdb.InvalidInputException):
            connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET allowed_paths = {listed}")
        connection.execute(f"SET VARIABLE input = {listed if path.is_dir() else quote_text(files[0])}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _write(relation: Any, target: Path) -> None:
    """Write the rows of a query. Its columns are named by place, because two may have one name."""
    names, kinds = relation.columns, list(map(str, relation.types))
    listed = [f"{select_column(f'#{place}', kind)} AS c{place}" for place, kind in enumerate(kinds, 1)]
    reader = relation.project(", ".join(listed)).to_arrow_reader(BATCH_ROWS)
    is_uuid = [kind == "UUID" for kind in kinds]
    schema = pa.schema(
        [
            pa.field(name, pa.uuid() if uuid else field.type)
            for name, uuid, field in zip(names, is_uuid, reader.schema, strict=True)
        ]
    )
    with pa_parquet.ParquetWriter(target, schema, compression="zstd", compression_level=1) as writer:
        for batch in reader:
            columns = [
                write_uuids(column) if uuid else column for column, uuid in zip(batch.columns, is_uuid, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _replace_error(error: Exception) -> QueryError:
    """Return an error without cells: messages about rows quote them, messages about the query do not."""
    message = str(error).partition("\n")[0]
    kind = message.partition(" Error:")[0]  # Arrow passes an error of DuckDB on as OSError, with its message
    kind = kind if kind in _KINDS else "Unknown"
    if kind == "Permission":
        return QueryError(
            "The query reads or loads something else than the input, which is not allowed.",
            hint=f'Read `input`, such as --sql "{_EXAMPLE}".',
        )
    if isinstance(error, duckdb.Error) and kind in ("Parser", "Binder", "Catalog", "IO"):
        return QueryError(
            "DuckDB rejects the query: {message}.",
            hint=f'Correct the query. An example is --sql "{_EXAMPLE}".',
            message=message.rstrip(".!"),
        )
    if kind == "Out of Memory":
        return QueryError(
            "The query needs more memory or disk space than there is.",
            hint="Free space in the folder for temporary files, or make the query smaller.",
        )
    if isinstance(error, pa.ArrowNotImplementedError):
        return QueryError(
            "The result of the query has a column of a type that cannot be released.",
            hint="Convert it with CAST(... AS VARCHAR), to numbers or to dates.",
        )
    if "This file is not utf-8 encoded" in str(error):
        return QueryError(
            "The input is not text in UTF-8.", hint="If it is Latin-1: " + suggest_read_csv("encoding='latin-1'")
        )
    return QueryError(
        "The query failed on the rows of the input ({kind} Error). The message can quote a cell, and is not shown.",
        hint="Run the query in DuckDB yourself to see it, with the path of the file in place of `input`. To read all "
        "columns of a CSV file as text, write FROM read_csv(getvariable('input'), all_varchar=true).",
        kind=kind,
    )
