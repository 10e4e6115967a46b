"""Golden: estimates with confidence intervals: shares, means, distributions, counts made elsewhere, comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.golden import data, driver, recorded, stream

PEOPLE = data.sort_by(data.make_people(), "patient")
WHERE: dict[str, Any] = {"key": data.KEY, "name": "patients"}
# The likeliest distribution of a number is found step by step, so that its last digits depend on the steps.
ITERATED = 1e-5


def draw(mechanism: driver.Mechanism, column: str, epsilon: str, name: str = "patients") -> list[Any]:
    """Return the reports of all patients."""
    return driver.draw_reports(
        mechanism, PEOPLE[column], PEOPLE["patient"], epsilon, column=column, **WHERE | {"name": name}
    )


def estimate(mechanism: driver.Mechanism, column: str, epsilon: str, name: str = "patients") -> driver.Estimate:
    """Estimate from the reports of all patients."""
    return driver.estimate_reports(mechanism, draw(mechanism, column, epsilon, name), epsilon)


def keep_of(epsilon: str, values: int) -> float:
    """Return the retention of randomized response with so many values."""
    return stream.compute_threshold(epsilon, values) / stream.ONE


def test_shares_of_every_mechanism() -> None:
    """Shares by k-ary response, OUE, SUE and OLH, with intervals of every kind."""
    mechanisms = {
        "k-ary": (driver.k_ary(data.DIAGNOSES), "diagnosis"),
        "binary": (driver.k_ary(data.SMOKER), "smoker"),
        "OUE": (driver.unary(data.CITIES), "city"),
        "SUE": (driver.unary(data.CITIES, optimised=False), "city"),
        "OLH": (driver.local_hash(data.CITIES, 8), "city"),
    }
    found: dict[str, Any] = {}
    for name, (mechanism, column) in mechanisms.items():
        result = estimate(mechanism, column, "2")
        found[name] = {
            "sample": result.table(),
            "population": result.table(about="population"),
            "simultaneous": result.table(simultaneous=True),
            "99 %": result.table(0.99),
            "consistent": result.consistent(),
        }
        assert sum(found[name]["consistent"]) == pytest.approx(1)
        assert min(found[name]["consistent"]) >= 0
        wide = result.table(0.999, simultaneous=True)
        truth = data.shares(PEOPLE[column], mechanism.values)
        assert all(low <= share <= high for low, share, high in zip(wide["low"], truth, wide["high"], strict=True))
    recorded.check("shares", found)


@pytest.mark.parametrize(("column", "values"), [("diagnosis", data.DIAGNOSES), ("smoker", data.SMOKER)])
def test_shares_and_errors_in_closed_form(column: str, values: list[str]) -> None:
    """K-ary shares are debiased by the retention, and their standard errors have the paper's variance."""
    reports = draw(driver.k_ary(values), column, "1.5")
    keep, individuals = keep_of("1.5", len(values)), len(reports)
    noise = (1 - keep) / len(values)
    shares = [(share - noise) / keep for share in data.shares(reports, values)]
    result = driver.estimate_reports(driver.k_ary(values), reports, "1.5")
    assert result.table()["estimate"] == pytest.approx(shares)
    hit = noise + keep
    for about in ("sample", "population"):
        errors = []
        for share in np.clip(shares, 0, 1):
            chance = noise + keep * share
            own = share * hit * (1 - hit) + (1 - share) * noise * (1 - noise)
            errors.append(((own if about == "sample" else chance * (1 - chance)) / individuals) ** 0.5 / keep)
        assert result.table(about=about)["std_error"] == pytest.approx(errors)


def test_unary_shares_in_closed_form() -> None:
    """OUE and SUE are debiased bit by bit: a one-bit of OUE was first multiplied by a fair coin."""
    for optimised in (True, False):
        mechanism = driver.unary(data.CITIES, optimised=optimised)
        reports = draw(mechanism, "city", "2")
        bits = np.unpackbits(
            np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), -1), axis=1, bitorder="little"
        )
        share = bits[:, : len(data.CITIES)].mean(axis=0)
        # Two answers differ in two bits: SUE divides epsilon between them, OUE takes it for one, after the coin.
        keep = keep_of("2" if optimised else "1", 2)
        by_hand = (share - (1 - keep) / 2) / keep * (2 if optimised else 1)
        found = driver.estimate_reports(mechanism, reports, "2").table()["estimate"]
        assert found == pytest.approx(by_hand.tolist())


def test_the_largest_of_many_shares() -> None:
    """Rows that are chosen because they are large have intervals that hold for all rows at once."""
    result = estimate(driver.unary(data.CITIES), "city", "2")
    top = result.largest(3).table()
    every = result.table(simultaneous=True)
    places = [every["labels"].index(label) for label in top["labels"]]
    assert top["low"] == [every["low"][place] for place in places]
    assert top["high"] == [every["high"][place] for place in places]
    assert top["estimate"] == sorted(every["estimate"], reverse=True)[:3]


