"""`relaxdp estimate --difference`: what changed between files of several dates, as tables, a picture or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from relaxdp.cli.bars import Row, clean, fitted, label_of, plain_label, print_table
from relaxdp.cli.estimate_render import Asked
from relaxdp.cli.pictures import new_figure, save
from relaxdp.cli.render import show_json
from relaxdp.cli.talk import closing
from relaxdp.errors import OptionError
from relaxdp.estimation.dates import Date, Dates, Difference, Writer, rows_of
from relaxdp.estimation.difference import Change
from relaxdp.estimation.plot import MOST_DRAWN, MOST_LINES
from relaxdp.estimation.result import IMPLAUSIBLE, Result
from relaxdp.table.difference import difference

_LONGEST = 14
"""The most letters of a date's name that head a column of numbers; longer ones stand above the table alone."""


def compared(
    places: Sequence[str],
    asked: Asked,
    column: str | None,
    new_column: str | None,
    *,
    independent: bool,
    description: Sequence[Path] | None,
) -> Difference | Dates:
    """Return what changed from each file to the next one, or refuse what is not offered of changes."""
    for option, value in (("by", asked.by), ("cross", asked.cross), ("consistent", asked.consistent)):
        if value:
            raise OptionError("changes are of all rows of a column, without --{option}.", option=option)
    if len(places) < 2:
        raise OptionError("a difference takes two files or more, one for each date.", option="difference")
    found: Difference | Dates = difference(
        *places,
        column=column,
        new_column=new_column,
        independent=independent,
        method=asked.method.value,
        description=description or None,
    )
    return found


def show_changes(found: Difference | Dates, asked: Asked, *, top: int, plot: Path | None, as_json: bool) -> None:
    """Print what changed, and draw it if that was asked for."""
    steps = [found] if isinstance(found, Difference) else found.steps
    dates = [steps[0].old, *(step.new for step in steps)]
    if plot is not None:
        _draw(found, asked, plot, top)
    is_implausible = any(date.result.is_implausible() for date in dates)
    if as_json:
        show_json(_json(dates, steps, asked))
        if is_implausible:
            typer.echo(IMPLAUSIBLE, err=True)
        return
    console = Console()
    console.print(Text(_heading(dates, asked)))
    clear = [_print_step(console, step, asked, top) for step in steps]
    if not all(clear):
        console.print("A change whose interval holds 0 cannot be told from no change at these levels.")
    if is_implausible:
        console.print(IMPLAUSIBLE)
    if plot is not None:
        closing(f"wrote the picture {plot}")


def _intervals(asked: Asked) -> dict[str, Any]:
    return {"simultaneous": asked.simultaneous, "about": asked.about}


# In words.


def _heading(dates: Sequence[Date], asked: Asked) -> str:
    what = repr(clean(dates[0].column))
    what = what if dates[0].result.is_share else f"mean of {what}"
    subject = "these objects" if asked.about == "objects" else "the population that they are a sample of"
    rows = "each value" if not asked.simultaneous else "all values at once"
    lines = [
        f"{what} at {len(dates)} dates; {100 * asked.confidence:g} % intervals of "
        f"{rows if dates[0].result.is_share else 'the mean'}, about {subject}."
    ]
    for date in dates:
        levels = ", ".join(
            epsilon if len(date.levels) == 1 else f"{epsilon} ({objects:,})" for epsilon, objects in date.levels.items()
        )
        epoch = "" if date.epoch == 1 else f", epoch {date.epoch}"
        release = repr(clean(date.release)) + epoch
        lines.append(f"  {clean(date.label)}: {date.objects:,} objects at epsilon {levels}, release {release}")
    return "\n".join(lines)


def _print_step(console: Console, step: Difference, asked: Asked, top: int) -> bool:
    """Print what changed from one date to the next, and return whether all of it can be told from no change."""
    is_clear = True
    for who, change in step.changes.items():
        shown = change.largest(top)
        parts = [shown] if shown.quartiles is None else [shown, shown.quartiles]
        rows, texts = [], []
        for part in parts:
            own = rows_of(part, asked.confidence, **_intervals(asked))
            texts += own
            rows += [
                Row([label_of(label)], [text.old, text.new, text.change, text.low, text.high])
                for label, text in zip(part.labels, own, strict=True)
            ]
        names = [clean(step.old.label), clean(step.new.label)]
        if max(map(len, names)) > _LONGEST:
            names = ["old", "new"]
        _print_part(console, step, who, (["value"], [*names, "change", "low", "high"], rows))
        _say_chosen(console, change, shown, "changed most")
        if change.missing is not None:
            for text in rows_of(change.missing, asked.confidence, **_intervals(asked)):
                console.print(Text(f"{text}.".capitalize()))
        is_clear &= all(text.is_clear for text in texts)
    for who, result in step.others.items():
        largest = result.largest(top)
        _print_part(
            console,
            step,
            who,
            (["value"], ["estimate", "low", "high"], list(_rows(largest, asked))),
        )
        _say_chosen(console, result, largest, "are the largest")
    return is_clear


