"""DuckDB in memory: for sorting, joining and counting tables that may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from relaxdp.errors import RelaxdpError
from relaxdp.lazy import duckdb
from relaxdp.publication.staging import temporary_folder
from relaxdp.table.interrupts import interruptible


@contextmanager
def open_database(
    memory: str, failed: RelaxdpError, *, full: RelaxdpError | None = None, threads: int | None = None
) -> Iterator[Any]:
    """Open DuckDB with a folder for rows that do not fit into memory.

    Its messages may quote a row: `failed` is raised in their place, or `full` where memory or disk did not suffice.
    """
    problem = None
    with temporary_folder() as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory,
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        if threads is not None:
            settings["threads"] = threads
        with duckdb.connect(":memory:", config=settings) as connection, interruptible(connection):
            try:
                # A bar would be drawn into what a program reads. A notebook without ipywidgets rejects the setting.
                with suppress(duckdb.InvalidInputException):
                    connection.execute("SET enable_progress_bar = false")
                yield connection
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                problem = full if full is not None and isinstance(error, duckdb.OutOfMemoryException) else failed
    if problem is not None:  # raised here, without a context
        raise problem
