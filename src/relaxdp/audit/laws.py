"""Laws of whole transcripts, for arrays of them: how likely each transcript is under each truth.

A transcript is one row of codes, one column for each report. Attacks take the truth that makes it likeliest; the
auditor takes the transcripts that tell two truths apart best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import AuditError
from relaxdp.law.bridge import NOISE, TRUTH, bridge_mixture
from relaxdp.law.epsilon import Epsilon, release_threshold
from relaxdp.law.level import retention

Floats = NDArray[np.float64]
Transcripts = NDArray[Any]


class Law(Protocol):
    """The law of a transcript."""

    @property
    def values(self) -> int:
        """How many truths, and codes, there are."""
        ...

    def log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the logarithm of each transcript's probability under each truth, of shape (objects, values)."""
        ...


def retentions(epsilons: Sequence[Epsilon], values: int) -> tuple[Fraction, ...]:
    """Return the retentions that are really used at some levels."""
    return tuple(retention(release_threshold(epsilon, values)) for epsilon in epsilons)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Reports of one path, or of Algorithm 1, at retentions that do not fall: a transcript of this package."""

    values: int
    levels: tuple[Fraction, ...]

    @classmethod
    def at(cls, epsilons: Sequence[Epsilon], *, values: int) -> Relaxed:
        """Return the law of reports at these levels."""
        return cls(values, retentions(epsilons, values))

    def log_likelihoods(self, transcripts: Transcripts) -> Floats:
        """Return the sum of the logarithms of the steps of Algorithm 1.

        Claim: equals `transcript_probability`; tests/exact/audit/test_attacks.py.
        """
        codes = check_transcripts(transcripts, self.values, len(self.levels))
        truth = np.arange(self.values)
        last, likelihoods = np.zeros(len(codes), codes.dtype), np.zeros((len(codes), self.values))
        for (old, new), report in zip(pairwise((NOISE, *self.levels)), codes.T, strict=True):
            agree = bridge_mixture(self.values, old, new, TRUTH, agree=True)
            differ = bridge_mixture(self.values, old, new, TRUTH, agree=False)
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
    """Reports that were drawn independently of each other at these retentions: what relaxation avoids."""

    values: int
    levels: tuple[Fraction, ...]

    @classmethod
    def at(cls, epsilons: Sequence[Epsilon], *, values: int) -> Independent:
        """Return the law of independent reports at these levels."""
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
        """Return the law of samples at epsilon_beta of a permanent response at epsilon_alpha."""
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
    """Return transcripts as codes of shape (objects, reports), or refuse them."""
    codes = np.asarray(transcripts)
    if codes.ndim != 2 or codes.shape[1] == 0 or codes.dtype.kind not in "iub":
        raise AuditError("transcripts are whole numbers, one row for each object and one column for each report.")
    if reports is not None and codes.shape[1] != reports:
        raise AuditError(
            "there are {reports} reports of each object, and {levels} levels.", reports=codes.shape[1], levels=reports
        )
    if len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < values):
        raise AuditError(
            "a report must be the code of one of the {values} values, from 0 to {last}.", values=values, last=values - 1
        )
    return codes.astype(np.intp, copy=False)


def _logarithms(chances: Sequence[Sequence[Fraction]]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array([[float(chance) for chance in row] for row in chances])))
