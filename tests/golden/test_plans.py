"""Golden: plans before a release, the best mechanism, and schedules of levels."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest
from tests.golden import data, driver, recorded, stream

MECHANISMS = {
    "binary": driver.k_ary(data.SMOKER),
    "k-ary": driver.k_ary(data.DIAGNOSES),
    "OUE": driver.unary(data.CITIES),
    "SUE": driver.unary(data.CITIES, optimised=False),
    "OLH": driver.local_hash(data.CITIES, 8),
    "numeric": driver.numeric(*data.AGES),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_two_of_three_give_the_third(name: str) -> None:
    """Epsilon, number of individuals and margin of error: any two give the third, and they agree."""
    mechanism = MECHANISMS[name]
    margin = driver.plan(mechanism, epsilon="1.5", n=20_000)
    wanted = 1.8 if name == "numeric" else 0.015
    epsilon = driver.plan(mechanism, n=20_000, margin=wanted)
    individuals = driver.plan(mechanism, epsilon="1.5", margin=wanted)
    found = {"margin": margin, "epsilon": epsilon, "n": individuals}
    # The plan that was found keeps its promise, and nothing much smaller does.
    assert epsilon["margin"] <= wanted
    assert driver.plan(mechanism, epsilon=str(epsilon["epsilon"]), n=20_000)["margin"] == epsilon["margin"]
    assert individuals["margin"] <= wanted
    fewer = driver.plan(mechanism, epsilon="1.5", n=individuals["n"] - 1)
    assert fewer["margin"] > wanted
    if name != "numeric":
        found["share of 10 %"] = driver.plan(mechanism, epsilon="1.5", n=20_000, share=0.1)
        found["simultaneous"] = driver.plan(mechanism, epsilon="1.5", n=20_000, simultaneous=True)
        found["population"] = driver.plan(mechanism, epsilon="1.5", n=20_000, about="population")
        found["99 %"] = driver.plan(mechanism, epsilon="1.5", n=20_000, confidence=0.99)
    with driver.rejected("unreachable plan"):
        driver.plan(mechanism, n=1, margin=wanted / 10)
    recorded.check_part("plans", name, found)


@pytest.mark.parametrize("values", [2, 3])
def test_the_margin_in_closed_form(values: int) -> None:
    """A margin of error is 1.96 standard errors of the paper's variance, and half a report because counts are whole."""
    keep = stream.compute_threshold("1.5", values) / stream.ONE
    noise = (1 - keep) / values
    hit, share = noise + keep, 0.1
    variance = share * hit * (1 - hit) + (1 - share) * noise * (1 - noise)
    margin = (1.959963984540054 * math.sqrt(variance / 20_000) + 0.5 / 20_000) / keep
    mechanism = driver.k_ary(range(values))
    assert driver.plan(mechanism, epsilon="1.5", n=20_000, share=share)["margin"] == pytest.approx(margin)


def test_the_best_mechanism() -> None:
    """Few values are best sent as they are, more as bits, and very many as a hash."""
    found: dict[str, Any] = {}
    for values in (2, 3, 10, 12, 30, 200, 1000, 20_000):
        for epsilon in ("0.5", "1", "2", "4"):
            found[f"{values} values at {epsilon}"] = driver.rank_mechanisms(values, epsilon)
    recorded.check("best-mechanism", found)
    for place, ranked in found.items():
        number, _, _, epsilon = place.split()
        # K-ary response has the least variance below this number of values; close to it the size of reports decides.
        bound = 3 * math.exp(float(epsilon)) + 2
        if not 0.9 * bound < int(number) < 1.1 * bound:
            assert (ranked[0][0] == "k-ary") == (int(number) < bound)
        keep = stream.compute_threshold(epsilon, int(number)) / stream.ONE
        noise = (1 - keep) / int(number)
        assert dict(ranked)["k-ary"] == pytest.approx(math.sqrt(noise * (1 - noise)) / keep)


def test_mechanisms_for_a_planned_epsilon() -> None:
    """What is fixed for the life of a path is chosen for the last planned epsilon: mechanism, buckets, window."""
    found = {}
    for epsilon in ("0.5", "1", "2", "3", "4"):
        chosen = [driver.choose_mechanism(values, epsilon) for values in (3, 30, 1000)]
        found[epsilon] = [*chosen, driver.choose_for_numbers(0, 120, epsilon)]
    recorded.check("planned-mechanisms", found)


def test_schedules() -> None:
    """Levels by equal differences, equal ratios, a list, the rate of noisy sampling, and precision."""
    until = driver.schedule_until_precise(["0.1", "0.5", "1", "2"], margin=0.012, n=100_000, values=5)
    found: dict[str, Any] = {
        "linear": driver.schedule_linear("0.1", "1", 10),
        "linear, rounded down": driver.schedule_linear("0.1", "1", 8),
        "geometric": driver.schedule_geometric("0.1", "0.8", 4),
        "geometric, rounded down": driver.schedule_geometric("0.1", "2", 6),
        "explicit": driver.schedule_explicit(["0.1", "0.5", "0.5", "2"]),
        "noisy sampling": driver.schedule_noisy_sampling("1", "0.5", 10),
        "until precise": until,
        "never precise": driver.schedule_until_precise(["0.1", "0.5"], margin=0.012, n=1000, values=5),
        "until all are precise": driver.schedule_until_precise(
            ["0.1", "0.5", "1", "2"], margin=0.012, n=100_000, values=5, simultaneous=True, about="population"
        ),
    }
    recorded.check("schedules", found)
    assert found["linear"] == [f"0.{tenth}" for tenth in range(1, 10)] + ["1"]
    assert found["geometric"] == ["0.1", "0.2", "0.4", "0.8"]
    # The paper: with epsilon 1 and 0.5 ten noisy samples have the guarantee 0.98433.
    assert found["noisy sampling"][-1] == "0.984325"
    assert until == (["0.1", "0.5", "1"], True)
    for levels in (["0.5", "0.1"], []):
        with driver.rejected("schedule falls"):
            driver.schedule_explicit(levels)


def test_a_schedule_by_date() -> None:
    """A diagnosis grows less sensitive with age: on each day the level of the last date that has come is allowed."""
    levels = {date(2026, 1, 1): "0.25", date(2026, 3, 2): "0.5", date(2026, 6, 30): "1", date(2027, 1, 1): "2"}
    days = [
        date(2025, 12, 31),
        date(2026, 1, 1),
        date(2026, 3, 1),
        date(2026, 3, 2),
        date(2026, 12, 31),
        date(2030, 1, 1),
    ]
    assert driver.schedule_by_date(levels, days) == [None, "0.25", "0.25", "0.5", "1", "2"]


def test_noisy_sampling_in_closed_form() -> None:
    """Every level is the paper's guarantee of so many samples, rounded down to six digits."""
    flip, sample = (math.exp(epsilon) / (1 + math.exp(epsilon)) for epsilon in (1, 0.5))
    for samples, level in enumerate(driver.schedule_noisy_sampling("1", "0.5", 10), 1):
        # All samples are ones: likely if the permanent bit is 1, which is likely if the answer is 1.
        ones, zeros = sample**samples, (1 - sample) ** samples
        guarantee = math.log((flip * ones + (1 - flip) * zeros) / ((1 - flip) * ones + flip * zeros))
        assert 0 <= guarantee - float(level) < 1e-6
