"""Common mistakes in a notebook: each ends in an error that names the mistake and says what to do, or just works."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import relaxdp as rx
from relaxdp.errors import RelaxdpError
from relaxdp.estimation.mechanism_choice import rank_mechanisms

VALUES = ["flu", "covid", "none"]
ROWS = 4000
KEY = rx.Key.from_bytes(bytes(range(32)))
PATIENTS = pd.DataFrame(
    {"patient": np.arange(ROWS), "diagnosis": [VALUES[place % 3] for place in range(ROWS)], "age": np.arange(ROWS) % 90}
)
ANSWERS = rx.Categorical(VALUES)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    vault = rx.Vault.create(tmp_path / "study.vault", budget=20)
    release = vault.release(PATIENTS, {"diagnosis": VALUES}, id="patient", epsilon=1, name="patients")
    ages = vault.release(PATIENTS, {"age": rx.Numeric(0, 120)}, id="patient", epsilon=1, name="ages")
    shares, mean = rx.estimate(release), rx.estimate(ages)
    return SimpleNamespace(vault=vault, release=release, ages=ages, shares=shares, mean=mean)


def release(study: Any, **wrong: Any) -> Any:
    asked: dict[str, Any] = {"data": PATIENTS, "columns": {"diagnosis": VALUES}, "id": "patient", "epsilon": 1}
    return study.vault.release(**asked | {"name": "mistake"} | wrong)


MISTAKES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    # What is called, a part of the sentence, a part of the hint.
    "epsilon with a comma": (lambda s: release(s, epsilon="1,0"), "'1,0'", "0.5"),
    "epsilon below 0": (lambda s: release(s, epsilon=-1), "-1", "0.5"),
    "epsilon not a number": (lambda s: release(s, epsilon=float("nan")), "nan", "0.5"),
    "epsilons in a list": (lambda s: release(s, epsilon=[1, 2]), "list", "0.5"),
    "id misspelled": (lambda s: release(s, id="patients"), "no column 'patients'", "'patient'"),
    "id as a series": (lambda s: release(s, id=PATIENTS.patient), "got Series", '"patient"'),
    "column misspelled": (lambda s: release(s, columns={"diagnoses": VALUES}), "'diagnoses'", "'diagnosis'"),
    "columns as a list": (lambda s: release(s, columns=["diagnosis"]), "values of each column", '{"diagnosis": ['),
    "columns as a frame": (lambda s: release(s, columns=PATIENTS), "values of each column", '{"diagnosis": ['),
    "columns empty": (lambda s: release(s, columns={}), "`columns` is empty", '{"diagnosis": ['),
    "a series as data": (lambda s: release(s, data=PATIENTS.diagnosis), "got Series", "pandas"),
    "a dictionary as data": (lambda s: release(s, data={"patient": [1]}), "got dict", "pandas"),
    "a number as name": (lambda s: release(s, name=2026), "must be text", "'patients-2026'"),
    "a number as output": (lambda s: release(s, output=3), "`output`, got int", "'out.parquet'"),
    "a value left out": (lambda s: release(s, columns={"diagnosis": VALUES[:2]}), "2 declared values", "every value"),
    "a name that was never released": (lambda s: s.vault.relax("patient", 2), "'patient'", "'patients'"),
    "a backup to nowhere": (lambda s: s.vault.backup(None), "got NoneType", "'study-backup'"),
    "estimate true values": (lambda s: rx.estimate(PATIENTS), "no description", "Release"),
    "estimate a series": (lambda s: rx.estimate(PATIENTS.diagnosis), "got Series", "pandas"),
    "estimate a result": (lambda s: rx.estimate(s.shares), "got Frequency", "pandas"),
    "estimate nothing": (lambda s: rx.estimate([]), "`source` is an empty list", "Release"),
    "estimate an unknown column": (lambda s: rx.estimate(s.release, "diagnoses"), "'diagnoses'", "'diagnosis'"),
    "estimate by an unknown column": (lambda s: rx.estimate(s.release, by="region"), "'region'", "passthrough="),
    "estimate by an unknown method": (lambda s: rx.estimate(s.release, method="median"), "'median'", "'average'"),  # type: ignore[call-overload]
    "estimate with a list as mechanism": (
        lambda s: rx.estimate(PATIENTS, "diagnosis", mechanism=VALUES, epsilon=1),  # type: ignore[call-overload]
        "Expected a mechanism, got list", "rx.Categorical",
    ),
    "estimate with half a description": (
        lambda s: rx.estimate(PATIENTS, "diagnosis", mechanism=ANSWERS), "`mechanism` and `epsilon`", "epsilon=1",
    ),
    "count a data frame": (lambda s: rx.count(s.release.to_frame()), "got DataFrame", "rx.estimate"),
    "a value that was not declared": (lambda s: s.shares["measles"], "no row 'measles'", "result['flu']"),
    "a misspelled value": (lambda s: s.shares["covit"], "no row 'covit'", "result['covid']"),
    "a place instead of a value": (lambda s: s.shares[0], "no row 0", "result['flu']"),
    "several shares as one number": (lambda s: float(s.shares), "3 rows", "float(result['flu'])"),
    "a confidence level in percent": (lambda s: s.shares.interval(95), "not 95", "0.95"),
    "a confidence level as text": (lambda s: s.shares.interval("95%"), "not '95%'", "0.95"),
    "an interval about people": (lambda s: s.shares.interval(about="people"), "'people'", "about='sample'"),
    "a number of rows as text": (lambda s: s.shares.largest("3"), "not '3'", "20"),
    "quantiles of shares": (lambda s: s.shares.quantile(0.5), "quantiles", "rx.SquareWave"),
    "missing numbers of shares": (lambda s: s.shares.missing, "missing numbers", "missing=True"),
    "compare different questions": (lambda s: rx.compare(s.shares, s.mean), "different values", "one column"),
    "compare releases": (lambda s: rx.compare(s.release, s.ages), "got Release", "rx.estimate(old)"),
    "plan with one number": (lambda s: rx.plan(values=3, epsilon=1), "got one.", "n=10_000 and epsilon=1"),
    "plan with three numbers": (lambda s: rx.plan(values=3, epsilon=1, n=100, margin=0.1), "all three", "Pass two"),
    "plan without answers": (lambda s: rx.plan(n=100, epsilon=1), "`values` or `range`", "range=(0, 120)"),
    "plan a text": (lambda s: rx.plan(values="3", n=100, epsilon=1), "got str", "values=3"),
    "plan half a range": (lambda s: rx.plan(range=(0,), n=100, epsilon=1), "two numbers", "range=(0, 120)"),
    "plan a range of one number": (lambda s: rx.plan(range=120, n=100, epsilon=1), "two numbers", "range=(0, 120)"),  # type: ignore[arg-type]
    "plan n as text": (lambda s: rx.plan(values=3, n="100", epsilon=1), "not '100'", "n=10_000"),  # type: ignore[arg-type]
    "plan half an individual": (lambda s: rx.plan(values=3, n=10.5, epsilon=1), "not 10.5", "n=10_000"),  # type: ignore[arg-type]
    "plan a margin in percent": (lambda s: rx.plan(values=3, margin=5, epsilon=1), "between 0 and 0.5", "0.01"),
    "plan a margin as text": (lambda s: rx.plan(values=3, margin="5%", epsilon=1), "not '5%'", "margin=0.01"),  # type: ignore[arg-type]
    "plan a share in percent": (lambda s: rx.plan(values=3, share=20, n=100, epsilon=1), "not 20", "0.2"),
    "counts of a list": (lambda s: rx.Counts(VALUES), "got list", "rx.Categorical"),
    "counts of a class": (lambda s: rx.Counts(rx.Categorical), "got Categorical", "rx.Numeric(0, 120)"),
    "too few counts": (lambda s: rx.Counts(ANSWERS).add_counts([1, 2], epsilon=1), "3 counts", "a mapping"),
    "counts of other values": (
        lambda s: rx.Counts(ANSWERS).add_counts({"flu": 1, "measles": 2}, epsilon=1), "not declared", "'covid'",
    ),
    "merge a list": (lambda s: rx.Counts(ANSWERS).merge([1]), "The counts to merge", "rx.Counts(mechanism)"),  # type: ignore[arg-type]
    "nothing counted": (lambda s: rx.Counts(ANSWERS).estimate(), "no reports", "add(reports, epsilon=1)"),
    "a variance of numbers": (lambda s: rx.variance(3, 9), "got int", "rx.Numeric"),  # type: ignore[arg-type]
    "a variance of shares": (lambda s: rx.variance(s.shares, s.mean), "got shares", "rx.Numeric"),
    "a crosstab of lists": (
        lambda s: rx.crosstab(VALUES, ["flu"], VALUES, ["flu"], row_epsilon=1, column_epsilon=1),
        "got list", "rx.Categorical",
    ),
    "a schedule of one number": (lambda s: rx.schedules.Explicit(1), "got int", "[0.5, 1, 2]"),  # type: ignore[arg-type]
    "a list instead of its length": (lambda s: rank_mechanisms(VALUES, 1), "not list", "len(values)"),  # type: ignore[arg-type]
}  # fmt: skip


def test_a_mistake_ends_in_an_error_with_a_hint(study: Any) -> None:
    for mistake, (call, sentence, hint) in MISTAKES.items():
        with pytest.raises(RelaxdpError) as caught:
            call(study)
        assert sentence in caught.value.sentence, (mistake, caught.value)
        assert hint in caught.value.hint, (mistake, caught.value)
    assert study.vault.spent == 2


def test_lists_of_values_may_be_series(study: Any) -> None:
    series: list[Any] = [pd.Series(VALUES), pl.Series(VALUES), np.array(VALUES), tuple(VALUES)]
    for values in (*series, PATIENTS.diagnosis.unique()):
        assert release(study, columns={"diagnosis": values}, dry_run=True).columns[0].answers == 3
        assert rx.plan(values=values, n=1000, epsilon=1).answers == 3


def test_what_people_expect_to_work_does(study: Any) -> None:
    assert study.vault.relax(study.release, 1).cost == 0
    assert release(study, passthrough=None, dry_run=True).passthrough == ()
    wards = PATIENTS.assign(ward="north", floor=1)
    kept = wards.columns[3:]  # an index of pandas has no truth value
    assert release(study, data=wards, passthrough=kept, dry_run=True).passthrough == ("ward", "floor")
    assert float(study.mean) == float(study.mean["mean"]) == study.mean.value
    assert (len(study.shares), list(study.shares), "flu" in study.shares) == (3, VALUES, True)
    assert (study.shares.n, study.shares.epsilon) == (ROWS, Decimal(1))
    flu = study.shares["flu"]
    low, high = flu.interval()
    assert (float(flu), flu.std_error) == (study.shares.value[0], study.shares.std_error[0])
    assert [low, high] == [each[0] for each in study.shares.interval()]
    assert study.shares.largest(1)[study.shares.largest(1).labels[0]].is_chosen


def test_frames_are_in_the_library_of_the_data(study: Any) -> None:
    reports = study.release.to_frame()
    kinds: list[tuple[Any, type]] = [
        (reports, pd.DataFrame), (pl.from_pandas(reports), pl.DataFrame), (pa.Table.from_pandas(reports), pa.Table),
    ]  # fmt: skip
    for frame, kind in kinds:
        found = rx.estimate(frame, description=study.release)
        change = rx.compare(found, found)
        for result in (found, found.largest(2), found["flu"], change):
            assert type(result.to_frame()) is kind
    assert type(ANSWERS.estimate(reports["diagnosis"], epsilon=1).to_frame()) is pd.DataFrame
    assert type(ANSWERS.estimate(list(reports["diagnosis"]), epsilon=1).to_frame()) is pa.Table


def test_counts_in_another_order_are_counted_by_value(study: Any) -> None:
    """Positions would give the count of the most frequent value to the first declared one."""
    reports = study.release.to_frame()["diagnosis"]
    expected = ANSWERS.estimate(reports, epsilon=1)
    for counts in (reports.value_counts(), dict(reports.value_counts()), reports.value_counts()[VALUES].to_numpy()):
        found = rx.Counts(ANSWERS)
        found.add_counts(counts, epsilon=1)
        assert np.array_equal(found.estimate().value, expected.value)
