"""Golden: release, relax and account in Python: costs, budgets, rejections, several columns and missing values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.golden import data, driver, recorded

PEOPLE = data.make_people()
BY_ID = data.sort_by(PEOPLE, "patient")
DIAGNOSIS = {"diagnosis": driver.k_ary(data.DIAGNOSES)}


@pytest.fixture
def holder(tmp_path: Path) -> driver.DataHolder:
    return driver.DataHolder(tmp_path / "holder", key=data.KEY, budget="2")


def frame(*columns: str, **changes: list[Any]) -> pa.Table:
    return pa.table(data.choose(PEOPLE, ["patient", *columns]) | changes)


def test_release_then_relax_without_the_table(holder: driver.DataHolder) -> None:
    """A second level costs the difference; equal and lower levels are free and give the reports of a direct release."""
    steps: list[dict[str, Any]] = []

    def note(made: driver.Released) -> driver.Released:
        spelled = data.spell(made.reports["diagnosis"], data.DIAGNOSES)
        steps.append({"costs": made.costs, "reports": spelled, "account": holder.account()})
        return made

    where: dict[str, Any] = {"id": "patient", "name": "patients"}
    first = note(
        holder.release(frame("diagnosis"), DIAGNOSIS, epsilon="0.1", planned_epsilon="1", **where)
    )  # fmt: skip
    assert first.ids == sorted(PEOPLE["patient"])
    note(holder.relax("patients", "0.5"))
    lower = note(holder.relax("patients", "0.25"))
    note(holder.release(frame("diagnosis"), DIAGNOSIS, epsilon="0.1", **where))
    better = note(holder.relax("patients", "1.5"))
    note(holder.relax("patients", "1.5"))
    assert [step["costs"]["diagnosis"] for step in steps] == ["0.1", "0.4", "0", "0", "1", "0"]
    assert steps[3]["reports"] == steps[0]["reports"]
    assert steps[5]["reports"] == steps[4]["reports"]
    for made, epsilon in ((first, "0.1"), (lower, "0.25"), (better, "1.5")):
        drawn = driver.draw_reports(
            DIAGNOSIS["diagnosis"], BY_ID["diagnosis"], BY_ID["patient"], epsilon, key=data.KEY, name="patients",
            column="diagnosis",
        )  # fmt: skip
        assert made.reports["diagnosis"] == drawn
    found: dict[str, Any] = {"steps": steps, "history": holder.history()}
    for name, made in (("lower", lower), ("better", better)):
        table = driver.estimate(made).table()
        found[f"estimate of {name}"] = table
        truth = data.shares(PEOPLE["diagnosis"], data.DIAGNOSES)
        assert all(low <= share <= high for low, share, high in zip(table["low"], truth, table["high"], strict=True))
    assert driver.estimate(better).frame()["estimate"] == found["estimate of better"]["estimate"]
    recorded.check("release-and-relax", found)


def test_a_budget_is_kept_and_raised(holder: driver.DataHolder) -> None:
    """A release beyond the budget is rejected and charges nothing; the budget may be raised, never lowered."""
    where: dict[str, Any] = {"id": "patient", "name": "patients"}
    holder.release(frame("diagnosis"), DIAGNOSIS, epsilon="1.5", **where)
    accounts = [holder.account()]
    with driver.rejected("budget exceeded"):
        holder.relax("patients", "2.01")
    with driver.rejected("budget exceeded"):
        holder.release(frame("smoker"), {"smoker": driver.k_ary(data.SMOKER)}, epsilon="0.6", **where)
    assert holder.account() == accounts[0]
    for budget in ("1.9", "2"):
        with driver.rejected("budget not raised"):
            holder.raise_budget(budget, reason="a mistake")
    holder.raise_budget("2.5", reason="board decision of March")
    accounts.append(holder.account())
    costs = holder.relax("patients", "2.01").costs
    accounts.append(holder.account())
    holder.raise_budget("3", reason="board decision of May")
    costs |= holder.release(frame("smoker"), {"smoker": driver.k_ary(data.SMOKER)}, epsilon="0.99", **where).costs
    accounts.append(holder.account())
    assert str(accounts[-1]["remaining"]) == "0"
    recorded.check("budget", {"accounts": accounts, "costs": costs, "history": holder.history()})


def test_changes_are_rejected_and_charge_nothing(holder: driver.DataHolder) -> None:
    """Changed answers, other values, an undeclared value, a repeated id and an unknown name are rejected."""
    where: dict[str, Any] = {"id": "patient", "epsilon": "1", "name": "patients"}
    holder.release(frame("diagnosis"), DIAGNOSIS, **where)
    before = holder.account(), holder.history()
    changed = list(PEOPLE["diagnosis"])
    changed[5] = next(value for value in data.DIAGNOSES if value != changed[5])
    numbered = pa.table({"patient": list(range(600)), "diagnosis": PEOPLE["diagnosis"]})
    unknown = ["cold", *PEOPLE["diagnosis"][1:]]
    repeated = [PEOPLE["patient"][1], *PEOPLE["patient"][1:]]
    other = {"diagnosis": driver.k_ary(data.DIAGNOSES[::-1])}
    for level in ("0.5", "1", "1.5"):
        where["epsilon"] = level
        with driver.rejected("changed row"):
            holder.release(frame(diagnosis=changed), DIAGNOSIS, **where)
        with driver.rejected("other mechanism"):
            holder.release(frame("diagnosis"), other, **where)
        with driver.rejected("other mechanism"):
            holder.release(frame("diagnosis"), {"diagnosis": driver.unary(data.DIAGNOSES)}, **where)
        with driver.rejected("other type of id"):
            holder.release(numbered, DIAGNOSIS, **where)
        with driver.rejected("undeclared value"):
            holder.release(frame(diagnosis=unknown), DIAGNOSIS, **where)
        with driver.rejected("unusable id"):
            holder.release(pa.table({"patient": repeated, "diagnosis": PEOPLE["diagnosis"]}), DIAGNOSIS, **where)
    with driver.rejected("unknown name"):
        holder.relax("people", "1.5")
    for epsilon in ("0", "-1", "nan", "much"):
        with driver.rejected("epsilon"):
            holder.relax("patients", epsilon)
    assert (holder.account(), holder.history()) == before


def test_a_next_survey_adds_up(holder: driver.DataHolder) -> None:
    """A new name is a new path at full cost, with independent reports, also where nothing changed."""
    made = [
        holder.release(frame("diagnosis"), DIAGNOSIS, id="patient", epsilon="0.9", name=f"patients-{year}")
        for year in (2026, 2027)
    ]
    agree = sum(map(str.__eq__, *(each.reports["diagnosis"] for each in made)))
    found: dict[str, Any] = {"account": holder.account(), "agree": agree}
    found["reports"] = [data.spell(each.reports["diagnosis"], data.DIAGNOSES) for each in made]
    change = driver.estimate(made[0]).compare(driver.estimate(made[1]))
    found |= {"change": change.table(), "change in the population": change.table(about="population")}
    recorded.check("next-survey", found)
    estimates = [driver.estimate(each).table()["estimate"] for each in made]
    assert found["change"]["estimate"] == pytest.approx([new - old for old, new in zip(*estimates, strict=True)])
    assert all(low <= 0 <= high for low, high in zip(found["change"]["low"], found["change"]["high"], strict=True))


def test_several_columns_in_one_release(holder: driver.DataHolder) -> None:
    """The costs of columns add up; columns are relaxed one by one and together."""
    holder.raise_budget("9", reason="three columns")
    columns = {
        "diagnosis": driver.k_ary(data.DIAGNOSES),
        "city": driver.unary(data.CITIES),
        "age": driver.square_wave(*data.AGES, bins=16, window=8),
    }
    steps: list[dict[str, Any]] = []

    def note(made: driver.Released) -> None:
        spelled: dict[str, str] = {}
        for name, reports in made.reports.items():
            values = range(36) if name == "age" else data.DIAGNOSES
            spelled[name] = data.spell_bytes(reports) if name == "city" else data.spell(reports, values)
        steps.append({"costs": made.costs, "reports": spelled, "account": holder.account()})

    everything = frame("diagnosis", "city", "age")
    note(holder.release(everything, columns, id="patient", epsilon="1", name="patients"))
    note(holder.relax("patients", "1.5", columns=["city"]))
    note(holder.relax("patients", "1.25", columns=["diagnosis", "age"]))
    note(holder.relax("patients", "2"))
    assert [str(step["account"]["spent"]) for step in steps] == ["3", "3.5", "4", "6"]
    with driver.rejected("unknown name"):
        holder.relax("patients", "3", columns=["smoker"])
    recorded.check("several-columns", {"steps": steps, "history": holder.history()})


def test_planned_epsilon_and_the_automatic_mechanism(tmp_path: Path) -> None:
    """The mechanism is chosen for the planned epsilon when a column is first released, and stays."""
    found: dict[str, Any] = {}
    for planned in ("0.5", "1", "2", "4"):
        holder = driver.DataHolder(tmp_path / planned, key=data.KEY, budget="20")
        asked: dict[str, Any] = {"id": "patient", "name": "patients", "planned_epsilon": planned}
        columns: dict[str, Any] = {"diagnosis": data.DIAGNOSES, "city": data.CITIES}
        quote = holder.quote(frame("diagnosis", "city"), columns, epsilon="0.5", **asked)
        assert holder.account()["levels"] == {}
        if planned == "0.5":
            with driver.rejected("tells next to nothing"):
                holder.release(frame("diagnosis", "city"), columns, epsilon="0.1", **asked)
            found[planned] = {"quote": quote}
            continue
        made = holder.release(frame("diagnosis", "city"), columns, epsilon="0.5", **asked)
        chosen = holder.mechanisms()
        assert {name: each[0] for name, each in chosen.items()} == {n: each["mechanism"] for n, each in quote.items()}
        assert made.costs == {name: each["cost"] for name, each in quote.items()}
        later = holder.quote(frame("diagnosis", "city"), columns, epsilon="5", **asked | {"planned_epsilon": "5"})
        assert {name: each["mechanism"] for name, each in later.items()} == {n: each[0] for n, each in chosen.items()}
        found[planned] = {"quote": quote, "mechanisms": chosen, "later": later}
    recorded.check("automatic-mechanism", found)


def test_a_quote_changes_nothing(holder: driver.DataHolder) -> None:
    """A dry run states the cost of the next level and leaves the account as it was."""
    where: dict[str, Any] = {"id": "patient", "name": "patients"}
    costs = []
    for epsilon in ("0.5", "1", "1.75"):
        costs.append(holder.quote(frame("diagnosis"), DIAGNOSIS, epsilon=epsilon, **where))
        if epsilon == "1":
            holder.release(frame("diagnosis"), DIAGNOSIS, epsilon=epsilon, **where)
    assert [cost["diagnosis"]["cost"] for cost in costs] == ["0.5", "1", "0.75"]
    with driver.rejected("budget exceeded"):
        holder.quote(frame("diagnosis"), DIAGNOSIS, epsilon="2.5", **where)
    assert str(holder.account()["spent"]) == "1"


def test_a_release_that_tells_next_to_nothing(holder: driver.DataHolder) -> None:
    """Few rows at a small epsilon are rejected before anything is charged, unless a larger level is planned."""
    few = pa.table(data.choose(PEOPLE, ["patient", "diagnosis", "age"], range(60)))
    columns = {"diagnosis": driver.k_ary(data.DIAGNOSES), "age": driver.numeric(*data.AGES)}
    for name, declared in columns.items():
        where: dict[str, Any] = {"id": "patient", "name": "few"}
        with driver.rejected("tells next to nothing"):
            holder.release(few, {name: declared}, epsilon="0.4", **where)
        assert name not in holder.mechanisms()
        made = holder.release(few, {name: declared}, epsilon="0.4", planned_epsilon="3", **where)
        assert made.costs == {name: "0.4"}


def test_missing_and_clipped_numbers(holder: driver.DataHolder) -> None:
    """A missing number is a third kind of report; a number outside of the range is clipped where that is declared."""
    where: dict[str, Any] = {"id": "patient", "epsilon": "1", "name": "patients"}
    with driver.rejected("missing number"):
        holder.release(frame("income"), {"income": driver.numeric(0, 60)}, **where)
    with driver.rejected("outside the range"):
        holder.release(frame("age"), {"age": driver.numeric(30, 60)}, **where)
    made = holder.release(frame("income"), {"income": driver.numeric(0, 60, missing=True)}, **where)
    clipped = holder.release(frame("age"), {"age": driver.numeric(30, 60, clip=True)}, **where)
    income, age = driver.estimate(made), driver.estimate(clipped)
    truth = [number for number in PEOPLE["income"] if number is not None]
    expected = {
        "mean": sum(truth) / len(truth),
        "missing": PEOPLE["income"].count(None) / 600,
        "clipped": sum(min(60, max(30, number)) for number in PEOPLE["age"]) / 600,
    }
    found: dict[str, Any] = {"account": holder.account()}
    for name, each in {"mean": income, "missing": income.missing_share(), "clipped": age}.items():
        found[name], wide = each.table(), each.table(0.999)
        assert wide["low"][0] <= expected[name] <= wide["high"][0]
    found["income"] = data.spell(made.reports["income"], [None, 0, 60])
    found["age"] = data.spell(clipped.reports["age"], [30, 60])
    recorded.check("missing-and-clipped", found)


def test_a_missing_category_is_declared(holder: driver.DataHolder) -> None:
    """None among the declared values is an answer like the others.

    How it enters the stream may change, so no report is compared. Bounds that chance misses less than once in a
    hundred thousand times take their place.
    """
    where: dict[str, Any] = {"id": "patient", "epsilon": "1.5", "name": "patients"}
    with driver.rejected("undeclared value"):
        holder.release(frame("vaccine"), {"vaccine": driver.k_ary(["A", "B"])}, **where)
    made = holder.release(frame("vaccine"), {"vaccine": driver.k_ary(["A", "B", None])}, **where)
    assert made.costs == {"vaccine": "1.5"}
    assert set(made.reports["vaccine"]) == {"A", "B", None}
    table = driver.estimate(made).table(0.99999, simultaneous=True)
    truth = data.shares(PEOPLE["vaccine"], ["A", "B", None])
    assert all(low <= share <= high for low, share, high in zip(table["low"], truth, table["high"], strict=True))
    # At 1.5 a report of three values is the answer with probability 0.691.
    answers = BY_ID["vaccine"]
    assert 0.6 < sum(one == two for one, two in zip(made.reports["vaccine"], answers, strict=True)) / 600 < 0.79
    relaxed = holder.relax("patients", "2", columns=["vaccine"])
    assert relaxed.costs == {"vaccine": "0.5"}
    # Reports at 1.5 and 2 of one individual are equal with probability 0.860, whatever the answer is.
    both = zip(made.reports["vaccine"], relaxed.reports["vaccine"], strict=True)
    assert 0.78 < sum(one == two for one, two in both) / 600 < 0.93
