"""The terminal: notes and progress unless --quiet is given, output that can always be written, and signals."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import typer

from relaxdp.errors import RelaxdpError
from relaxdp.tables.interrupts import exit_from_signal, is_exiting, stop_repeating_signal

if TYPE_CHECKING:
    from rich.console import Console

    from relaxdp.tables.transaction import Progress

IS_QUIET: ContextVar[bool] = ContextVar("relaxdp.is_quiet", default=False)
"""Whether the running command prints results and errors only."""


def print_note(sentence: str) -> None:
    """Print a note to standard error, unless --quiet is given."""
    print_done(sentence, to_stderr=True)


def print_done(sentence: str, *, to_stderr: bool = False) -> None:
    """Print what was done, unless --quiet is given."""
    if not IS_QUIET.get():
        typer.echo(sentence, err=to_stderr)


def print_json(document: Any) -> None:
    """Print a document for programs, in one line."""
    has_all_letters = (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(document, ensure_ascii=not has_all_letters, allow_nan=False))


def get_stderr_console() -> Console:
    """Return the console for progress: standard error, or nothing with --quiet."""
    from rich.console import Console  # noqa: PLC0415 (many commands show none)

    return Console(stderr=True, quiet=IS_QUIET.get())


@contextmanager
def show_progress(label: str, unit: str) -> Iterator[Progress | None]:
    """Show a progress bar at a terminal; yield the function that advances it."""
    if IS_QUIET.get() or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich import progress  # noqa: PLC0415 (many commands show none)

    columns = (
        progress.TextColumn(label), progress.BarColumn(), progress.MofNCompleteColumn(), progress.TextColumn(unit),
        progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=get_stderr_console(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


def escape_unencodable_output() -> None:
    """Escape characters that standard output cannot encode, as Python does for standard error."""
    # A handler that was chosen (PYTHONIOENCODING=ascii:replace) stays.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def flush_output() -> Iterator[None]:
    """Flush the output at the end. If it cannot be written, print one sentence and exit.

    A closed pipe is not an error: its reader has read enough.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as problem:
        streams = () if isinstance(problem, RelaxdpError) else (sys.stdout, sys.stderr)
        stuck = next(filter(_is_unwritable, streams), None)
        if stuck is None:
            raise
        _redirect_to_null(stuck)
        if not isinstance(problem, BrokenPipeError):
            print_error(f"Error: The output cannot be written: {problem.strerror}.\nThe command itself was completed.")
        sys.exit(1)


def print_error(sentence: str) -> None:
    """Print what went wrong. If standard error is closed, the exit status still shows it."""
    try:
        sys.stderr.write(f"{sentence}\n")
    except OSError:
        _redirect_to_null(sys.stderr)


def _is_unwritable(stream: TextIO | None) -> bool:
    """Tell whether a stream cannot be written. It is tried, because an error does not name its stream."""
    if stream is None:
        return False
    try:
        stream.write("\n")
        stream.flush()
    except OSError:
        return True
    return False


def _redirect_to_null(stream: TextIO) -> None:
    """Redirect a stream to the null device: Python would report its unwritten rest at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def handle_signals() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C: by default they would leave unfinished files with true values.

    The exit status is 128 plus the number of the signal. A signal that is ignored (nohup) stays ignored.
    """
    asked: list[signal.Signals] = []
    is_served = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_served
        if asked and (is_served or is_exiting()):  # systems send several, and none may interrupt the tidying up
            return
        asked.append(signal.Signals(number))
        logging.disable()  # libraries show where they were interrupted
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt) and interrupt is not signal.default_int_handler:
            with suppress(KeyboardInterrupt):
                interrupt(signal.SIGINT, frame)  # the server's ends its connections and goes on until they have ended
                is_served = True  # a second one would be taken for impatience, and cut them off
                return
            # Spark's has cancelled its tasks.
        # Not a KeyboardInterrupt, after which Python may end itself by that signal, whatever the exit status is to be.
        exit_from_signal(number, 128 + number)

    mine = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, stop)
    try:
        yield
    except BaseException as problem:
        if not asked or (isinstance(problem, SystemExit) and not problem.code):
            raise
        print_error(f"Error: Stopped by {asked[0].name}.\nUnfinished files were removed.")
        sys.exit(128 + asked[0])
    finally:
        stop_repeating_signal()
        logging.disable(logging.NOTSET)
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
