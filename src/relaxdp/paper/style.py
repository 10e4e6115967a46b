"""One style for all figures: the same colour, mark and line for the same method everywhere, readable without colour.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart. Theory is black and broken,
what was measured has marks or hatched bands, so that a print in grey says the same.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from relaxdp.errors import MissingDependencyError

WIDTH, HEIGHT = 5.6, 3.6
DOTS_PER_INCH = 160
_SETTINGS: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "errorbar.capsize": 3,
    "svg.hashsalt": "relaxdp",  # so that the same figure has the same bytes
    "svg.fonttype": "path",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True, slots=True)
class Look:
    """How a method looks in every figure."""

    colour: str
    marker: str = ""
    line: Any = "-"


LOOKS = {
    "relaxation": Look("#0072B2", "o", "--"),
    "path": Look("#0072B2", "o", "-"),
    "Algorithm 1": Look("#009E73", "s", (0, (4, 1.5))),
    "noisy sampling": Look("#D55E00", "^", "-"),
    "split budget": Look("#CC79A7", "D", "-."),
    "theory": Look("#000000", "", (0, (5, 2))),
    "other theory": Look("#000000", "", ":"),
    "last output": Look("#E69F00", "o", "-"),
    "maximum likelihood": Look("#56B4E9", "x", (0, (4, 1.5))),
    "highest frequency": Look("#888888", "v", "-."),
    "weighted highest frequency": Look("#8C510A", "P", ":"),
}
"""Methods of release, theory, and methods of attack. Two share a colour only where one is the other: relaxation on the
path is what is meant by relaxation where no sampler is named."""
MARKS = ("o", "s", "^", "D")
"""Marks for the members of a family of curves, such as different ε_β."""
SHADES = ("#b9b9b9", "#8a8a8a", "#555555", "#000000")
"""Greys for a family of curves that belongs to no method."""


def look(method: str) -> dict[str, Any]:
    """Return the arguments of a plot of this method."""
    chosen = LOOKS[method]
    return {"color": chosen.colour, "marker": chosen.marker, "linestyle": chosen.line}


def figure(rows: int = 1, columns: int = 1, *, width: float = WIDTH, height: float = HEIGHT, **options: Any) -> Any:
    """Return a figure and its axes. It belongs to no window and to no global state."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(rows, columns, **options)


def plain(axis: Any, ticks: Sequence[float]) -> None:
    """Label a logarithmic axis with plain numbers."""
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def render(draw: Callable[[], Any]) -> dict[str, bytes]:
    """Return a figure as PNG and SVG, with no date or version in it: the same data are the same bytes."""
    try:
        import matplotlib as mpl  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError("figures need matplotlib: pip install 'relaxdp[plot]'.") from None
    files = {}
    settings: Any = {**mpl.rcParamsDefault, **cast("Any", _SETTINGS), "backend": "agg"}
    with mpl.rc_context(settings):
        drawn = draw()
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            buffer = io.BytesIO()
            drawn.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
            files[kind] = buffer.getvalue()
    return files
