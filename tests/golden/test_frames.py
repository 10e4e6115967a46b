"""Golden: data frames of every library give the same reports and come back in the same library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.conftest import require
from tests.golden import data, driver, driver_spark, recorded

PEOPLE = data.make_people()
COLUMNS: dict[str, driver.Mechanism] = {
    "diagnosis": driver.k_ary(data.DIAGNOSES),
    "city": driver.unary(data.CITIES),
    "age": driver.numeric(*data.AGES),
}
NAMES = ["patient", "number", "diagnosis", "city", "age", "ward"]
LIBRARIES: dict[str, tuple[Callable[[data.Table], Any], type]] = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "polars-lazy": (pl.LazyFrame, pl.LazyFrame),
    "pyarrow": (pa.table, pa.Table),
    "duckdb": (lambda table: duckdb.connect().from_arrow(pa.table(table)), duckdb.DuckDBPyRelation),
}


def spell_all(reports: dict[str, list[Any]]) -> dict[str, str]:
    """Return the reports of all columns in short spellings."""
    return {
        "diagnosis": data.spell(reports["diagnosis"], data.DIAGNOSES),
        "city": data.spell_bytes(reports["city"]),
        "age": data.spell(reports["age"], data.AGES),
    }


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("id_column", ["patient", "number"])
def test_every_library_gives_the_same_reports(library: str, id_column: str, tmp_path: Path) -> None:
    """Reports, order, pass-through columns and estimates do not depend on the library of the data frame."""
    make, kind = LIBRARIES[library]
    holder = driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="9")
    frame = make(data.choose(PEOPLE, NAMES))
    made = holder.release(frame, COLUMNS, id=id_column, epsilon="1", name="patients", passthrough=["ward"])
    assert isinstance(made.table, kind)
    by_id = data.sort_by(PEOPLE, id_column)
    assert (made.ids, made.passthrough) == (by_id[id_column], {"ward": by_id["ward"]})
    assert made.costs == dict.fromkeys(COLUMNS, "1")
    again = holder.release(frame, COLUMNS, id=id_column, epsilon="2", name="patients")
    assert holder.relax("patients", "2").reports == again.reports
    found: dict[str, Any] = {"at 1": spell_all(made.reports), "at 2": spell_all(again.reports)}
    found["estimate"] = driver.estimate(made, "diagnosis").table()
    found["mean"] = driver.estimate(again, "age").table()
    recorded.check_part("frames", id_column, found)


@pytest.mark.parametrize("library", LIBRARIES)
def test_integers_as_declared_values(library: str, tmp_path: Path) -> None:
    """A column of integers has integers as declared values, and its reports are integers."""
    decades = [age // 10 for age in PEOPLE["age"]]
    holder = driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="9")
    frame = LIBRARIES[library][0]({"patient": PEOPLE["patient"], "decade": decades})
    columns = {"decade": driver.k_ary(range(12))}
    made = holder.release(frame, columns, id="patient", epsilon="3", name="patients")
    by_id = data.sort_by({"patient": PEOPLE["patient"], "decade": decades}, "patient")
    drawn = driver.draw_reports(
        columns["decade"], by_id["decade"], by_id["patient"], "3", key=data.KEY, name="patients", column="decade"
    )  # fmt: skip
    assert made.reports["decade"] == drawn
    recorded.check(
        "integer-values", {"reports": data.spell(drawn, range(12)), "estimate": driver.estimate(made).table()}
    )


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_uuid_ids(library: str, tmp_path: Path) -> None:
    """UUIDs are ids, as objects of pandas and as the UUID type of Arrow."""
    table = data.choose(PEOPLE, ["device", "diagnosis"])
    if library == "pyarrow":
        ids = pa.array([id.bytes for id in table["device"]], pa.uuid())
        frame = pa.table({"device": ids, "diagnosis": table["diagnosis"]})
    else:
        frame = pd.DataFrame(table)
    holder = driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="9")
    columns = {"diagnosis": COLUMNS["diagnosis"]}
    made = holder.release(frame, columns, id="device", epsilon="1", name="patients")
    by_id = data.sort_by(PEOPLE, "device")
    drawn = driver.draw_reports(
        columns["diagnosis"], by_id["diagnosis"], by_id["device"], "1", key=data.KEY, name="patients",
        column="diagnosis",
    )  # fmt: skip
    assert made.reports["diagnosis"] == drawn
    assert [id if isinstance(id, type(by_id["device"][0])) else str(id) for id in made.ids] == by_id["device"]


def test_spark_gives_the_same_reports(tmp_path: Path) -> None:
    """A Spark DataFrame gives the reports, costs and estimates of a local one, as a Spark DataFrame."""
    require("java")
    columns = {"diagnosis": data.DIAGNOSES, "smoker": data.SMOKER}
    asked = {
        "table": data.choose(PEOPLE, ["patient", *columns, "ward"]), "values": columns, "id": "patient",
        "name": "patients", "epsilons": ["0.6", "1.5"], "passthrough": ["ward"], "key": data.KEY.hex(),
        "budget": "4",
    }  # fmt: skip
    found = driver_spark.run_spark(tmp_path / "spark", asked)
    holder = driver.DataHolder(tmp_path / "local", key=data.KEY, budget="4")
    local = pa.table(data.choose(PEOPLE, ["patient", *columns, "ward"]))
    declared = {column: driver.k_ary(values) for column, values in columns.items()}
    for step, epsilon in zip(found["steps"], ["0.6", "1.5"], strict=True):
        made = holder.release(local, declared, id="patient", epsilon=epsilon, name="patients", passthrough=["ward"])
        assert step["is_spark"]
        assert (step["ids"], step["reports"]) == (made.ids, made.reports)
        assert (step["passthrough"], step["costs"]) == (made.passthrough, made.costs)
        assert step["spent"] == str(holder.account()["spent"])
    assert found["all"] == driver.estimate(made, "diagnosis").table()
    groups = driver.estimate_groups(made, "diagnosis", by="ward")
    assert found["groups"] == {group: each.table() for group, each in groups.items()}
    assert found["history"] == holder.history()
    recorded.check("spark", {name: found[name] for name in ("all", "groups", "history")})


@pytest.mark.long
def test_a_ledger_in_postgresql(postgres_url: Callable[[], str], tmp_path: Path) -> None:
    """Costs, rejections and the history are the same with an account that several machines share."""
    holders = [
        driver.DataHolder(tmp_path / "file", key=data.KEY, budget="2"),
        driver.DataHolder(tmp_path / "database", key=data.KEY, budget="2", ledger=postgres_url()),
    ]
    frame = pa.table(data.choose(PEOPLE, ["patient", "diagnosis"]))
    columns = {"diagnosis": COLUMNS["diagnosis"]}
    seen: list[dict[str, Any]] = []
    for holder in holders:
        made = [
            holder.release(frame, columns, id="patient", epsilon="0.6", name="patients"),
            holder.relax("patients", "1.25"),
            holder.relax("patients", "0.75"),
        ]
        with driver.rejected("budget exceeded"):
            holder.relax("patients", "2.1")
        holder.raise_budget("2.1", reason="board decision of March")
        made.append(holder.relax("patients", "2.1"))
        costs = [each.costs["diagnosis"] for each in made]
        reports = [data.spell(each.reports["diagnosis"], data.DIAGNOSES) for each in made]
        seen.append({"costs": costs, "reports": reports, "account": holder.account(), "history": holder.history()})
    assert seen[0] == seen[1]
    recorded.check("postgresql", {name: each for name, each in seen[1].items() if name != "reports"})
