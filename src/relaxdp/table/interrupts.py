"""A person who stops a query, or the process: it is no fault of the table, and it is not lost."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

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


def leave(number: int, status: int, lost: Callable[[], None] = lambda: None) -> NoReturn:
    """End the process from the handler of a signal.

    Python drops an exception that a handler raises while a collector's callback or a `__del__` runs. Then `lost` is
    called, and the signal sent once more, a moment later.
    """
    before = sys.unraisablehook

    def send_again(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, SystemExit):
            before(dropped)
            return
        sys.unraisablehook = before
        lost()
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()

    sys.unraisablehook = send_again
    sys.exit(status)
