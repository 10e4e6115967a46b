"""What commands show: progress and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relaxdp.cli.talk import aside_console

if TYPE_CHECKING:
    from relaxdp.tables.release import Progress as Advance


@contextmanager
def progress_bar(doing: str, unit: str) -> Iterator[Advance | None]:
    """Show how far it is, where a person looks at it, and give what is told of every step."""
    console = aside_console()
    if not console.is_terminal or console.quiet:
        yield None
        return
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    tasks: list[Any] = []

    def advance(done: int, whole: int | None) -> None:
        if not tasks:  # nothing is shown before there is something to tell
            bar.start()
            tasks.append(bar.add_task("", total=None))
        bar.update(tasks[0], completed=done, total=whole)

    try:
        yield advance
    finally:
        bar.stop()


def show_json(answer: Any) -> None:
    """Print an answer for programs, in one line."""
    typer.echo(json.dumps(answer, ensure_ascii=False, allow_nan=False))
