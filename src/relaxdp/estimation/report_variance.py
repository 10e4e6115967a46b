"""What one object adds to an answer: the variance of its debiased report, from the noise alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaxdp.estimation.crosstab import ProductLaw
from relaxdp.estimation.frequency import report_variance
from relaxdp.estimation.mean import present_variance
from relaxdp.estimation.result import About
from relaxdp.mechanisms.base import Measure
from relaxdp.theory.epsilon import Epsilon, compute_nonzero_threshold
from relaxdp.theory.level import compute_retention
from relaxdp.theory.randomized_response import SupportProbabilities


@dataclass(frozen=True, slots=True)
class Spread:
    """What one object at one level adds to an answer, at worst: its variance, and half a step of what is counted."""

    variance: float
    step: float
    precision: float
    """How little noise there is, whatever the answer is: what levels are weighted by."""


def spread_of(
    support: SupportProbabilities, about: About, share: float | None = None, measure: Measure | None = None
) -> Spread:
    """Return the spread of a value that a `share` of objects have, by default at worst, or of a mean at worst.

    A mean's interval covers what is random between truth and report. Where numbers are rounded to an end that is all,
    so it is always the one about the population.
    """
    noise, gain = float(support.noise), float(support.gain)
    precision = gain**2 / (noise * (1 - noise))
    if measure is not None and measure.absent is not None:
        there = 1.0 if share is None else 1.0 - share
        variances = present_variance(np.linspace(0, 1, 201), there, noise, gain) / max(there, 1e-9) ** 2
        width = measure.most - measure.least
        return Spread(float(variances.max()) * width**2, 0.5 * width / gain / max(there, 1e-9), precision)
    if measure is not None and measure.window is not None:
        half, bins = (measure.most - measure.least) / 2, len(measure.weights) - measure.window
        return Spread(place_variance(measure, gain, about) * half**2, half / bins / gain, precision)
    if measure is not None:
        # A report is the lower or the upper end: it varies most where both are equally likely.
        half = (measure.most - measure.least) / 2 / gain
        return Spread(half**2, half, precision)
    if share is not None:
        shares = [share]
    elif about == "population":  # a report is as uncertain as can be where its chance is nearest to one half
        shares = [min(1.0, max(0.0, (0.5 - noise) / gain))]
    else:  # linear in the share, so it is largest at one of the ends
        shares = [0.0, 1.0]
    return Spread(max(share_variance(support, each, about) for each in shares), 0.5 / gain, precision)


def categorical_support(epsilon: Epsilon, values: int) -> SupportProbabilities:
    """Return the chances of a categorical report at the retention that is really used."""
    return SupportProbabilities.from_one_symbol(compute_retention(compute_nonzero_threshold(epsilon, values)), values)


def share_variance(support: SupportProbabilities, share: float, about: About = "sample") -> float:
    """Return the variance of one object's debiased report of a value that a `share` of objects have."""
    return float(report_variance(share, float(support.hit), float(support.noise), about)) / float(support.gain) ** 2


def place_variance(measure: Measure, keep: float, about: About = "sample", at: float = 1.0) -> float:
    """Return the variance of what one report adds to the mean of numbers, in squares of half their range.

    `at` is how far from the middle of the range the numbers lie, in halves of it. 1, at either end, is the worst: there
    noise and numbers are farthest apart. About a population whose numbers are at both ends their own spread is added.

    Claim: measured variances are within 3 % of it; tests/statistical/estimation/test_number_plans.py.
    """
    assert measure.window is not None  # noqa: S101 (whoever asks has places)
    places, window = len(measure.weights), measure.window
    reach = (places - window) / 2
    distance = at * reach
    spread = keep * (distance**2 + (window**2 - 1) / 12 + 1 / 4) + (1 - keep) * (places**2 - 1) / 12
    if about == "sample":
        spread -= (keep * distance) ** 2
    return spread / (keep * reach) ** 2


def pair_spread(rows: SupportProbabilities, columns: SupportProbabilities, about: About, share: float | None) -> Spread:
    """Return what one object adds to the share of a pair, at worst over how frequent the two values are."""
    grid = np.linspace(0, 1, 5)
    ends = grid if share is None else np.array([share])
    row, column, pair = (each.reshape(-1) for each in np.meshgrid(grid, grid, ends))
    row, column = np.maximum(row, pair), np.maximum(column, pair)
    pair = np.maximum(pair, row + column - 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # how lopsided it is where nothing varies
        deviation, _ = ProductLaw(row, column, rows, columns, 1, about).moments(pair)
    noise = [float(each.noise * (1 - each.noise) / each.gain**2) for each in (rows, columns)]
    gain = float(rows.gain * columns.gain)
    return Spread(float(deviation.max()) ** 2, 0.5 / gain, 1 / max(noise[0] * noise[1], 1e-300))
