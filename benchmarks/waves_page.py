"""The page about waves on real columns, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.real_columns import RealColumn
from benchmarks.waves import BINS, LAST, LEVELS, REPORTS, ROWS, RUNS, Errors
from relaxdp.mechanisms.square_wave import choose_window_width

_HEAD = """# Numbers, measured

Written by `make numbers`: the wave beside the rounding to two ends, optimised bits (OUE) and the Square Wave of Li et
al. (2020), on real columns. All have {bins} bins. A *relaxed* wave is one path with the window for epsilon {last},
{window} places, read at each level; a *fresh* one has the same window and a key of its own at each level: what somebody
gets who never released anything before.

The published pure-ldp 1.2.0 has no Square Wave, so the peer is the paper's mechanism written anew, by us and not by
others ({peer}): reports that are numbers, the window of the relaxed wave, the paper's buckets, and
its smoothed expectation-maximisation with its rule for stopping.

One column as one path with the window for {last}, relaxed from level to level. Delays above 180 minutes are at the
upper end. Intervals have a confidence level of 95 %.

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
rows each, the mean and its standard error. Bits are made consistent (`consistent()`); the wave's distribution is the
smooth one, unless it says likeliest. The smooth one stops before it has sharpened where reports say little; the
likeliest one is the better choice where numbers crowd. Where there are but a few different numbers, as in the rough
ages, they are better declared as values: a wave does not tell neighbours apart.
"""


def page(columns: Sequence[RealColumn], found: Sequence[Errors]) -> str:
    """Return the page."""
    peer = "`benchmarks/square_wave.py`"
    parts = [_HEAD.format(bins=BINS, last=LAST, window=choose_window_width(LAST, BINS), peer=peer)]
    parts += ["| column | rows | declared range | mean | quartiles |", "|---|---:|---|---:|---|"]
    for column in columns:
        low, middle, high = np.quantile(column.clipped, [0.25, 0.5, 0.75])
        ends = f"{column.low:g} to {column.high:,g}, clipped"
        about = f"{column.name} ({column.source})"
        quartiles = f"{low:,.0f}, {middle:,.0f}, {high:,.0f}"
        parts.append(f"| {about} | {len(column.numbers):,} | {ends} | {column.clipped.mean():,.1f} | {quartiles} |")
    wages = next(each for each in columns if each.name == "wage")
    means = _MEAN.format(reports=REPORTS, ends=100 * np.mean(wages.clipped == wages.high))
    parts += ["", means, *_means(found), "", _DISTANCE.format(runs=RUNS, rows=ROWS), *_distances(found), ""]
    return "\n".join([*parts, *_verdicts(found)]) + "\n"


def _means(found: Sequence[Errors]) -> list[str]:
    lines = [
        "| column | epsilon | `numeric` | `wave` for this epsilon | of `numeric` | relaxed | fresh, same window "
        "| relaxed, of `numeric` |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found:
        numeric, wave, relaxed, fresh = (each.mean[name] for name in ("numeric", "wave", "relaxed", "fresh"))
        lines.append(
            f"| {each.column} | {each.level} | {numeric:.3g} | {wave:.3g} | {wave / numeric:.3f} | {relaxed:.3g} "
            f"| {fresh:.3g} | {relaxed / numeric:.2f} |"
        )
    return lines


def _distances(found: Sequence[Errors]) -> list[str]:
    names = ("OUE", "wave", "likeliest", "relaxed", "fresh", "Square Wave")
    heads = ("OUE", "`wave` for this epsilon", "the same, likeliest", "relaxed", "fresh, same window", "Square Wave")
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
    ratios = [each.distance["relaxed"][0] / each.distance["Square Wave"][0] for each in at[LAST]]
    row("distance at the last level, of the Square Wave with the same window, worst column", 1.05, max(ratios))
    worst = max(abs(each.mean["relaxed"] / each.mean["fresh"] - 1) for each in found)
    row("how far the squared error of a relaxed mean is from a fresh one's, any level", 0.05, worst)
    return lines
