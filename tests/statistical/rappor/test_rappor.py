"""RAPPOR by simulation: variances of both ways, a planted distribution, intervals and false words."""

from __future__ import annotations

from math import expm1

import numpy as np
import pytest
from scipy.stats import binom, chi2
from tests.bloom_fleet import Fleet
from tests.statistical.rappor.rappor_runs import (
    CLASSIC,
    PLANTED,
    SETTINGS,
    WORDS_FOUND,
    planted,
    relaxed,
    sampled,
    tally,
)

from relaxdp.estimation.schedules import NoisySampling
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.bloom import BloomShape, compute_bit_support, compute_bit_threshold, compute_epsilon
from relaxdp.paper.baselines import noisy_sampling_estimate, noisy_sampling_variance
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.decoding import decode_words
from relaxdp.rappor.reports import RapporCounts

pytestmark = pytest.mark.long

FALSE_ALARM = 1e-6
BIT = BloomShape(bits=1, hashes=1, cohorts=1)
DEVICES, REPEATS, SAMPLES = 100, 20_000, 10


def spread_is(estimates: np.ndarray, variance: float) -> bool:
    """Whether estimates, each of so many devices that it is all but normal, have this variance."""
    ratio = (len(estimates) - 1) * estimates.var(ddof=1) / variance
    low, high = chi2.ppf(FALSE_ALARM / 2, len(estimates) - 1), chi2.isf(FALSE_ALARM / 2, len(estimates) - 1)
    return bool(low < ratio < high)


@pytest.fixture(scope="module")
def truths() -> np.ndarray:
    """60 of every 100 devices have the bit, as in the paper's experiment."""
    return np.tile(np.arange(DEVICES) % 5 < 3, (REPEATS, 1)).astype(np.uint8)


def relaxed_variance(epsilon: float) -> float:
    return (expm1(epsilon) + 1) / (DEVICES * expm1(epsilon) ** 2)


def test_variance_of_relaxation_after_each_report(truths: np.ndarray) -> None:
    """K = 1 .. 10 at the guarantees of noisy sampling (1 and 0.5): e^eps / (N (1 - e^eps)^2), by Algorithm 1."""
    words = np.where(truths.ravel() == 1, "true", "false")
    fleet = Fleet(BIT, words, np.zeros(truths.size, int), entropy=SeededEntropy(11))
    for level in NoisySampling(epsilon_alpha=1, epsilon_beta="0.5", samples=SAMPLES):
        fleet.relax(epsilon=level)
        support = compute_bit_support(compute_bit_threshold(BIT, level))
        estimates = support.debias(fleet.reports.reshape(REPEATS, DEVICES).mean(axis=1))
        assert abs(estimates.mean() - 0.6) < 5 * np.sqrt(relaxed_variance(float(level)) / REPEATS)
        assert spread_is(estimates, relaxed_variance(float(level)))
        assert not spread_is(estimates, relaxed_variance(float(level) * 0.95))  # a 5 % error of epsilon is seen


def test_variance_of_noisy_sampling_after_each_sample(truths: np.ndarray) -> None:
    generator = np.random.default_rng(12)
    kept, clear = (1 / (1 + np.exp(-epsilon)) for epsilon in (1, 0.5))
    permanent = truths ^ (generator.random(truths.shape, dtype=np.float32) >= kept)
    ones = np.zeros(truths.shape, dtype=np.int16)
    last = np.empty(0)
    for samples in range(1, SAMPLES + 1):
        ones += permanent ^ (generator.random(truths.shape, dtype=np.float32) >= clear)
        last = noisy_sampling_estimate(ones.T, samples=samples, epsilon_alpha=1, epsilon_beta="0.5")
        wanted = noisy_sampling_variance(epsilon_alpha=1, epsilon_beta="0.5", samples=samples, objects=DEVICES)
        assert spread_is(last, wanted)
        assert not spread_is(last, wanted * 1.1)
    # At K = 10 both spend 0.98433; the ratio of the variances is 2.755 / 0.953.
    ratio = DEVICES * last.var(ddof=1) / 0.953
    assert abs(ratio / (2.755 / 0.953) - 1) < 5 * np.sqrt(2 / REPEATS)


def test_a_planted_distribution_is_found_device_by_device() -> None:
    """100,000 devices by Algorithm 1, with two levels on the way; the last report is decoded."""
    setting = planted()
    generator = np.random.default_rng(21)
    names = setting.words(0)
    chosen = generator.choice(len(names), size=setting.devices, p=setting.shares())
    fleet = Fleet(
        PLANTED, np.array(names)[chosen], generator.integers(0, 64, setting.devices), entropy=SeededEntropy(21)
    )
    last = compute_epsilon(PLANTED, "0.5")
    for level in ("1", "2.5", last):
        fleet.relax(epsilon=level)
    counts = RapporCounts(PLANTED)
    counts.add_counts(fleet.devices, fleet.counts(), compute_bit_support(compute_bit_threshold(PLANTED, last)))
    decoded = decode_words(counts, CandidateMap(names, PLANTED))
    truth = np.bincount(chosen, minlength=300) / setting.devices
    found, strong = decoded.find_detected_words(0.05), truth >= WORDS_FOUND
    assert strong.sum() > 20
    assert found[strong].mean() >= 0.9
    assert not (found & (truth == 0)).any()
    _, classic = sampled(setting, samples=1, run=0)
    assert np.abs(decoded.consistent() - truth).sum() < np.abs(classic - relaxed_truth(0)).sum() / 2


def relaxed_truth(run: int) -> np.ndarray:
    return relaxed(planted(), compute_epsilon(PLANTED, "0.5"), run)[0]


def test_relaxation_beats_samples_at_the_same_guarantee() -> None:
    """L1 errors of ten samples, and of relaxation at what ten samples cost, on the same devices."""
    guarantee = CLASSIC.guarantee(PLANTED, 10)
    for run in range(3):
        truth, decoded = relaxed(planted(), guarantee, run, seed=5)
        same, classic = sampled(planted(), 10, run, seed=5)
        assert np.array_equal(truth, same)
        assert np.abs(decoded.consistent() - truth).sum() < 0.85 * np.abs(classic - truth).sum()


@pytest.mark.parametrize("name", list(SETTINGS)[2:6:3])
def test_intervals_cover_and_words_are_not_made_up(name: str) -> None:
    """40 runs; more of them are in docs/rappor-measured.md. Candidates of one run are all but independent."""
    found = tally(SETTINGS[name], 40)
    total = 40 * SETTINGS[name].candidates
    assert found.covered > binom.ppf(FALSE_ALARM, total, 0.945) / total
    assert found.covered_population > binom.ppf(FALSE_ALARM, total, 0.945) / total
    assert found.runs_with_false <= binom.isf(FALSE_ALARM, 40, 0.05) / 40
    assert found.false_share < 0.05 + 0.05
