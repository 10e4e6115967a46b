"""`relaxdp estimate`: released files -> shares or means with honest intervals, as a table, a picture or JSON."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relaxdp.cli.plan import AboutChoice
from relaxdp.errors import CountsError, MissingPartError, TableFileError
from relaxdp.estimate.result import About, Floats, Result
from relaxdp.estimate.simplex import nearest_shares
from relaxdp.table.counting import PairTally, Tally, count, count_pairs
from relaxdp.table.released_files import Axis

MOST_ROWS = 50
MOST_PICTURES = 20
BAR_WIDTH = 24
PLOT_ENDINGS = (".png", ".svg", ".pdf")


class MethodChoice(StrEnum):
    """How levels are weighted."""

    AVERAGE = "average"
    PRECISION = "precision"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the counts."""

    confidence: float
    simultaneous: bool
    about: About
    method: MethodChoice
    consistent: bool
    by: str | None
    cross: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """One block of the answer: a group, or everything. Rows are labels with four numbers each."""

    group: str | None
    objects: int
    levels: list[tuple[str, str | None, int]]
    labels: list[tuple[Any, Any]]
    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats
    least: float
    most: float


def estimate(
    files: Annotated[
        list[Path], typer.Argument(help="Released files or folders of Parquet files, of one path.", show_default=False)
    ],
    column: Annotated[
        str | None, typer.Option("--column", "--release-column", help="The released column, where there are several.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Estimate for each group of a kept column.")] = None,
    cross: Annotated[str | None, typer.Option(help="A second released column: a two-way table.")] = None,
    confidence: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all values at once.")
    ] = False,
    about: Annotated[
        AboutChoice, typer.Option(help="These objects, or the population that they are a sample of.")
    ] = AboutChoice.OBJECTS,
    method: Annotated[
        MethodChoice, typer.Option(help="Weights of levels: every object the same, or less noise more.")
    ] = MethodChoice.AVERAGE,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Shares that are not negative and sum to 1, with some bias.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the estimates into a .png, .svg or .pdf file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Estimate shares or means from released files; the files say their own values and levels.

    Files of one release may hold the same objects at different levels: each object counts once, at its highest.
    """
    asked = Asked(confidence, simultaneous, about.value, method, consistent, by, cross)
    _check(asked, plot)
    with Console(stderr=True).status("Counting ..."):
        tally = count(files, column=column, by=by) if cross is None else count_pairs(files, column=column, cross=cross)
        parts = _parts(tally, asked)
    axis = tally.axis if isinstance(tally, Tally) else tally.rows
    if plot is not None:
        _draw(plot, parts, _name(axis, asked), asked)
    if as_json:
        typer.echo(json.dumps(_json(tally, axis, parts, asked), ensure_ascii=False, allow_nan=False))
    else:
        _print(tally, axis, parts, asked)
        if plot is not None:
            typer.echo(f"wrote the picture {plot}")


def _check(asked: Asked, plot: Path | None) -> None:
    if asked.by is not None and asked.cross is not None:
        raise CountsError("--by and --cross are not offered together.")
    if not 0 < asked.confidence < 1:
        raise CountsError(f"a confidence level lies between 0 and 1, like 0.95; not {asked.confidence}.")
    if plot is not None and plot.suffix.lower() not in PLOT_ENDINGS:
        raise TableFileError(f"{str(plot)!r}: a plot's ending must be .png, .svg or .pdf.", path=str(plot))


def _parts(tally: Tally | PairTally, asked: Asked) -> list[Part]:
    if isinstance(tally, PairTally):
        labels = [(row, column) for row in tally.rows.labels for column in tally.columns.labels]
        pairs = [(one, two, table.objects) for (one, two), table in tally.tables.items()]
        return [_part(None, tally.objects, pairs, labels, tally.estimate(asked.method.value), asked)]
    numeric = tally.axis.description.values is None
    if numeric and asked.consistent:
        raise CountsError("--consistent is about shares, and this column holds numbers: its answer is a mean.")
    parts = []
    for group, counts in tally.groups:
        result = counts.estimate(asked.method.value)
        levels = [(epsilon, None, objects) for epsilon, objects in counts.levels.items()]
        parts.append(_part(group, counts.objects, levels, [(label, None) for label in result.labels], result, asked))
    return parts


def _part(
    group: str | None,
    objects: int,
    levels: Iterable[tuple[str, str | None, int]],
    labels: list[tuple[Any, Any]],
    result: Result,
    asked: Asked,
) -> Part:
    ends = result.interval(asked.confidence, simultaneous=asked.simultaneous, about=asked.about)
    low, high = map(np.atleast_1d, ends)
    value = np.atleast_1d(result.value)
    return Part(
        group=group,
        objects=objects,
        levels=list(levels),
        labels=labels,
        estimate=nearest_shares(value) if asked.consistent else value,
        std_error=np.atleast_1d(result.standard_error(asked.about)),
        low=low,
        high=high,
        least=result.least,
        most=result.most,
    )


# In words and bars.


def _print(tally: Tally | PairTally, axis: Axis, parts: list[Part], asked: Asked) -> None:
    console = Console()
    console.print(Text(_heading(tally, axis, parts, asked)))
    console.print(_table(parts, asked))
    shown, rows = sum(len(_largest(part)) for part in parts), sum(len(part.labels) for part in parts)
    if shown < rows:
        console.print(f"These are the largest {shown:,} of {rows:,} rows; --json has all of them.")
    if any(_says_nothing(part) for part in parts):
        console.print(
            "Some intervals cover everything that is possible, or end at its edge: the noise is larger than the answer."
        )
    if asked.by is not None:
        console.print(Text(_groups_sentence(asked.by)))


def _says_nothing(part: Part) -> bool:
    """Tell whether noise outweighs the answer: an interval over nearly everything, or squeezed against an end."""
    width = (part.high - part.low) / (part.most - part.least)
    return bool(np.any(width > 0.9) or np.any((width < 1e-9) & (part.std_error > 0.05 * (part.most - part.least))))


def _heading(tally: Tally | PairTally, axis: Axis, parts: list[Part], asked: Asked) -> str:
    every: dict[tuple[str, str | None], int] = {}
    for part in parts:
        for one, two, objects in part.levels:
            every[one, two] = every.get((one, two), 0) + objects
    texts = {level: level[0] if level[1] is None else f"{level[0]} and {level[1]}" for level in every}
    if len(every) == 1:
        levels = f"at epsilon {next(iter(texts.values()))}"
    else:
        levels = "at epsilon " + ", ".join(f"{texts[level]} ({objects:,})" for level, objects in every.items())
    subject = "these objects" if asked.about == "objects" else "the population that they are a sample of"
    rows = "all values at once" if asked.simultaneous else "each value"
    if axis.description.values is None:
        rows = "the mean"
    return (
        f"{tally.objects:,} objects {levels}: {_name(axis, asked)} of release {_clean(axis.description.release)!r}; "
        f"{100 * asked.confidence:g} % intervals of {rows}, about {subject}."
    )


def _name(axis: Axis, asked: Asked) -> str:
    name = repr(_clean(axis.name))
    if asked.cross is not None:
        return f"{name} and {_clean(asked.cross)!r}"
    function = axis.description.function
    if axis.description.values is None:
        return f"mean of {name}" if function in (None, "identity") else f"mean of {_clean(str(function))} of {name}"
    return name


def _groups_sentence(by: str) -> str:
    return f"Groups are made of the kept column {_clean(by)!r}, which was released as it is, without noise."


def _table(parts: list[Part], asked: Asked) -> Table:
    table = Table()
    headings = [] if asked.by is None else [_clean(asked.by)]
    headings += ["value"] if asked.cross is None else ["value", _clean(asked.cross)]
    width = BAR_WIDTH // len(headings)
    for heading in headings:
        table.add_column(Text(heading), overflow="fold")
    for heading in ("estimate", "low", "high"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", width=width, no_wrap=True)
    longest = max(_scale(part) for part in parts)
    for part in parts:
        for place, row in enumerate(_largest(part)):
            cells: list[Any] = []
            if asked.by is not None:
                cells = [Text(f"{_label(part.group)} ({part.objects:,})" if place == 0 else "")]
            cells += [Text(_label(label)) for label in part.labels[row][: 1 if asked.cross is None else 2]]
            cells += [_number(numbers[row]) for numbers in (part.estimate, part.low, part.high)]
            length = min(max(float(part.estimate[row]) - part.least, 0.0), longest)
            table.add_row(*cells, Bar(longest, 0, length, width=width))
        table.add_section()
    return table


def _scale(part: Part) -> float:
    """Return what a full bar stands for: the range of a mean, or the largest share."""
    if len(part.labels) == 1:
        return part.most - part.least
    return float(np.clip(part.estimate.max(), 1e-9, part.most))


def _largest(part: Part) -> list[int]:
    """Return the rows to show: all in their order, or the largest ones of very many."""
    if len(part.labels) <= MOST_ROWS:
        return list(range(len(part.labels)))
    order = np.argsort(-part.estimate, kind="stable")[:MOST_ROWS]
    return [int(row) for row in order]


def _number(number: float) -> str:
    return f"{number:.4f}" if abs(number) < 10 else f"{number:,.2f}"


def _label(label: Any) -> str:
    if label is None:
        return "(missing)"
    return label.hex() if isinstance(label, bytes) else _clean(str(label))


def _clean(text: str) -> str:
    """Return text that a terminal only shows: a file may come from anybody."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


