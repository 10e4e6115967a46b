"""Golden: pass-through columns, estimates by group, and crosstabs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.golden import data, driver, recorded, stream

PEOPLE = data.make_people()
COLUMNS = {"diagnosis": driver.k_ary(data.DIAGNOSES), "smoker": driver.k_ary(data.SMOKER)}


@pytest.fixture
def holder(tmp_path: Path) -> driver.DataHolder:
    return driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="12")


def test_pass_through_columns_and_groups(holder: driver.DataHolder) -> None:
    """A pass-through column leaves as it is, in the order of the ids, and divides the estimate into groups."""
    table = pa.table(data.choose(PEOPLE, ["patient", "diagnosis", "age", "ward", "number"]))
    columns = {"diagnosis": COLUMNS["diagnosis"], "age": driver.numeric(*data.AGES)}
    made = holder.release(
        table, columns, id="patient", epsilon="2", name="patients", passthrough=["ward", "number"]
    )  # fmt: skip
    by_id = data.sort_by(PEOPLE, "patient")
    assert made.passthrough == {"ward": by_id["ward"], "number": by_id["number"]}
    assert made.costs == {"diagnosis": "2", "age": "2"}
    found: dict[str, Any] = {"everyone": driver.estimate(made, "diagnosis").table()}
    for column in columns:
        groups = driver.estimate_groups(made, column, by="ward")
        assert sorted(groups) == sorted(data.WARDS)
        found[column] = {group: each.table() for group, each in sorted(groups.items())}
    recorded.check("groups", found)
    # Wards are equally large, so that the average of their unbiased estimates is that of all.
    average = np.mean([found["diagnosis"][ward]["estimate"] for ward in data.WARDS], axis=0)
    assert found["everyone"]["estimate"] == pytest.approx(average.tolist())


def debias_crosstab(rows: list[str], columns: list[str], epsilon: str) -> list[float]:
    """Return the crosstab's shares by inverting both response matrices."""
    inverses = []
    for values in (data.DIAGNOSES, data.SMOKER):
        keep = stream.compute_threshold(epsilon, len(values)) / stream.ONE
        inverses.append(np.linalg.inv(keep * np.eye(len(values)) + (1 - keep) / len(values)))
    counts = np.zeros((3, 2))
    for row, column in zip(rows, columns, strict=True):
        counts[data.DIAGNOSES.index(row), data.SMOKER.index(column)] += 1
    return list((inverses[0] @ (counts / counts.sum()) @ inverses[1].T).ravel())


def test_crosstab_of_two_released_columns(holder: driver.DataHolder) -> None:
    """A crosstab is debiased on both sides; it is the same from one release and from columns of reports."""
    table = pa.table(data.choose(PEOPLE, ["patient", "diagnosis", "smoker", "city"]))
    columns = {**COLUMNS, "city": driver.unary(data.CITIES)}
    made = holder.release(table, columns, id="patient", epsilon="2", name="patients")
    pair = driver.estimate(made, "diagnosis", crosstab="smoker")
    found: dict[str, Any] = {
        "k-ary by k-ary": pair.table(),
        "simultaneous": pair.table(simultaneous=True),
        "population": pair.table(about="population"),
        "consistent": pair.consistent(),
        "k-ary by OUE": driver.estimate(made, "smoker", crosstab="city").table(),
    }
    recorded.check("crosstab", found)
    reports = made.reports["diagnosis"], made.reports["smoker"]
    assert found["k-ary by k-ary"]["estimate"] == pytest.approx(debias_crosstab(*reports, "2"))
    assert sum(found["consistent"]) == pytest.approx(1)
    direct = driver.estimate_crosstab((COLUMNS["diagnosis"], reports[0], "2"), (COLUMNS["smoker"], reports[1], "2"))
    assert direct.table()["estimate"] == pytest.approx(found["k-ary by k-ary"]["estimate"])
    assert direct.table()["low"] == pytest.approx(found["k-ary by k-ary"]["low"])


def test_crosstab_after_one_column_was_relaxed(holder: driver.DataHolder) -> None:
    """Columns of one release may stand at different levels when they are counted together."""
    holder.release(
        pa.table(data.choose(PEOPLE, ["patient", "diagnosis", "smoker"])), COLUMNS, id="patient", epsilon="1",
        name="patients",
    )  # fmt: skip
    better = holder.relax("patients", "3", columns=["diagnosis"])
    same = holder.relax("patients", "1", columns=["smoker"])
    assert same.ids == better.ids
    pair = driver.estimate_crosstab(
        (COLUMNS["diagnosis"], better.reports["diagnosis"], "3"), (COLUMNS["smoker"], same.reports["smoker"], "1")
    )
    recorded.check("crosstab-at-two-levels", {"table": pair.table(), "account": holder.account()})
