"""A person who stops a query: DuckDB says it in an error of its own, and it is no fault of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_INTERRUPTS = [(RuntimeError, "Query interrupted"), (OSError, "INTERRUPT Error: Interrupted!")]


def is_interrupt(problem: Exception) -> bool:
    """Tell whether DuckDB raised this because somebody pressed Ctrl-C while it worked: itself, or through Arrow."""
    return type(problem).__name__ == "InterruptException" or (type(problem), str(problem)) in _INTERRUPTS


@contextmanager
def interruptible() -> Iterator[None]:
    """Let whoever stops a query of DuckDB stop the program, as anywhere else."""
    try:
        yield
    except Exception as problem:
        if is_interrupt(problem):
            raise KeyboardInterrupt from None
        raise