# For programs.


def _json(tally: Tally | PairTally, axis: Axis, parts: list[Part], asked: Asked) -> dict[str, Any]:
    description = axis.description
    return {
        "column": axis.name,
        "cross": asked.cross,
        "by": asked.by,
        "release": description.release,
        "attribute": description.attribute,
        "encoding": description.encoding,
        "objects": tally.objects,
        "confidence": asked.confidence,
        "simultaneous": asked.simultaneous,
        "about": asked.about,
        "method": asked.method.value,
        "consistent": asked.consistent,
        "groups": [
            {
                "group": part.group,
                "objects": part.objects,
                "levels": [
                    {"epsilon": one, "cross_epsilon": two, "objects": objects} for one, two, objects in part.levels
                ],
                "estimates": list(_json_rows(part)),
            }
            for part in parts
        ],
    }


def _json_rows(part: Part) -> Iterable[dict[str, Any]]:
    numbers = zip(part.labels, *(each.tolist() for each in (part.estimate, part.std_error, part.low, part.high)))  # noqa: B905 (made alike)
    for (value, other), share, error, low, high in numbers:
        yield {
            "value": _plain(value),
            "cross_value": _plain(other),
            "estimate": share,
            "std_error": error,
            "low": low,
            "high": high,
        }


def _plain(label: Any) -> Any:
    if label is None or isinstance(label, str | int | float):
        return label
    return label.hex() if isinstance(label, bytes) else str(label)


