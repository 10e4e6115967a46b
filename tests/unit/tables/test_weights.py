"""Survey weights in files and data frames: sums of weights are those of the rows, and bad weights are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused
from tests.released import open_vault

import relaxdp as rx
from relaxdp.errors import ColumnError, EstimationError
from relaxdp.tables.estimate import count

ROWS = 600
RNG = np.random.default_rng(4)
TRUTHS = RNG.choice(["a", "b", "c"], ROWS, p=[0.5, 0.3, 0.2])
NUMBERS = RNG.uniform(0, 10, ROWS)
DATA: dict[str, Any] = {
    "id": np.arange(ROWS),
    "one": TRUTHS,
    "bits": TRUTHS,
    "hash": TRUTHS,
    "number": NUMBERS,
    "place": NUMBERS,
    "gap": pa.array([None if row % 7 == 0 else number for row, number in enumerate(NUMBERS)]),
    "w": RNG.lognormal(0, 1, ROWS).round(6),
    "two": np.full(ROWS, 2.0),
    "zero": np.zeros(ROWS),
    "half": np.arange(ROWS) % 2,
    "text": ["x"] * ROWS,
    "region": RNG.choice(["north", "south"], ROWS),
}
COLUMNS: dict[str, Any] = {
    "one": rx.Categorical(["a", "b", "c"]),
    "bits": rx.Unary(["a", "b", "c"]),
    "hash": rx.LocalHash(["a", "b", "c"], buckets=3),
    "number": rx.Numeric(0, 10),
    "place": rx.SquareWave(0, 10, epsilon=2),
    "gap": rx.Numeric(0, 10, missing=True),
}
WEIGHTS = ["w", "two", "zero", "half", "text", "region"]
NAMES = ["one", "bits", "hash", "number_report", "place_report", "gap_report"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same reports in two formats and at two levels."""
    place = tmp_path_factory.mktemp("weights")
    vault = open_vault(place)
    for epsilon, name in ((2, "out.parquet"), (2, "out.csv"), (1, "low.csv")):
        vault.release(
            pa.table(DATA), COLUMNS, id="id", epsilon=epsilon, name="s", passthrough=WEIGHTS, output=place / name
        )
    return place


def sum_supports(name: str, frame: pd.DataFrame, weights: Any) -> Any:
    """Sum weights row by row, the plain way."""
    mechanism = COLUMNS[name.removesuffix("_report")]
    counted = [
        [count_one(mechanism, report) * weight for weight in (own, own**2)]
        for report, own in zip(frame[name], weights, strict=True)
    ]
    return np.sum(counted, axis=0)


