"""A plot of an estimate: dots with intervals. Needs matplotlib, which is imported only here."""

from __future__ import annotations

from typing import Any

from relaxdp.errors import MissingPartError
from relaxdp.estimate.result import About, Result

BLUE, GREY = "#2563a8", "#7a7a7a"


def plot_result(result: Result, axes: Any, *, confidence_level: float, about: About) -> Any:
    """Draw one row per label, the first one on top."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("plots need matplotlib: pip install 'relaxdp[plot]'.") from None
    if axes is None:
        _, axes = plt.subplots(figsize=(6, 0.8 + 0.32 * len(result.labels)), layout="constrained")
    low, high = result.interval(confidence_level, about=about)
    rows = range(len(result.labels))
    axes.hlines(rows, low, high, color=BLUE, linewidth=2)
    axes.plot(result.value, rows, "o", color=BLUE, markersize=5)
    axes.set_yticks(rows, [str(label) for label in result.labels])
    axes.set_ylim(len(rows) - 0.5, -0.5)  # half a row of room on both sides: no point lies on the axis
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel(f"estimated share, with {confidence_level:.0%} intervals about {_named(about)}")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _named(about: About) -> str:
    return "these objects" if about == "objects" else "the population"
