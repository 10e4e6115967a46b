"""Decode RAPPOR: from counts of bits to shares of words with intervals, by weighted least squares.

The word of a device is listed among the candidates or not. An unlisted word sets bits at random, so in every cohort

    share of bit = sum over words of (share of word) * (word sets bit) + (share of unlisted words) * (bit's chance)

and all shares sum to 1. That is linear in the shares of the words, and solved as such: unbiased, with errors that are
known in closed form. A second solution, for people to read, has shares that are not negative and sum to at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EstimationError, MissingDependencyError, RapporError
from relaxdp.estimation.frequency import Frequency, WeightedSum
from relaxdp.estimation.result import UNKNOWN, About, Result, check_about
from relaxdp.lazy_imports import scipy
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.reports import BitEstimates, Method, RapporCounts, compute_inverse_bit_variance

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

LASSO_ABOVE = 0.8
"""With more candidates than this times the number of bit estimates, least squares is not possible."""
_SINGULAR = 1e-9
_CONSTRAINT_WEIGHT = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class WordFit:
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


def fit_word_shares(bit_estimates: BitEstimates, candidates: CandidateMap) -> WordFit:
    """Fit the shares of all candidate words.

    Where there are too many for least squares, a non-negative LASSO selects the most likely words. Every other
    word is fitted together with only those.
    """
    regression = _WordRegression(bit_estimates, candidates)
    all_words = np.arange(len(candidates.words))
    if len(all_words) <= LASSO_ABOVE * len(regression.target):
        return regression.fit(all_words)
    selected = regression.select_words_by_lasso()
    # A LASSO shrinks strong words and selects others that share their bits. Once all are fitted together, these are
    # weak again. They are removed: they were selected for their noise and would bias the strong words.
    return regression.fit(selected[regression.fit(selected).score[selected] > regression.penalty])


class _WordRegression:
    """Weighted least squares; the bits of unlisted words (the background) are subtracted from target and design."""

    def __init__(self, bit_estimates: BitEstimates, candidates: CandidateMap) -> None:
        bits = bit_estimates.shape.bits
        self.bits, self.devices = bits, bit_estimates.devices
        self.design = candidates.make_design_matrix(bit_estimates.cohorts)
        self.background = np.tile(bit_estimates.shape.compute_bit_probabilities(), len(bit_estimates.cohorts))
        self.share = bit_estimates.share.ravel()
        self.variance = bit_estimates.variance.ravel()
        self.weights = 1 / self.variance
        self.target = self.share - self.background
        self.penalty = -float(scipy.special.ndtri(1 / (2 * len(candidates.words))))
        """The value that the largest of as many scores reaches by noise alone."""

    def fit(self, words: Indices) -> WordFit:
        design = self.design[:, words]
        matrix = self._compute_weighted_product(design, design)
        right = self._compute_right_hand_side(design)
        inverse, identifiable = _invert_where_identifiable(matrix)
        value = inverse @ right
        share = self._fit_nonnegative_shares(design)
        residual = self.target - (design @ value - self.background * value.sum())
        fitted = np.clip(design @ share + self.background * (1 - share.sum()), 0, 1)
        sampled = fitted * (1 - fitted) / np.repeat(self.devices, self.bits)
        freedom = max(1, len(residual) - len(words))
        dispersion = max(1.0, float((residual**2 / (self.variance + sampled)).sum()) / freedom)
        sample, population, robust, of_sum = self._compute_sampling_variances(design, inverse, share, residual)
        noise = np.where(identifiable, np.diag(inverse), np.inf)
        n_words = self.design.shape[1]
        value_of, variance, population_variance, share_of, score = np.zeros((5, n_words))
        error = max(dispersion * (float(inverse.sum()) + of_sum[0]), of_sum[1], 0.0)
        unlisted: tuple[float, float] | None = (1 - float(value.sum()), float(np.sqrt(error)))
        if len(words) < n_words or not identifiable.all():
            unlisted = None
        fit = WordFit(value_of, variance, population_variance, share_of, dispersion, score, unlisted)
        fit.value[words], fit.share[words] = np.where(identifiable, value, 0.0), share
        # The residuals also show how a word's own share varies from cohort to cohort, once for each of its bits. This
        # is no error about these devices, but it is one about the population.
        own = share * (1 - share) / self.devices.sum()
        per_bit = own * len(self.devices) / np.asarray(design.sum(axis=0)).ravel()
        fit.variance[words] = np.maximum(dispersion * (noise + sample), robust - per_bit)
        fit.population_variance[words] = np.maximum(dispersion * (noise + population), robust - per_bit + own)
        if len(words) < n_words:
            self._fit_each_remaining_word(fit, words, inverse, value, residual)
        fit.score[:] = fit.value / np.sqrt(fit.variance)
        if len(words) < n_words:
            fit.score[:] *= self._compute_score_shrinkage(fit.value, words, residual)
        return fit

    def _fit_each_remaining_word(
        self, fit: WordFit, words: Indices, inverse: Floats, value: Floats, residual: Floats
    ) -> None:
        """Fit every word outside of `words` as if it alone were added to them, and write it into `fit`."""
        others = np.setdiff1d(np.arange(len(fit.value)), words)
        design = self.design[:, others]
        cross = self._compute_weighted_product(self.design[:, words], design)
        own = self._compute_weighted_square_sums(design)
        left = own - np.einsum("ij,ij->j", cross, inverse @ cross)
        identifiable = left > _SINGULAR * own
        left = np.where(identifiable, left, 1.0)
        right = self._compute_right_hand_side(design) - cross.T @ value
        fit.value[others] = added = np.where(identifiable, right / left, 0.0)
        # The residuals once the word is added: squares of (residual - its share) at the bits that it sets.
        dispersion = max(1.0, float((residual**2 * self.weights).sum()) / max(1, len(residual) - len(words)))
        powers = [np.asarray(design.T @ (self.weights**2 * residual**power)) for power in (0, 1, 2)]
        rows = np.asarray(design.sum(axis=0)).ravel()
        residual_variance = (powers[2] - 2 * added * powers[1] + added**2 * powers[0]) / left**2 / (1 - 1 / (rows + 1))
        fit.variance[others] = np.where(identifiable, np.maximum(dispersion / left, residual_variance), np.inf)
        share = np.clip(fit.value[others], 0, 1)
        fit.population_variance[others] = fit.variance[others] + share * (1 - share) / self.devices.sum()

    def _compute_score_shrinkage(self, value: Floats, words: Indices, residual: Floats) -> Floats:
        """Return the shrinkage of each score: its factor without the cohort that supports the word most, at most 1.

        Among very many candidates some share bits with strong unlisted words, but hardly in more than one cohort.
        """
        rows = self.design.tocsr()
        inside = np.zeros(len(value))
        inside[words] = value[words]  # subtracted from the residuals of fitted words
        parts = [slice(cohort * self.bits, (cohort + 1) * self.bits) for cohort in range(len(self.devices))]
        weights = np.array([rows[part].T @ self.weights[part] for part in parts])
        sums = np.array([rows[part].T @ (self.weights[part] * residual[part]) for part in parts]) + weights * inside
        total, weight = sums.sum(axis=0), weights.sum(axis=0)
        left = np.maximum(weight - weights, _SINGULAR * weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = ((total - sums) / left / (total / weight) * np.sqrt(left / weight)).min(axis=0)
        return np.where(total > 0, np.clip(ratio, 0, 1), 1.0)

    def _compute_sampling_variances(
        self, design: Any, inverse: Floats, share: Floats, residual: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the variances of the shares by cohort assignment, by sampling of devices, and by residuals.

        A device in cohort c with word w adds G_c[., w] / N_c to the estimates, and the sum of all G_c is the identity.
        About these devices only the deviation of G_c from its share of the identity is random.

        The third follows from the residuals (the sandwich estimator with leverages, HC2). It is larger where a strong
        unlisted word shares bits with a listed one. The last two numbers are the first and the third of these variances
        for the sum of all shares.
        """
        rows, total = design.tocsr(), self.devices.sum()
        unlisted_share = max(0.0, 1 - float(share.sum()))
        row_sums = inverse.sum(axis=1)[:, None]
        sample, population, from_residuals = np.zeros((3, len(share)))
        of_sum = np.zeros(2)
        for cohort, devices in enumerate(self.devices):
            part = slice(cohort * self.bits, (cohort + 1) * self.bits)
            weights, background = self.weights[part], self.background[part]
            solved = (rows[part] @ inverse).T * weights - row_sums * (background * weights)
            moves = (rows[part].T @ solved.T).T - (solved @ background)[:, None]
            leverage = np.asarray(rows[part].multiply(solved.T).sum(axis=1)).ravel() - background * solved.sum(axis=0)
            squares = residual[part] ** 2 / np.maximum(1 - leverage, _SINGULAR)
            from_residuals += solved**2 @ squares
            unlisted = unlisted_share * (solved**2 @ (background * (1 - background)))
            population += (moves**2 @ share - (moves @ share) ** 2 + unlisted) / devices
            moves[np.diag_indices(len(share))] -= devices / total
            sample += (moves**2 @ share + unlisted) / devices
            solved_sum = solved.sum(axis=0)
            unlisted_sum = unlisted_share * float(solved_sum**2 @ (background * (1 - background)))
            of_sum += float(moves.sum(axis=0) ** 2 @ share + unlisted_sum) / devices, float(solved_sum**2 @ squares)
        return sample, population, from_residuals, of_sum

    def _fit_nonnegative_shares(self, design: Any) -> Floats:
        """Return shares that are not negative and sum, with the share of unlisted words, to 1: scipy's NNLS.

        The sum is a row of the system. Its weight is so large that the sum is exact to a millionth.
        """
        weighted = design.multiply(self.weights[:, None]).tocsc()
        edge = np.asarray(weighted.T @ self.background)
        corner = float(self.weights @ self.background**2)
        matrix = np.block([[(weighted.T @ design).toarray(), edge[:, None]], [edge[None, :], np.array([[corner]])]])
        right = np.append(weighted.T @ self.share, (self.weights * self.background) @ self.share)
        scale = float(np.diag(matrix).max())
        matrix, right = matrix / scale + _CONSTRAINT_WEIGHT, right / scale + _CONSTRAINT_WEIGHT
        matrix[np.diag_indices(len(matrix))] += _SINGULAR  # Words with the same bits get equal shares.
        root = scipy.linalg.cholesky(matrix)
        solution, _ = scipy.optimize.nnls(root, scipy.linalg.solve_triangular(root, right, trans="T"))
        shares = solution[:-1]
        return np.asarray(shares / max(1.0, shares.sum()))

    def select_words_by_lasso(self) -> Indices:
        """Return the words to which a non-negative LASSO gives a share; few pass its penalty by noise alone."""
        try:
            from sklearn.linear_model import Lasso  # noqa: PLC0415 (slow to import)
        except ImportError:
            raise MissingDependencyError(
                "Decoding with more candidates than bits of all cohorts needs scikit-learn, which is not installed.",
                hint="Run: pip install 'relaxdp[decode]'",
            ) from None
        roots = np.sqrt(self.weights)
        listed = self.design.multiply(roots[:, None]).tocsc()
        lengths = np.sqrt(np.asarray(listed.power(2).sum(axis=0)).ravel())
        listed = listed.multiply(1 / lengths).tocsc()
        unlisted = scipy.sparse.csc_matrix((roots * self.background)[:, None])
        unlisted = unlisted * (1000 / np.sqrt(unlisted.power(2).sum()))  # so large that the penalty has no effect
        model = Lasso(alpha=self.penalty / len(roots), positive=True, fit_intercept=False, max_iter=10_000)
        model.fit(scipy.sparse.hstack([listed, unlisted]).tocsc(), roots * self.share)
        chosen = np.flatnonzero(model.coef_[:-1] > 0)
        maximum = int(LASSO_ABOVE * len(roots))
        return np.sort(chosen[np.argsort(-model.coef_[chosen], kind="stable")][:maximum])

    def _compute_weighted_product(self, left: Any, right: Any) -> Floats:
        """Return X'WY of designs after subtracting the background, without making the sparse matrices dense."""
        weighted = left.multiply(self.weights[:, None]).tocsc()
        own, other = np.asarray(weighted.T @ self.background), np.asarray(right.T @ (self.weights * self.background))
        corner = float(self.weights @ self.background**2)
        return np.asarray((weighted.T @ right).toarray() - own[:, None] - other[None, :] + corner)

    def _compute_weighted_square_sums(self, design: Any) -> Floats:
        """Return the diagonal of `_compute_weighted_product(design, design)`."""
        squares = np.asarray(design.power(2).T @ self.weights)
        cross = np.asarray(design.T @ (self.weights * self.background))
        return np.asarray(squares - 2 * cross + float(self.weights @ self.background**2))

    def _compute_right_hand_side(self, design: Any) -> Floats:
        weighted = self.weights * self.target
        return np.asarray(design.T @ weighted - weighted @ self.background)


