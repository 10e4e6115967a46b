"""Fit the distribution behind the reports of a square wave, and bound the shares of its bins.

A number lies in a bin, and its report lies with the same probability in each place of a window, or anywhere.

The likelihood of a mixture is concave, and at its maximum few bins have a share. Newton's method on those bins, each
step a least-squares problem without negative shares, needs few steps and always knows how far the maximum is.

For the bounds every place of every level gets a weight, such that a report of a number in the chosen bins weighs at
most one on average, and any other at most nothing. Then the mean weight of all reports is an estimate that lies below
the share of these bins, whatever the distribution is, and the interval is that of a mean (a score test). By duality,
the best weights are those that distinguish a guess of the distribution from the nearest one with a smaller share, which
is a least-squares problem without negative shares.

The guess is a beta distribution with the estimated mean and variance. Its two numbers are all that the weights take
from the reports. Weights that were chosen with more freedom would find chance excesses: this is what is wrong with a
ratio of likelihoods here, whose intervals covered too rarely where all numbers were one number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from relaxdp.lazy_imports import scipy

Floats = NDArray[np.float64]
Bins = NDArray[np.bool_]

_NEAR = 0.01
"""How far from the maximum the logarithm of the likelihood may be: what chance does to it is a hundred times that."""
_STEPS, _SMOOTHED = 100, 2_000
_SAME = 1e-7
_SMALL = 1e-9
"""A share that is none."""


@dataclass(frozen=True, eq=False)
class SquareWaveCounts:
    """Counts of square wave reports: how often each place was reported at each level."""

    counts: Floats
    """Of shape (levels, places)."""
    retentions: Floats
    """The retention of each level."""
    window: int

    @property
    def bin_count(self) -> int:
        return int(self.counts.shape[1]) - self.window + 1

    def compute_place_probabilities(self, shares: Floats) -> Floats:
        """Return the probability of each place at each level."""
        spread = np.convolve(shares, np.ones(self.window)) / self.window
        noise = (1 - self.retentions) * shares.sum() / self.counts.shape[1]
        return np.asarray(self.retentions[:, None] * spread + noise[:, None])

    def compute_log_likelihood(self, shares: Floats) -> float:
        return float((self.counts * np.log(self.compute_place_probabilities(shares))).sum())

    def compute_gradient(self, shares: Floats) -> Floats:
        """Return the gradient of the log likelihood by the shares."""
        return self.compute_mean_weight_per_bin(self.counts / self.compute_place_probabilities(shares))

    def compute_mean_weight_per_bin(self, weights: Floats) -> Floats:
        """Return for a number in each bin the mean weight of its reports; `weights` are those of all places."""
        weights = weights.reshape(self.counts.shape)
        spread = np.convolve(self.retentions @ weights, np.ones(self.window), "valid") / self.window
        return np.asarray(spread + ((1 - self.retentions) / self.counts.shape[1]) @ weights.sum(axis=1))

    def estimate_moments(self, expected_probabilities: Floats | None = None) -> tuple[float, float, float]:
        """Return the estimated mean of the bins, from the middle of all, their variance, and its standard error.

        Both estimates are linear in what each report says of its bin and of the square of that, so they are unbiased
        whatever the distribution is; the variance may come out negative. Its error is that of the reports' own spread,
        or of the chances of all places that are `expected_probabilities`.
        """
        places = self.counts.shape[1]
        distances = np.arange(places) - (places - 1) / 2
        totals = self.counts.sum(axis=1)
        used = totals > 0
        keeps, totals = self.retentions[used, None], totals[used, None]
        chances = self.counts[used] / totals
        parts = totals * keeps**2 / (totals * keeps**2).sum()
        bins = distances / keeps
        squares = (distances**2 - (1 - keeps) * (places**2 - 1) / 12) / keeps - (self.window**2 - 1) / 12
        mean, second = (float((parts * chances * each).sum()) for each in (bins, squares))

        def error(each: Floats) -> float:
            """Return the squared standard error of the mean of what each place counts for."""
            likely = chances if expected_probabilities is None else expected_probabilities[used]
            spread = (likely * each**2).sum(axis=1) - (likely * each).sum(axis=1) ** 2
            return float((parts[:, 0] ** 2 * spread / totals[:, 0]).sum())

        return mean, second - mean**2 + error(bins), float(np.sqrt(error(squares - 2 * mean * bins)))

    def compute_place_probabilities_by_bin(self, selected_bins: NDArray[np.intp]) -> Floats:
        """Return the probabilities of all places at all levels, given each of some bins: (levels * places, bins)."""
        places = np.arange(self.counts.shape[1])[:, None]
        inside = (places >= selected_bins) & (places < selected_bins + self.window)
        noise = (1 - self.retentions) / self.counts.shape[1]
        whole = inside * (self.retentions / self.window)[:, None, None] + noise[:, None, None]
        return np.asarray(whole.reshape(-1, len(selected_bins)))


def fit_likeliest_shares(wave_counts: SquareWaveCounts) -> tuple[Floats, float]:
    """Return the shares of the bins that make the counts likeliest, and the logarithm of that likelihood.

    Claim: no other shares are likelier by more than a hundredth in the logarithm; tests/unit/estimation/test_places.py.
    """
    shares = np.full(wave_counts.bin_count, 1 / wave_counts.bin_count)
    found = wave_counts.compute_log_likelihood(shares)
    for _ in range(_STEPS):
        slope = wave_counts.compute_gradient(shares)
        if slope.max() - slope @ shares < _NEAR:  # it is concave: nothing is likelier by more than its slope promises
            break
        aim = _solve_newton_step(wave_counts, shares, slope)
        step, better = 1.0, -np.inf
        while step > _SAME:
            better = wave_counts.compute_log_likelihood(shares + step * (aim - shares))
            if better >= found:
                break
            step /= 2
        if better - found < _SAME:  # expectation-maximisation never goes down, and moves where Newton's method is stuck
            aim, step = shares * slope / (shares @ slope), 1.0
            better = wave_counts.compute_log_likelihood(aim)
        shares, found = shares + step * (aim - shares), better
    return shares, found


def _solve_newton_step(wave_counts: SquareWaveCounts, shares: Floats, slope: Floats) -> Floats:
    """Return where the likelihood's second-order form is largest, among bins with a share and peaks of the slope."""
    padded = np.pad(slope, 1, constant_values=-np.inf)
    where = np.flatnonzero((shares > _SMALL) | ((slope >= padded[:-2]) & (slope >= padded[2:])))
    seen = wave_counts.counts.reshape(-1) > 0
    chances = wave_counts.compute_place_probabilities(shares).reshape(-1)[seen]
    roots = np.sqrt(wave_counts.counts.reshape(-1)[seen])
    matrix = roots[:, None] * wave_counts.compute_place_probabilities_by_bin(where)[seen] / chances[:, None]
    heavy = 1e3 * np.sqrt(wave_counts.counts.sum())
    rows, ends = np.vstack([matrix, np.full(len(where), heavy)]), np.append(2 * roots, heavy)
    found, _ = scipy.optimize.nnls(rows, ends, maxiter=50 * len(where))
    result = np.zeros(len(shares))
    result[where] = found / found.sum()
    return result


