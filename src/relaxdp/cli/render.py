"""What commands show: progress, what became of a release, and JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relaxdp.cli.talk import aside_console, is_quiet
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import difference, total

if TYPE_CHECKING:
    from relaxdp.ledger.ledger import Charge
    from relaxdp.publication.outlook import Outlook
    from relaxdp.publication.transaction import Progress as Advance
    from relaxdp.table.calls import Released


FASTER_LOCALLY = (
    "The table is sorted by its ids and lies on this machine, where the same release is faster without --engine spark."
)


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


def show_released(done: Released, as_json: bool, account: Sequence[str] = ()) -> None:
    """Say what was released and what it cost; of a dry run, what it would cost.

    `account` are the options that name the key and the ledger, for the command that relaxes the release.
    """
    level, charges = epsilon_text(done.epsilon), done.charges
    if as_json:
        show_json(_as_json(done))
        return
    if is_quiet() and done.rows is not None:
        return
    names = ", ".join(map(repr, done.columns))
    lines = [f"dry run: {names} at epsilon {level} would cost {_cost(charges)}"]
    if done.rows is not None:
        lines = [f"released {names} of {done.rows:,} rows at epsilon {level} to {done.to}{_history(charges)}"]
    lines += map(_outlook_words, done.outlooks)
    if charges:
        last = charges[-1]
        left = difference(last.budget, last.spent_after)
        spent, budget, rest = map(epsilon_text, (last.spent_after, last.budget, left))
        verb = "would have spent" if done.rows is None else "spent"
        lines.append(f"cost {_cost(charges)}; {verb} {spent} of the budget {budget}, {rest} left")
    else:
        lines.append("no ledger: nobody keeps account of what this cost")
    if done.snapshot is not None:
        folder, here = done.snapshot.parent, Path.cwd()
        folder = folder.relative_to(here) if folder.is_relative_to(here) else folder
        columns = [word for name in done.columns for word in ("--column", name)]
        dated = ["--date", done.date] if done.date else []
        relaxing = shlex.join(["relaxdp", "relax", done.release, "OUT.parquet", *columns, *dated, *account])
        lines.append(f"kept in {folder}, sealed with the key; to relax it without the table:")
        lines.append(f"  {relaxing} --epsilon NUMBER")
    typer.echo("\n".join(lines))
    if done.is_faster_locally:
        typer.echo(FASTER_LOCALLY, err=True)


def _as_json(done: Released) -> dict[str, Any]:
    level, charges = epsilon_text(done.epsilon), done.charges
    answer: dict[str, Any] = {"rows": done.rows, "epsilon": level, "release": done.release, "columns": {}}
    if done.date:
        answer["date"] = done.date
    for outlook in done.outlooks:
        answer["columns"][outlook.column] = {
            "encoding": outlook.encoding,
            "chosen_for": None if outlook.chosen_for is None else epsilon_text(outlook.chosen_for),
            "overruled": outlook.overruled,
            "half_width": outlook.half_width,
        }
    for column, charge in zip(done.columns, charges, strict=False):
        answer["columns"].setdefault(column, {}).update({"cost": epsilon_text(charge.cost), "epoch": charge.path.epoch})
    if charges:
        answer |= {"spent": epsilon_text(charges[-1].spent_after), "budget": epsilon_text(charges[-1].budget)}
    if done.snapshot is not None:
        answer["snapshot"] = str(done.snapshot)
    return answer


_WHOLE = 100
"""A half-width from here on is told without a fraction."""


def _outlook_words(outlook: Outlook) -> str:
    """Say how a column is encoded and why, and how precise its answer will be."""
    why = "" if outlook.chosen_for is None else f", the best for epsilon {epsilon_text(outlook.chosen_for)}"
    if outlook.is_worse_now:
        why += " (--planned-epsilon says which is the last)"
    if outlook.overruled is not None:
        why = f", as its path was opened, and not as {outlook.overruled}"
    width = outlook.half_width
    within = "" if width is None else f"{width:,.0f}" if width >= _WHOLE else f"{width:.2g}"
    precise = "" if width is None else f": its {outlook.answer} to within {within}"
    return f"{outlook.column!r} as {outlook.encoding}{why}{precise}"


def _history(charges: tuple[Charge, ...]) -> str:
    if not charges:
        return ""
    previous = charges[-1].previous
    return " (a new path)" if previous is None else f" (the level before: {epsilon_text(previous)})"


def _cost(charges: tuple[Charge, ...]) -> str:
    return epsilon_text(total(charge.cost for charge in charges))


def show_json(answer: Any) -> None:
    """Print an answer for programs, in one line."""
    typer.echo(json.dumps(answer, ensure_ascii=False, allow_nan=False))
