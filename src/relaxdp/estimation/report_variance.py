"""The variance that one report adds to an estimate, computed from the mechanism alone, before anything is released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaxdp.estimation.crosstab import PairSamplingDistribution
from relaxdp.estimation.frequency import compute_precision, compute_support_variance
from relaxdp.estimation.mean import compute_weight_variance
from relaxdp.estimation.result import About
from relaxdp.mechanisms.base import MeanWeights
from relaxdp.theory.epsilon import Epsilon, compute_nonzero_threshold
from relaxdp.theory.level import compute_retention
from relaxdp.theory.randomized_response import SupportProbabilities


@dataclass(frozen=True, slots=True)
class VariancePerReport:
    """What one report at one level adds to an estimate, in the worst case."""

    variance: float
    half_step: float
    """Half the step between two possible estimates, because counts are whole numbers."""
    precision: float
    """The inverse variance of the noise alone, whatever the answer is: the weight of a level among several."""


def compute_variance_per_report(
    support: SupportProbabilities, about: About, share: float | None = None, mean_weights: MeanWeights | None = None
) -> VariancePerReport:
    """Return what one report adds to the share of a value, or to the mean if the mechanism has a `measure`.

    Without a `share`, any share is possible and the largest variance counts. The interval of a mean covers all
    randomness between true value and report. If numbers are rounded to an end of the range, that is everything, so the
    interval always holds for the population.
    """
    noise, gain, precision = float(support.noise), float(support.gain), float(compute_precision(support))
    if mean_weights is None:
        if share is not None:
            shares = [share]
        elif about == "population":  # a report varies most if its probability is closest to one half
            shares = [min(1.0, max(0.0, (0.5 - noise) / gain))]
        else:  # the variance is linear in the share, so it is largest at 0 or at 1
            shares = [0.0, 1.0]
        variance = max(compute_report_variance(support, each, about) for each in shares)
        return VariancePerReport(variance, 0.5 / gain, precision)
    half = (mean_weights.maximum - mean_weights.minimum) / 2
    if mean_weights.absent is not None:
        present = 1.0 if share is None else max(1.0 - share, 1e-9)
        variance = 4 * float(compute_weight_variance(np.linspace(0, 1, 201), present, noise, gain).max()) / present**2
        return VariancePerReport(variance * half**2, half / gain / present, precision)
    if mean_weights.window is not None:
        bins = len(mean_weights.weights) - mean_weights.window
        variance = compute_square_wave_variance(mean_weights, gain, about)
        return VariancePerReport(variance * half**2, half / bins / gain, precision)
    # A report is the lower or the upper end. It varies most if both are equally likely.
    return VariancePerReport((half / gain) ** 2, half / gain, precision)


def compute_categorical_support(epsilon: Epsilon, n_values: int) -> SupportProbabilities:
    """Return the probabilities of k-ary randomized response at the retention that is really used."""
    retention = compute_retention(compute_nonzero_threshold(epsilon, n_values))
    return SupportProbabilities.from_one_symbol(retention, n_values)


def compute_report_variance(support: SupportProbabilities, share: float, about: About = "sample") -> float:
    """Return the variance of one debiased report of a value that a `share` of individuals have."""
    variance = compute_support_variance(share, float(support.hit), float(support.noise), about)
    return float(variance) / float(support.gain) ** 2


def compute_square_wave_variance(
    mean_weights: MeanWeights, retention: float, about: About = "sample", distance_from_middle: float = 1.0
) -> float:
    """Return the variance that one report of a square wave adds to the mean, in squares of half the range.

    All numbers are at `distance_from_middle` of the range, in halves of it. The default, 1 (an end), is the worst case:
    there noise and numbers are farthest apart. For a population with numbers at both ends, their own variance is added.

    Claim: measured variances are within 3 % of it; tests/statistical/estimation/test_number_plans.py.
    """
    assert mean_weights.window is not None  # noqa: S101 (callers have a square wave)
    places, window = len(mean_weights.weights), mean_weights.window
    half_range = (places - window) / 2
    distance = distance_from_middle * half_range
    variance = retention * (distance**2 + (window**2 - 1) / 12 + 1 / 4) + (1 - retention) * (places**2 - 1) / 12
    if about == "sample":
        variance -= (retention * distance) ** 2
    return variance / (retention * half_range) ** 2


def compute_pair_variance_per_report(
    row_support: SupportProbabilities, column_support: SupportProbabilities, about: About, share: float | None
) -> VariancePerReport:
    """Return what one individual adds to the share of a pair of values, for the worst shares of the two values."""
    grid = np.linspace(0, 1, 5)
    pair_shares = grid if share is None else np.array([share])
    row, column, pair = (each.reshape(-1) for each in np.meshgrid(grid, grid, pair_shares))
    row, column = np.maximum(row, pair), np.maximum(column, pair)
    pair = np.maximum(pair, row + column - 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # the skewness where nothing varies
        estimate = PairSamplingDistribution(row, column, row_support, column_support, 1, about)
        deviation, _ = estimate.compute_moments(pair)
    precision = float(compute_precision(row_support) * compute_precision(column_support))
    gain = float(row_support.gain * column_support.gain)
    return VariancePerReport(float(deviation.max()) ** 2, 0.5 / gain, precision)
