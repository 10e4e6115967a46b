"""Stopping a query, or the process, on request: the error does not blame the table."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_INTERRUPTS = [(RuntimeError, "Query interrupted"), (OSError, "INTERRUPT Error: Interrupted!")]


def is_interrupt(error: Exception) -> bool:
    """Tell whether an error of DuckDB, or of DuckDB through Arrow, is an interrupt by Ctrl-C."""
    return type(error).__name__ == "InterruptException" or (type(error), str(error)) in _INTERRUPTS


_open_connections: dict[object, Any] = {}
_REPEATS = 300
"""How often a query is interrupted after Ctrl-C, at most: for a minute."""


@contextmanager
def open_interruptible(connection: Any) -> Iterator[Any]:
    """Close a connection in the end, and let Ctrl-C end its query: KeyboardInterrupt is raised as anywhere else."""
    mine = object()
    is_main = threading.current_thread() is threading.main_thread()
    handles_ctrl_c = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        _open_connections[mine] = connection
        if handles_ctrl_c:
            signal.signal(signal.SIGINT, _stop_queries)
        with connection:
            try:
                yield connection
            except BaseException:
                _interrupt_queries({mine})  # else closing the connection waits for the query
                raise
    except Exception as problem:
        if is_interrupt(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        _open_connections.pop(mine, None)
        if handles_ctrl_c:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop_queries(signal_number: int, frame: FrameType | None) -> None:
    """Stop all queries on Ctrl-C: DuckDB can forget an interrupt, so it is repeated."""
    # Below `threading`, whose locks the interrupted code may hold: a handler that waited for one would wait for ever.
    _thread.start_new_thread(_repeat_interrupts, (set(_open_connections),))
    signal.default_int_handler(signal_number, frame)


def _repeat_interrupts(stopped: set[object]) -> None:
    for _ in range(_REPEATS):
        if not stopped & set(_open_connections):
            return
        _interrupt_queries(stopped)
        time.sleep(0.2)


_active_repeater: list[object] = []


def exit_from_signal(signal_number: int, exit_status: int) -> None:
    """End the process from the handler of a signal, unless it is on its way out already.

    An exception of a handler can get lost: Python drops it in a `__del__` or in a callback of its garbage collector,
    and a library in C drops it in its callbacks. DuckDB also forgets an interrupt at the very start of a query. So the
    signal and the interrupt are repeated every second, until `stop_repeating_signal` or the end.
    """
    mine = object()
    _active_repeater[:] = [mine]
    _thread.start_new_thread(_repeat_signal, (signal_number, mine))  # for the reason in `_stop_queries`
    if not is_exiting():
        sys.exit(exit_status)


def _repeat_signal(signal_number: int, token: object) -> None:
    time.sleep(1.0)
    while _active_repeater == [token]:
        _interrupt_queries()
        os.kill(os.getpid(), signal_number)
        time.sleep(1.0)


def _interrupt_queries(chosen: Collection[object] | None = None) -> None:
    """Interrupt the chosen or all queries. A function keeps no name of a connection alive in the sleeping thread."""
    for key, connection in list(_open_connections.items()):
        if chosen is None or key in chosen:
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
