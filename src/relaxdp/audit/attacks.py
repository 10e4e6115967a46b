"""The paper's four attacks on transcripts: guess every individual's true value from all of its reports.

An attack returns *guesses*: a mask of shape (individuals, values), true for each value that is a best guess. Mostly
there is one. The paper does not say how ties are broken, so here they are broken uniformly: `compute_error_rate` counts
k guesses, the true value among them, as 1/k right (the expectation, so nothing random is added).

>>> reports = np.array([[1, 1, 0], [0, 0, 0]])
>>> distribution = RelaxedReportsDistribution.from_epsilons([0.5, 1, 2], n_values=2)
>>> for name, attack in ATTACKS.items():
...     print(name, attack(reports, distribution, [0.5, 1, 2]).argmax(axis=1).tolist())
last output [0, 0]
maximum likelihood [0, 0]
highest frequency [1, 0]
weighted highest frequency [0, 0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ArgumentError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, check_value_count, compute_nonzero_threshold
from relaxdp.theory.randomized_response import NOISE, TRUTH, compute_bridge_mixture, compute_retention

Floats = NDArray[np.float64]
Transcripts = NDArray[Any]


class TranscriptDistribution(Protocol):
    """The distribution of all reports of an individual (its transcript) under each true value."""

    @property
    def n_values(self) -> int:
        """The number of true values, and of codes."""

    def compute_log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the log probability of each transcript under each true value, of shape (individuals, values)."""


def compute_retentions(epsilons: Sequence[Epsilon], n_values: int) -> tuple[Fraction, ...]:
    """Return the exact retentions at these epsilons, after rounding to thresholds."""
    return tuple(compute_retention(compute_nonzero_threshold(epsilon, n_values)) for epsilon in epsilons)


@dataclass(frozen=True, slots=True)
class _DistributionAtRetentions:
    """The distribution of an individual's reports, one at each retention."""

    n_values: int
    retentions: tuple[Fraction, ...]

    @classmethod
    def from_epsilons(cls, epsilons: Sequence[Epsilon], *, n_values: int) -> Self:
        """Return the distribution of reports at these levels."""
        return cls(n_values, compute_retentions(epsilons, n_values))


class RelaxedReportsDistribution(_DistributionAtRetentions):
    """The distribution of reports of one path, or of Algorithm 1, at retentions that do not fall."""

    def compute_log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the sum of the logarithms of the steps of Algorithm 1.

        Claim: equals `compute_transcript_probability`; tests/exact/audit/test_attacks.py.
        """
        m, codes = self.n_values, require_transcripts(transcripts, self.n_values, len(self.retentions))
        truth = np.arange(m)
        last, likelihoods = np.zeros(len(codes), codes.dtype), np.zeros((len(codes), self.n_values))
        for (old, new), report in zip(pairwise((NOISE, *self.retentions)), codes.T, strict=True):
            # Row: whether the last report is the truth, 0. Column: the next report is another value (2), the last one,
            # the truth, or (where these are one) both. Two cells of the second row, and one of the first, do not occur.
            differ = compute_bridge_mixture(self.n_values, old, new, TRUTH, ends_agree=False)
            agree = compute_bridge_mixture(self.n_values, old, new, TRUTH, ends_agree=True)
            chances = [
                [differ.compute_probability(m, value, lower_report=1, upper_report=0) for value in (2, 1, 0, 0)],
                [agree.compute_probability(m, value, lower_report=0, upper_report=0) for value in (2, 0, 0, 0)],
            ]
            was_truth = last[:, None] == truth
            kind = (report == last)[:, None] + 2 * (report[:, None] == truth)
            likelihoods += _compute_logarithms(chances)[was_truth.astype(np.intp), kind]
            last = report
        return likelihoods


class IndependentReportsDistribution(_DistributionAtRetentions):
    """The distribution of reports that are drawn independently of each other, which relaxation avoids."""

    def compute_log_likelihoods(self, transcripts: Transcripts) -> Floats:
        codes = require_transcripts(transcripts, self.n_values, len(self.retentions))
        likelihoods = np.zeros((len(codes), self.n_values))
        for keep, report in zip(self.retentions, codes.T, strict=True):
            noise = (1 - keep) / self.n_values
            right = (report[:, None] == np.arange(self.n_values)).astype(np.intp)
            likelihoods += _compute_logarithms([[noise, noise + keep]])[0][right]
        return likelihoods


@dataclass(frozen=True, slots=True)
class NoisySamplesDistribution:
    """The distribution of noisy samples of one permanent response, as RAPPOR sends them: the paper's baseline."""

    n_values: int
    permanent: Fraction
    sample: Fraction
    samples: int

    @classmethod
    def from_epsilons(
        cls, *, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, n_samples: int, n_values: int = 2
    ) -> NoisySamplesDistribution:
        """Return the distribution of samples at epsilon_beta of a permanent response at epsilon_alpha."""
        permanent, sample = compute_retentions([epsilon_alpha, epsilon_beta], n_values)
        return cls(n_values, permanent, sample, n_samples)

    def compute_log_likelihoods(self, transcripts: Transcripts) -> Floats:
        samples = IndependentReportsDistribution(self.n_values, (self.sample,) * self.samples)
        by_permanent = samples.compute_log_likelihoods(transcripts)
        noise = float((1 - self.permanent) / self.n_values)
        largest = by_permanent.max(axis=1, keepdims=True)
        scaled = np.exp(by_permanent - largest)
        mixed = noise * scaled.sum(axis=1, keepdims=True) + float(self.permanent) * scaled
        return np.asarray(np.log(mixed) + largest)


