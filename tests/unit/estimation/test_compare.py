"""`rx.compare`: the change from one result to another as text, frame, notebook table and picture."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EstimationError
from relaxdp.estimation.compare import Change

mpl.use("Agg")
CITIES = [f"city {number}" for number in range(80)]


def changed_cities() -> Change:
    counts = [rx.Counts(rx.Categorical(CITIES)) for _ in range(2)]
    for each, seed in zip(counts, (1, 2), strict=True):
        each.add_counts(np.random.default_rng(seed).multinomial(20_000, np.full(80, 1 / 80)), epsilon=3)
    return rx.compare(*(each.estimate() for each in counts))


def changed_ages() -> Change:
    ages = rx.SquareWave(0, 100, epsilon=4)
    reports = [
        ages.release(
            20.0 + np.arange(3_000) % 50 + year,
            np.arange(3_000),
            key=rx.Key.from_bytes(bytes(range(32))),
            epsilon=4,
            name=f"survey-{year}",
            column="age",
        )
        for year in (0, 10)
    ]
    return rx.compare(*(ages.estimate(each, epsilon=4) for each in reports))


def test_errors_and_distances_add_as_squares() -> None:
    found = changed_cities()
    assert np.array_equal(found.value, found.new.value - found.old.value)
    for about in ("sample", "population"):
        errors = [each.compute_std_error(about) for each in (found.old, found.new)]
        assert np.allclose(found.compute_std_error(about), np.hypot(*errors), rtol=1e-12)
        (low, high), *ends = (each.compute_unclipped_interval(0.025, about) for each in (found, found.old, found.new))
        (old_low, old_high), (new_low, new_high) = ends
        assert np.allclose(found.value - low, np.hypot(found.new.value - new_low, old_high - found.old.value))
        assert np.allclose(high - found.value, np.hypot(new_high - found.new.value, found.old.value - old_low))
    with refused(EstimationError, about="nothing"):
        found.compute_std_error("nothing")  # type: ignore[arg-type]


def test_means_are_no_percentages() -> None:
    old, new = (rx.Numeric(0, 100).estimate([0.0] * n + [100.0] * (100 - n), epsilon=2) for n in (50, 40))
    found = rx.compare(old, new)
    assert repr(found).startswith("mean: 50.0 -> 63.1, +13.1 (")
    assert found.plot().get_xlabel().startswith("change\n")
    with refused(EstimationError, says="neither quantiles nor shares"):
        found.quantile(0.5)


def test_quartiles_of_a_wave_follow_the_mean() -> None:
    found = changed_ages()
    lines = repr(found).splitlines()
    assert [line.partition(":")[0] for line in lines[:-2]] == ["mean", "quantile 0.25", "median", "quantile 0.75"]
    assert "at least 95 %" in lines[-1]
    assert found.quartiles is not None
    for change in (found, found.quartiles):
        low, high = map(np.atleast_1d, change.interval())
        assert ((low <= 10) & (high >= 10)).all()
    low, high = found.share(0, 30).interval()
    assert low[0] < -0.2 < high[0]


def test_the_largest_changes_hold_although_they_were_chosen() -> None:
    found = changed_cities()
    chosen = found.largest(5)
    assert chosen.is_chosen
    assert list(np.abs(chosen.value)) == sorted(np.abs(found.value), reverse=True)[:5]
    whole = np.array(found.interval(simultaneous=True))
    places = [CITIES.index(label) for label in chosen.labels]
    assert np.array_equal(chosen.interval(), whole[:, places])
    text = repr(found)
    assert "... and 60 more, none of which changed more" in text
    assert "95 % confidence intervals about these individuals, all values at once; n = 20,000, epsilon = 3 -> " in text
    some = found.select_rows(places)
    assert np.array_equal(some.interval(), np.array(found.interval())[:, places])


def test_a_frame_a_notebook_and_a_picture_show_both_results() -> None:
    found = changed_cities()
    assert found.to_frame().column_names == ["value", "old", "new", "change", "std_error", "low", "high"]
    page = found._repr_html_()
    assert "<th>old</th><th>new</th><th>change</th>" in page
    assert "the 20 of 80 that changed most" in page
    axes = found.plot(top=7)
    assert len(axes.get_yticks()) == 7
    assert axes.get_xlabel().startswith("change in percentage points\n")


def test_an_implausible_side_is_mentioned() -> None:
    answers = rx.Categorical(["yes", "no"])
    mistaken = answers.estimate(["yes"] * 5_000, epsilon="0.1")
    found = rx.compare(answers.estimate(["yes", "no"] * 2_500, epsilon="0.1"), mistaken)
    for text in (repr(found), found._repr_html_()):
        assert "do not look like reports at this level" in text


@pytest.mark.parametrize("given", ["2026.parquet", None])
def test_only_estimates_are_compared(given: object) -> None:
    known = rx.Categorical(["yes", "no"]).estimate(["yes"], epsilon=1)
    with refused(EstimationError, type=type(given).__name__):
        rx.compare(known, given)  # type: ignore[arg-type]
