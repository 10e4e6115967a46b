"""The results of all commands, printed as a table with bars, as JSON or CSV, or written as a plot."""

from __future__ import annotations

import csv
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relaxdp.cli.terminal import print_done, print_json
from relaxdp.errors import ArgumentError, EstimationError, MissingDependencyError, TableFileError, replace_os_error
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.plot import (
    compute_heat_map_size,
    describe_intervals,
    escape_formulas,
    plot_heat_map,
    plot_interval_rows,
)
from relaxdp.estimation.result import IMPLAUSIBLE, EstimateRow

if TYPE_CHECKING:
    from relaxdp.cli.estimate import EstimateSettings, GroupEstimate
    from relaxdp.estimation.planning import PlannedLevel

_MAX_BAR, _MIN_BAR = 24, 6
_MIN_LABEL = 6
MAX_PANELS = 20


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a table: labels, numbers, the length of its bar, and whether a line follows it."""

    labels: Sequence[str]
    numbers: Sequence[str]
    bar: float = 0.0
    ends_group: bool = False


@dataclass(frozen=True, slots=True)
class PrintableResult:
    """A result that can be printed, for people and for programs."""

    heading: str
    labels: Sequence[str]
    """The headings of the columns with labels, and of those with numbers."""
    numbers: Sequence[str]
    rows: Sequence[TableRow]
    document: Mapping[str, Any]
    """The JSON document."""
    records: Sequence[Mapping[str, Any]]
    """The rows of the CSV file, all with the same fields."""
    notes: Sequence[str] = ()
    longest_bar: float | None = None
    """The number that a full bar stands for; None for a table without bars."""
    has_impossible_estimates: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The options --json, --csv and --plot, which are checked before anything is computed."""

    as_json: bool
    as_csv: bool
    plot: Path | None = None

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise ArgumentError("--json and --csv cannot be combined.", hint="Leave one of them out.")
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise TableFileError(
                "The plot {path!r} does not end in .png, .svg or .pdf.",
                hint="Choose a file name such as plot.png.",
                path=str(self.plot),
            )

    @property
    def is_for_programs(self) -> bool:
        """Whether all rows are printed, in a format for programs."""
        return self.as_json or self.as_csv