def require_transcripts(transcripts: Transcripts, n_values: int, n_reports: int | None = None) -> NDArray[np.intp]:
    """Return valid transcripts as codes of shape (individuals, reports), or reject others."""
    codes = np.asarray(transcripts)
    is_table = codes.ndim == 2 and codes.shape[1] > 0 and codes.dtype.kind in "iub"
    if not is_table or (len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < n_values)):
        raise ArgumentError(
            "The transcripts (rows: individuals, columns: reports) must be whole numbers from 0 to {last}, not "
            "{given}.",
            hint="Pass the position of each reported value in the list of values, such as np.array([[0, 1], [1, 1]]).",
            last=n_values - 1,
            given="smaller or larger ones" if is_table else f"an array of shape {codes.shape} and type {codes.dtype}",
        )
    if n_reports is not None and codes.shape[1] != n_reports:
        raise ArgumentError(
            "The transcripts have {reports} columns, but {levels} epsilons are given. Each column needs one epsilon.",
            hint="Pass one epsilon per column, such as [0.5, 1] for two columns.",
            reports=codes.shape[1],
            levels=n_reports,
        )
    return codes.astype(np.intp, copy=False)


def _compute_logarithms(probabilities: Sequence[Sequence[Fraction]]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array([[float(chance) for chance in row] for row in probabilities])))


Guesses = NDArray[np.bool_]
Attack = Callable[[Transcripts, TranscriptDistribution, Sequence[Epsilon]], Guesses]

# Sums of weights and of logarithms that are equal on paper differ by less than this in floats.
_TIE = 1e-9


def guess_last_report(transcripts: Transcripts, *, n_values: int) -> Guesses:
    """Guess the last report."""
    codes = require_transcripts(transcripts, n_values)
    return np.asarray(codes[:, -1:] == np.arange(n_values))


def guess_by_maximum_likelihood(transcripts: Transcripts, distribution: TranscriptDistribution) -> Guesses:
    """Guess the true value with the largest likelihood of the transcript; the best attack on equal shares."""
    return _mark_best_values(distribution.compute_log_likelihoods(transcripts))


def guess_by_frequency(transcripts: Transcripts, *, n_values: int, weights: Sequence[Epsilon] | None = None) -> Guesses:
    """Guess the most frequent report, or with weights the value with the largest sum of weights of its reports."""
    codes = require_transcripts(transcripts, n_values, None if weights is None else len(weights))
    each = np.array([1.0 if weights is None else float(as_epsilon(weights[place])) for place in range(codes.shape[1])])
    cells = codes + np.arange(len(codes))[:, None] * n_values
    summed = np.bincount(cells.ravel(), np.broadcast_to(each, codes.shape).ravel(), len(codes) * n_values)
    return _mark_best_values(np.asarray(summed, dtype=np.float64).reshape(len(codes), n_values))


ATTACKS: dict[str, Attack] = {
    "last output": lambda reports, distribution, _: guess_last_report(reports, n_values=distribution.n_values),
    "maximum likelihood": lambda reports, distribution, _: guess_by_maximum_likelihood(reports, distribution),
    "highest frequency": lambda reports, distribution, _: guess_by_frequency(reports, n_values=distribution.n_values),
    "weighted highest frequency": lambda reports, distribution, epsilons: guess_by_frequency(
        reports, n_values=distribution.n_values, weights=epsilons
    ),
}
"""The four attacks by name, each called with transcripts, their distribution, and the epsilon of each report."""


def compute_error_probabilities(guesses: Guesses, true_values: NDArray[np.integer]) -> Floats:
    """Return the probability that each individual's guess is wrong, ties being broken uniformly."""
    hit = guesses[np.arange(len(guesses)), np.asarray(true_values)]
    return np.asarray(1 - hit / guesses.sum(axis=1))


def compute_error_rate(guesses: Guesses, true_values: NDArray[np.integer]) -> float:
    """Return the share of individuals that are guessed wrong, ties being broken uniformly.

    >>> compute_error_rate(np.array([[True, False], [True, True]]), np.array([0, 1]))
    0.25
    """
    return float(compute_error_probabilities(guesses, true_values).mean())


def compute_error_rates(
    transcripts: Transcripts,
    true_values: NDArray[np.integer],
    distribution: TranscriptDistribution,
    epsilons: Sequence[Epsilon],
) -> dict[str, float]:
    """Return the error rate of every attack; compare it with `compute_minimum_error_rate` for equal shares."""
    return {
        name: compute_error_rate(attack(transcripts, distribution, epsilons), true_values)
        for name, attack in ATTACKS.items()
    }


def compute_minimum_error_rate(n_values: int, epsilon: Epsilon) -> float:
    """Return the minimum error rate of any attack on true values with equal shares: (m - 1) / (e^epsilon + m - 1).

    Claim: the paper's theorem on error rates, reached by the last output; tests/exact/audit/test_attacks.py.

    >>> round(compute_minimum_error_rate(2, "0.98433"), 4)
    0.272
    """
    check_value_count(n_values)
    noise = (n_values - 1) * np.exp(-float(as_epsilon(epsilon, allow_zero=True)))
    return float(noise / (1 + noise))


def _mark_best_values(scores: Floats) -> Guesses:
    largest = scores.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        raise ArgumentError(
            "A row of the transcripts is impossible for any true value, such as two different reports at one epsilon.",
            hint="Check the reports. Pass one epsilon per column of the transcripts, in the order of the columns.",
        )
    return np.asarray(scores >= largest - _TIE)