def _invert_where_identifiable(matrix: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the pseudoinverse, and which words are identifiable: no combination of others sets the same bits."""
    scale = float(np.diag(matrix).max(initial=1e-300))
    values, vectors = scipy.linalg.eigh(matrix / scale)
    null = values < _SINGULAR
    kept = vectors[:, ~null]
    inverse = (kept / values[~null]) @ kept.T / scale
    return inverse, np.asarray((vectors[:, null] ** 2).sum(axis=1) < _SINGULAR)


Flags = NDArray[np.bool_]
Correction = Literal["holm", "benjamini-hochberg"]


@dataclass(frozen=True, eq=False, repr=False)
class DecodedWords(Result):
    """Shares of candidate words among the devices, with p-values.

    `value` is unbiased, so it can be below 0. `consistent` gives shares that are not, and sum to at most 1.
    """

    estimate: Result
    share: Floats
    p_value: Floats
    """For each word: the probability of an estimate at least as large if no device has the word."""
    n_devices: int
    unlisted: tuple[float, float] | None = None
    """The share of devices whose word was not listed, unbiased, and its standard error; None if it is unknown."""

    @property
    def levels(self) -> dict[str, int]:
        return {UNKNOWN: self.n_devices}

    @property
    def labels(self) -> Sequence[str]:  # type: ignore[override]
        return self.estimate.labels

    @property
    def value(self) -> Floats:
        return self.estimate.value

    def compute_std_error(self, about: About = "sample") -> Floats:
        return self.estimate.compute_std_error(about)

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        """Return intervals that are not cut at 0. They contain the share of `consistent` after cutting."""
        low, high = self.estimate.compute_unclipped_interval(tail_probability, about)
        return np.minimum(low, self.share), np.where(self.share > 0, np.maximum(high, self.share), high)

    def consistent(self) -> Floats:
        """Return shares that are not negative and sum to at most 1: less error, but some bias."""
        return self.share

    def find_detected_words(self, error_rate: float = 0.05, correction: Correction = "holm") -> Flags:
        """Return which words are detected, corrected for the number of candidates.

        "holm": with at most this probability even one word is detected that no device has. "benjamini-hochberg": on
        average at most this share of the detected words is false, so more words are detected.

        Claim: both rates, measured; tests/statistical/rappor/test_rappor.py.
        """
        if not 0 < error_rate < 1:
            raise EstimationError(
                "The error rate of detected words must be between 0 and 1, not {rate}.",
                hint="Pass a rate such as error_rate=0.05 (--rate 0.05).",
                rate=error_rate,
            )
        if correction == "benjamini-hochberg":
            return np.asarray(scipy.stats.false_discovery_control(self.p_value) <= error_rate)
        order = np.argsort(self.p_value, kind="stable")
        steps = self.p_value[order] * np.arange(len(order), 0, -1)
        found = np.zeros(len(order), dtype=np.bool_)
        found[order] = np.maximum.accumulate(steps) <= error_rate
        return found


def decode_words(
    counts: RapporCounts, candidates: CandidateMap | None = None, *, method: Method = "average"
) -> DecodedWords:
    """Decode the shares of candidate words, from devices at any levels.

    One bit is a boolean: it is debiased directly, without candidates.

    Args:
        counts: Counts of devices and of their bits.
        candidates: The words to look for, mapped with the parameters of the counts; None for a boolean.
        method: How levels are combined, see `RapporCounts.estimate_bit_shares`.

    Raises:
        RapporError: The candidates are missing, or there are no reports.
    """
    if not counts.n_devices:
        raise RapporError("There are no reports to decode.", hint="Pass a file with at least one report.")
    if counts.shape.is_boolean:
        return _estimate_boolean(counts, method)
    if candidates is None:
        raise RapporError(
            "The candidate words are missing. Only candidates can be found in reports.",
            hint="Pass --candidates words.txt or --map map.csv.",
        )
    fit = fit_word_shares(counts.estimate_bit_shares(method), candidates)
    words, p_value = _WordEstimates(candidates.words, fit), np.asarray(scipy.special.ndtr(-fit.score))
    return DecodedWords(words, fit.share, p_value, counts.n_devices, fit.unlisted)


@dataclass(frozen=True, eq=False, repr=False)
class _WordEstimates(Result):
    """Estimates of the regression, with normal intervals."""

    labels: Sequence[str]
    fit: WordFit

    @property
    def value(self) -> Floats:
        return self.fit.value

    def compute_std_error(self, about: About = "sample") -> Floats:
        check_about(about)
        return np.sqrt(self.fit.variance if about == "sample" else self.fit.population_variance)

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        reach = -float(scipy.special.ndtri(tail_probability)) * self.compute_std_error(about)
        return self.value - reach, self.value + reach


def _estimate_boolean(counts: RapporCounts, method: Method) -> DecodedWords:
    """Estimate the share of devices whose only bit, a boolean, is set, with its p-value."""
    parts, precisions = [], []
    for support, (totals, ones) in counts.levels.items():
        if totals.sum():
            part = Frequency(["true"], np.atleast_1d(ones.sum()), int(totals.sum()), support, joint="independent")
            parts.append(part)
            precisions.append(part.n * compute_inverse_bit_variance(support))
    part = parts[0]
    if len(parts) == 1:
        p_value = scipy.special.bdtrc(np.maximum(part.counts, 1) - 1.0, part.n, float(part.support.noise))
        p_value = np.where(part.counts == 0, 1.0, p_value)
        return DecodedWords(part, np.clip(part.value, 0, 1), np.asarray(p_value), counts.n_devices)
    weights = [float(each.n) for each in parts] if method == "average" else precisions
    shares = [weight / sum(weights) for weight in weights]
    combined = WeightedSum(parts, shares)
    spread = sum(share**2 / each for share, each in zip(shares, precisions, strict=True))
    p_value = scipy.special.ndtr(-combined.value / np.sqrt(spread))
    return DecodedWords(combined, np.clip(combined.value, 0, 1), np.asarray(p_value), counts.n_devices)
