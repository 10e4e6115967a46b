"""The paper's four attacks on transcripts: guess every object's truth from all of its reports.

An attack returns *candidates*: a mask of shape (objects, values), true for each value that it holds for the best guess.
Mostly there is one; the paper does not say how ties are broken, so here they are broken uniformly: `error_rate` counts
an object with k candidates, the truth among them, as 1/k right (the expectation, so nothing random is added), and
`draw_guesses` draws one of them.

>>> reports = np.array([[1, 1, 0], [0, 0, 0]])
>>> for name, attack in ATTACKS.items():
...     print(name, draw_guesses(attack(reports, Relaxed.at([0.5, 1, 2], values=2), [0.5, 1, 2])).tolist())
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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ArgumentError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, check_value_count, compute_nonzero_threshold
from relaxdp.theory.level import compute_retention
from relaxdp.theory.randomized_response import NOISE, TRUTH, compute_bridge_mixture

Floats = NDArray[np.float64]
Transcripts = NDArray[Any]


class Law(Protocol):
    """The distribution of a transcript."""

    @property
    def values(self) -> int:
        """The number of true values, and of codes."""
        ...

    def log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the log probability of each transcript under each true value, of shape (individuals, values)."""
        ...


def retentions(epsilons: Sequence[Epsilon], values: int) -> tuple[Fraction, ...]:
    """Return the retentions that are really used at some levels."""
    return tuple(compute_retention(compute_nonzero_threshold(epsilon, values)) for epsilon in epsilons)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Reports of one path, or of Algorithm 1, at retentions that do not fall: a transcript of this package."""

    values: int
    levels: tuple[Fraction, ...]

    @classmethod
    def at(cls, epsilons: Sequence[Epsilon], *, values: int) -> Relaxed:
        """Return the distribution of reports at these levels."""
        return cls(values, retentions(epsilons, values))

    def log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the sum of the logarithms of the steps of Algorithm 1.

        Claim: equals `compute_transcript_probability`; tests/exact/audit/test_attacks.py.
        """
        codes = check_transcripts(transcripts, self.values, len(self.levels))
        truth = np.arange(self.values)
        last, likelihoods = np.zeros(len(codes), codes.dtype), np.zeros((len(codes), self.values))
        for (old, new), report in zip(pairwise((NOISE, *self.levels)), codes.T, strict=True):
            agree = compute_bridge_mixture(self.values, old, new, TRUTH, agree=True)
            differ = compute_bridge_mixture(self.values, old, new, TRUTH, agree=False)
            # Row: whether the last report is the truth. Column: the next report is another value, the last one, the
            # truth, or (where these are one) both.
            chances = [
                [mixture.redraw / self.values + extra for extra in _extras(mixture)] for mixture in (differ, agree)
            ]
            table = _logarithms(chances)
            was_truth = last[:, None] == truth
            kind = (report == last)[:, None] + 2 * (report[:, None] == truth)
            likelihoods += table[was_truth.astype(np.intp), kind]
            last = report
        return likelihoods


def _extras(mixture: Any) -> tuple[Fraction, ...]:
    both = mixture.to_upper + mixture.to_lower
    return Fraction(0), mixture.to_lower, mixture.to_upper, both


@dataclass(frozen=True, slots=True)
class Independent:
    """Reports that were drawn independently of each other at these retentions, which relaxation avoids."""

    values: int
    levels: tuple[Fraction, ...]

    @classmethod
    def at(cls, epsilons: Sequence[Epsilon], *, values: int) -> Independent:
        """Return the distribution of independent reports at these levels."""
        return cls(values, retentions(epsilons, values))

    def log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the sum of the logarithms of each report's probability."""
        codes = check_transcripts(transcripts, self.values, len(self.levels))
        likelihoods = np.zeros((len(codes), self.values))
        for keep, report in zip(self.levels, codes.T, strict=True):
            noise = (1 - keep) / self.values
            right = (report[:, None] == np.arange(self.values)).astype(np.intp)
            likelihoods += _logarithms([[noise, noise + keep]])[0][right]
        return likelihoods


