"""Golden: individuals at different levels, and rows that join or leave between releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.golden import data, driver, recorded, stream

PEOPLE = data.make_people()
DIAGNOSIS = {"diagnosis": driver.k_ary(data.DIAGNOSES)}
CHOSEN = [place for place, number in enumerate(PEOPLE["number"]) if number % 3 == 0]


@pytest.fixture
def holder(tmp_path: Path) -> driver.DataHolder:
    return driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="3")


def write(folder: Path, name: str, rows: Any = None, **changes: list[Any]) -> Path:
    """Write the patients, or some of them, to a file."""
    return driver.write_table(data.choose(PEOPLE | changes, ["patient", "diagnosis"], rows), folder / name)


def draw(ids: list[str], epsilon: str) -> list[Any]:
    """Return the reports that these ids have in the release "patients"."""
    answers = dict(zip(PEOPLE["patient"], PEOPLE["diagnosis"], strict=True))
    where: dict[str, Any] = {"key": data.KEY, "name": "patients", "column": "diagnosis"}
    return driver.draw_reports(DIAGNOSIS["diagnosis"], [answers[id] for id in ids], ids, epsilon, **where)


def weigh_by_hand(reports: dict[str, list[str]]) -> dict[str, list[float]]:
    """Return the average of debiased shares by the number of individuals, and by the inverse variance of the noise."""
    shares, individuals, precisions = [], [], []
    for epsilon, column in reports.items():
        keep = stream.compute_threshold(epsilon, 3) / stream.ONE
        counted = np.array(data.shares(column, data.DIAGNOSES))
        noise = (1 - keep) / 3
        shares.append((counted - noise) / keep)
        individuals.append(len(column))
        precisions.append(len(column) * keep**2 / (noise * (1 - noise)))
    return {
        "average": np.average(shares, axis=0, weights=individuals).tolist(),
        "precision": np.average(shares, axis=0, weights=precisions).tolist(),
    }


def test_a_subset_at_a_higher_level(holder: driver.DataHolder, tmp_path: Path) -> None:
    """Some individuals are released at a higher level; an estimate counts each at its highest."""
    asked: dict[str, Any] = {"id": "patient", "name": "patients", "rows_may_change": True}
    every = holder.release(
        write(tmp_path, "all.parquet"), DIAGNOSIS, epsilon="1", output=tmp_path / "low.parquet", **asked
    )  # fmt: skip
    some = holder.release(
        write(tmp_path, "some.parquet", CHOSEN), DIAGNOSIS, epsilon="2.5", output=tmp_path / "high.parquet", **asked
    )  # fmt: skip
    assert (every.costs, some.costs) == ({"diagnosis": "1"}, {"diagnosis": "1.5"})
    assert some.ids == sorted(PEOPLE["patient"][place] for place in CHOSEN)
    for made, epsilon in ((every, "1"), (some, "2.5")):
        assert made.reports["diagnosis"] == draw(made.ids, epsilon)
    found: dict[str, Any] = {"account": holder.account(), "history": holder.history()}
    for weights in ("average", "precision"):
        both = driver.estimate([every, some], weights=weights)
        found[weights] = both.table()
        assert driver.estimate([some, every], weights=weights).table() == found[weights]
    # By hand: each individual once, at its highest level.
    highest = dict(zip(some.ids, some.reports["diagnosis"], strict=True))
    others = [
        report for id, report in zip(every.ids, every.reports["diagnosis"], strict=True) if id not in highest
    ]  # fmt: skip
    by_hand = weigh_by_hand({"1": others, "2.5": list(highest.values())})
    for weights, shares in by_hand.items():
        assert found[weights]["estimate"] == pytest.approx(shares)
    counted = [
        (epsilon, [column.count(value) for value in data.DIAGNOSES], len(column))
        for epsilon, column in (("1", others), ("2.5", list(highest.values())))
    ]
    for weights in by_hand:
        table = driver.estimate_counts(DIAGNOSIS["diagnosis"], counted, weights=weights).table()
        assert table == found[weights]
    recorded.check("levels-of-individuals", found)


def test_rows_join_and_leave(holder: driver.DataHolder, tmp_path: Path) -> None:
    """Rows that join get reports at the level asked for, known rows keep theirs, and a changed row is rejected."""
    asked: dict[str, Any] = {"id": "patient", "name": "patients", "rows_may_change": True}
    made = []
    for step, (rows, epsilon) in enumerate([(range(400), "1"), (range(600), "1"), (range(100, 600), "1.5")]):
        source = write(tmp_path, f"in-{step}.parquet", rows)
        made.append(
            holder.release(source, DIAGNOSIS, epsilon=epsilon, output=tmp_path / f"out-{step}.parquet", **asked)
        )
        assert made[-1].reports["diagnosis"] == draw(made[-1].ids, epsilon)
    assert [each.costs["diagnosis"] for each in made] == ["1", "0", "0.5"]
    before = holder.account()
    changed = list(PEOPLE["diagnosis"])
    changed[5] = next(value for value in data.DIAGNOSES if value != changed[5])
    source = write(tmp_path, "changed.parquet", diagnosis=changed)
    for epsilon in ("1", "2"):
        with driver.rejected("changed row"):
            holder.release(source, DIAGNOSIS, epsilon=epsilon, output=tmp_path / "changed-out.parquet", **asked)
    assert holder.account() == before
    assert not (tmp_path / "changed-out.parquet").exists()
    table = driver.estimate(made[1:]).table()
    recorded.check("rows-join-and-leave", {"estimate": table, "account": before, "history": holder.history()})


def test_three_levels_in_any_order(tmp_path: Path) -> None:
    """Releases at several levels may come in any order: each id counts at its highest level, whatever came last."""
    table = data.choose(PEOPLE, ["patient", "diagnosis"])
    tables: list[dict[str, list[Any]]] = []
    for number, order in enumerate((["1", "2", "3"], ["3", "1", "2"])):
        holder = driver.DataHolder(tmp_path / str(number), key=data.KEY, budget="3")
        source = driver.write_table(table, tmp_path / f"{number}.parquet")
        made = []
        for epsilon in order:
            output = tmp_path / f"{number}-{epsilon}.parquet"
            asked: dict[str, Any] = {"id": "patient", "name": "patients", "epsilon": epsilon}
            made.append(holder.release(source, DIAGNOSIS, output=output, **asked))
        assert str(holder.account()["spent"]) == "3"
        tables.append(driver.estimate(made).table())
        highest = next(each for each, epsilon in zip(made, order, strict=True) if epsilon == "3")
        assert tables[-1] == driver.estimate(highest).table()
    assert tables[0] == tables[1]