def test_means_of_numbers() -> None:
    """The mean of a number by rounding to the ends and by the square wave, about the sample and the population."""
    rounded, wave = driver.numeric(*data.AGES), driver.square_wave(*data.AGES, bins=32, window=16)
    truth = sum(PEOPLE["age"]) / len(PEOPLE["age"])
    found: dict[str, Any] = {}
    for name, mechanism in (("numeric", rounded), ("square wave", wave)):
        for epsilon in ("1", "3"):
            result = estimate(mechanism, "age", epsilon)
            found[f"{name} at {epsilon}"] = {about: result.table(about=about) for about in ("sample", "population")}
            table = result.table(0.999)
            assert table["low"][0] <= truth <= table["high"][0]
    reports, keep = draw(rounded, "age", "3"), keep_of("3", 2)
    by_hand = 120 * (reports.count(120) / len(reports) - (1 - keep) / 2) / keep
    assert found["numeric at 3"]["sample"]["estimate"] == pytest.approx([by_hand])
    recorded.check("means", found)


def test_a_variance_from_two_columns() -> None:
    """The mean of x and the mean of x squared are two columns, whose costs add up; they give the variance."""
    mean = estimate(driver.numeric(*data.AGES), "age", "3")
    square = estimate(driver.numeric(*data.SQUARES), "age_squared", "3")
    result = mean.variance_with(square)
    table = result.table()
    ages = np.array(PEOPLE["age"])
    assert table["low"][0] <= ages.var() <= table["high"][0]
    first, second = mean.table(), square.table()
    by_hand = second["estimate"][0] - first["estimate"][0] ** 2 + first["std_error"][0] ** 2
    assert table["estimate"] == pytest.approx([by_hand])
    recorded.check("variance", {"variance": table, "mean": first, "mean of square": second})


def test_the_distribution_of_a_number() -> None:
    """The square wave answers mean, quantiles, shares of ranges and the variance from the same reports."""
    result = estimate(driver.square_wave(*data.AGES, bins=32, window=16), "age", "3")
    found = {
        "mean": result.table(),
        "quantiles": result.quantiles(0.1, 0.25, 0.5, 0.75, 0.9).table(),
        "under 40": result.share_between(0, 40).table(),
        "40 to 65": result.share_between(40, 65).table(),
        "variance": result.variance().table(),
    }
    recorded.check("distribution", found, ITERATED)
    ages = np.array(PEOPLE["age"])
    truths = {
        "mean": [ages.mean()],
        "quantiles": np.quantile(ages, [0.1, 0.25, 0.5, 0.75, 0.9]),
        "under 40": [(ages < 40).mean()],
        "40 to 65": [((ages >= 40) & (ages <= 65)).mean()],
        "variance": [ages.var()],
    }
    for name, truth in truths.items():
        ends = zip(found[name]["low"], truth, found[name]["high"], strict=True)
        assert all(low <= number <= high for low, number, high in ends)


def test_counts_made_elsewhere() -> None:
    """Counts are enough for an estimate: of one level, of several, and of bits."""
    diagnosis, city = driver.k_ary(data.DIAGNOSES), driver.unary(data.CITIES)
    reports = draw(diagnosis, "diagnosis", "1")
    counts = [reports.count(value) for value in data.DIAGNOSES]
    one = driver.estimate_counts(diagnosis, [("1", counts, 600)])
    assert one.table() == driver.estimate_reports(diagnosis, reports, "1").table()
    halves = [[reports[start::2].count(value) for value in data.DIAGNOSES] for start in (0, 1)]
    assert driver.estimate_counts(diagnosis, [("1", half, 300) for half in halves]).table() == one.table()
    several = [("0.5", [210, 190, 200], 600), ("1", [1300, 700, 1000], 3000), ("2", [500, 80, 120], 700)]
    bits = [("1", [170, 150, 160, 140, 130, 120, 150, 110, 125, 135, 145, 155], 400)]
    found = {
        "average": driver.estimate_counts(diagnosis, several).table(),
        "precision": driver.estimate_counts(diagnosis, several, weights="precision").table(),
        "bits": driver.estimate_counts(city, bits).table(),
    }
    recorded.check("counts-made-elsewhere", found)


def test_comparing_two_results() -> None:
    """The change between two independent results has the sum of both variances."""
    found: dict[str, Any] = {}
    for name, mechanism, column in (
        ("shares", driver.k_ary(data.DIAGNOSES), "diagnosis"),
        ("mean", driver.numeric(*data.AGES), "age"),
        ("square wave", driver.square_wave(*data.AGES, bins=32, window=16), "age"),
    ):
        old, new = (estimate(mechanism, column, "2", f"patients-{year}") for year in (2026, 2027))
        change = old.compare(new)
        found[name] = {about: change.table(about=about) for about in ("sample", "population")}
        before, after = old.table(), new.table()
        rows = list(zip(before["estimate"], after["estimate"], strict=True))
        assert found[name]["sample"]["estimate"] == pytest.approx([late - early for early, late in rows])
        errors = zip(before["std_error"], after["std_error"], strict=True)
        assert found[name]["sample"]["std_error"] == pytest.approx([float(np.hypot(*pair)) for pair in errors])
    recorded.check("comparison", found)
