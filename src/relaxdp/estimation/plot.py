"""A plot of an estimate: dots with intervals. Needs matplotlib, which is imported only here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaxdp.errors import MissingPartError
from relaxdp.estimation.result import TOGETHER, About, Floats, Result

BLUE, GREY = "#2563a8", "#7a7a7a"


def plot_result(result: Result, axes: Any, *, confidence_level: float, simultaneous: bool, about: About) -> Any:
    """Draw one row per label, the first one on top."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("plots need matplotlib: pip install 'relaxdp[plot]'.") from None
    if axes is None:
        _, axes = plt.subplots(figsize=(6, 0.8 + 0.32 * len(result.labels)), layout="constrained")
    low, high = map(np.atleast_1d, result.interval(confidence_level, simultaneous=simultaneous, about=about))
    hollow = draw_rows(axes, [str(label) for label in result.labels], np.atleast_1d(result.value), low, high)
    together = simultaneous or result.is_chosen
    intervals = intervals_named(confidence_level, simultaneous=together, about=about, hollow=hollow)
    axes.set_xlabel(f"estimated share, with {intervals}")
    return axes


def draw_rows(axes: Any, labels: Sequence[str], value: Floats, low: Floats, high: Floats) -> bool:
    """Draw rows with their intervals, the first one on top; return whether there is a hollow dot.

    It stands at the end of an interval for an estimate outside of it, most often one below 0.
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


def intervals_named(confidence_level: float, *, simultaneous: bool, about: About, hollow: bool) -> str:
    """Return in words which intervals these are."""
    subject = "these objects" if about == "objects" else "the population"
    words = f"{100 * confidence_level:g} % intervals about {subject}{TOGETHER if simultaneous else ''}"
    return f"{words}\n(hollow: the estimate lies outside of its interval)" if hollow else words