@dataclass(frozen=True, slots=True)
class NoisySamples:
    """Samples of one permanent response, as RAPPOR sends them: the paper's baseline, for any number of values."""

    values: int
    permanent: Fraction
    sample: Fraction
    samples: int

    @classmethod
    def at(cls, *, epsilon_alpha: Epsilon, epsilon_beta: Epsilon, samples: int, values: int = 2) -> NoisySamples:
        """Return the distribution of samples at epsilon_beta of a permanent response at epsilon_alpha."""
        permanent, sample = retentions([epsilon_alpha, epsilon_beta], values)
        return cls(values, permanent, sample, samples)

    def log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the likelihood over all permanent responses that the samples may come from."""
        given_permanent = Independent(self.values, (self.sample,) * self.samples).log_likelihoods(transcripts)
        noise = float((1 - self.permanent) / self.values)
        most = given_permanent.max(axis=1, keepdims=True)
        scaled = np.exp(given_permanent - most)
        mixed = noise * scaled.sum(axis=1, keepdims=True) + float(self.permanent) * scaled
        return np.asarray(np.log(mixed) + most)


def check_transcripts(transcripts: Transcripts, values: int, reports: int | None = None) -> NDArray[np.intp]:
    """Return transcripts as codes of shape (individuals, reports), or reject them."""
    codes = np.asarray(transcripts)
    if codes.ndim != 2 or codes.shape[1] == 0 or codes.dtype.kind not in "iub":
        raise ArgumentError(
            "The transcripts must be a table of whole numbers, with one row per individual and one column per report.",
            hint="Pass an array of shape (individuals, reports), such as np.array([[0, 1], [1, 1]]).",
        )
    if reports is not None and codes.shape[1] != reports:
        raise ArgumentError(
            "Each individual has {reports} reports, and there are {levels} levels. The numbers must be equal.",
            hint="Pass one epsilon per column of the transcripts.",
            reports=codes.shape[1],
            levels=reports,
        )
    if len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < values):
        raise ArgumentError(
            "A report is not the code of a value. Expected a whole number from 0 to {last}, because "
            "there are {values} values.",
            hint="Pass the position of each reported value in the list of values.",
            values=values,
            last=values - 1,
        )
    return codes.astype(np.intp, copy=False)


def _logarithms(chances: Sequence[Sequence[Fraction]]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array([[float(chance) for chance in row] for row in chances])))


Candidates = NDArray[np.bool_]
Attack = Callable[[Transcripts, Law, Sequence[Epsilon]], Candidates]

__all__ = [
    "ATTACKS", "Independent", "NoisySamples", "Relaxed", "draw_guesses", "error_rate", "error_rates", "errors",
    "highest_frequency", "last_output", "maximum_likelihood", "minimum_error_rate", "weighted_highest_frequency",
]  # fmt: skip

# Sums of weights and of logarithms that are equal on paper differ by less than this in floats.
_TIE = 1e-9


def last_output(transcripts: Transcripts, *, values: int) -> Candidates:
    """Guess the last report."""
    codes = check_transcripts(transcripts, values)
    return np.asarray(codes[:, -1:] == np.arange(values))


def maximum_likelihood(transcripts: Transcripts, law: Law) -> Candidates:
    """Guess the true value that makes the whole transcript most likely: no attack has fewer errors on equal shares."""
    return _best(law.log_likelihoods(transcripts))


def highest_frequency(transcripts: Transcripts, *, values: int) -> Candidates:
    """Guess the value that was reported most often."""
    codes = check_transcripts(transcripts, values)
    return _best(_sums(codes, values, np.ones(codes.shape[1])))


def weighted_highest_frequency(transcripts: Transcripts, *, values: int, weights: Sequence[Epsilon]) -> Candidates:
    """Guess the value with the largest sum of weights: each report weighs its own guarantee, its epsilon."""
    codes = check_transcripts(transcripts, values, len(weights))
    return _best(_sums(codes, values, np.array([float(as_epsilon(weight)) for weight in weights])))


ATTACKS: dict[str, Attack] = {
    "last output": lambda transcripts, law, epsilons: last_output(transcripts, values=law.values),
    "maximum likelihood": lambda transcripts, law, epsilons: maximum_likelihood(transcripts, law),
    "highest frequency": lambda transcripts, law, epsilons: highest_frequency(transcripts, values=law.values),
    "weighted highest frequency": lambda transcripts, law, epsilons: weighted_highest_frequency(
        transcripts, values=law.values, weights=epsilons
    ),
}
"""The four attacks by name, each called with transcripts, their law, and the epsilon of each report."""


def errors(candidates: Candidates, truths: NDArray[np.integer]) -> Floats:
    """Return the probability that each individual's guess is wrong, ties being broken uniformly."""
    hit = candidates[np.arange(len(candidates)), np.asarray(truths)]
    return np.asarray(1 - hit / candidates.sum(axis=1))


def error_rate(candidates: Candidates, truths: NDArray[np.integer]) -> float:
    """Return the share of individuals that are guessed wrong, ties being broken uniformly.

    >>> error_rate(np.array([[True, False], [True, True]]), np.array([0, 1]))
    0.25
    """
    return float(errors(candidates, truths).mean())


def error_rates(
    transcripts: Transcripts, truths: NDArray[np.integer], law: Law, epsilons: Sequence[Epsilon]
) -> dict[str, float]:
    """Return the error rate of every attack; compare it with `minimum_error_rate` for equal shares."""
    return {name: error_rate(attack(transcripts, law, epsilons), truths) for name, attack in ATTACKS.items()}


def draw_guesses(candidates: Candidates, generator: np.random.Generator | None = None) -> NDArray[np.intp]:
    """Return one guess for each individual; a tie goes to a random candidate, or without a generator to the first."""
    if generator is None:
        return np.asarray(candidates.argmax(axis=1))
    return np.asarray((candidates * generator.random(candidates.shape)).argmax(axis=1))


def minimum_error_rate(values: int, epsilon: Epsilon) -> float:
    """Return the least error rate of any attack on true values with equal shares: (m - 1) / (e^epsilon + m - 1).

    Claim: the paper's theorem on error rates, reached by the last output; tests/exact/audit/test_attacks.py.

    >>> round(minimum_error_rate(2, "0.98433"), 4)
    0.272
    """
    check_value_count(values)
    noise = (values - 1) * np.exp(-float(as_epsilon(epsilon, zero=True)))
    return float(noise / (1 + noise))


def _sums(codes: NDArray[np.intp], values: int, weights: Floats) -> Floats:
    """Return the sum of each value's weights in each transcript."""
    cells = codes + np.arange(len(codes))[:, None] * values
    summed = np.bincount(cells.ravel(), np.broadcast_to(weights, codes.shape).ravel(), len(codes) * values)
    return np.asarray(summed.reshape(len(codes), values))


def _best(scores: Floats) -> Candidates:
    most = scores.max(axis=1, keepdims=True)
    if not np.isfinite(most).all():
        raise ArgumentError(
            "A transcript cannot occur under any true value. Two different reports have the same epsilon.",
            hint="Check the transcripts: a release that is repeated at the same epsilon returns the same report.",
        )
    return np.asarray(scores >= most - _TIE)
