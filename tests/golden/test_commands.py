"""Golden: the command line on files: release, relax, estimate, budget and plan, and that it agrees with Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.golden import data, driver, driver_commands, recorded

PEOPLE = data.make_people()
BY_ID = data.sort_by(PEOPLE, "patient")
DIAGNOSIS = {"diagnosis": driver.k_ary(data.DIAGNOSES)}
BOTH = {**DIAGNOSIS, "smoker": driver.k_ary(data.SMOKER)}
COLUMNS = ["patient", "diagnosis", "smoker", "ward", "age"]


def draw(column: str, values: list[str], epsilon: str) -> list[Any]:
    """Return the reports that a release of the name "patients" has."""
    where: dict[str, Any] = {"key": data.KEY, "name": "patients", "column": column}
    return driver.draw_reports(driver.k_ary(values), BY_ID[column], BY_ID["patient"], epsilon, **where)


@pytest.mark.parametrize("separate_process", [False, True], ids=["in-process", "separate-process"])
def test_the_whole_course_by_commands(tmp_path: Path, separate_process: bool) -> None:
    """Release, relax without the table, estimate, and the account, as in Python, also in separate processes."""
    holder = driver_commands.CommandHolder(tmp_path / "holder", key=data.KEY, budget="2")
    source = driver.write_table(data.choose(PEOPLE, COLUMNS), tmp_path / "patients.parquet")
    where: dict[str, Any] = {"id": "patient", "passthrough": ["ward"]}
    found: dict[str, Any] = {
        "quote": holder.quote(source, DIAGNOSIS, id="patient", epsilon="1", output=tmp_path / "x.csv")
    }
    holder.separate_process = separate_process
    made = [
        holder.release(source, DIAGNOSIS, epsilon="0.6", output=tmp_path / "first.parquet", **where),
        holder.relax("patients", "1.5", id="patient", output=tmp_path / "second.parquet"),
    ]
    kind = driver_commands.CommandRejectedError if separate_process else driver.REASONS["budget exceeded"]
    with pytest.raises(kind):
        holder.relax("patients", "2.5", id="patient", output=tmp_path / "fourth.parquet")
    assert not (tmp_path / "fourth.parquet").exists()
    asked: dict[str, Any] = {"state": tmp_path, "separate_process": separate_process}
    found["estimate"] = driver_commands.estimate([tmp_path / "second.parquet"], **asked)["all"]
    holder.separate_process = False
    made.append(holder.relax("patients", "0.75", id="patient", output=tmp_path / "third.parquet"))
    assert made[0].passthrough == {"ward": BY_ID["ward"]}
    for each, epsilon in zip(made, ("0.6", "1.5", "0.75"), strict=True):
        assert each.ids == BY_ID["patient"]
        assert each.reports["diagnosis"] == draw("diagnosis", data.DIAGNOSES, epsilon)
    found["costs"] = [each.costs["diagnosis"] for each in made]
    holder.raise_budget("3", reason="board decision of March")
    found |= {"account": holder.account(), "history": holder.history()}
    found["groups"] = driver_commands.estimate([tmp_path / "first.parquet"], by="ward", state=tmp_path)
    recorded.check("command-line", found)
    assert found["estimate"] == driver.estimate(tmp_path / "second.parquet").table()
    groups = driver.estimate_groups(tmp_path / "first.parquet", by="ward")
    assert found["groups"] == {group: each.table() for group, each in groups.items()}


@pytest.mark.parametrize(
    "kind", ["patients.csv", "patients.tsv", "patients.csv.gz", "patients.csv.zst", "patients.parquet", "patients"]
)
def test_every_kind_of_file_gives_the_same_reports(tmp_path: Path, kind: str) -> None:
    """CSV, TSV, gzip, zstd, Parquet and a folder of Parquet files give equal reports by command and in Python."""
    source, table = tmp_path / kind, data.choose(PEOPLE, COLUMNS)
    if source.suffix:
        driver.write_table(table, source)
    else:
        source.mkdir()
        for part in range(3):
            rows = range(200 * part, 200 * part + 200)
            driver.write_table(data.choose(table, table, rows), source / f"part-{part}.parquet")
    ending = ".parquet" if source.suffix in ("", ".gz", ".zst") else source.suffix
    by_command = driver_commands.CommandHolder(tmp_path / "command", key=data.KEY, budget="4")
    in_python = driver.DataHolder(tmp_path / "python", key=data.KEY, budget="4")
    asked: dict[str, Any] = {"id": "patient", "epsilon": "1", "name": "patients", "passthrough": ["ward"]}
    results = [
        by_command.release(source, BOTH, output=tmp_path / f"command{ending}", **asked),
        in_python.release(source, BOTH, output=tmp_path / f"python{ending}", **asked),
    ]
    for made in results:
        assert made.ids == BY_ID["patient"]
        assert made.reports == {
            "diagnosis": draw("diagnosis", data.DIAGNOSES, "1"), "smoker": draw("smoker", data.SMOKER, "1"),
        }  # fmt: skip
        assert made.passthrough == {"ward": BY_ID["ward"]}
        assert made.costs == {"diagnosis": "1", "smoker": "1"}
    tables = [driver.estimate(made, "smoker", crosstab="diagnosis").table() for made in results]
    assert tables[0] == tables[1]
    found = driver_commands.estimate([results[0].table], column="smoker", crosstab="diagnosis", state=tmp_path)["all"]
    assert found == tables[0]
    recorded.check("files", {"crosstab": found})


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_mechanisms_by_command(tmp_path: Path, ending: str) -> None:
    """Every mechanism that the command offers gives the reports of Python; an empty field is a missing number."""
    holder = driver_commands.CommandHolder(tmp_path / "command", key=data.KEY, budget="20")
    source = driver.write_table(
        data.choose(PEOPLE, ["patient", "city", "age", "income"]), tmp_path / f"patients{ending}"
    )
    mechanisms = {
        "OUE": ("city", driver.unary(data.CITIES)),
        "SUE": ("city", driver.unary(data.CITIES, optimised=False)),
        "OLH": ("city", driver.local_hash(data.CITIES, 8)),
        "numeric": ("age", driver.numeric(*data.AGES)),
        "clipped": ("age", driver.numeric(30, 60, clip=True)),
        "missing": ("income", driver.numeric(0, 60, missing=True)),
        "square-wave": ("age", driver.square_wave(*data.AGES, bins=16, window=8)),
    }
    found: dict[str, Any] = {}
    for name, (column, mechanism) in mechanisms.items():
        output = tmp_path / f"{name}.parquet"
        made = holder.release(source, {column: mechanism}, id="patient", epsilon="2", name=name, output=output)
        drawn = driver.draw_reports(
            mechanism, BY_ID[column], BY_ID["patient"], "2", key=data.KEY, name=name, column=column
        )  # fmt: skip
        assert mechanism.read_reports(made.reports[column]) == drawn
        found[name] = driver_commands.estimate([output], state=tmp_path)["all"]
        assert found[name] == driver.estimate(output).table()
    recorded.check("mechanisms-by-command", {**found, "account": holder.account()})


def test_a_file_by_its_address(tmp_path: Path) -> None:
    """A table is read from an address as from a file; the name of the release is the stem of the file."""
    source = driver.write_table(data.choose(PEOPLE, COLUMNS), tmp_path / "patients.parquet")
    holder = driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="2")
    made = holder.release(
        source.as_uri(), DIAGNOSIS, id="patient", epsilon="1", name="patients", output=tmp_path / "out.parquet"
    )  # fmt: skip
    assert made.reports["diagnosis"] == draw("diagnosis", data.DIAGNOSES, "1")


def test_options_of_the_estimate(tmp_path: Path) -> None:
    """Simultaneous intervals, another confidence, the population, consistent shares and several files at once."""
    holder = driver_commands.CommandHolder(tmp_path / "command", key=data.KEY, budget="3")
    source = driver.write_table(data.choose(PEOPLE, COLUMNS), tmp_path / "patients.csv")
    low, high = tmp_path / "low.csv", tmp_path / "high.csv"
    holder.release(source, DIAGNOSIS, id="patient", epsilon="1", output=low)
    holder.relax("patients", "2", id="patient", output=high)
    asked: dict[str, Any] = {"state": tmp_path}
    found = {
        "simultaneous": driver_commands.estimate([high], "--simultaneous", **asked)["all"],
        "population": driver_commands.estimate([high], about="population", confidence=0.9, **asked)["all"],
        "consistent": driver_commands.estimate([high], "--consistent", **asked)["all"],
        "both files": driver_commands.estimate([low, high], **asked)["all"],
    }
    python = driver.estimate(high)
    assert found["simultaneous"] == python.table(simultaneous=True)
    assert found["population"] == python.table(0.9, about="population")
    assert found["consistent"]["estimate"] == pytest.approx(python.consistent())
    assert found["both files"] == python.table()
    recorded.check("estimate-options", found)


def test_plans_by_command(tmp_path: Path) -> None:
    """Two of epsilon, individuals and margin give the third; a schedule shows every step and where to stop."""
    asked: dict[str, Any] = {"state": tmp_path}
    found = {
        "epsilon": driver_commands.plan("--values", "5", "--n", "100000", "--margin", "0.01", **asked),
        "n": driver_commands.plan("--values", "5", "--epsilon", "1", "--margin", "0.01", **asked),
        "margin": driver_commands.plan("--values", "100", "--epsilon", "1", "--n", "100000", **asked),
        "number": driver_commands.plan("--range", "0", "120", "--epsilon", "1", "--n", "5000", **asked),
        "linear": driver_commands.plan(
            "--values", "3", "--n", "50000", "--schedule", "linear:0.1,1,4", "--margin", "0.02", **asked,
        ),
        "noisy sampling": driver_commands.plan(
            "--values", "2", "--n", "50000", "--schedule", "noisy-sampling:1,0.5,3", **asked,
        ),
    }  # fmt: skip
    recorded.check("plans-by-command", found)


def test_a_frame_a_file_and_a_command_are_one_account(tmp_path: Path) -> None:
    """What is released from a frame in Python is relaxed by name from its file's account, with one budget."""
    holder = driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="2")
    source = driver.write_table(data.choose(PEOPLE, COLUMNS), tmp_path / "patients.csv")
    asked: dict[str, Any] = {"id": "patient", "name": "patients"}
    frame = holder.release(pa.table(data.choose(PEOPLE, COLUMNS)), DIAGNOSIS, epsilon="0.6", **asked)
    file = holder.release(source, DIAGNOSIS, epsilon="0.6", output=tmp_path / "out.csv", **asked)
    assert (file.reports, file.costs) == (frame.reports, {"diagnosis": "0"})
    relaxed = holder.relax("patients", "1", output=tmp_path / "relaxed.parquet")
    assert relaxed.costs == {"diagnosis": "0.4"}
    assert relaxed.reports["diagnosis"] == draw("diagnosis", data.DIAGNOSES, "1")


