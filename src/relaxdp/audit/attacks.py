"""The paper's four attacks on transcripts: guess every object's truth from all of its reports.

An attack returns *candidates*: a mask of shape (objects, values), true for each value that it holds for the best guess.
Mostly there is one; the paper does not say how ties are broken, so here they are broken uniformly: `error_rate` counts
an object with k candidates, the truth among them, as 1/k right (the expectation, so nothing random is added), and
`guesses` draws one of them.

>>> reports = np.array([[1, 1, 0], [0, 0, 0]])
>>> for name, attack in ATTACKS.items():
...     print(name, guesses(attack(reports, Relaxed.at([0.5, 1, 2], values=2), [0.5, 1, 2])).tolist())
last output [0, 0]
maximum likelihood [0, 0]
highest frequency [1, 0]
weighted highest frequency [0, 0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.laws import Floats, Independent, Law, NoisySamples, Relaxed, Transcripts, check_transcripts
from relaxdp.errors import AuditError
from relaxdp.law.epsilon import Epsilon, as_epsilon, check_values

Candidates = NDArray[np.bool_]
Attack = Callable[[Transcripts, Law, Sequence[Epsilon]], Candidates]

__all__ = [
    "ATTACKS", "Independent", "NoisySamples", "Relaxed", "error_rate", "error_rates", "errors", "guesses",
    "highest_frequency", "last_output", "maximum_likelihood", "minimum_error_rate", "weighted_highest_frequency",
]  # fmt: skip

# Sums of weights and of logarithms that are equal on paper differ by less than this in floats.
_TIE = 1e-9


def last_output(transcripts: Transcripts, *, values: int) -> Candidates:
    """Guess the last report."""
    codes = check_transcripts(transcripts, values)
    return np.asarray(codes[:, -1:] == np.arange(values))


def maximum_likelihood(transcripts: Transcripts, law: Law) -> Candidates:
    """Guess the truth under which the whole transcript is likeliest: no attack has fewer errors on equal shares."""
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
    """Return with which probability each object's guess is wrong, ties being broken uniformly."""
    hit = candidates[np.arange(len(candidates)), np.asarray(truths)]
    return np.asarray(1 - hit / candidates.sum(axis=1))


def error_rate(candidates: Candidates, truths: NDArray[np.integer]) -> float:
    """Return the share of objects that are guessed wrong, ties being broken uniformly.

    >>> error_rate(np.array([[True, False], [True, True]]), np.array([0, 1]))
    0.25
    """
    return float(errors(candidates, truths).mean())


def error_rates(
    transcripts: Transcripts, truths: NDArray[np.integer], law: Law, epsilons: Sequence[Epsilon]
) -> dict[str, float]:
    """Return the error rate of every attack; compare it with `minimum_error_rate` where truths have equal shares."""
    return {name: error_rate(attack(transcripts, law, epsilons), truths) for name, attack in ATTACKS.items()}


def guesses(candidates: Candidates, generator: np.random.Generator | None = None) -> NDArray[np.intp]:
    """Return one guess for each object; a tie goes to a random candidate, or without a generator to the first."""
    if generator is None:
        return np.asarray(candidates.argmax(axis=1))
    return np.asarray((candidates * generator.random(candidates.shape)).argmax(axis=1))


def minimum_error_rate(values: int, epsilon: Epsilon) -> float:
    """Return the least error rate of any attack on truths with equal shares: (m - 1) / (e^epsilon + m - 1).

    Claim: the paper's theorem on error rates, reached by the last output; tests/exact/audit/test_attacks.py.

    >>> round(minimum_error_rate(2, "0.98433"), 4)
    0.272
    """
    check_values(values)
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
        raise AuditError("a transcript cannot occur under any truth: two different reports stand at one level.")
    return np.asarray(scores >= most - _TIE)
