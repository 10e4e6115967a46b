"""The page on fabricated reports has the measured figures, and one look at numbers is close to the best test."""

from __future__ import annotations

import numpy as np
import pytest
from tests.statistical.estimation.repeaters import (
    LEVELS,
    MECHANISMS,
    PAGE,
    SEED,
    SHARES,
    check_repeaters,
    compute_best_power,
    compute_best_rows,
    list_rows,
    measure_row,
)


def test_the_page_has_the_power_of_the_best_test_and_a_measured_row() -> None:
    page = PAGE.read_text("utf-8")
    assert all(row in page for row in [*compute_best_rows(), measure_row(*list_rows()[0])])


@pytest.mark.long
def test_the_page_has_all_measured_rows() -> None:
    page = PAGE.read_text("utf-8")
    assert all(measure_row(*row) in page for row in list_rows())


@pytest.mark.parametrize("levels", LEVELS)
def test_one_planned_look_at_numbers_notices_at_least_half_as_often_as_the_best_test(levels: tuple[str, str]) -> None:
    """The p-value does not know the number of repeaters or their value. It never exceeds the best power."""
    rng = np.random.default_rng(SEED + 1)
    tests = [check_repeaters(rng, MECHANISMS["`Numeric`"], levels, 10_000, 500) for _ in range(200)]
    found, best = np.mean([each.p_value <= 0.01 for each in tests]), compute_best_power(levels, 10_000, SHARES[1])
    assert found <= best + 5 * np.sqrt(best * (1 - best) / 200)
    assert found >= best / 2
