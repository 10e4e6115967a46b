"""What commands print next to their results: messages and progress, unless --quiet is given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from relaxdp.tables.transaction import Progress

IS_QUIET: ContextVar[bool] = ContextVar("relaxdp.is_quiet", default=False)
"""Whether the running command prints results and errors only."""


def print_note(sentence: str) -> None:
    """Print a note to standard error, unless --quiet is given."""
    print_done(sentence, err=True)


def print_done(sentence: str, *, err: bool = False) -> None:
    """Print what was done, unless --quiet is given."""
    if not IS_QUIET.get():
        typer.echo(sentence, err=err)


def get_stderr_console() -> Console:
    """Return the console for progress: standard error, or nothing with --quiet."""
    from rich.console import Console  # noqa: PLC0415 (many commands show none)

    return Console(stderr=True, quiet=IS_QUIET.get())


@contextmanager
def show_progress(label: str, unit: str) -> Iterator[Progress | None]:
    """Show a progress bar at a terminal; yield the function that advances it."""
    console = get_stderr_console()
    if not console.is_terminal or console.quiet:
        yield None
        return
    from rich import progress  # noqa: PLC0415 (many commands show none)

    columns = (
        progress.TextColumn(label), progress.BarColumn(), progress.MofNCompleteColumn(), progress.TextColumn(unit),
        progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