def fit_smooth_shares(wave_counts: SquareWaveCounts) -> Floats:
    """Return a smooth distribution (EMS): steps of expectation-maximisation, each averaged with its neighbours.

    The likeliest one stands on a few bins. This one has less error where numbers are spread, and some bias.
    """
    shares, found = np.full(wave_counts.bin_count, 1 / wave_counts.bin_count), -np.inf
    widths = np.ones(wave_counts.bin_count)
    widths[[0, -1]] = 0.5  # a bin at an end has numbers on one side only, so it is the density that is smooth
    for _ in range(_SMOOTHED):
        edged = np.pad(shares * wave_counts.compute_gradient(shares) / widths, 1, mode="edge")
        shares = widths * (edged[:-2] / 4 + edged[1:-1] / 2 + edged[2:] / 4)
        shares /= shares.sum()
        better = wave_counts.compute_log_likelihood(shares)
        if abs(better - found) < _NEAR:
            break
        found = better
    return np.asarray(shares)


_UNIFORM = 0.02
"""How much of the guess is spread over all bins: a place that it holds impossible would weigh too much."""
_COLUMNS = 128
"""Among about so many bins the nearest distribution is looked for; weights are checked with all of them."""
_TRIES = 7
_FITTED = 0.9
"""By how much the error on each side is less than what is asked for, since the guess is made from the same reports."""
_ROUNDS, _CLOSE, _TINY = 60, 1e-6, 1e-12
_GUESS_STEPS, _GUESS_WEIGHT = 200, 200
"""How often the guess of a quantile's test moves towards the reports, and as many reports as its start counts for."""
_HEAVY = 1e3
"""The weight of what has to hold, among squares that sum to about one."""


