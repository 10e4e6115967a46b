"""Results as plots in files: one panel per group with confidence intervals, a crosstab, a density, or a plan."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relaxdp.cli.result_printing import format_label, make_printable
from relaxdp.errors import EstimationError, MissingDependencyError, TableFileError
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.plot import (
    compute_heat_map_size,
    describe_intervals,
    escape_formulas,
    plot_heat_map,
    plot_interval_rows,
)

if TYPE_CHECKING:
    from relaxdp.cli.estimate import EstimateSettings, GroupEstimate
    from relaxdp.estimation.planning import PlannedLevel

MAX_PANELS = 20


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
    heights = [2.8 if isinstance(group.result, Distribution) else 0.8 + 0.32 * len(group.rows) for group in groups]
    figure = create_figure(7, 0.4 + sum(heights))
    axes = figure.subplots(len(groups), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    hollow = False
    for group, each in zip(groups, axes, strict=True):
        if isinstance(group.result, Distribution):
            group.result.plot(each, **intervals)
            each.set_xlabel("")
        else:
            labels = [escape_formulas(" & ".join(map(format_label, row.keys))) for row in group.rows]
            ends = ([getattr(row, field) for row in group.rows] for field in ("estimate", "low", "high"))
            hollow |= plot_interval_rows(each, labels, *map(np.array, ends))
        if settings.by is not None:
            each.set_title(
                escape_formulas(f"{make_printable(settings.by)}: {format_label(group.name)}"), loc="left", fontsize=10
            )
    together = any(group.is_simultaneous for group in groups)
    is_truncated = any(len(group.rows) < len(group.result.labels) for group in groups)
    which = f"the largest of {len(whole.labels):,}, " if is_truncated else ""
    if isinstance(whole, Distribution):
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
    """Write the margin of error at every level of a plan."""
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
    """Write a figure next to its place and rename it, so that no file is half-written."""
    staged = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        figure.savefig(staged, format=path.suffix[1:].lower(), dpi=150)
        staged.replace(path)
    except OSError as problem:
        raise TableFileError(
            "The plot {path!r} cannot be written: {why}.",
            hint="Choose another folder, or make it writable.",
            why=problem.strerror or "the disk may be full",
            path=str(path),
        ) from None
    finally:
        staged.unlink(missing_ok=True)
