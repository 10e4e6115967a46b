"""From shares of bits to shares of words: weighted least squares, with what is known about words that are not listed.

A device has a listed word, or one that nobody listed. The latter sets bits at random, so in every cohort

    share of bit = sum over words of (share of word) * (word sets bit) + (share of the others) * (chance of the bit)

and all shares sum to 1. That is linear in the shares of the words, and solved as such: unbiased, with errors that are
known in closed form. Shares that are not negative and sum to at most 1 are found beside it, for people to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, MissingDependencyError, RapporError
from relaxdp.estimation import special
from relaxdp.estimation.frequency import Combined, Frequency
from relaxdp.estimation.result import UNKNOWN, About, Result, check_about
from relaxdp.lazy_imports import scipy
from relaxdp.rappor.bit_counts import BitEstimates, Method, RapporCounts, compute_precision
from relaxdp.rappor.candidate_map import CandidateMap

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

LASSO_ABOVE = 0.8
"""With more candidates than this times the number of estimates, least squares has too little to go by."""
_SINGULAR = 1e-9
_HEAVY = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Unbiased shares of all candidates, and their variances about these devices and about the population."""

    value: Floats
    variance: Floats
    population_variance: Floats
    share: Floats
    """Shares that are not negative and sum to at most 1."""
    dispersion: float
    """How much larger the squared residuals are than the noise explains; at least 1, and in the variances already."""
    score: Floats
    """How many standard errors a share is above 0: what decides whether a word is found."""
    unlisted: tuple[float, float] | None = None
    """The share of devices whose word is not listed, unbiased, and its standard error; None after a LASSO."""


def fit_words(estimates: BitEstimates, candidates: CandidateMap) -> Fit:
    """Return the shares of all candidates.

    Where there are too many for least squares, a non-negative LASSO selects the most likely words. Every other
    word is fitted together with only those.
    """
    problem = _Problem(estimates, candidates)
    everything = np.arange(len(candidates.words))
    if len(everything) <= LASSO_ABOVE * len(problem.target):
        return problem.fit(everything)
    chosen = problem.select_by_lasso()
    # A LASSO shrinks strong words, and lets others in that share their bits. Once all are fitted together, those are
    # weak again and have to go: they were let in for their noise, and would bias the strong ones.
    return problem.fit(chosen[problem.fit(chosen).score[chosen] > problem.penalty])