@dataclass(frozen=True, eq=False)
class ShareBounds:
    """Lower and upper bounds for shares of bins, by the counts of places at some levels.

    Claim: each holds as often as it says, whatever the distribution is; tests/statistical/estimation/test_wave.py.
    """

    wave_counts: SquareWaveCounts

    def compute_lower_bound(self, selected_bins: Bins, tail_probability: float) -> float:
        """Return a lower bound for the share of some bins, which fails with at most this tail probability."""
        if selected_bins.all() or not selected_bins.any():
            return float(selected_bins.all())
        quantile = -float(scipy.special.ndtri(_FITTED * tail_probability)) / math.sqrt(self._report_count)
        nearest = self._find_nearest_distribution(selected_bins, quantile)
        weights = self.compute_place_weights(selected_bins, nearest, quantile)
        mean, square = float(self._observed_shares @ weights), float(self._observed_shares @ weights**2)
        variance = max(square - mean**2, float(nearest @ weights**2 - (nearest @ weights) ** 2), 0.0)
        low = mean - quantile * math.sqrt(variance)
        # Few reports may show nothing of what is outside. So the variance is also that of the reports with so much
        # moved to one bin outside, the worst, that the bound is their mean; it is found where both agree.
        means, squares = (
            self.wave_counts.compute_mean_weight_per_bin(each * self._level_shares)[~selected_bins]
            for each in (weights, weights**2)
        )
        for _ in range(_ROUNDS):
            moved = np.clip((mean - low) / np.maximum(mean - means, _TINY), 0, 1)
            spread = (1 - moved) * square + moved * squares - ((1 - moved) * mean + moved * means) ** 2
            lower = mean - quantile * math.sqrt(max(variance, float(spread.max())))
            if lower > low - _CLOSE:
                break
            low = lower
        return max(0.0, low)

    def compute_upper_bound(self, selected_bins: Bins, tail_probability: float) -> float:
        """Return an upper bound for the share of some bins, which fails with at most this tail probability."""
        return 1.0 - self.compute_lower_bound(~selected_bins, tail_probability)

    def _find_nearest_distribution(self, selected_bins: Bins, target_distance: float) -> Floats:
        """Return the place probabilities of the nearest distribution with a smaller share of these bins."""
        grid = self._add_boundaries_to_grid(selected_bins)
        columns, chosen = self._compute_place_columns(grid), selected_bins[grid]
        whole = less = float(self.guessed_shares @ selected_bins)
        found, distance = self._fit_fixed_share(chosen, columns, 0.0)
        power = 1.0
        for _ in range(_TRIES):
            is_near = 0.9 * target_distance < distance < 1.1 * target_distance
            if is_near or (less == whole and distance < target_distance):
                break
            # How far it is grows about like a power of how much less the share is.
            before, nearer = (less, distance), less * (target_distance / distance) ** (1 / power)
            less = min(whole, nearer)
            found, distance = self._fit_fixed_share(chosen, columns, whole - less)
            if less != before[0] and distance != before[1]:
                power = float(np.clip(np.log(distance / before[1]) / np.log(less / before[0]), 1, 4))
        return found

    def _fit_fixed_share(self, chosen: Bins, columns: Floats, share: float) -> tuple[Floats, float]:
        """Return the place probabilities nearest to the guess with a fixed share of these bins, and their distance."""
        roots = np.sqrt(self._guessed_probabilities)
        rows = [columns / roots[:, None], np.full(len(chosen), _HEAVY), _HEAVY * chosen]
        ends = np.concatenate([roots, [_HEAVY, _HEAVY * share]])
        shares, _ = scipy.optimize.nnls(np.vstack(rows), ends, maxiter=50 * len(chosen))
        chances = columns @ shares
        return chances, float(np.sqrt((((chances - self._guessed_probabilities) / roots) ** 2).sum()))

    def compute_place_weights(self, selected_bins: Bins, nearest_probabilities: Floats, quantile: float) -> Floats:
        """Return the weights of all places, by how two distributions differ: the best ones if the guess is right.

        Claim: on average at most one for a number in these bins, and nothing for others, whatever is told apart;
        tests/unit/estimation/test_bounds.py.
        """
        differences = (self._guessed_probabilities - nearest_probabilities) / self._guessed_probabilities
        means = self.wave_counts.compute_mean_weight_per_bin(differences * self._level_shares)
        centre = float(self._guessed_probabilities @ differences)
        error = quantile * np.sqrt(max(0.0, float(self._guessed_probabilities @ differences**2) - centre**2))
        spread = float(np.ptp(means))
        if spread == 0:
            return np.zeros(len(differences))
        scales = np.linspace(0.2, 1.5, 53) / spread
        rest = (selected_bins - scales[:, None] * means).min(axis=1)
        best = int(np.argmax(scales * (centre - error) + rest))
        return np.asarray(scales[best] * differences + rest[best])

    @cached_property
    def _bin_grid(self) -> NDArray[np.intp]:
        """A grid of bins, close enough to one another to stand for all."""
        window, bins = self.wave_counts.window, self.wave_counts.bin_count
        step = max(1, min(window // 4, bins // _COLUMNS))
        step = 1 << (step.bit_length() - 1)  # as the window is, so that windows of these bins end at those of others
        return np.append(np.arange(0, bins - 1, step), bins - 1)

    def _add_boundaries_to_grid(self, selected_bins: Bins) -> NDArray[np.intp]:
        """Return the grid, and the bins at the boundaries of the selected part."""
        ends = np.flatnonzero(np.diff(selected_bins))
        return np.unique(np.concatenate([self._bin_grid, ends, ends + 1]))

    def _compute_place_columns(self, bins: NDArray[np.intp]) -> Floats:
        """Return the probabilities of all places of all reports, with a column for each of some bins."""
        return self.wave_counts.compute_place_probabilities_by_bin(bins) * self._level_shares[:, None]

    @cached_property
    def _report_count(self) -> float:
        return float(self.wave_counts.counts.sum())

    @cached_property
    def _level_shares(self) -> Floats:
        """The share of its level in all reports, for each place of each level."""
        levels = self.wave_counts.counts.sum(axis=1) / self._report_count
        return np.repeat(levels, self.wave_counts.counts.shape[1])

    @cached_property
    def _observed_shares(self) -> Floats:
        return self.wave_counts.counts.reshape(-1) / self._report_count

    @cached_property
    def _guessed_probabilities(self) -> Floats:
        by_place = self.wave_counts.compute_place_probabilities(self.guessed_shares)
        return np.asarray(by_place.reshape(-1) * self._level_shares)

    @cached_property
    def guessed_shares(self) -> Floats:
        """The guessed shares of the bins: a beta distribution with the estimated mean and variance."""
        bins = self.wave_counts.bin_count
        mean, variance, _ = self.wave_counts.estimate_moments()
        position = float(np.clip((mean + (bins - 1) / 2) / (bins - 1), 0.5 / bins, 1 - 0.5 / bins))
        most = position * (1 - position)
        size = most / float(np.clip(variance / (bins - 1) ** 2, (0.5 / bins) ** 2, 0.95 * most)) - 1
        edges = np.clip((np.arange(bins + 1) - 0.5) / (bins - 1), 0, 1)
        shares = np.diff(scipy.special.betainc(position * size, (1 - position) * size, edges))
        shares = (1 - _UNIFORM) * shares + _UNIFORM / bins
        # Each share goes to the bins of the grid on its two sides, or else nothing on the grid would be near the guess.
        grid, guess = self._bin_grid, np.zeros(bins)
        after = np.clip(np.searchsorted(grid, np.arange(bins), side="right"), 1, len(grid) - 1)
        parts = (np.arange(bins) - grid[after - 1]) / (grid[after] - grid[after - 1])
        np.add.at(guess, grid[after - 1], (1 - parts) * shares)
        np.add.at(guess, grid[after], parts * shares)
        return guess


class QuantileTests(ShareBounds):
    """Tests of whether a number can be a quantile, by the counts of places at some levels.

    The null hypothesis is that the part of the range up to a number, or from it on, has at least some share. The
    weights of places are those of its distribution that is nearest to a guess. Their mean over the reports is compared
    with the largest that the hypothesis allows, whatever the distribution is. The number may be between two bins.

    Claim: each rejects a true hypothesis at most as often as stated; tests/statistical/estimation/test_wave.py.
    """

    @cached_property
    def guessed_shares(self) -> Floats:
        """The guessed shares of `ShareBounds`, moved towards the reports: little where they are few."""
        shares = start = ShareBounds(self.wave_counts).guessed_shares
        for _ in range(_GUESS_STEPS):
            shares = shares * self.wave_counts.compute_gradient(shares) + _GUESS_WEIGHT * start
            shares /= shares.sum()
        return np.asarray((1 - _UNIFORM) * shares + _UNIFORM * (start > 0) / np.count_nonzero(start))

    def compute_p_value(self, position: float, share: float, *, is_above: bool) -> float:
        """Return the p-value of the hypothesis that at least this share is at or above the position, or at or below it.

        It counts the error at both ends of an interval: where the weights fit the hypothesis badly, the other end errs
        less. So it is between one and two times the error at this end.
        """
        bins = np.arange(self.wave_counts.bin_count)
        selected_bins = bins >= position if is_above else bins <= position
        lacking = share - float(self.guessed_shares @ selected_bins)
        if lacking <= 0:
            return 1.0
        grid, before = self._add_boundaries_to_grid(selected_bins), min(int(position), len(bins) - 2)
        # The last column is the position itself: its number is rounded to the bin before it or after it.
        beside, parts = np.array([before, before + 1]), np.array([1 + before - position, position - before])
        columns = np.column_stack([self._compute_place_columns(grid), self._compute_place_columns(beside) @ parts])
        nearest, distance = self._fit_fixed_share(np.append(selected_bins[grid], True), columns, share)
        weights = 1 - nearest / self._guessed_probabilities
        means, squares = (
            self.wave_counts.compute_mean_weight_per_bin(each * self._level_shares) for each in (weights, weights**2)
        )
        inside, squares = (np.append(each[selected_bins], each[beside] @ parts) for each in (means, squares))
        slope = means[~selected_bins].max() - inside.max()
        largest = max(inside.max(), inside.max() + (1 - share) * slope)
        mean, square = float(self._observed_shares @ weights), float(self._observed_shares @ weights**2)
        # Few reports may show nothing of what is inside, so the variance is also that of the reports with so much
        # moved to one bin inside, the worst, that their mean is the largest one.
        moved = np.clip((mean - largest) / np.maximum(mean - inside, _TINY), 0, 1)
        spread = (1 - moved) * square + moved * squares - ((1 - moved) * mean + moved * inside) ** 2
        variance = max(float(spread.max()), square - mean**2, float(nearest @ weights**2 - (nearest @ weights) ** 2))
        score = (mean - largest) / math.sqrt(max(variance, _TINY) / self._report_count)
        # The distance grows faster than the share that is lacking. What is more than at this slope is bias.
        bias = max(0.0, lacking * slope / max(distance, _TINY) - distance) * math.sqrt(self._report_count)
        return float(scipy.special.ndtr(-score) + scipy.special.ndtr(-score - bias)) / _FITTED
