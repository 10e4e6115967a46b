"""Stopping a query, or the process, on request: the error does not blame the table."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_INTERRUPTS = [(RuntimeError, "Query interrupted"), (OSError, "INTERRUPT Error: Interrupted!")]


def is_interrupt(problem: Exception) -> bool:
    """Tell whether DuckDB raised this because somebody pressed Ctrl-C while it worked: itself, or through Arrow."""
    return type(problem).__name__ == "InterruptException" or (type(problem), str(problem)) in _INTERRUPTS


_working: list[Any] = []


@contextmanager
def allow_interrupts(connection: Any) -> Iterator[None]:
    """Let whoever stops a query of DuckDB stop the program, as anywhere else."""
    _working.append(connection)
    try:
        yield
    except BaseException as problem:
        _interrupt_queries()  # else closing the connection waits for the query
        if isinstance(problem, Exception) and is_interrupt(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        _working.remove(connection)


_reminder: list[object] = []


def exit_from_signal(number: int, status: int) -> None:
    """End the process from the handler of a signal, unless it is on its way out already.

    What a handler raises may be dropped: by Python while a collector's callback or a `__del__` runs, by a library in C
    in one of its own callbacks; and DuckDB forgets an interrupt that comes as a query begins. So all of it is said once
    more every second, until `stay` or the end.
    """
    mine = object()
    _reminder[:] = [mine]
    # Below `threading`, whose locks the interrupted code may hold: a handler that waited for one would wait for ever.
    _thread.start_new_thread(_repeat_signal, (number, mine))
    if not is_exiting():
        sys.exit(status)


def _repeat_signal(number: int, mine: object) -> None:
    time.sleep(1.0)
    while _reminder == [mine]:
        _interrupt_queries()
        os.kill(os.getpid(), number)
        time.sleep(1.0)


def _interrupt_queries() -> None:
    """Interrupt all queries. A function keeps no name of a connection alive in the sleeping thread."""
    for connection in list(_working):
        with suppress(Exception):  # it may be closed by now
            connection.interrupt()


def stop_repeating_signal() -> None:
    """Send no signal any more: whoever was to end has heard it."""
    _reminder.clear()


def is_exiting() -> bool:
    """Tell whether an exception that ends the program is being handled: its tidying up is not to be interrupted."""
    problem = sys.exc_info()[1]
    while problem is not None and not isinstance(problem, SystemExit | KeyboardInterrupt | GeneratorExit):
        problem = problem.__context__
    return problem is not None