def test_numbers_in_a_text_file_are_text(tmp_path: Path) -> None:
    """Ids of a CSV file are text, also where they look like numbers, so that leading zeros stay different ids."""
    holder = driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="2")
    source = driver.write_table(data.choose(PEOPLE, ["number", "diagnosis"]), tmp_path / "patients.csv")
    made = holder.release(
        source, DIAGNOSIS, id="number", epsilon="1", name="patients", output=tmp_path / "out.parquet"
    )  # fmt: skip
    by_text = data.sort_by({**PEOPLE, "number": list(map(str, PEOPLE["number"]))}, "number")
    assert made.ids == by_text["number"]
    drawn = driver.draw_reports(
        DIAGNOSIS["diagnosis"], by_text["diagnosis"], by_text["number"], "1", key=data.KEY, name="patients",
        column="diagnosis",
    )  # fmt: skip
    assert made.reports["diagnosis"] == drawn


def test_a_backup_goes_on_where_it_was(tmp_path: Path) -> None:
    """A restored account relaxes without the table; one that is older than a released file is rejected."""
    holder = driver_commands.CommandHolder(tmp_path / "holder", key=data.KEY, budget="3")
    source = driver.write_table(data.choose(PEOPLE, COLUMNS), tmp_path / "patients.parquet")
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    holder.release(source, DIAGNOSIS, id="patient", epsilon="1", output=first)
    holder.back_up(tmp_path / "old")
    made = holder.relax("patients", "1.5", id="patient", output=second)
    holder.back_up(tmp_path / "new")
    holder.check([first, second])
    source.unlink()
    with driver.rejected("account behind a released file"):
        driver_commands.CommandHolder.restore(
            tmp_path / "behind", tmp_path / "old", key=data.KEY, released=[first, second]
        )  # fmt: skip
    again = driver_commands.CommandHolder.restore(
        tmp_path / "again", tmp_path / "new", key=data.KEY, released=[first, second]
    )  # fmt: skip
    assert (again.account(), again.history()) == (holder.account(), holder.history())
    same = again.relax("patients", "1.5", id="patient", output=tmp_path / "same.parquet")
    assert (same.reports, same.costs) == (made.reports, {"diagnosis": "0"})
    better = again.relax("patients", "2.25", id="patient", output=tmp_path / "better.parquet")
    assert better.costs == {"diagnosis": "0.75"}
    assert better.reports["diagnosis"] == draw("diagnosis", data.DIAGNOSES, "2.25")
    with driver.rejected("account behind a released file"):
        holder.check([first, second, tmp_path / "better.parquet"])
