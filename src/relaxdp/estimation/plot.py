"""A plot of an estimate: dots with intervals. Needs matplotlib, which is imported only here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaxdp.errors import MissingDependencyError
from relaxdp.estimation.compare import Change, format_change_rows
from relaxdp.estimation.result import TOGETHER, About, Floats, GroupedResults, Result, format_label

BLUE, GREY = "#2563a8", "#7a7a7a"
MAX_PLOTTED_ROWS = 40
"""How many rows a picture has: the largest ones of more."""


def plot_result(result: Result, axes: Any, *, confidence_level: float, simultaneous: bool, about: About) -> Any:
    """Draw one row per label, the first one on top; of a crosstab one field per pair, and of a change a line at 0."""
    asked: Any = {"confidence_level": confidence_level, "simultaneous": simultaneous, "about": about}
    size, scale = (6, 0.8 + 0.32 * len(result.labels)), 1
    labels, heading = list(map(format_label, result.labels)), f"estimated {'share' if result.is_share else 'number'}"
    if isinstance(result, Change):
        size, scale = (7, 1.1 + 0.42 * len(result.labels)), 100 if result.is_share else 1
        texts = format_change_rows(result, **asked)
        labels = [escape_formulas(f"{text.label}\n{text.old} \N{RIGHTWARDS ARROW} {text.new}") for text in texts]
        heading = "change in percentage points" if result.is_share else "change"
    elif len(result.key_columns) > 1 and not result.is_chosen:
        return plot_heat_map(result, axes, **asked)
    axes = axes or _create_axes(size)
    low, high = (scale * np.atleast_1d(end) for end in result.interval(**asked))
    hollow = plot_interval_rows(axes, labels, scale * np.atleast_1d(result.value), low, high)
    asked["simultaneous"] |= result.is_chosen
    axes.set_xlabel(f"{heading}\nwith {describe_intervals(**asked, hollow=hollow)}")
    if isinstance(result, Change):
        axes.tick_params(axis="y", labelsize=9)
    return axes


def plot_groups(groups: GroupedResults, top: int | None, *, confidence_level: float, about: About) -> Any:
    """Draw all groups below each other, on one scale; return the axes of each."""
    shown = [result.largest(top or MAX_PLOTTED_ROWS) for result in groups.values()]
    heights = [0.9 + 0.32 * len(each.labels) for each in shown]
    size = (6, sum(heights))
    axes = _create_axes(size, nrows=len(shown), height_ratios=heights, sharex=True, squeeze=False)[:, 0]
    for place, (title, result, each) in enumerate(zip(groups.group_titles, shown, axes, strict=True)):
        plot_result(result, each, confidence_level=confidence_level, simultaneous=False, about=about)
        each.set_title(title, loc="left", fontsize=10)
        if place < len(shown) - 1:
            each.set_xlabel("")
    return axes


def plot_distribution(
    axes: Any, points: Floats, shares: Floats, mean: float, interval: tuple[float, float], confidence_level: float
) -> Any:
    """Draw a distribution as the density that it has around its points, with the mean and its interval on top."""
    axes = axes or _create_axes((6, 3.2))
    width = np.full(len(points), points[1] - points[0])
    width[[0, -1]] /= 2  # a bin at an end has numbers on one side only
    axes.fill_between(points, shares / width, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(points, shares / width, color=BLUE, linewidth=1.5)
    axes.axvspan(*interval, color=GREY, alpha=0.35, linewidth=0)
    axes.axvline(mean, color=GREY, linewidth=1.2)
    axes.set_xlim(points[0], points[-1])
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylabel("density")
    axes.set_xlabel(f"number\nline: the mean, with its {100 * confidence_level:g} % interval; the density is smoothed")
    return axes


def _create_axes(figure_size: tuple[float, float], **layout: Any) -> Any:
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib.", hint="Run pip install 'relaxdp[plot]'.") from None
    return plt.subplots(figsize=figure_size, layout="constrained", **layout)[1]


def escape_formulas(text: str) -> str:
    """Escape text, so that matplotlib does not take it for a formula."""
    return text.replace("$", r"\$")


def compute_heat_map_size(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Return how large a heat map is, in inches, so that every field can be read."""
    return 1.8 + 1.05 * n_columns, 1.3 + 0.5 * n_rows


def plot_heat_map(result: Result, axes: Any, *, confidence_level: float, simultaneous: bool, about: About) -> Any:
    """Draw a heat map with the estimate and its interval in every field; a faint one cannot be told from 0."""
    (rows_name, rows), (columns_name, columns) = result.key_columns.items()
    row_labels, column_labels = list(dict.fromkeys(rows)), list(dict.fromkeys(columns))
    shape = len(row_labels), len(column_labels)
    axes = axes or _create_axes(compute_heat_map_size(*shape))
    shares = np.clip(result.value, 0, 1).reshape(shape)
    ends = result.interval(confidence_level, simultaneous=simultaneous, about=about)
    low, high = (each.reshape(shape) for each in ends)
    most = max(float(shares.max()), 1e-9)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=most, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.6 * most else GREY if low[row, column] <= 0 else "black"
        between = f"{100 * low[row, column]:.1f} to {100 * high[row, column]:.1f}"
        axes.text(column, row, f"{100 * share:.1f} %\n{between}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_yticks(range(shape[0]), list(map(format_label, row_labels)))
    axes.set_xticks(range(shape[1]), list(map(format_label, column_labels)), rotation=30, ha="right")
    axes.set_ylabel(rows_name)
    intervals = describe_intervals(confidence_level, simultaneous=simultaneous, about=about, hollow=False)
    axes.set_xlabel(f"{columns_name}\n(shares in percent, with {intervals})")
    return axes


def plot_interval_rows(axes: Any, labels: Sequence[str], value: Floats, low: Floats, high: Floats) -> bool:
    """Draw rows with their intervals, the first one on top; return whether there is a hollow dot.

    It marks the end of an interval whose estimate is outside of it, most often below 0.
    """
    rows = range(len(labels))
    shown = np.clip(value, low, high)
    filled = [BLUE if inside else "white" for inside in shown == value]
    axes.hlines(rows, low, high, color=BLUE, linewidth=2, zorder=2)
    axes.scatter(shown, rows, s=25, facecolors=filled, edgecolors=BLUE, zorder=3, clip_on=False)
    axes.set_yticks(rows, labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # half a row of room on both sides: no point lies on the axis
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return bool(np.any(shown != value))


def describe_intervals(confidence_level: float, *, simultaneous: bool, about: About, hollow: bool) -> str:
    """Describe in words which intervals are drawn."""
    subject = "these individuals" if about == "sample" else "the population"
    words = f"{100 * confidence_level:g} % intervals about {subject}{TOGETHER if simultaneous else ''}"
    return f"{words}\n(hollow: the estimate lies outside of its interval)" if hollow else words