class _Problem:
    """Least squares with weights; the background of words that are not listed is taken out of target and design."""

    def __init__(self, estimates: BitEstimates, candidates: CandidateMap) -> None:
        bits = estimates.shape.bits
        self.bits, self.devices = bits, estimates.devices
        self.design = candidates.design(estimates.cohorts)
        self.background = np.tile(estimates.shape.chances(), len(estimates.cohorts))
        self.share = estimates.share.ravel()
        self.variance = estimates.variance.ravel()
        self.weights = 1 / self.variance
        self.target = self.share - self.background
        self.penalty = -float(special.ndtri(1 / (2 * len(candidates.words))))
        """What the largest of so many scores would reach by noise alone."""

    def fit(self, model: Places) -> Fit:
        design = self.design[:, model]
        matrix = self._products(design, design)
        right = self._right(design)
        inverse, known = _inverse(matrix)
        value = inverse @ right
        share = self._fit_constrained(design)
        residual = self.target - (design @ value - self.background * value.sum())
        fitted = np.clip(design @ share + self.background * (1 - share.sum()), 0, 1)
        sampled = fitted * (1 - fitted) / np.repeat(self.devices, self.bits)
        freedom = max(1, len(residual) - len(model))
        dispersion = max(1.0, float((residual**2 / (self.variance + sampled)).sum()) / freedom)
        objects, population, seen, rest = self._sampling(design, inverse, share, residual)
        noise = np.where(known, np.diag(inverse), np.inf)
        size = self.design.shape[1]
        value_of, variance, population_variance, share_of, score = np.zeros((5, size))
        error = max(dispersion * (float(inverse.sum()) + rest[0]), rest[1], 0.0)
        unlisted = 1 - float(value.sum()), float(np.sqrt(error))
        whole = len(model) == size and bool(known.all())
        found = Fit(value_of, variance, population_variance, share_of, dispersion, score, unlisted if whole else None)
        found.value[model], found.share[model] = np.where(known, value, 0.0), share
        # The residuals also show how a word's own share varies from cohort to cohort, once for each of its bits: that
        # is no error about these devices, and about the population it belongs in as a whole.
        own = share * (1 - share) / self.devices.sum()
        per_bit = own * len(self.devices) / np.asarray(design.sum(axis=0)).ravel()
        found.variance[model] = np.maximum(dispersion * (noise + objects), seen - per_bit)
        found.population_variance[model] = np.maximum(dispersion * (noise + population), seen - per_bit + own)
        if len(model) < size:
            self._fit_others(found, model, inverse, value, residual)
        found.score[:] = found.value / np.sqrt(found.variance)
        if len(model) < size:
            found.score[:] *= self._drop_best_cohort(found.value, model, residual)
        return found

    def _fit_others(self, found: Fit, model: Places, inverse: Floats, value: Floats, residual: Floats) -> None:
        """Fit every word that is not in the model as if it alone were added to it."""
        others = np.setdiff1d(np.arange(len(found.value)), model)
        design = self.design[:, others]
        cross = self._products(self.design[:, model], design)
        own = self._own_products(design)
        left = own - np.einsum("ij,ij->j", cross, inverse @ cross)
        known = left > _SINGULAR * own
        left = np.where(known, left, 1.0)
        found.value[others] = added = np.where(known, (self._right(design) - cross.T @ value) / left, 0.0)
        # What the residuals say once the word is in: squares of (residual - its share) at the bits that it sets.
        dispersion = max(1.0, float((residual**2 * self.weights).sum()) / max(1, len(residual) - len(model)))
        powers = [np.asarray(design.T @ (self.weights**2 * residual**power)) for power in (0, 1, 2)]
        rows = np.asarray(design.sum(axis=0)).ravel()
        seen = (powers[2] - 2 * added * powers[1] + added**2 * powers[0]) / left**2 / (1 - 1 / (rows + 1))
        found.variance[others] = np.where(known, np.maximum(dispersion / left, seen), np.inf)
        pulled = np.clip(found.value[others], 0, 1)
        found.population_variance[others] = found.variance[others] + pulled * (1 - pulled) / self.devices.sum()

    def _drop_best_cohort(self, value: Floats, model: Places, residual: Floats) -> Floats:
        """Return by how much each score shrinks without the cohort that speaks most for the word; at most 1.

        Among very many candidates some meet strong words that nobody listed, but hardly in more than one cohort.
        """
        rows = self.design.tocsr()
        inside = np.zeros(len(value))
        inside[model] = value[model]  # what the residuals no longer hold of words that were fitted
        parts = [slice(cohort * self.bits, (cohort + 1) * self.bits) for cohort in range(len(self.devices))]
        weights = np.array([rows[part].T @ self.weights[part] for part in parts])
        sums = np.array([rows[part].T @ (self.weights[part] * residual[part]) for part in parts]) + weights * inside
        total, weight = sums.sum(axis=0), weights.sum(axis=0)
        left = np.maximum(weight - weights, _SINGULAR * weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = ((total - sums) / left / (total / weight) * np.sqrt(left / weight)).min(axis=0)
        return np.where(total > 0, np.clip(ratio, 0, 1), 1.0)

    def _sampling(
        self, design: Any, inverse: Floats, share: Floats, residual: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the variance that comes from who is in which cohort, and from who is among the devices at all.

        A device in cohort c with word w adds G_c[., w] / N_c to the estimates, and the sum of all G_c is the identity.
        About these devices only the deviation of G_c from its share of the identity is random.

        The third is what the residuals themselves say (the sandwich with leverages, HC2). It is larger where a strong
        word that nobody listed meets the bits of a listed one. The last two numbers are the first and the third of the
        sum of all shares.
        """
        rows, total = design.tocsr(), self.devices.sum()
        others = max(0.0, 1 - float(share.sum()))
        row_sums = inverse.sum(axis=1)[:, None]
        objects, population, seen = np.zeros((3, len(share)))
        rest = np.zeros(2)
        for cohort, devices in enumerate(self.devices):
            part = slice(cohort * self.bits, (cohort + 1) * self.bits)
            weights, background = self.weights[part], self.background[part]
            solved = (rows[part] @ inverse).T * weights - row_sums * (background * weights)
            moves = (rows[part].T @ solved.T).T - (solved @ background)[:, None]
            leverage = np.asarray(rows[part].multiply(solved.T).sum(axis=1)).ravel() - background * solved.sum(axis=0)
            squares = residual[part] ** 2 / np.maximum(1 - leverage, _SINGULAR)
            seen += solved**2 @ squares
            strange = others * (solved**2 @ (background * (1 - background)))
            population += (moves**2 @ share - (moves @ share) ** 2 + strange) / devices
            moves[np.diag_indices(len(share))] -= devices / total
            objects += (moves**2 @ share + strange) / devices
            together = solved.sum(axis=0)
            strange_together = others * float(together**2 @ (background * (1 - background)))
            rest += float(moves.sum(axis=0) ** 2 @ share + strange_together) / devices, float(together**2 @ squares)
        return objects, population, seen, rest

    def _fit_constrained(self, design: Any) -> Floats:
        """Return shares that are not negative and sum, with that of the others, to 1: scipy's NNLS.

        The sum is a row of the system with a weight so large that it holds to a millionth.
        """
        weighted = design.multiply(self.weights[:, None]).tocsc()
        edge = np.asarray(weighted.T @ self.background)
        corner = float(self.weights @ self.background**2)
        matrix = np.block([[(weighted.T @ design).toarray(), edge[:, None]], [edge[None, :], np.array([[corner]])]])
        right = np.append(weighted.T @ self.share, (self.weights * self.background) @ self.share)
        scale = float(np.diag(matrix).max())
        matrix, right = matrix / scale + _HEAVY, right / scale + _HEAVY
        matrix[np.diag_indices(len(matrix))] += _SINGULAR  # words that cannot be told apart share what they have
        root = scipy.linalg.cholesky(matrix)
        solution, _ = scipy.optimize.nnls(root, scipy.linalg.solve_triangular(root, right, trans="T"))
        shares = solution[:-1]
        return np.asarray(shares / max(1.0, shares.sum()))

    def select_by_lasso(self) -> Places:
        """Return the words that a non-negative LASSO gives a share; the penalty lets few pass by luck."""
        try:
            from sklearn.linear_model import Lasso  # noqa: PLC0415 (slow to import)
        except ImportError:
            raise MissingDependencyError(
                "Decoding with more candidates than bits needs scikit-learn.", hint="Run: pip install 'relaxdp[decode]'"
            ) from None
        roots = np.sqrt(self.weights)
        listed = self.design.multiply(roots[:, None]).tocsc()
        lengths = np.sqrt(np.asarray(listed.power(2).sum(axis=0)).ravel())
        listed = listed.multiply(1 / lengths).tocsc()
        strange = scipy.sparse.csc_matrix((roots * self.background)[:, None])
        strange = strange * (1000 / np.sqrt(strange.power(2).sum()))  # so long that the penalty does not touch it
        model = Lasso(alpha=self.penalty / len(roots), positive=True, fit_intercept=False, max_iter=10_000)
        model.fit(scipy.sparse.hstack([listed, strange]).tocsc(), roots * self.share)
        chosen = np.flatnonzero(model.coef_[:-1] > 0)
        most = int(LASSO_ABOVE * len(roots))
        return np.sort(chosen[np.argsort(-model.coef_[chosen], kind="stable")][:most])

    def _products(self, first: Any, second: Any) -> Floats:
        """Return X'WX of designs from which the background is taken out, without ever filling them in."""
        weighted = first.multiply(self.weights[:, None]).tocsc()
        own, other = np.asarray(weighted.T @ self.background), np.asarray(second.T @ (self.weights * self.background))
        corner = float(self.weights @ self.background**2)
        return np.asarray((weighted.T @ second).toarray() - own[:, None] - other[None, :] + corner)

    def _own_products(self, design: Any) -> Floats:
        """Return the diagonal of `_products(design, design)`."""
        squares = np.asarray(design.power(2).T @ self.weights)
        cross = np.asarray(design.T @ (self.weights * self.background))
        return np.asarray(squares - 2 * cross + float(self.weights @ self.background**2))

    def _right(self, design: Any) -> Floats:
        pulled = self.weights * self.target
        return np.asarray(design.T @ pulled - pulled @ self.background)


def _inverse(matrix: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the inverse, and which words it is known for: those that no others can take the place of."""
    scale = float(np.diag(matrix).max(initial=1e-300))
    values, vectors = scipy.linalg.eigh(matrix / scale)
    null = values < _SINGULAR
    kept = vectors[:, ~null]
    inverse = (kept / values[~null]) @ kept.T / scale
    return inverse, np.asarray((vectors[:, null] ** 2).sum(axis=1) < _SINGULAR)


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
