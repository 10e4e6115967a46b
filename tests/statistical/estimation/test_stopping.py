"""Coverage after a stop: a rule that looks at the noise keeps what the interval promises, one that looks does not.

The same objects are relaxed from level to level, as a person would do it, and estimated where the rule stops. Seeds are
written down. If the coverage is 95 % or more, a measured one falls below 94.5 % with a chance of less than 1e-6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from relaxdp.estimation.frequency import Frequency
from relaxdp.estimation.mechanism_choice import compute_categorical_support
from relaxdp.estimation.schedules import Linear, UntilPrecise
from relaxdp.hazmat import SeededEntropy, relax_once
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import NOISE

PAGE = Path(__file__).parents[3] / "docs" / "planning.md"
SCHEDULE = Linear("0.2", 2, steps=10)
TARGET, LEAST_COVERAGE = 0.05, 0.945
EVEN, UNEVEN = (400, 400, 400), (780, 300, 120)
OBJECTS, VALUES, RARE = 1200, 3, 2
MANY_RUNS, FEW_RUNS = 50_000, 10_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Read:
    """The intervals of all runs at one level; rows are runs, columns are values."""

    low: Floats
    high: Floats

    def covers(self, truths: Sequence[int]) -> NDArray[np.bool_]:
        shares = np.array(truths) / OBJECTS
        return np.asarray((self.low <= shares) & (shares <= self.high))


def relaxed_counts(truths: Sequence[int], levels: Iterable[Decimal], runs: int, seed: int) -> list[NDArray[np.int64]]:
    """The counts of every run at every level; each level is relaxed from the reports of the one before."""
    truth = np.tile(np.repeat(np.arange(VALUES, dtype=np.uint8), truths), runs)
    entropy, old, last, found = SeededEntropy(seed), NOISE, None, []
    for level in levels:
        new = compute_categorical_support(level, VALUES).gain
        last = relax_once(VALUES, old, new, truths=truth, last_reports=last, entropy=entropy)
        rows, old = last.reshape(runs, OBJECTS), new
        found.append(np.stack([(rows == value).sum(axis=1) for value in range(VALUES)], axis=1))
    return found


def read(counts: NDArray[np.int64], epsilon: Decimal) -> Read:
    """The intervals, which depend on the count alone, for all runs at once."""
    estimate = Frequency(range(counts.size), counts.reshape(-1), OBJECTS, compute_categorical_support(epsilon, VALUES))
    return Read(*(end.reshape(counts.shape) for end in estimate.interval()))


def coverage_of_rule(reads: list[Read], stops: list[NDArray[np.bool_]], truths: Sequence[int], value: int) -> float:
    """How often the interval of `value` covers where each run stops for the first time, or else at the last level."""
    stopped_at = np.argmax([*stops[:-1], np.ones_like(stops[-1])], axis=0)
    covers = np.array([level.covers(truths)[:, value] for level in reads])
    return float(covers[stopped_at, np.arange(len(stopped_at))].mean())


def documented(rule: str) -> float:
    """The percentage that the page states for a rule."""
    found = re.search(rf"^\| {re.escape(rule)} \|.*\| ([0-9.]+) % \|$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert found, rule
    return float(found[1]) / 100


@pytest.mark.long
@pytest.mark.parametrize(("truths", "seed"), [(EVEN, 601), (UNEVEN, 602)])
def test_coverage_after_stopping_when_precise_enough(truths: tuple[int, ...], seed: int) -> None:
    until = UntilPrecise(SCHEDULE, margin=TARGET, n=OBJECTS, values=VALUES)
    levels = list(until)
    assert until.is_reached
    assert 1 < len(levels) < len(list(SCHEDULE))
    counts = relaxed_counts(truths, levels, MANY_RUNS, seed)[-1]
    found = read(counts, levels[-1])
    assert ((found.high - found.low) / 2).max() <= TARGET
    coverage = found.covers(truths).mean(axis=0)
    assert coverage.min() >= LEAST_COVERAGE
    assert documented("precise enough by the noise alone") == pytest.approx(coverage.min(), abs=0.005)
    if truths == UNEVEN:  # the check would notice an epsilon that is 5 % off
        wrong = read(counts, as_epsilon(float(levels[-1]) * 1.05)).covers(truths).mean(axis=0)
        assert wrong.min() < LEAST_COVERAGE - 0.01


def test_exact_coverage_after_the_stop() -> None:
    """The level of the stop is known beforehand, so for every true share the coverage can be summed over all counts."""
    *_, level = UntilPrecise(SCHEDULE, margin=TARGET, n=OBJECTS, values=VALUES)
    support = compute_categorical_support(level, VALUES)
    found = read(np.arange(OBJECTS + 1)[:, None], level)
    coverages = []
    for truths in range(OBJECTS + 1):
        law = np.convolve(
            binom.pmf(np.arange(truths + 1), truths, float(support.hit)),
            binom.pmf(np.arange(OBJECTS - truths + 1), OBJECTS - truths, float(support.noise)),
        )
        coverages.append(law @ ((found.low[:, 0] <= truths / OBJECTS) & (truths / OBJECTS <= found.high[:, 0])))
    assert min(coverages) >= 0.9499


def test_stopping_when_the_answer_is_significant_loses_coverage() -> None:
    """The shares are even. Whoever relaxes until an interval excludes one third, finds one that does."""
    levels = list(SCHEDULE)
    counts = relaxed_counts(EVEN, levels, FEW_RUNS, seed=603)
    reads = [read(count, level) for count, level in zip(counts, levels, strict=True)]
    stops = [(each.low[:, 0] > 1 / VALUES) | (each.high[:, 0] < 1 / VALUES) for each in reads]
    coverage = coverage_of_rule(reads, stops, EVEN, value=0)
    assert coverage < 0.80
    assert documented("the interval excludes 1/m") == pytest.approx(coverage, abs=0.015)


def test_stopping_when_the_interval_looks_short_loses_coverage() -> None:
    """An estimate that came out too low has the interval of one at 0: it looks precise, and misses the truth."""
    levels = list(SCHEDULE)
    counts = relaxed_counts(UNEVEN, levels, FEW_RUNS, seed=604)
    reads = [read(count, level) for count, level in zip(counts, levels, strict=True)]
    stops = [(each.high[:, RARE] - each.low[:, RARE]) / 2 <= TARGET for each in reads]
    coverage = coverage_of_rule(reads, stops, UNEVEN, value=RARE)
    assert coverage < 0.93
    assert documented("the computed interval is short enough") == pytest.approx(coverage, abs=0.015)