def print_result(view: PrintableResult, output: OutputOptions) -> None:
    """Print a result in the format that was chosen."""
    if output.as_json:
        print_json(view.document)
    elif output.as_csv:
        writer = csv.DictWriter(sys.stdout, list(view.records[0]) if view.records else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(view.records)
    else:
        _print_table(view)
    if view.has_impossible_estimates:
        typer.echo(IMPLAUSIBLE, err=output.is_for_programs)
    if output.plot is not None and not output.is_for_programs:
        print_done(f"Wrote the plot {output.plot}.")


def make_printable(text: str) -> str:
    """Make text printable: replace control characters, which a terminal obeys and a stranger may have written."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def format_label(label: Any) -> str:
    """Format the label of a value or a group for a table."""
    return "(missing)" if label is None else make_printable(str(make_json_label(label)))


def make_json_label(label: Any) -> Any:
    """Return the label of a value as JSON has it."""
    if label is None or isinstance(label, str | int | float):
        return label
    return label.hex() if isinstance(label, bytes) else str(label)


def make_interval_row(
    row: EstimateRow,
    bar: float,
    *,
    first_labels: Sequence[str] = (),
    last_labels: Sequence[str] = (),
    ends_group: bool = False,
) -> TableRow:
    """Return the table row of an estimate; a star marks one outside of the possible range."""
    keys = [format_label(each) for each in row.keys]
    keys[-1] += "" if row.beyond is None else " *"
    ends = (row.estimate, row.low, row.high)
    numbers = [f"{number:.4f}" if abs(number) < 10 else f"{number:,.2f}" for number in ends]
    return TableRow([*first_labels, *keys, *last_labels], numbers, bar, ends_group)


def explain_stars(rows: Sequence[EstimateRow]) -> list[str]:
    """Return the note that explains the stars, if there are any."""
    sides = sorted({row.beyond for row in rows if row.beyond is not None}, reverse=True)
    if not sides:
        return []
    return [
        f"* {' or '.join(sides)} what can be told at this level: noise took the estimate out of the possible range, "
        "farther than its error reaches. The interval is the bound that an estimate at the edge would give."
    ]


def _print_table(view: PrintableResult) -> None:
    console = Console()
    console.print(Text(view.heading))
    if view.rows:
        table, width = _make_table(view, console)
        # A number is never cut: if the minimum width is too wide, the terminal breaks the lines.
        (console if width <= console.width else Console(width=width)).print(table)
    for note in view.notes:
        console.print(Text(note))


def _make_table(view: PrintableResult, console: Console) -> tuple[Table, int]:
    """Return the table and its minimum width. Labels are folded, and bars take the room that is left."""
    labels, numbers = (
        [max(map(cell_len, each)) for each in zip(headings, *rows, strict=True)]
        for headings, rows in (
            (view.labels, [row.labels for row in view.rows]),
            (view.numbers, [row.numbers for row in view.rows]),
        )
    )
    table = Table()
    for heading, width in zip(view.labels, labels, strict=True):
        table.add_column(Text(heading), overflow="fold", min_width=min(width, _MIN_LABEL))
    for heading, width in zip(view.numbers, numbers, strict=True):
        table.add_column(Text(heading), justify="right", no_wrap=True, min_width=width)
    borders = 3 * len([*labels, *numbers]) + 1  # Each column has a line and two blanks.
    bar = min(_MAX_BAR, console.width - sum([*labels, *numbers]) - borders - 3)
    has_bars = view.longest_bar is not None and bar >= _MIN_BAR and console.encoding.startswith("utf")
    if has_bars:
        table.add_column("", width=bar)
    for row in view.rows:
        bars = [Bar(view.longest_bar or 1.0, 0, row.bar, width=bar)] if has_bars else []
        table.add_row(*map(Text, row.labels), *map(Text, row.numbers), *bars, end_section=row.ends_group)
    return table, sum(min(each, _MIN_LABEL) for each in labels) + sum(numbers) + borders


def plot_estimate(path: Path, groups: Sequence[GroupEstimate], name: str, settings: EstimateSettings) -> None:
    """Write the plot of an estimate: a crosstab, or one panel per group."""
    if len(groups) > MAX_PANELS:
        raise EstimationError(
            "The column of --by has {groups} groups, and a plot shows at most {maximum}.",
            hint="Leave --plot out, or choose another column with --by.",
            maximum=MAX_PANELS,
            groups=len(groups),
        )
    intervals: Any = {"confidence_level": settings.confidence_level, "about": settings.about}
    whole = groups[0].result
    if len(whole.key_columns) > 1 and len(whole.labels) == len(groups[0].rows):
        rows, columns = (len(set(map(str, side))) for side in whole.key_columns.values())
        figure = create_figure(*compute_heat_map_size(rows, columns))
        plot_heat_map(whole, figure.subplots(), simultaneous=settings.simultaneous, **intervals)
        save_figure(figure, path)
        return
    is_density = isinstance(whole, Distribution) and whole.has_quantiles
    heights = [2.8 if is_density else 0.8 + 0.32 * len(group.rows) for group in groups]
    figure = create_figure(7, 0.4 + sum(heights))
    axes = figure.subplots(len(groups), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    hollow = False
    for group, each in zip(groups, axes, strict=True):
        if is_density:
            group.result.plot(each, **intervals)
            each.set_xlabel("")
        else:
            labels = [escape_formulas(" & ".join(map(format_label, row.keys))) for row in group.rows]
            ends = ([getattr(row, field) for row in group.rows] for field in ("estimate", "low", "high"))
            hollow |= plot_interval_rows(each, labels, *map(np.array, ends))
        if settings.by is not None:
            title = f"{make_printable(settings.by)}: {format_label(group.name)}"
            each.set_title(escape_formulas(title), loc="left", fontsize=10)
    together = any(group.is_simultaneous for group in groups)
    is_truncated = any(len(group.rows) < len(group.result.labels) for group in groups)
    which = f"the largest of {len(whole.labels):,}, " if is_truncated else ""
    if is_density:
        name, which = "density, smoothed", f"line: {name}, "
    axes[-1].set_xlabel(
        escape_formulas(f"{name}\n{which}with {describe_intervals(simultaneous=together, hollow=hollow, **intervals)}")
    )
    save_figure(figure, path)


def plot_result(path: Path, result: Any, **intervals: Any) -> None:
    """Write the plot of one result or change, as its own `plot` draws it."""
    figure = create_figure(7, 1.1 + 0.42 * len(result.labels))
    result.plot(figure.subplots(), **intervals)
    save_figure(figure, path)


def plot_plan(path: Path, steps: Sequence[PlannedLevel], margin: float | None) -> None:
    """Write the plot of a plan: the margin of error at every level."""
    figure = create_figure(7, 4)
    axes = figure.subplots()
    axes.plot([float(step.epsilon) for step in steps], [step.margin for step in steps], "o-", color="#2563a8")
    if margin is not None:
        axes.axhline(margin, color="#444444", linewidth=1, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("epsilon")
    axes.set_ylabel("expected margin of error")
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def create_figure(width: float, height: float) -> Any:
    """Return an empty figure; its size is in inches."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib.", hint="Run: pip install 'relaxdp[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure under another name and rename it, so that no file is half-written."""
    staged = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    hint = "Choose another folder, or make it writable."
    try:
        with replace_os_error(TableFileError, "The plot {path!r} cannot be written: {why}.", hint=hint, path=str(path)):
            figure.savefig(staged, format=path.suffix[1:].lower(), dpi=150)
            staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