# As a picture.


@dataclass(frozen=True, eq=False, repr=False)
class _Drawn(Result):
    """Rows as they are shown, for the plot that every estimate has."""

    labels: Sequence[str]
    rows: Part
    places: list[int]

    @property
    def value(self) -> Floats:
        return self.rows.estimate[self.places]

    def standard_error(self, about: About = "objects") -> Floats:
        return self.rows.std_error[self.places]

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        return self.rows.low[self.places], self.rows.high[self.places]

    @property
    def least(self) -> float:  # type: ignore[override]
        return self.rows.least

    @property
    def most(self) -> float:  # type: ignore[override]
        return self.rows.most


def _draw(path: Path, parts: list[Part], name: str, asked: Asked) -> None:
    """Write the picture beside its place, then rename it: nothing half-written."""
    if len(parts) > MOST_PICTURES:
        raise CountsError(f"a plot shows at most {MOST_PICTURES} groups, and there are {len(parts)}.")
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("plots need matplotlib: pip install 'relaxdp[plot]'.") from None
    places = [_largest(part) for part in parts]
    heights = [0.8 + 0.32 * len(each) for each in places]
    figure = Figure(figsize=(7, 0.4 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    for part, rows, each in zip(parts, places, axes, strict=True):
        labels = [" & ".join(_label(label) for label in part.labels[row] if label is not None) for row in rows]
        drawn = _Drawn([label.replace("$", r"\$") for label in labels], part, rows)
        drawn.plot(each, confidence_level=asked.confidence, about=asked.about)
        each.set_xlabel("")
        if len(part.labels) == 1:
            each.set_xlim(part.least, part.most)
        if asked.by is not None:
            each.set_title(f"{_clean(asked.by)}: {_label(part.group)}".replace("$", r"\$"), loc="left", fontsize=10)
    together = ", all values at once" if asked.simultaneous else ""
    subject = "these objects" if asked.about == "objects" else "the population"
    axes[-1].set_xlabel(
        f"{name}, with {100 * asked.confidence:g} % intervals about {subject}{together}".replace("$", r"\$")
    )
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        figure.savefig(aside, format=path.suffix[1:].lower(), dpi=150)
        aside.replace(path)
    except OSError as problem:
        raise TableFileError(
            f"{str(path)!r} cannot be written: {problem.strerror or 'the disk may be full'}.", path=str(path)
        ) from None
    finally:
        aside.unlink(missing_ok=True)
