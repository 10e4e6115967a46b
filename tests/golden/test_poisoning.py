"""Golden: the test for fabricated reports, and what shuffling adds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.golden import data, driver, recorded, stream

INDIVIDUALS = 4000
VALUES = ["a", "b", "c", "d", "e"]
ANSWERS = [VALUES[[0, 0, 0, 0, 1, 1, 1, 2, 3, 4][number * number % 10]] for number in range(INDIVIDUALS)]
WHERE: dict[str, Any] = {"key": data.KEY, "name": "study", "column": "answer"}


def draw(mechanism: driver.Mechanism, epsilon: str) -> list[Any]:
    """Return honest reports."""
    return driver.draw_reports(mechanism, ANSWERS, list(range(INDIVIDUALS)), epsilon, **WHERE)


def test_honest_reports() -> None:
    """Honest reports raise no alarm, whatever the mechanism; pairs are equal as often as the blur says."""
    found: dict[str, Any] = {}
    for name, mechanism in (
        ("k-ary", driver.k_ary(VALUES)),
        ("OUE", driver.unary(VALUES)),
        ("OLH", driver.local_hash(VALUES, 4)),
    ):
        found[name] = driver.find_fabrication(mechanism, {each: draw(mechanism, each) for each in ("0.5", "2")})
        assert not found[name]["alarm"]
    recorded.check("honest-reports", found)
    older, newer = draw(driver.k_ary(VALUES), "0.5"), draw(driver.k_ary(VALUES), "2")
    kept = stream.compute_threshold("0.5", 5) / stream.compute_threshold("2", 5)
    chance = kept + (1 - kept) / 5
    error = (chance * (1 - chance) / INDIVIDUALS) ** 0.5
    assert abs(sum(map(str.__eq__, older, newer)) / INDIVIDUALS - chance) < 4 * error


@pytest.mark.parametrize("name", ["k-ary", "OUE"])
def test_fabricated_reports(name: str) -> None:
    """Reports that repeat a wanted value are noticed, the value is named, and its share comes back."""
    mechanism = driver.k_ary(VALUES) if name == "k-ary" else driver.unary(VALUES)
    honest = [draw(mechanism, epsilon) for epsilon in ("0.5", "2")]
    wanted: Any = "d" if name == "k-ary" else (1 << 3).to_bytes(1, "little")
    fakes = 240
    older, newer = ([wanted] * fakes + column[fakes:] for column in honest)
    found = driver.find_fabrication(mechanism, {"0.5": older, "2": newer})
    assert found["alarm"]
    assert found["values"][0][0] == "d"
    truth = ANSWERS[fakes:].count("d") / (INDIVIDUALS - fakes)
    place = VALUES.index("d")
    assert found["shares"][place] > truth + 0.05
    assert abs(found["shares_without"][place] - truth) < 0.03
    recorded.check_part("fabricated-reports", name, found)


def test_looking_again_and_again() -> None:
    """With all planned levels named, the p-value of all looks holds however often the test is made."""
    mechanism = driver.k_ary(VALUES)
    levels = ["0.5", "1", "2"]
    columns = {epsilon: draw(mechanism, epsilon) for epsilon in levels}
    fakes = 160
    looks = []
    for individuals in (500, 1000, 2000, 4000):
        sent = {level: (["d"] * fakes + column[fakes:])[:individuals] for level, column in columns.items()}
        looks.append(driver.find_fabrication(mechanism, sent, levels=levels))
    assert looks[0]["alarm"]
    recorded.check("fabricated-reports-looks", {"looks": looks})


def test_careful_liars_pass_and_move_little() -> None:
    """A liar about the answer who blurs honestly cannot be noticed, and moves a share by one over the retention."""
    mechanism = driver.k_ary(VALUES)
    liars = 200
    answers = ["d"] * liars + ANSWERS[liars:]
    reports = {
        epsilon: driver.draw_reports(mechanism, answers, list(range(INDIVIDUALS)), epsilon, **WHERE)
        for epsilon in ("0.5", "2")
    }
    found = driver.find_fabrication(mechanism, reports)
    assert not found["alarm"]
    keep = stream.compute_threshold("2", 5) / stream.ONE
    assert found["influence_of_one"] == pytest.approx((1 - (1 - keep) / 5) / keep)


def test_amplification_by_shuffling() -> None:
    """One publication of a closed group costs each individual less; the bound is never above that of the reports."""
    found: dict[str, Any] = {}
    mechanisms = {
        "any": None, "binary": driver.k_ary(data.SMOKER), "k-ary": driver.k_ary(data.DIAGNOSES),
        "OUE": driver.unary(data.CITIES), "OLH": driver.local_hash(data.CITIES, 8),
        "numeric": driver.numeric(*data.AGES),
    }  # fmt: skip
    for name, mechanism in mechanisms.items():
        for epsilon, n in (("0.5", 1000), ("1", 10_000), ("4", 100_000), ("4", 100)):
            bound = driver.amplify_by_shuffling(epsilon, n, delta=1e-6, mechanism=mechanism)
            assert bound <= Decimal(epsilon)
            found.setdefault(name, {})[f"{epsilon}, {n}"] = bound
    recorded.check("shuffling", found)
    # Published figures at epsilon 4, n = 100,000 and delta 1e-6: 0.173 for any mechanism, 0.085 for two values.
    assert 0.0845 < float(found["binary"]["4, 100000"]) < 0.0855
    assert float(found["any"]["4, 100000"]) < 0.18
