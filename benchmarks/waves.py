"""`make numbers`: the wave beside rounding, bits and the Square Wave on real columns; docs/numbers-measured.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import relaxdp as rx
from benchmarks.real_columns import RealColumn, real_columns
from benchmarks.square_wave import SquareWave
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import read_report_column
from relaxdp.mechanisms.square_wave import Goal

Floats = NDArray[np.float64]

BINS = 64
LEVELS = ("0.5", "1", "2", "4")
LAST = "4"
REPORTS = 300_000
"""So many reports at least tell the error of a mean, to within 1 % or so."""
ROWS, RUNS = 30_000, 60
PAGE = Path("docs", "numbers-measured.md")


@dataclass(frozen=True)
class Errors:
    """What was measured of one column at one level."""

    column: str
    level: str
    mean: dict[str, float]
    """The squared error of the mean, times the number of rows, in squares of half the range."""
    distance: dict[str, tuple[float, float]]
    """The Wasserstein-1 distance in thousandths of the range, and its standard error."""


def mean_error(column: RealColumn, mechanism: Mechanism, level: str, key: rx.Key) -> float:
    """Return the squared error of the mean that these rows have, times their number, in squares of half the range.

    What reports add to it is independent from row to row and zero on average, so that it is the mean of its squares.
    """
    times = -(-REPORTS // len(column.numbers))  # few rows take part several times, each time with other ids
    encoding, truths = mechanism, np.tile(column.clipped, times)
    where: Any = {"key": key, "epsilon": level, "name": "numbers", "column": column.name}
    codes = read_report_column(encoding, mechanism.release(truths, np.arange(len(truths)), **where))[0][:, 0]
    assert encoding.mean_weights is not None
    middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
    gain = float(encoding.level(level).retention)
    errors = (np.array(encoding.mean_weights.weights)[codes] - middle) / gain - (truths - middle)
    if abs(errors.mean()) > 5 * errors.std() / np.sqrt(len(errors)):
        raise AssertionError("the mean is biased.")
    return float((errors**2).mean()) / half**2


def distance(column: RealColumn, rows: NDArray[np.intp], shares: Floats, edges: Floats) -> float:
    """Return the Wasserstein-1 distance between these rows and shares of bins, in thousandths of the range."""
    grid = (np.arange(8_192) + 0.5) / 8_192
    truths = np.sort(column.scaled[rows])
    of_rows = np.searchsorted(truths, grid, side="right") / len(truths)
    return 1_000 * float(np.abs(np.interp(grid, edges, np.append(0, np.cumsum(shares))) - of_rows).mean())


def waves(
    column: RealColumn, rows: NDArray[np.intp], level: str, planned: str, key: rx.Key, goal: Goal = "mean"
) -> dict[str, float]:
    """Return the distances of a wave's two distributions, with the window for another last epsilon."""
    mechanism = rx.SquareWave(column.low, column.high, bins=BINS, epsilon=planned, goal=goal)
    where: Any = {"key": key, "epsilon": level, "name": "numbers", "column": column.name}
    found = mechanism.estimate(mechanism.release(column.clipped[rows], rows, **where), epsilon=level)
    # A bin's numbers lie on both sides of its point; at the ends of the range on one side.
    edges = np.append(0, np.append((np.arange(BINS - 1) + 0.5) / (BINS - 1), 1))
    return {
        "smooth": distance(column, rows, found.histogram(), edges),
        "likeliest": distance(column, rows, found.histogram(smooth=False), edges),
    }


def square_wave(column: RealColumn, rows: NDArray[np.intp], level: str, seed: int) -> float:
    """Return the distance of the paper's own mechanism, as we wrote it, with the paper's window for this level."""
    peer = SquareWave.with_best_window(float(level), BINS)
    reports = peer.report(column.scaled[rows], np.random.default_rng(seed))
    return distance(column, rows, peer.estimate(reports), np.linspace(0, 1, BINS + 1))


def bits(column: RealColumn, rows: NDArray[np.intp], level: str, key: rx.Key) -> float:
    """Return the distance of optimised bits of as many equal bins, made consistent."""
    values = np.minimum((column.scaled[rows] * BINS).astype(int), BINS - 1)
    where: Any = {"key": key, "epsilon": level, "name": "numbers", "column": column.name}
    mechanism = rx.Unary(range(BINS))
    shares = mechanism.estimate(mechanism.release(values, rows, **where), epsilon=level).consistent()
    return distance(column, rows, shares, np.linspace(0, 1, BINS + 1))


def measured(column: RealColumn, level: str, runs: int = RUNS, note: Callable[[str], None] = print) -> Errors:
    """Measure one column at one level."""
    note(f"{column.name}, epsilon {level}")
    ends, keys = (column.low, column.high), [rx.Key.from_bytes(bytes([run] * 32)) for run in range(runs)]
    late = rx.SquareWave(*ends, bins=BINS, epsilon=LAST)
    narrow, late_narrow = (rx.SquareWave(*ends, bins=BINS, epsilon=last, goal="distribution") for last in (level, LAST))
    mean = {
        "numeric": mean_error(column, rx.Numeric(*ends), level, keys[0]),
        "wave": mean_error(column, rx.SquareWave(*ends, bins=BINS, epsilon=level), level, keys[0]),
        "relaxed": mean_error(column, late, level, keys[0]),
        "fresh": mean_error(column, late, level, fresh_key(level, 0)),
        "narrow": mean_error(column, narrow, level, keys[0]),
        "relaxed narrow": mean_error(column, late_narrow, level, keys[0]),
    }
    found: dict[str, list[float]] = {}
    for run in range(runs):
        size = min(ROWS, len(column.numbers))
        rows = np.random.default_rng(run).choice(len(column.numbers), size, replace=False)
        # One key for all levels is one path, relaxed from level to level; another key at each is a fresh report.
        relaxed, fresh = (waves(column, rows, level, LAST, key) for key in (keys[run], fresh_key(level, run)))
        own = relaxed if level == LAST else waves(column, rows, level, level, keys[run])
        narrow_shares, late_shares = (
            waves(column, rows, level, last, keys[run], "distribution")["smooth"] for last in (level, LAST)
        )
        result = {
            "wave": own["smooth"],
            "likeliest": own["likeliest"],
            "relaxed": relaxed["smooth"],
            "fresh": fresh["smooth"],
            "narrow": narrow_shares,
            "relaxed narrow": late_shares,
            "Square Wave": square_wave(column, rows, level, run),
            "OUE": bits(column, rows, level, keys[run]),
        }
        for name, number in result.items():
            found.setdefault(name, []).append(number)
    distances = {name: (float(np.mean(each)), float(np.std(each) / np.sqrt(runs))) for name, each in found.items()}
    return Errors(column.name, level, mean, distances)


def fresh_key(level: str, run: int) -> rx.Key:
    """Return a key that no other level has."""
    return rx.Key.from_bytes(bytes([1 + LEVELS.index(level), *[run] * 31]))


def main() -> None:
    """Measure all columns at all levels, and write the page."""
    from benchmarks.waves_figure import draw  # noqa: PLC0415 (they ask for what is above)
    from benchmarks.waves_page import page  # noqa: PLC0415

    columns = real_columns()
    draw(columns[0])
    found = [measured(column, level) for column in columns for level in LEVELS]
    PAGE.write_text(page(columns, found), encoding="utf-8")


if __name__ == "__main__":
    main()
