"""Real columns: what `make numbers` measures beside peers, in short. docs/numbers-measured.md has the rest."""

from __future__ import annotations

import numpy as np
from benchmarks.real_columns import RealColumn
from benchmarks.waves import bits, mean_error, waves

import relaxdp as rx

KEYS = [rx.Key.from_bytes(bytes([number] * 32)) for number in range(6)]


def ages() -> RealColumn:
    from statsmodels.datasets import fair  # noqa: PLC0415 (slow to import)

    return RealColumn("age", "statsmodels, fair: years", fair.load_pandas().data["age"].to_numpy(float), 0, 60)


def test_the_mean_has_half_of_the_error_of_rounding_at_2_and_a_tenth_at_4() -> None:
    """300,000 reports each: a variance is known to within 1 %. Below 1 rounding is the better one."""
    column, found = ages(), {}
    for level in ("0.5", "2", "4"):
        rounded = mean_error(column, rx.Numeric(0, 60), level, KEYS[0])
        found[level] = mean_error(column, rx.SquareWave(0, 60, epsilon=level), level, KEYS[0]) / rounded
    assert found["2"] < 0.5
    assert found["4"] < 0.1
    assert found["0.5"] > 1


def test_a_relaxed_level_is_as_good_as_a_fresh_report() -> None:
    """With the same window. The variance of one is known to within 1 %, so that of a ratio to within 1.4 %."""
    column, late = ages(), rx.SquareWave(0, 60, epsilon=4)
    for place, level in enumerate(("0.5", "2", "4"), 1):
        relaxed, fresh = (mean_error(column, late, level, KEYS[each]) for each in (0, place))
        assert abs(relaxed / fresh - 1) < 0.06


def test_the_distribution_is_nearer_than_that_of_bits() -> None:
    """Of a column that is spread; ages are six numbers here, and those are better told apart as values."""
    from statsmodels.datasets import randhie  # noqa: PLC0415

    illness = randhie.load_pandas().data["disea"].to_numpy(float)
    column, rows = RealColumn("illness", "statsmodels, randhie: an index", illness, 0, 60), np.arange(len(illness))
    for level in ("0.5", "2"):
        wave = np.mean([waves(column, rows, level, "4", key)["smooth"] for key in KEYS[:4]])
        assert wave < 0.8 * np.mean([bits(column, rows, level, key) for key in KEYS[:4]])
