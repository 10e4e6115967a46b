"""Survey weights: shares in which every individual counts as much as its known weight.

A weighted share is sum w x / sum w. Its noise has the variance sum w^2 Var(y) / (sum w)^2, where y is a debiased
report. Var(y) depends on the true value, so it takes the share of true values weighted with w^2, which sums of w^2 of
the supporting reports estimate. (An effective sample size alone assumes that weights and values are independent.)
About the population, the residuals w (y - share) of the ratio take the place of the noise, which they include.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaxdp.errors import EstimationError
from relaxdp.estimation.counts import Counts
from relaxdp.estimation.frequency import Frequency, compute_support_variance
from relaxdp.estimation.result import About, Floats, check_about
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.report_arrays import BATCH, get_report_width, read_report_column
from relaxdp.theory.randomized_response import Level

_HALVINGS = 40


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WeightedFrequency(Frequency):
    """Estimated shares at one level, weighted. `counts` are sums of weights of the supporting reports.

    The interval inverts a score test: each share in it explains the estimate, with the variance that this share has.
    It has quantiles of Student's t, and half a report of mean weight as a correction for continuity.

    Claim: coverage of 94 % or more; tests/statistical/estimation/test_weights.py.
    """

    squared_counts: Floats
    """Sums of the squared weights of the supporting reports."""
    weight_sums: tuple[float, float]
    """The sum of all weights, and that of their squares."""
    total_offset: float | None = None
    """For a population total of shares plus this number: then the sum of the weights is random, too."""
    is_weighted = True

    @property
    def size(self) -> float:
        return self.weight_sums[0]

    @property
    def effective_n(self) -> float:
        return self.weight_sums[0] ** 2 / self.weight_sums[1]

    @property
    def support_rates(self) -> Floats:
        return np.asarray(self.counts / self.weight_sums[0])

    @property
    def squared_weight_rates(self) -> Floats:
        return np.asarray(self.squared_counts / self.weight_sums[1])

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return np.asarray(np.sqrt(self._compute_variance(self.value, about)))

    def covariance(self, indexes: Sequence[int] | None = None) -> Floats:
        raise EstimationError(
            "The covariance of weighted estimates is not available.",
            hint="Use result.std_error, the standard error of each value.",
        )

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        quantile = -scipy.special.stdtrit(np.maximum(1.0, self.effective_n - 1), tail_probability)
        step = 0.5 / (self.effective_n * float(self.support.gain))

        def find_reach(shares: Floats) -> Floats:
            return np.asarray(quantile * np.sqrt(self._compute_variance(shares, about)) + step)

        farthest = np.max([find_reach(np.full(self.value.shape, each)) for each in np.linspace(0, 1, 65)], axis=0)
        ends = []
        for side in (-1.0, 1.0):
            near, far = np.zeros(self.value.shape), 2 * farthest
            for _ in range(_HALVINGS):
                middle = (near + far) / 2
                is_within = middle <= find_reach(self.value + side * middle)
                near, far = np.where(is_within, middle, near), np.where(is_within, far, middle)
            ends.append(self.value + side * far)
        return ends[0], ends[1]

    def _compute_variance(self, shares: Floats, about: About) -> Floats:
        """Return the variance of the estimates if these were the true shares."""
        hit, noise, gain = (float(each) for each in (self.support.hit, self.support.noise, self.support.gain))
        shares = np.clip(shares, 0, 1)
        rates, squared_rates = self.support_rates, self.squared_weight_rates
        # Individuals that the estimate lacks are as heavy as all, as those with the value, or as those without it.
        changes = [noise + gain * shares - rates]
        for own, squares in ((rates, squared_rates), (1 - rates, 1 - squared_rates)):
            changes.append(changes[0] * squares / np.maximum(own, 1e-300))
        candidates = (np.clip(squared_rates + change, noise, hit) for change in changes)
        found = [self._compute_variance_given_rates(shares, each, about) for each in candidates]
        return np.asarray(np.max(found, axis=0))

    def _compute_variance_given_rates(self, shares: Floats, rates: Floats, about: About) -> Floats:
        hit, noise, gain = (float(each) for each in (self.support.hit, self.support.noise, self.support.gain))
        if about == "sample":
            variance = compute_support_variance((rates - noise) / gain, hit, noise, about)
            return np.asarray(variance / self.effective_n / gain**2)
        # Of y + offset, where y is (0 - noise) / gain or (1 - noise) / gain. The offset of a ratio takes its mean away.
        offset, n = (-shares, np.inf) if self.total_offset is None else (self.total_offset, self.individuals)
        low, high = (offset + (each - noise) / gain for each in (0, 1))
        spread = (rates * high**2 + (1 - rates) * low**2) / self.effective_n - (shares + offset) ** 2 / n
        return np.asarray(np.maximum(spread, 0) * self.bessel_correction)

    @property
    def bessel_correction(self) -> Any:
        """Bessel's correction of a variance from residuals: n / (n - 1), with the effective n."""
        return self.effective_n / np.maximum(self.effective_n - 1, 1e-6)


class WeightedCounts(Counts):
    """Counts of weighted reports at each level: sums of weights, then of squared weights, of all and of each value."""

    def add_weighted(self, level: Level, n: int, reports: Any, weights: Any) -> None:
        """Add weighted reports, or codes of them, of `n` individuals; `weights` are their sums of w and of w^2."""
        mechanism = self._mechanism
        size, width = len(mechanism.labels), get_report_width(mechanism)
        if width is None:
            sums = np.array([[each.sum(), *np.bincount(reports, each, minlength=size)] for each in weights])
        else:
            sums, step = np.zeros((2, 1 + size)), max(1, BATCH // max(size, width))
            for start in range(0, len(reports), step):
                part = slice(start, start + step)
                found = mechanism.find_supported_labels(*read_report_column(mechanism, reports[part]))
                sums += np.array([each[part] for each in weights]) @ np.insert(found, 0, True, axis=1)
        self._add_level_counts(np.append(n, sums), level)

    def _list_level_estimates(self) -> list[Frequency]:
        place = 2 + len(self._mechanism.labels)
        levels = [level for level in sorted(self._tallies) if self._tallies[level][place] > 0]
        if self._tallies and not levels:
            raise EstimationError(
                "All weights are zero, in the whole table or in a group, so there is nothing to estimate.",
                hint="Pass a column with weights above zero, and leave out groups without them.",
            )
        return list(map(self._estimate_level, levels))

    def _estimate_level(self, level: Level) -> Frequency:
        mechanism, (n, *sums) = self._mechanism, self._tallies[level]
        (size, *counts), (squared_size, *squared) = np.reshape(sums, (2, -1))
        return WeightedFrequency(
            mechanism.labels,
            np.array(counts),
            int(n),
            mechanism.compute_noise_and_gain(level.retention),
            level.epsilon,
            mechanism.joint,
            squared_counts=np.array(squared),
            weight_sums=(float(size), float(squared_size)),
        )

    def _describe_mechanism(self) -> dict[str, str]:
        return {**super()._describe_mechanism(), "weights": "yes"}
