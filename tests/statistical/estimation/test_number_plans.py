"""What is planned of numbers is what comes out: the variance of a mean, by which the encoding is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxdp as rx
from relaxdp.estimation.mechanism_choice import compute_square_wave_variance, rank_number_mechanisms
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.report_arrays import read_report_column

OBJECTS = 100_000
KEY = rx.Key.from_bytes(bytes(range(32)))


def measured(mechanism: Mechanism, number: float, epsilon: str) -> float:
    """The variance of what one report adds to the mean of numbers in -1 .. 1, all of which are this one."""
    where: Any = {"key": KEY, "epsilon": epsilon, "name": "r", "column": f"{number}"}
    reports = mechanism.release(np.full(OBJECTS, number), np.arange(OBJECTS), **where)
    encoding = mechanism
    assert encoding.mean_weights is not None
    weights = np.array(encoding.mean_weights.weights)[read_report_column(encoding, reports)[0][:, 0]]
    gain = (
        float(encoding.level(epsilon).retention)
        if isinstance(mechanism, rx.SquareWave)
        else np.tanh(float(epsilon) / 2)
    )
    return float(weights.var() / gain**2)


@pytest.mark.parametrize("epsilon", ["0.5", "2", "4"])
def test_the_variance_of_a_place(epsilon: str) -> None:
    """The standard error of a variance of 100,000 reports is below half a percent, and 6 % of epsilon are seen."""
    waves = rx.SquareWave(-1, 1, epsilon=4)
    mean_weights, keep = waves.mean_weights, float(waves.level(epsilon).retention)
    for number in (0.0, 0.5, -1.0):
        found = measured(waves, number, epsilon)
        assert (
            abs(found / compute_square_wave_variance(mean_weights, keep, distance_from_middle=abs(number)) - 1) < 0.03
        )
        other = float(waves.level(str(float(epsilon) * 1.06)).retention)
        assert (
            abs(found / compute_square_wave_variance(mean_weights, other, distance_from_middle=abs(number)) - 1) > 0.03
        )


@pytest.mark.parametrize("epsilon", ["1.2", "1.4"])
def test_the_choice_is_the_one_with_the_smaller_worst_error(epsilon: str) -> None:
    worst = {
        name: max(measured(create_mechanism(name, range=(-1, 1), epsilon=epsilon), at, epsilon) for at in (0, 1))
        for name in ("numeric", "wave")
    }
    for choice in rank_number_mechanisms(epsilon).mechanisms:
        assert abs(worst[choice.name] / choice.std_error**2 - 1) < 0.03
    assert min(worst, key=lambda name: worst[name]) == rank_number_mechanisms(epsilon).best


@pytest.mark.parametrize(("epsilon", "objects"), [("1", 20_000), ("4", 5_000)])
def test_the_planned_half_widths_are_those_of_intervals(epsilon: str, objects: int) -> None:
    """Of numbers spread evenly; the mean of 25 intervals is known to within 2 % or so."""
    plan = rx.plan(range=(0, 100), n=objects, epsilon=epsilon, mechanism="wave")
    numbers, ages = np.linspace(0, 100, objects), rx.SquareWave(0, 100, epsilon=epsilon)
    assert plan.margin is not None
    means: list[float] = []
    for run in range(25):
        where: Any = {"key": rx.Key.from_bytes(bytes([run] * 32)), "name": "r", "column": "a"}
        reports = ages.release(numbers, np.arange(objects), epsilon=epsilon, **where)
        found = ages.estimate(reports, epsilon=epsilon)
        means.append(np.ptp(found.interval()) / 2)
    assert 0.6 * plan.margin < np.mean(means) < max(means) < 1.03 * plan.margin


def test_numbers_at_an_end_are_what_is_planned() -> None:
    plan = rx.plan(range=(0, 100), n=20_000, epsilon=4)
    ages, where = rx.SquareWave(0, 100, epsilon=4), {"key": KEY, "epsilon": 4, "name": "r", "column": "a"}
    reports = ages.release(np.full(20_000, 100.0), np.arange(20_000), **where)  # type: ignore[arg-type]
    low, high = ages.estimate(reports, epsilon=4).compute_unclipped_interval(0.025, "sample")
    assert plan.margin is not None
    assert abs((high - low) / 2 / plan.margin - 1) < 0.05
