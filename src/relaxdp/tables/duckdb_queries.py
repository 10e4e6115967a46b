"""A file shaped by one SELECT in DuckDB, which can read this file and nothing else.

The result is kept in a private file and read like any other table: a query that is run twice may give other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from relaxdp.errors import QueryError, RelaxdpError, TableFileError
from relaxdp.lazy_imports import duckdb
from relaxdp.tables.atomic_files import make_temporary_folder
from relaxdp.tables.data_frames import open_relation
from relaxdp.tables.files import BATCH_ROWS, TableFile, TableFormat, get_file_kind, list_table_files
from relaxdp.tables.interrupts import is_interrupt, open_interruptible
from relaxdp.tables.table_columns import get_plain_type, get_storage_column, remove_hidden_values, suggest_read_csv

MEMORY_LIMIT = "600MB"
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
def query_to_temporary_file(sql: str, path: Path) -> Iterator[Path]:
    """Write the result of a query about a file to a temporary Parquet file, which is removed in the end."""
    statement = _parse_select(sql)
    with make_temporary_folder() as folder:
        result, problem = folder / "result.parquet", None
        with open_database(MEMORY_LIMIT) as connection:
            _restrict_to_input(connection, path)
            try:
                unreadable = _create_input_view(connection, path)
                try:
                    relation = connection.sql(statement)
                    schema, batches = open_relation(relation, range(len(relation.columns)))
                    with pa_parquet.ParquetWriter(result, schema, compression="zstd", compression_level=1) as writer:
                        for batch in batches:
                            writer.write_batch(batch)
                except duckdb.CatalogException as error:
                    if unreadable is None or "Table with name input does not exist" not in str(error):
                        raise
                    problem = _make_query_error(unreadable)
            except Exception as error:
                if isinstance(error, MemoryError) or is_interrupt(error):
                    raise
                problem = _make_query_error(error)
        if problem is not None:  # raised here, without a context
            raise problem
        yield result


def _restrict_to_input(connection: Any, path: Path) -> None:
    """Let queries read the files of a table and nothing else, and load no extension."""
    files = [quote_sql_text(str(file.absolute())) for file in list_table_files(path)]
    listed = "[" + ", ".join(files) + "]"
    connection.execute(f"SET allowed_paths = {listed}")
    connection.execute(f"SET VARIABLE input = {listed if path.is_dir() else files[0]}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _create_input_view(connection: Any, path: Path) -> Exception | None:
    """Create the view `input`, or return why DuckDB cannot: a query may read the path in another way."""
    try:
        if get_file_kind(path).format is TableFormat.PARQUET:
            rows = "read_parquet(getvariable('input'), hive_partitioning = false)"
        else:
            rows = "read_csv(getvariable('input'), header = true)"
        connection.execute(f"CREATE TEMP VIEW input AS FROM {rows}")
    except duckdb.Error as error:
        if is_interrupt(error):
            raise
        return error
    return None


def _parse_select(sql: str) -> Any:
    problem, statements = None, []
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        problem = _make_query_error(error)
    if problem is not None:
        raise problem
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError(
            "Expected one SELECT statement as the query, got {found}.",
            hint=f'Write one query, such as --sql "{_EXAMPLE}".',
            found=f"{len(statements)} statements" if len(statements) != 1 else "another statement",
        )
    return statements[0]


def _make_query_error(error: Exception) -> QueryError:
    """Return an error without cells: messages about rows quote them, messages about the query do not."""
    message = str(error).partition("\n")[0]
    kind = message.partition(" Error:")[0]  # Arrow passes an error of DuckDB on as OSError, with its message
    kind = kind if kind in _KINDS else "Unknown"
    if kind == "Permission":
        return QueryError(
            "The query may only read `input`, but it reads or loads something else.",
            hint=f'Write FROM input, such as --sql "{_EXAMPLE}".',
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
            hint="Free space in the folder for temporary files (TMPDIR), or select fewer rows or columns.",
        )
    if isinstance(error, pa.ArrowNotImplementedError):
        return QueryError(
            "The result of the query has a column of a type that cannot be released.",
            hint="Convert the column in the query to text, numbers or dates, such as CAST(... AS VARCHAR).",
        )
    if "This file is not utf-8 encoded" in str(error):
        return QueryError(
            "The input is not text in UTF-8.", hint="If it is Latin-1: " + suggest_read_csv("encoding='latin-1'")
        )
    return QueryError(
        "The query failed on the rows of the input ({kind} Error). DuckDB's message may quote a cell, so it is hidden.",
        hint="To see the message, run the query in DuckDB, with the path of the file in place of `input`. To read all "
        "columns of a CSV file as text, write FROM read_csv(getvariable('input'), all_varchar=true).",
        kind=kind,
    )


@contextmanager
def open_database(memory_limit: str, **settings: Any) -> Iterator[Any]:
    """Open DuckDB in memory: with a private folder for rows that do not fit there, without extensions."""
    with make_temporary_folder() as folder:
        config = {
            "memory_limit": memory_limit,
            "temp_directory": str(folder),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            **settings,
        }
        with open_interruptible(duckdb.connect(":memory:", config=config)) as connection:
            # A bar would be drawn into what a program reads. A notebook without ipywidgets rejects the setting.
            with suppress(duckdb.InvalidInputException):
                connection.execute("SET enable_progress_bar = false")
            yield connection


@contextmanager
def replace_duckdb_errors(make_error: Callable[[bool], RelaxdpError]) -> Iterator[None]:
    """Raise an error of ours in place of one of DuckDB, whose message may quote a row.

    `make_error` is told whether memory or disk did not suffice.
    """
    problem = None
    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        problem = make_error(isinstance(error, duckdb.OutOfMemoryException))
    if problem is not None:
        try:
            raise problem from None
        finally:
            problem.__context__ = None  # DuckDB's own error, which the caller's block is still handling


def sort_batches(
    table: TableFile, columns: Sequence[str], id_column: str, threads: int | None = None
) -> Generator[Any]:
    """Return the rows of some columns in id order, sorted by DuckDB."""
    wanted = list(dict.fromkeys(columns))
    table.require_same_columns(wanted)
    failed = TableFileError(
        "The rows of the file {table!r} could not be sorted by the id column.",
        hint="Check that the file is complete, and that the disk has room for another copy of it.",
        table=str(table.path),
    )
    settings = {} if threads is None else {"threads": threads}
    with (
        open_database(MEMORY_LIMIT, preserve_insertion_order=False, **settings) as connection,
        replace_duckdb_errors(lambda _: failed),
    ):
        names = {f"c{place}": name for place, name in enumerate(wanted)}
        relation = make_relation_sql(connection, "relaxdp_input", table, names, _convert_plain_column)
        query = f"SELECT * FROM {relation} ORDER BY c{wanted.index(id_column)}"  # noqa: S608 (quoted names)
        reader = connection.sql(query).to_arrow_reader(BATCH_ROWS)
        while (batch := _read_next(reader, failed)) is not None:
            yield _restore_types(batch.rename_columns(wanted), table.schema)


def _read_next(reader: Any, failed: RelaxdpError) -> Any | None:
    """Return the next batch, None after the last. Arrow passes an error of DuckDB on as its own, with a row in it."""
    try:
        return next(reader, None)
    except (OSError, pa.ArrowException) as problem:
        if is_interrupt(problem):
            raise
    raise failed


def make_relation_sql(
    connection: Any, view: str, table: TableFile, columns: Mapping[str, str], convert: Callable[[Any], Any]
) -> str:
    """Return SQL for columns of a table under new names: DuckDB does not tell names by case.

    DuckDB reads Parquet files itself. Other tables are registered as a view of Arrow columns that were converted.
    """
    names = [name.casefold() for name in table.schema.names]
    paths = [str(file.absolute()) for file in table.files]
    empty = [pa.nulls(0, table.schema.field(name).type) for name in columns.values()]
    converted = [convert(column) for column in empty]
    is_converted = any(
        isinstance(column.type, pa.BaseExtensionType) and other.type != column.type
        for column, other in zip(empty, converted, strict=True)
    )
    # DuckDB reads some characters of a path as a pattern.
    is_readable = len(set(names)) == len(names) and not is_converted and not set("*?[{") & set("".join(paths))
    if table.format is TableFormat.PARQUET and is_readable:
        selected = ", ".join(f"{quote_sql_name(name)} AS {alias}" for alias, name in columns.items())
        listed = ", ".join(map(quote_sql_text, paths))
        return f"(SELECT {selected} FROM read_parquet([{listed}], hive_partitioning = false))"  # noqa: S608
    schema = pa.schema([(alias, column.type) for alias, column in zip(columns, converted, strict=True)])
    batches = (
        pa.RecordBatch.from_arrays([convert(batch.column(name)) for name in columns.values()], schema=schema)
        for batch in table.batches(list(columns.values()))
    )
    connection.register(view, pa.RecordBatchReader.from_batches(schema, batches))
    return view


def _convert_plain_column(column: Any) -> Any:
    """Return a column without a dictionary, because DuckDB takes the numbers of some dictionaries for the values."""
    return get_storage_column(remove_hidden_values(column))


def _restore_types(batch: Any, schema: Any) -> Any:
    """Restore columns of extended types: DuckDB would make text of a UUID, which is another id."""
    for place, name in enumerate(batch.schema.names):
        kind = get_plain_type(schema.field(name).type)
        if isinstance(kind, pa.BaseExtensionType):
            storage = batch.column(place).cast(kind.storage_type)
            batch = batch.set_column(place, name, pa.ExtensionArray.from_storage(kind, storage))
    return batch


def quote_sql_name(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_sql_text(text: str) -> str:
    """Quote text for SQL."""
    return "'" + text.replace("'", "''") + "'"
