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


def is_interrupt(error: Exception) -> bool:
    """Tell whether DuckDB raised this because of Ctrl-C: itself, or through Arrow."""
    return type(error).__name__ == "InterruptException" or (type(error), str(error)) in _INTERRUPTS


_open_connections: list[Any] = []


@contextmanager
def allow_interrupts(connection: Any) -> Iterator[None]:
    """Let Ctrl-C end a query of this connection, and raise KeyboardInterrupt as anywhere else."""
    _open_connections.append(connection)
    try:
        yield
    except BaseException as problem:
        _interrupt_queries()  # else closing the connection waits for the query
        if isinstance(problem, Exception) and is_interrupt(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        _open_connections.remove(connection)


_active_repeater: list[object] = []


def exit_from_signal(signal_number: int, exit_status: int) -> None:
    """End the process from the handler of a signal, unless it is on its way out already.

    What a handler raises may be dropped: by Python while a collector's callback or a `__del__` runs, by a library in C
    in one of its own callbacks; and DuckDB forgets an interrupt that comes as a query begins. So the signal and the
    interrupt are repeated every second, until `stop_repeating_signal` or the end.
    """
    mine = object()
    _active_repeater[:] = [mine]
    # Below `threading`, whose locks the interrupted code may hold: a handler that waited for one would wait for ever.
    _thread.start_new_thread(_repeat_signal, (signal_number, mine))
    if not is_exiting():
        sys.exit(exit_status)


def _repeat_signal(signal_number: int, mine: object) -> None:
    time.sleep(1.0)
    while _active_repeater == [mine]:
        _interrupt_queries()
        os.kill(os.getpid(), signal_number)
        time.sleep(1.0)


def _interrupt_queries() -> None:
    """Interrupt all queries. A function keeps no name of a connection alive in the sleeping thread."""
    for connection in list(_open_connections):
        with suppress(Exception):  # it may be closed by now
            connection.interrupt()


def stop_repeating_signal() -> None:
    """Stop repeating the signal of `exit_from_signal`: the program ends or continues."""
    _active_repeater.clear()


def is_exiting() -> bool:
    """Tell whether an exception that ends the program is being handled, which must not be interrupted."""
    problem = sys.exc_info()[1]
    while problem is not None and not isinstance(problem, SystemExit | KeyboardInterrupt | GeneratorExit):
        problem = problem.__context__
    return problem is not None