def _print_part(console: Console, step: Difference, who: str, content: tuple[list[str], list[str], list[Row]]) -> None:
    said = clean(step.whose(who))
    console.print()
    console.print(Text(f"{said[0].upper()}{said[1:]}"))
    print_table(console, *fitted(*content, console.width, None))


def _say_chosen(console: Console, whole: Result, shown: Result, why: str) -> None:
    if shown is not whole:
        console.print(
            f"These are the {len(shown.labels):,} of {len(whole.labels):,} values that {why}; --json has all of them. "
            "They were chosen by their estimates, so their intervals hold for all values at once."
        )


def _rows(result: Result, asked: Asked) -> Iterable[Row]:
    """Return the rows of those who were there at one date alone, written as the others are."""
    write = Writer.of(result, asked.about)
    numbers = [result.value, *result.interval(asked.confidence, **_intervals(asked))]
    for label, *row in zip(result.labels, *map(np.atleast_1d, numbers), strict=True):
        yield Row([label_of(label)], [write.number(each) for each in row])


# As a picture.


def _draw(found: Difference | Dates, asked: Asked, path: Path, top: int) -> None:
    options: Any = {"confidence_level": asked.confidence, **_intervals(asked)}
    if isinstance(found, Difference):
        rows = min(len(found.change.labels), top, MOST_DRAWN)
        figure = new_figure(7, 1.5 + 0.45 * rows)
        found.plot(figure.subplots(), top=min(top, MOST_DRAWN), **options)
    else:
        figure = new_figure(max(6.0, 3.0 + 1.1 * len(found.dates)), 4.2)
        found.plot(figure.subplots(), top=min(top, MOST_LINES), **options)
    save(figure, path)


# For programs.


def _json(dates: Sequence[Date], steps: Sequence[Difference], asked: Asked) -> dict[str, Any]:
    return {
        "column": dates[0].column,
        "answer": "shares" if dates[0].result.is_share else "mean",
        "confidence": asked.confidence,
        "simultaneous": asked.simultaneous,
        "about": asked.about,
        "method": asked.method.value,
        "dates": [
            {
                "label": date.label,
                "column": date.column,
                "release": date.release,
                "epoch": date.epoch,
                "encoding": date.encoding,
                "objects": date.objects,
                "levels": [{"epsilon": epsilon, "objects": objects} for epsilon, objects in date.levels.items()],
                "implausible": date.result.is_implausible(),
                "estimates": _json_rows(date.result, "estimate", asked),
            }
            for date in dates
        ],
        "steps": [
            {
                "from": step.old.label,
                "to": step.new.label,
                "joined_by_id": bool(step.objects),
                **{
                    who: None if part is None else {"objects": step.objects[who], **part}
                    for who, part in _json_parts(step, asked).items()
                },
                "everybody": _json_changes(step.everybody, asked),
            }
            for step in steps
        ],
    }


def _json_parts(step: Difference, asked: Asked) -> dict[str, dict[str, Any] | None]:
    parts = {"stayed": None if step.stayed is None else _json_changes(step.stayed, asked)}
    for who, result in (("joined", step.joined), ("left", step.left)):
        parts[who] = None if result is None else {"rows": _json_rows(result, "estimate", asked)}
    return parts


def _json_changes(change: Change, asked: Asked) -> dict[str, Any]:
    dates = [np.atleast_1d(side.value).tolist() for side in (change.old, change.new)]
    rows = zip(_json_rows(change, "change", asked), *dates, strict=True)
    found: dict[str, Any] = {
        "rows": [{"value": row.pop("value"), "old": old, "new": new, **row} for row, old, new in rows]
    }
    if change.quartiles is not None:
        found["quartiles"] = _json_changes(change.quartiles, asked)["rows"]
    return found if change.missing is None else found | {"missing": _json_changes(change.missing, asked)["rows"][0]}


def _json_rows(result: Result, name: str, asked: Asked) -> list[dict[str, Any]]:
    low, high = result.interval(asked.confidence, **_intervals(asked))
    numbers = [np.atleast_1d(each).tolist() for each in (result.value, result.standard_error(asked.about), low, high)]
    return [
        {"value": plain_label(label), name: value, "std_error": error, "low": a, "high": b}
        for label, value, error, a, b in zip(result.labels, *numbers, strict=True)
    ]
