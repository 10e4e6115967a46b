"""Decoding: oracles for the regression, booleans without bias, levels together, corrections."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests
from tests.refusals import refused
from tests.statistical.rappor.rappor_runs import Setting, answer, draw_devices, relaxed

from relaxdp.errors import EstimationError, RapporError
from relaxdp.mechanisms.bloom import BloomShape, compute_bit_support, compute_bit_threshold, compute_epsilon
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.decoding import DecodedWords, decode_words, fit_word_shares
from relaxdp.rappor.reports import RapporCounts
from relaxdp.theory.randomized_response import SupportProbabilities

SHAPE = BloomShape(bits=32, hashes=2, cohorts=8)
SMALL = Setting(SHAPE, candidates=20, present=8, scale=4, devices=5000, noise="0.5")
LEVEL = compute_epsilon(SHAPE, "0.5")


def exact_counts(
    shape: BloomShape, words: list[str], shares: np.ndarray, *, levels: list[SupportProbabilities]
) -> RapporCounts:
    """Counts that are exactly what is expected, with so many devices that rounding does not matter."""
    devices = 10**12
    counts = RapporCounts(shape)
    design = CandidateMap(words, shape)
    for support in levels:
        truth = np.array([design.make_design_matrix(np.array([cohort])) @ shares for cohort in range(shape.cohorts)])
        chance = float(support.noise) + float(support.gain) * truth
        counts.add_counts(np.full(shape.cohorts, devices), np.rint(devices * chance).astype(np.int64), support)
    return counts


def test_exact_counts_give_exact_shares() -> None:
    """With no noise in the counts, every word comes out as it is: unbiased; also with words that are not listed."""
    words = [f"w{number}" for number in range(10)]
    shares = np.array([0.4, 0.3, 0.1, 0.05, 0.05, 0.1, 0, 0, 0, 0])
    supports = [compute_bit_support(compute_bit_threshold(SHAPE, level)) for level in ("1", "3")]
    for method in ("average", "precision"):
        counts = exact_counts(SHAPE, words, shares, levels=supports)
        decoded = decode_words(counts, CandidateMap(words, SHAPE), method=method)
        assert np.abs(decoded.value - shares).max() < 1e-6
        assert np.abs(decoded.consistent() - shares).max() < 1e-5
        assert decoded.unlisted is not None
        assert abs(decoded.unlisted[0]) < 1e-6


def test_expected_words_that_are_not_listed_bias_nothing() -> None:
    """If strangers set every bit exactly as often as chance says, listed words come out exact."""
    words, shares = ["a", "b", "c"], np.array([0.3, 0.1, 0.0])
    counts, devices = RapporCounts(SHAPE), 10**12
    support = compute_bit_support(compute_bit_threshold(SHAPE, 3))
    design = CandidateMap(words, SHAPE)
    rows = [
        design.make_design_matrix(np.array([cohort])) @ shares + 0.6 * SHAPE.compute_bit_probabilities()
        for cohort in range(8)
    ]
    ones = np.rint(devices * (float(support.noise) + float(support.gain) * np.array(rows))).astype(np.int64)
    counts.add_counts(np.full(8, devices), ones, support)
    decoded = decode_words(counts, design)
    assert np.abs(decoded.value - shares).max() < 1e-6
    assert decoded.unlisted is not None
    assert abs(decoded.unlisted[0] - 0.6) < 1e-5


def test_least_squares_and_its_constrained_sister_have_oracles() -> None:
    """A dense solution of the same problem, and scipy's SLSQP with the constraints written out."""
    generator = np.random.default_rng(4)
    words = SMALL.words(0)
    design = CandidateMap(words, SHAPE)
    _, devices, ones = draw_devices(SMALL, design, generator)
    support = compute_bit_support(compute_bit_threshold(SHAPE, LEVEL))
    counts = RapporCounts(SHAPE)
    counts.add_counts(devices, answer(ones, devices, float(support.hit), float(support.noise), generator), support)
    estimates = counts.estimate_bit_shares()
    fit = fit_word_shares(estimates, design)
    background = np.tile(SHAPE.compute_bit_probabilities(), 8)
    roots = 1 / np.sqrt(estimates.variance.ravel())
    matrix = (design.make_design_matrix(np.arange(8)).toarray() - background[:, None]) * roots[:, None]
    target = (estimates.share.ravel() - background) * roots
    dense, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    assert np.abs(dense - fit.value).max() < 1e-9
    assert np.all(fit.variance >= np.diag(np.linalg.inv(matrix.T @ matrix)) * 0.999999)
    scale = float((target**2).sum())
    solved = minimize(
        lambda share: float(((matrix @ share - target) ** 2).sum()) / scale,
        np.full(20, 0.04),
        jac=lambda share: 2 * matrix.T @ (matrix @ share - target) / scale,
        bounds=[(0, 1)] * 20,
        constraints={"type": "ineq", "fun": lambda share: 1 - share.sum(), "jac": lambda share: -np.ones(20)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    assert solved.success
    assert np.abs(solved.x - fit.share).max() < 1e-4
    assert fit.share.min() >= 0
    assert fit.share.sum() <= 1 + 1e-12


def test_empty_cohorts_are_left_out() -> None:
    counts = exact_counts(
        SHAPE, ["a", "b"], np.array([0.7, 0.3]), levels=[compute_bit_support(compute_bit_threshold(SHAPE, 3))]
    )
    (support, (devices, ones)), *_ = counts.levels.items()
    devices, ones = devices.copy(), ones.copy()
    devices[[1, 5]], ones[[1, 5]] = 0, 0
    fewer = RapporCounts(SHAPE)
    fewer.add_counts(devices, ones, support)
    assert fewer.estimate_bit_shares().cohorts.tolist() == [0, 2, 3, 4, 6, 7]
    decoded = decode_words(fewer, CandidateMap(["a", "b"], SHAPE))
    assert np.abs(decoded.value - [0.7, 0.3]).max() < 1e-6


def test_a_boolean_is_unbiased_near_zero_and_needs_no_cohorts() -> None:
    """Exactly: the mean of the estimate over all counts is the truth, at 0 too."""
    shape = BloomShape(1, 1, 1)
    support = compute_bit_support(compute_bit_threshold(shape, 1))
    devices, hit, noise = 60, float(support.hit), float(support.noise)
    for truths in (0, 1, 30, 60):
        chances = np.convolve(
            binom.pmf(np.arange(truths + 1), truths, hit), binom.pmf(np.arange(61 - truths), 60 - truths, noise)
        )
        values = []
        for count in range(61):
            counts = RapporCounts(shape)
            counts.add_counts([devices], [[count]], support)
            values.append(decode_words(counts).value[0])
        assert abs(float(chances @ values) - truths / 60) < 1e-12
    counts = RapporCounts(shape)
    counts.add_counts([100_000], [[round(100_000 * noise)]], support)
    decoded = decode_words(counts)
    low, high = decoded.interval()
    assert list(decoded.labels) == ["true"]
    assert low[0] == 0 < high[0] < 0.01
    assert not decoded.find_detected_words()[0]


def test_booleans_at_two_levels_are_combined() -> None:
    """With exact counts both levels say 0.3; a share of 0 is not found, and an estimate above 1 is cut."""
    shape, devices = BloomShape(1, 1, 2), 10**6
    supports = [compute_bit_support(compute_bit_threshold(shape, level)) for level in (1, 3)]
    for share in (0.0, 0.3, 1.02):
        counts = RapporCounts(shape)
        for support in supports:
            ones = round(devices * float(support.noise + support.gain * Fraction(str(share))))
            counts.add_counts([devices, devices], [[ones], [ones]], support)
        for method in ("average", "precision"):
            decoded = decode_words(counts, method=method)
            assert abs(decoded.value[0] - share) < 1e-5
            assert abs(decoded.consistent()[0] - min(share, 1)) < 1e-5
            assert bool(decoded.find_detected_words()[0]) == (share > 0)


def test_words_that_cannot_be_told_apart_are_not_found() -> None:
    """Two words with the same bits everywhere: their sum is known, neither of them is."""
    shape = BloomShape(bits=8, hashes=1, cohorts=1)
    others = [f"word {number}" for number in range(100)]
    twin = next(word for word in others if shape.compute_bits(word, 0) == shape.compute_bits("a", 0))
    third = next(word for word in others if shape.compute_bits(word, 0) != shape.compute_bits("a", 0))
    counts = exact_counts(
        shape, ["a", third], np.array([0.6, 0.4]), levels=[compute_bit_support(compute_bit_threshold(shape, 3))]
    )
    decoded = decode_words(counts, CandidateMap(["a", twin, third], shape))
    assert np.isinf(decoded.std_error[:2]).all()
    assert decoded.find_detected_words().tolist() == [False, False, True]
    low, high = decoded.interval()
    assert (low[0], high[0]) == (0, 1)
    assert abs(decoded.consistent()[:2].sum() - 0.6) < 1e-4


def test_lasso_finds_what_is_there_among_too_many_candidates() -> None:
    setting = Setting(BloomShape(64, 2, 8), candidates=1500, present=10, scale=5, devices=50_000, noise="0.25")
    truth, decoded = relaxed(setting, compute_epsilon(setting.shape, "0.25"), run=1)
    found = decoded.find_detected_words()
    assert found[truth > 0.05].all()
    assert not found[truth == 0].any()
    assert np.abs(decoded.value[:10] - truth[:10]).max() < 0.03
    assert decoded.unlisted is None
    low, high = decoded.interval(0.999, simultaneous=True)
    assert ((low <= truth) & (truth <= high)).all()


def test_devices_at_different_levels_are_combined() -> None:
    """Half of the devices stay at 2, half go to 8: "precision" weights the clear ones more, and is more precise."""
    generator = np.random.default_rng(3)
    design = CandidateMap(SMALL.words(0), SHAPE)
    counts, alone = RapporCounts(SHAPE), RapporCounts(SHAPE)
    for level in ("2", "8"):
        _, devices, ones = draw_devices(SMALL, design, generator)
        support = compute_bit_support(compute_bit_threshold(SHAPE, level))
        reported = answer(ones, devices, float(support.hit), float(support.noise), generator)
        counts.add_counts(devices, reported, support)
        if level == "8":
            alone.add_counts(devices, reported, support)
    average, precise, clear = (decode_words(each, design, method=method) for each, method in (  # type: ignore[arg-type]
        (counts, "average"), (counts, "precision"), (alone, "average")))  # fmt: skip
    assert counts.n_devices == 10_000
    assert np.median(precise.std_error) < np.median(clear.std_error) < np.median(average.std_error)
    for decoded in (average, precise):
        assert np.abs((decoded.value - SMALL.shares()) / decoded.compute_std_error("population")).max() < 5


def test_corrections_are_those_of_statsmodels() -> None:
    setting = Setting(SHAPE, candidates=60, present=20, scale=5, devices=20_000, noise="0.5")
    _, decoded = relaxed(setting, LEVEL, run=3)
    assert isinstance(decoded, DecodedWords)
    for rate in (0.01, 0.05, 0.3):
        for ours, theirs in (("holm", "holm"), ("benjamini-hochberg", "fdr_bh")):
            expected = multipletests(decoded.p_value, rate, method=theirs)[0]
            assert decoded.find_detected_words(rate, ours).tolist() == expected.tolist()  # type: ignore[arg-type]
    with pytest.raises(EstimationError):
        decoded.find_detected_words(0)


def test_rows_and_frames() -> None:
    _, decoded = relaxed(SMALL, LEVEL, run=1)
    places = np.array([3, 0])
    rows = decoded.select_rows_by_estimate(places)
    assert rows.labels == [decoded.labels[3], decoded.labels[0]]
    assert np.array_equal(rows.value, decoded.value[places])
    for simultaneous in (False, True):
        every = decoded.interval(simultaneous=True)
        assert np.array_equal(rows.interval(simultaneous=simultaneous)[0], every[0][places])
    assert decoded.to_frame().shape == (20, 5)
    low, high = decoded.interval()
    assert ((low <= decoded.consistent()) & (decoded.consistent() <= high)).all()
    # A word that nobody has has a bound, however far below 0 its estimate fell.
    assert (decoded.mark_impossible_rows(0.5) == -1).any()
    assert (decoded.interval(0.5)[1] > 0.5 * decoded.std_error).all()


def test_neither_reports_nor_candidates() -> None:
    with refused(RapporError, says="There are no reports to decode"):
        decode_words(RapporCounts(SHAPE), CandidateMap(["a"], SHAPE))
    support = compute_bit_support(compute_bit_threshold(SHAPE, 3))
    counts = exact_counts(SHAPE, ["a", "b"], np.array([0.6, 0.4]), levels=[support])
    with refused(RapporError, says="The candidate words are missing"):
        decode_words(counts)


def test_maps_that_cannot_be() -> None:
    with refused(RapporError, word="a", says="is listed twice"):
        CandidateMap(["a", "a"], SHAPE)
    with refused(RapporError, words=0):
        CandidateMap([], SHAPE)
    with refused(RapporError, says="booleans, which need no candidate map"):
        CandidateMap(["a"], BloomShape(1, 1, 1))
