"""RAPPOR decoding: counts of bits -> shares of words with intervals, and which words are really there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, RapporError
from relaxdp.estimation import special
from relaxdp.estimation.frequency import Combined, Frequency
from relaxdp.estimation.result import UNKNOWN, About, Result, check_about
from relaxdp.lazy import scipy
from relaxdp.rappor.candidates import CandidateMap
from relaxdp.rappor.counts import Method, RapporCounts, compute_precision
from relaxdp.rappor.fit import Fit, fit_words

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Correction = Literal["holm", "benjamini-hochberg"]


@dataclass(frozen=True, eq=False, repr=False)
class Decoded(Result):
    """Shares of candidate words among the devices, and the chance that each would look so large by noise alone.

    `value` is unbiased, so it may lie below 0; `consistent` gives shares that do not, and sum to at most 1.
    """

    estimate: Result
    share: Floats
    p_value: Floats
    """For each word: how likely an estimate at least so large is if no device has the word."""
    devices: int
    unlisted: tuple[float, float] | None = None
    """The share of devices whose word was not listed, unbiased, and its standard error; None where it is not known."""

    @property
    def levels(self) -> dict[str, int]:
        """All devices, at levels that the bits state."""
        return {UNKNOWN: self.devices}

    @property
    def labels(self) -> Sequence[str]:  # type: ignore[override]
        """The candidates."""
        return self.estimate.labels

    @property
    def value(self) -> Floats:
        """The unbiased estimates."""
        return self.estimate.value

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors."""
        return self.estimate.compute_std_error(about)

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of intervals. The displayed share is inside, once they are cut at 0."""
        low, high = self.estimate.ends(tail, about)
        return np.minimum(low, self.share), np.where(self.share > 0, np.maximum(high, self.share), high)

    def consistent(self) -> Floats:
        """Return shares that are not negative and sum to at most 1: less error, at the price of some bias."""
        return self.share

    def find_detected(self, rate: float = 0.05, correction: Correction = "holm") -> Flags:
        """Return which words are there, corrected for the number of candidates.

        "holm": the chance that even one word is found that no device has is at most `rate`. "benjamini-hochberg": of
        the words that are found, at most this share is wrong on average; it finds more.

        Claim: both rates, measured; tests/statistical/rappor/test_rappor.py.
        """
        if not 0 < rate < 1:
            raise EstimationError(
                "The error rate must be between 0 and 1, not {rate}.", hint="Pass a rate such as 0.05.", rate=rate
            )
        if correction == "benjamini-hochberg":
            return np.asarray(scipy.stats.false_discovery_control(self.p_value) <= rate)
        if correction != "holm":
            raise EstimationError(
                "Unknown correction {correction!r}. Expected 'holm' or 'benjamini-hochberg'.",
                hint="Pass correction='holm' or correction='benjamini-hochberg'.",
                correction=correction,
            )
        order = np.argsort(self.p_value, kind="stable")
        steps = self.p_value[order] * np.arange(len(order), 0, -1)
        found = np.zeros(len(order), dtype=np.bool_)
        found[order] = np.maximum.accumulate(steps) <= rate
        return found


def decode(counts: RapporCounts, candidates: CandidateMap | None = None, *, method: Method = "average") -> Decoded:
    """Return the shares of the candidates, from devices at any levels.

    One bit is a boolean: it is debiased directly, without candidates.
    """
    if counts.shape.is_boolean:
        if candidates is not None:
            raise RapporError(
                "The reports have one bit (k = 1), which is a boolean. It is decoded without a map.",
                hint="Leave out the map.",
            )
        return _decode_boolean(counts, method)
    if candidates is None:
        raise RapporError(
            "The map of candidates is missing. Only candidates can be found.",
            hint='Pass a map: --map map.csv, or Candidates.from_words(["flu", "covid"], shape).',
        )
    if candidates.shape != counts.shape:
        raise RapporError(
            "The map was made for other parameters ({mapped}) than the counts ({counted}).",
            hint="Make the map again: `relaxdp rappor map --params params.csv`.",
            mapped=candidates.shape,
            counted=counts.shape,
        )
    candidates.check()
    fit = fit_words(counts.estimates(method), candidates)
    words, chance = _Words(candidates.words, fit), np.asarray(special.ndtr(-fit.score))
    return Decoded(words, fit.share, chance, counts.devices, fit.unlisted)


@dataclass(frozen=True, eq=False, repr=False)
class _Words(Result):
    """What the regression says: normal intervals around linear estimates."""

    labels: Sequence[str]
    fit: Fit

    @property
    def value(self) -> Floats:
        return self.fit.value

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return np.sqrt(self.fit.variance if about == "sample" else self.fit.population_variance)

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        reach = -float(special.ndtri(tail)) * self.compute_std_error(about)
        return self.value - reach, self.value + reach


def _decode_boolean(counts: RapporCounts, method: Method) -> Decoded:
    """Return the share of devices whose only bit is set, and the chance that noise alone would give so much."""
    parts, precisions = [], []
    for support, (totals, ones) in counts.levels.items():
        if totals.sum():
            part = Frequency(["true"], np.atleast_1d(ones.sum()), int(totals.sum()), support, joint="independent")
            parts.append(part)
            precisions.append(part.n * compute_precision(support))
    if not parts:
        raise RapporError("There are no reports to decode.", hint="Add reports first, such as counts.add(...).")
    part = parts[0]
    if len(parts) == 1:
        chance = special.bdtrc(np.maximum(part.counts, 1) - 1.0, part.n, float(part.support.noise))
        chance = np.where(part.counts == 0, 1.0, chance)
        return Decoded(part, np.clip(part.value, 0, 1), np.asarray(chance), counts.devices)
    weights = [float(each.n) for each in parts] if method == "average" else precisions
    shares = [weight / sum(weights) for weight in weights]
    combined = Combined(parts, shares)
    spread = sum(share**2 / each for share, each in zip(shares, precisions, strict=True))
    chance = special.ndtr(-combined.value / np.sqrt(spread))
    return Decoded(combined, np.clip(combined.value, 0, 1), np.asarray(chance), counts.devices)
