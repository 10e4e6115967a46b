"""The picture in docs/numbers-measured.md: one real column, relaxed over four levels. `make numbers` draws it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import relaxdp as rx
from benchmarks.real_columns import RealColumn
from benchmarks.waves import BINS, LAST, LEVELS
from relaxdp.estimation.plot import BLUE

MINUTES = 5
FIGURE = Path("docs", "figures", "wave-levels.png")


def draw(column: RealColumn, path: Path = FIGURE) -> None:
    """Draw the estimated distribution at each level over that of the numbers themselves."""
    import matplotlib as mpl  # noqa: PLC0415 (slow to import)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    mechanism, rows = rx.SquareWave(column.low, column.high, bins=BINS, epsilon=LAST), np.arange(len(column.numbers))
    where: Any = {"key": rx.Key.from_bytes(bytes(range(32))), "name": "figure", "column": column.name}
    figure, grid = plt.subplots(2, 2, figsize=(9, 5.4), sharex=True, sharey=True, layout="constrained")
    widths = np.full(BINS, (column.high - column.low) / (BINS - 1))
    widths[[0, -1]] /= 2  # a bin at an end has numbers on one side only
    edges = np.arange(column.low, column.high + 1, MINUTES)
    for axes, level in zip(grid.flat, LEVELS, strict=True):
        found = mechanism.estimate(mechanism.release(column.clipped, rows, epsilon=level, **where), epsilon=level)
        density = np.histogram(column.clipped, edges)[0] / len(rows) / MINUTES
        axes.stairs(density, edges, fill=True, color="0.85", label="the numbers themselves")
        axes.plot(found.points, found.histogram() / widths, color=BLUE, label="estimated, smooth")
        (median,), ((low,), (high,)) = found.quantile(0.5).value, found.quantile(0.5).interval()
        mean, (least, most) = float(found.value), map(float, found.interval())
        axes.set_title(f"epsilon {level}", loc="left", fontsize=10)
        words = f"mean {mean:.1f} ({least:.1f} to {most:.1f})\nmedian {median:.1f} ({low:.1f} to {high:.1f})"
        axes.text(0.98, 0.62, words, transform=axes.transAxes, ha="right", va="top", fontsize=9)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
    grid[0, 0].legend(frameon=False, fontsize=9, loc="upper right")
    for axes in grid[1]:
        axes.set_xlabel("delay at arrival, in minutes")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)
