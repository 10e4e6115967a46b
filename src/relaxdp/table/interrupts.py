"""A person who stops a query: DuckDB says it in an error of its own, and it is no fault of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def is_interrupt(problem: Exception) -> bool:
    """Tell whether DuckDB raised this because somebody pressed Ctrl-C while it worked."""
    return type(problem).__name__ == "InterruptException" or (
        type(problem) is RuntimeError and str(problem) == "Query interrupted"
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """Let whoever stops a query of DuckDB stop the program, as anywhere else."""
    try:
        yield
    except Exception as problem:
        if is_interrupt(problem):
            raise KeyboardInterrupt from None
        raise
