"""Totals: the size times a share or a mean, with intervals about these individuals and about the population."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EstimationError
from relaxdp.estimation.weights import WeightedCounts

ANSWERS = rx.Categorical(["no", "yes"])


def estimate_weighted(mechanism: Any, codes: Any, weights: Any, epsilon: float = 2) -> Any:
    counts = WeightedCounts(mechanism)
    counts.add_weighted(mechanism.level(epsilon), len(codes), codes, [weights, weights**2])
    return counts.estimate()


def test_totals_are_n_times_the_shares() -> None:
    shares = ANSWERS.estimate(["no"] * 700 + ["yes"] * 300, epsilon=2)
    totals = shares.totals()
    assert totals.value == pytest.approx(1_000 * shares.value)
    for about in ("sample", "population"):
        assert np.array(totals.interval(about=about)) == pytest.approx(1_000 * np.array(shares.interval(about=about)))
    assert float(totals["yes"]) == pytest.approx(1_000 * float(shares["yes"]))
    assert totals.largest(1).labels == ["no"]
    assert "762.6" in repr(totals)
    assert "762.6" in totals._repr_html_()
    assert totals.to_arrow()["estimate"].to_pylist() == pytest.approx(totals.value)


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-10, 10), (-10, -5)])
@pytest.mark.parametrize("about", ["sample", "population"])
def test_totals_of_means_are_sums(low: float, high: float, about: Any) -> None:
    codes = np.random.default_rng(1).integers(0, 2, 500)
    plain = rx.Numeric(low, high).estimate([[low, high][code] for code in codes], epsilon=2)
    assert plain.totals().labels == ["total"]
    assert float(plain.totals()) == pytest.approx(500 * float(plain))
    equal = estimate_weighted(rx.Numeric(low, high), codes, np.full(500, 3.0))
    ends = np.array(equal.totals().interval(about=about)), 1_500 * np.array(plain.interval(about=about))
    assert ends[0] == pytest.approx(ends[1], abs=0.02 * 1_500 * (high - low))


def test_a_population_total_counts_that_the_sum_of_weights_is_random() -> None:
    rng = np.random.default_rng(2)
    codes, weights = rng.integers(0, 2, 2_000), rng.lognormal(0, 1, 2_000)
    shares = estimate_weighted(ANSWERS, codes, weights)
    totals = shares.totals()
    ratio = totals.compute_std_error("population") / (shares.size * shares.compute_std_error("population"))
    assert totals.std_error == pytest.approx(shares.size * shares.std_error)
    assert np.all((ratio > 1.05) & (ratio < 2))
    noise, gain = float(shares.support.noise), float(shares.support.gain)
    terms = weights * ((codes == 1) - noise) / gain
    direct = np.sqrt(2_000 / 1_999 * np.sum((terms - terms.mean()) ** 2))
    assert totals.compute_std_error("population")[1] == pytest.approx(direct, rel=2e-3)


def test_the_population_error_of_a_share_is_that_of_its_residuals() -> None:
    rng = np.random.default_rng(3)
    codes, weights = rng.integers(0, 2, 2_000), rng.lognormal(0, 1, 2_000)
    shares = estimate_weighted(ANSWERS, codes, weights)
    reports = ((codes == 1) - float(shares.support.noise)) / float(shares.support.gain)
    direct = np.sqrt(np.sum(weights**2 * (reports - shares.value[1]) ** 2)) / weights.sum()
    assert shares.compute_std_error("population")[1] == pytest.approx(direct, rel=2e-3)


def test_what_has_no_total_is_rejected() -> None:
    shares = ANSWERS.estimate(["no"] * 700 + ["yes"] * 300, epsilon=2)
    gaps = rx.Numeric(0, 10, missing=True).estimate(["0", "10", "missing"] * 100, epsilon=2)
    places = rx.SquareWave(0, 10, epsilon=2).estimate(np.arange(40), epsilon=2)
    for result in (gaps, rx.compare(shares, shares), shares.totals(), places.quantile(0.5)):
        with refused(EstimationError, says="has no totals"):
            result.totals()
    assert float(gaps.missing.totals()) == pytest.approx(300 * float(gaps.missing))


def test_totals_of_different_numbers_of_individuals_are_compared() -> None:
    old, new = (ANSWERS.estimate(["no"] * n + ["yes"] * 300, epsilon=2) for n in (700, 800))
    assert rx.compare(old.totals(), new.totals()).value == pytest.approx(new.totals().value - old.totals().value)
    with refused(EstimationError, says="different values or ranges"):
        rx.compare(old, new.totals())
