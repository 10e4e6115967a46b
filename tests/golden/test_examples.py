"""Golden: the main numbers that the examples print."""

from __future__ import annotations

import re

import pytest
from tests.golden import driver, recorded

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def read_numbers(lines: list[str], *, containing: str, at_least: int = 1) -> list[list[float]]:
    """Return the numbers of lines that contain some text and have enough of them."""
    found = [[float(each.replace(",", "")) for each in NUMBER.findall(line)] for line in lines if containing in line]
    return [numbers for numbers in found if len(numbers) >= at_least]


def test_disease_by_date() -> None:
    """Diagnoses may be read more sharply as they grow older; the costs are those of the last reading."""
    lines = driver.run_example("disease_by_date")
    costs = read_numbers(lines, containing="cost each person")
    readings = read_numbers([line for line in lines if "cost" not in line], containing="2026-0", at_least=7)
    assert (len(readings), len(costs)) == (8, 3)
    recorded.check("example-disease-by-date", {"readings": readings, "costs": costs})


@pytest.mark.long
def test_rappor_attack() -> None:
    """Averaging noisy samples gives the permanent response away; relaxed reports give away what the last one does."""
    lines = driver.run_example("rappor_attack")
    rows = read_numbers([line for line in lines if line.startswith("  ")], containing="%")
    last = read_numbers(lines, containing="by relaxation")
    assert len(rows) == 24
    recorded.check("example-rappor-attack", {"rows": rows, "variances": last})
    # The paper: variances 2.755 and 0.953 after ten samples with epsilon 1 and 0.5.
    assert last[0][-2:] == [2.755, 0.953]


@pytest.mark.long
def test_made_up_reports() -> None:
    """Clumsy attackers are noticed and their effect is removed; careful ones gain no more than the bound."""
    lines = driver.run_example("made_up_reports")
    rows = [line for line in lines if line.startswith("│") and "%" in line]
    assert len(rows) == 12
    noticed = ["yes" in row for row in rows]
    assert noticed == [False, True, True, True] * 3
    recorded.check("example-made-up-reports", {"rows": read_numbers(rows, containing="│")})


def test_hadamard() -> None:
    """A mechanism from outside of the package has keyed reports, estimates and intervals like all others."""
    lines = driver.run_example("hadamard")
    rows = read_numbers(lines, containing="  town", at_least=4)
    assert len(rows) == 6
    recorded.check("example-hadamard", {"rows": rows})


@pytest.mark.long
def test_market() -> None:
    """Buyers who pool what they bought guess as well as the one with the highest level, and no better."""
    lines = driver.run_example("market")
    guesses = {}
    for line in lines:
        if "%" in line and ("alone" in line or "pooled" in line):
            name, level, right, independent = (cell.strip(" │") for cell in line.strip("│").split("│")[:4])
            guesses[name] = (level, right, float(independent.rstrip("%")))
    assert guesses["all five, pooled"][:2] == guesses["dan, alone"][:2] == guesses["ada, alone"][:2]
    assert guesses["91 buyers of all levels, pooled"][:2] == guesses["the buyer of 1.00, alone"][:2]
    assert guesses["91 buyers of all levels, pooled"][2] > 95
    # These two levels are delivered by the clinic, on the keyed path.
    kept = {name: guesses[name][:2] for name in ("cem, alone", "the buyer of 1.00, alone")}
    costs = read_numbers(lines, containing="All 91 levels")
    assert costs == [pytest.approx([91, 1.0, 50.05])]
    recorded.check("example-market", {"guesses": kept})