def count_one(mechanism: Any, report: Any) -> Any:
    counts = rx.Counts(mechanism)
    counts.add([report], epsilon=2)
    return next(iter(counts._tallies.values()))[1:]


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_those_of_the_rows_in_every_format(folder: Path, name: str) -> None:
    frame = pd.read_parquet(folder / "out.parquet")
    part = frame.head(60)
    known = rx.description(folder / "out.parquet")
    small: Any = rx.estimate(part, name, weights="w", description=known)
    counted = count(folder / "out.parquet", name, weights="w").groups[0][1]
    n, *sums = next(iter(counted._tallies.values()))
    mechanism = COLUMNS[name.removesuffix("_report")]
    rates = sum_supports(name, part, part["w"])
    (size, *_), (squares, *_) = np.reshape(sums, (2, -1))
    assert (n, size, squares) == (ROWS, pytest.approx(DATA["w"].sum()), pytest.approx((DATA["w"] ** 2).sum()))
    if mechanism.mean_weights is None:
        support = mechanism.compute_noise_and_gain(mechanism.level(2).retention)
        assert small.value == pytest.approx(support.debias(rates[0] / part["w"].sum()))
        assert small.squared_weight_rates == pytest.approx(rates[1] / (part["w"] ** 2).sum())
    whole = rx.estimate(folder / "out.parquet", name, weights="w")
    kinds = [pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False), frame]
    relation: Any = duckdb.sql("FROM frame")
    for each in [*kinds, relation]:
        assert rx.estimate(each, name, weights="w", description=known).value == pytest.approx(whole.value)
    assert rx.estimate(folder / "out.csv", name, weights="w").value == pytest.approx(whole.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("about", ["sample", "population"])
def test_equal_weights_change_nothing(folder: Path, name: str, about: Any) -> None:
    plain: Any = rx.estimate(folder / "out.parquet", name)
    equal: Any = rx.estimate(folder / "out.parquet", name, weights="two")
    assert equal.value == pytest.approx(plain.value)
    assert (equal.n, equal.size, plain.size) == (ROWS, 2 * ROWS, ROWS)
    assert equal.compute_std_error(about) == pytest.approx(plain.compute_std_error(about), rel=2e-3)
    width = np.max(np.subtract(*plain.interval()[::-1]))
    for one, other in zip(equal.interval(about=about), plain.interval(about=about), strict=True):
        assert np.max(np.abs(np.subtract(one, other))) < 0.01 * width


def test_a_weight_of_zero_leaves_an_individual_out(folder: Path) -> None:
    frame = pd.read_parquet(folder / "out.parquet")
    known = rx.description(folder / "out.parquet")
    kept: Any = rx.estimate(frame[frame["half"] == 1], "one", description=known)
    weighted: Any = rx.estimate(frame, "one", weights="half", description=known)
    assert weighted.value == pytest.approx(kept.value)
    assert weighted.interval()[0] == pytest.approx(kept.interval()[0], abs=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_each_individual_counts_once_at_the_highest_level(folder: Path, name: str) -> None:
    both: Any = rx.estimate([folder / "out.parquet", folder / "low.csv"], name, weights="w")
    assert both.levels == {"2": ROWS}
    assert both.value == pytest.approx(rx.estimate(folder / "out.parquet", name, weights="w").value)


@pytest.mark.parametrize("method", ["average", "precision"])
def test_levels_are_combined_with_their_weights(folder: Path, method: Any) -> None:
    known = rx.description(folder / "out.parquet"), rx.description(folder / "low.csv")
    frames = pd.read_parquet(folder / "out.parquet").head(200), pd.read_csv(folder / "low.csv").tail(400)
    found: Any = rx.estimate(list(frames), "one", weights="w", method=method, description=list(known))
    parts: list[Any] = [
        rx.estimate(frame, "one", weights="w", description=each) for frame, each in zip(frames, known, strict=True)
    ]
    weights = [part.size for part in parts]
    if method == "precision":
        noises = [float(part.support.noise * (1 - part.support.noise) / part.support.gain**2) for part in parts]
        weights = [part.effective_n / noise for part, noise in zip(parts, noises, strict=True)]
    assert found.value == pytest.approx(np.average([part.value for part in parts], axis=0, weights=weights))
    assert found.size == pytest.approx(sum(part.size for part in parts))


def test_groups_have_their_own_weights(folder: Path) -> None:
    groups = rx.estimate(folder / "out.parquet", "one", by="region", weights="w")
    assert sum(group.size for group in groups.values()) == pytest.approx(DATA["w"].sum())
    totals = groups.totals()
    whole = rx.estimate(folder / "out.parquet", "one", weights="w").totals()
    assert sum(group.value for group in totals.values()) == pytest.approx(whole.value)
    assert totals.to_frame().column_names[:2] == ["region", "value"]


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ("missing", "has no pass-through"),
        ("one", "not survey weights"),
        ("id", "not survey weights"),
        ("text", "weights must be numbers"),
    ],
)
def test_columns_without_true_weights_are_rejected(folder: Path, weights: str, says: str) -> None:
    with refused(ColumnError, says=says):
        rx.estimate(folder / "out.parquet", "one", weights=weights)


def test_a_csv_file_of_text_has_no_weights(folder: Path) -> None:
    with refused(EstimationError, rows=ROWS):
        rx.estimate(folder / "out.csv", "one", weights="text")


@pytest.mark.parametrize("bad", [-1.5, float("nan"), float("inf"), None, 1e200])
@pytest.mark.parametrize("name", ["one", "bits"])
def test_bad_weights_are_rejected_without_showing_them(folder: Path, bad: Any, name: str) -> None:
    table = pa.Table.from_pandas(pd.read_parquet(folder / "out.parquet"), preserve_index=False)
    cells = [*DATA["w"][:-1].tolist(), bad]
    table = table.set_column(table.column_names.index("w"), "w", pa.array(cells, pa.float64()))
    known = rx.description(folder / "out.parquet")
    with refused(EstimationError, rows=1) as caught:
        rx.estimate(table, name, weights="w", description=known)
    assert not {"1.5", "nan", "inf", "200"} & set(str(caught.value).lower().replace(",", " ").split())


def test_what_cannot_be_weighted_is_rejected(folder: Path) -> None:
    file = folder / "out.parquet"
    with refused(EstimationError, says="All weights are zero"):
        rx.estimate(file, "one", weights="zero")
    with refused(EstimationError, option="weights"):
        rx.estimate(file, "one", crosstab="bits", weights="w")
    places: Any = rx.estimate(file, "place_report", weights="w")
    for ask in (lambda: places.quantile(0.5).value, lambda: places.share(2, 3).value, places.histogram):
        with refused(EstimationError, says="With weights, only the mean"):
            ask()
    one: Any = rx.estimate(file, "one", weights="w")
    with refused(EstimationError, says="covariance"):
        one.covariance()
    assert one.consistent().sum() == pytest.approx(1)
    assert rx.compare(one, one).value == pytest.approx(0)


def test_a_weighted_mean_of_places_is_printed_drawn_and_compared(folder: Path) -> None:
    places, plain = (rx.estimate(folder / "out.parquet", "place_report", weights=each) for each in ("w", None))
    for change in (rx.compare(places, places), rx.compare(plain, places), rx.compare(places, plain)):
        assert "quantile" not in repr(change)
    assert "quantile" in repr(rx.compare(plain, plain))
    assert len(places.plot().containers) <= 1
