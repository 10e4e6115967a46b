"""The same mistakes through the command, a call with files and a call with a frame: one kind, the same fields."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp import errors
from relaxdp.cli.main import app
from relaxdp.errors import RelaxdpError

ROWS = 400
DOORS = ("command", "file", "frame")
# What a door has to say beside the mistake: where a file is, what a frame's list of columns is called.
OF_A_DOOR = {"path", "hint", "what", "row", "file", "named"}

Table = dict[str, Any]
Asked = dict[str, Any]


def table(**columns: Any) -> Table:
    """A table of people; a column may be another one."""
    usual = {"id": list(range(ROWS)), "x": ["a", "b"] * (ROWS // 2), "n": [float(number) for number in range(ROWS)]}
    return usual | columns


def said(**changes: Any) -> Asked:
    """What is asked for, in the words of the library."""
    usual: Asked = {
        "column": "x", "values": ["a", "b"], "id": "id", "epsilon": "1", "key": "key", "release": "people",
        "ledger": "ledger.db", "budget": "3",
    }  # fmt: skip
    return {name: each for name, each in (usual | changes).items() if each is not None}


ONE: dict[str, str] = {"id": "--id", "epsilon": "--epsilon", "key": "--key", "release": "--release",
                       "ledger": "--ledger", "budget": "--budget", "population": "--population", "nulls": "--nulls",
                       "encoding": "--encoding", "new_ledger": "--new-ledger", "map": "--map",
                       "planned_epsilon": "--planned-epsilon", "column": "--column"}  # fmt: skip
OF_A_COLUMN = ("values", "bins", "map", "nulls", "range", "encoding")


def by_command(data: Table, asked: Asked) -> None:
    pa_parquet.write_table(pa.table(data), "in.parquet")
    words = ["release", "in.parquet", "out.parquet"]
    for name, each in asked.items():
        if name in ONE:
            words += [ONE[name], each]
        elif name == "values":
            words += ["--values", ",".join(each)]
        elif name == "bins":
            words += ["--bins", ",".join(map(str, each))]
        elif name == "range":
            words += ["--range", *map(str, each)]
        elif name == "keep":
            words += [word for column in each for word in ("--keep", column)]
        elif each:
            words.append({"again": "--again", "force": "--force"}[name])
    result = CliRunner().invoke(app, words)
    if result.exception is not None:
        raise result.exception


def by_call(source: Any, asked: Asked, **more: Any) -> None:
    column = rx.Column(**{name: asked[name] for name in OF_A_COLUMN if name in asked})
    rest = {name: each for name, each in asked.items() if name not in (*OF_A_COLUMN, "column")}
    rx.release(source, {asked["column"]: column}, **rest, **more)


def by_file(data: Table, asked: Asked) -> None:
    pa_parquet.write_table(pa.table(data), "in.parquet")
    by_call("in.parquet", asked, to="out.parquet")


def by_frame(data: Table, asked: Asked) -> None:
    by_call(pa.table(data), asked)


GO: dict[str, Callable[[Table, Asked], None]] = {"command": by_command, "file": by_file, "frame": by_frame}

# The mistake, what was released before it (None: nothing), the kind of error, and fields that it must have.
MISTAKES: dict[str, tuple[Table, Asked, Asked | None, type[RelaxdpError], dict[str, Any]]] = {
    "epsilon is nothing": (table(), said(epsilon="0"), None, errors.EpsilonError, {"epsilon": "'0'"}),
    "epsilon is below nothing": (table(), said(epsilon="-1"), None, errors.EpsilonError, {"epsilon": "'-1'"}),
    "epsilon is no number": (table(), said(epsilon="half"), None, errors.EpsilonError, {"epsilon": "'half'"}),
    "epsilon is not finite": (table(), said(epsilon="nan"), None, errors.EpsilonError, {"epsilon": "'nan'"}),
    "epsilon is too small": (table(), said(epsilon="1e-30"), None, errors.EpsilonError, {}),
    "the plan is no number": (table(), said(planned_epsilon="x", encoding="auto"), None, errors.EpsilonError, {}),
    "no such id": (table(), said(id="no"), None, errors.UnknownColumnError, {"column": "no"}),
    "no such column": (table(), said(column="no"), None, errors.UnknownColumnError, {"column": "no"}),
    "nothing to keep": (table(), said(keep=["no"]), None, errors.UnknownColumnError, {"column": "no"}),
    "the id is kept": (table(), said(keep=["id"]), None, errors.UnknownColumnError, {}),
    "the column is kept": (table(), said(keep=["x"]), None, errors.UnknownColumnError, {}),
    "kept twice": (table(), said(keep=["n", "n"]), None, errors.UnknownColumnError, {}),
    "an undeclared value": (table(), said(values=["a", "c"]), None, errors.UndeclaredValueError, {"values": 2}),
    "a missing value": (
        table(x=["a", None] * (ROWS // 2)), said(), None, errors.UndeclaredValueError, {"missing": True, "values": 2}),
    "one value": (table(), said(values=["a"]), None, errors.ValuesError, {"values": 1}),
    "a value twice": (table(), said(values=["a", "a"]), None, errors.ValuesError, {"value": "a"}),
    "nothing is said": (table(), said(values=None), None, errors.ValuesError, {"column": "x"}),
    "two things are said": (table(), said(bins=[1.0]), None, errors.ValuesError, {"column": "x"}),
    "bins that fall": (table(), said(column="n", values=None, bins=[5.0, 3.0]), None, errors.DeriveError, {}),
    "no such map": (table(), said(values=None, map="no.csv"), None, errors.DeriveError, {}),
    "a map of three": (table(), said(values=None, map="three.csv"), None, errors.DeriveError, {}),
    "a map says it twice": (table(), said(values=None, map="twice.csv"), None, errors.DeriveError, {}),
    "not in the map": (
        table(), said(values=None, map="map.csv"), None, errors.UndeclaredValueError, {"map": "map.csv"}),
    "a range with nulls": (
        table(), said(column="n", values=None, range=(0.0, 50.0), nulls="none"), None, errors.DeriveError, {}),
    "a number outside": (
        table(), said(column="n", values=None, range=(0.0, 5.0)), None, errors.RangeError, {"low": 0.0, "high": 5.0}),
    "a missing number": (
        table(n=[1.0, None] * (ROWS // 2)), said(column="n", values=None, range=(0.0, 5.0)), None, errors.RangeError,
        {"missing": True}),
    "a range that falls": (
        table(), said(column="n", values=None, range=(5.0, 0.0)), None, errors.RangeError, {"low": 5.0, "high": 0.0}),
    "letters in a range": (table(), said(values=None, range=(0.0, 5.0)), None, errors.DeriveError, {}),
    "an id twice": (table(id=[1, 1, *range(2, ROWS)]), said(), None, errors.ObjectIdError, {}),
    "a missing id": (table(id=[None, *range(1, ROWS)]), said(), None, errors.ObjectIdError, {}),
    "ids with fractions": (table(id=[each + 0.5 for each in range(ROWS)]), said(), None, errors.ObjectIdError, {}),
    "no rows": ({"id": pa.array([], pa.int64()), "x": pa.array([], pa.string())}, said(), None,
                errors.TableFileError, {}),
    "an unknown encoding": (table(), said(encoding="odd"), None, errors.EncodingError, {"name": "odd"}),
    "true under another name": (
        table(x=[True, False] * (ROWS // 2)), said(values=["yes", "no"]), None, errors.ValuesError,
        {"column": "x", "kind": "true and false"}),
    "no budget": (table(), said(budget=None), None, errors.BudgetMissingError, {"subject": "population 'everyone'"}),
    "a budget of nothing": (table(), said(budget="0"), None, errors.BudgetError, {}),
    "too much": (table(), said(epsilon="4"), None, errors.BudgetExceededError,
                 {"left": "3", "budget": "3", "needed": "4"}),
    "another budget": (table(), said(budget="5"), said(), errors.BudgetError, {"budget": "3", "asked": "5"}),
    "a level below": (table(), said(epsilon="0.5"), said(), errors.LevelError, {"previous": "1", "epsilon": "0.5"}),
    "another key": (table(), said(key="other"), said(), errors.WrongKeyError, {"attribute": "x", "epoch": 1}),
    "other values": (table(), said(values=["b", "a"]), said(), errors.ValuesChangedError, {"release": "people"}),
    "another encoding": (table(), said(encoding="unary-optimised"), said(), errors.ValuesChangedError,
                         {"recorded": "categorical", "given": "unary-optimised"}),
    "a changed table": (
        table(x=["b", "a"] * (ROWS // 2)), said(), said(), errors.TableChangedError, {"attribute": "x"}),
    "ids of another type": (
        table(id=[str(each) for each in range(ROWS)]), said(), said(), errors.IdTypeError,
        {"recorded": "integer", "given": "text"}),
    "forced for nothing": (table(), said(force=True), said(), errors.NothingChangedError, {}),
    "another ledger": (table(), said(ledger="second.db"), said(), errors.SecondLedgerError, {}),
    "next to nothing": (table(), said(epsilon="0.1"), None, errors.TellsNothingError, {"rows": ROWS, "column": "x"}),
    "nobody": (table(), said(population=""), None, errors.SubjectError, {}),
    "a name of an epoch": (table(), said(release="people (epoch 2)"), None, errors.PathNameError, {}),
    "no such key": (table(), said(key="lost"), None, errors.KeyFileError, {}),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for number, name in enumerate(("key", "other")):
        rx.Key.from_bytes(bytes([number]) * 32).save(name)
    Path("map.csv").write_text("a,ill\nc,well\n")
    Path("three.csv").write_text("a,b,c\n")
    Path("twice.csv").write_text("a,ill\na,well\n")
    return tmp_path


def test_there_are_forty() -> None:
    assert len(MISTAKES) >= 40


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_the_same_at_every_door(place: Path, mistake: str) -> None:
    data, asked, before, kind, fields = MISTAKES[mistake]
    told, words = [], set()
    for door in DOORS:
        shutil.rmtree(place / "ledger.db.snapshots", ignore_errors=True)
        for left in (*place.glob("out*"), *place.glob("*.db*")):
            left.unlink()
        for left in (place / "state").rglob("*"):
            if left.is_file():
                left.unlink()
        if before is not None:
            GO["frame"](table(), before)
        with pytest.raises(RelaxdpError) as caught:
            GO[door](data, asked)
        problem = caught.value
        assert type(problem) is kind, (door, repr(problem))
        assert fields.items() <= problem.fields.items(), (door, problem.fields)
        assert problem.consequence == "Nothing was released.", door
        assert not list(place.glob("out*")), door
        told.append({name: each for name, each in problem.fields.items() if name not in OF_A_DOOR})
        words.add((door == "command", problem.message))
    assert told[0] == told[1] == told[2]
    assert not any("--" in message for is_command, message in words if not is_command)


def test_every_door_has_its_own_words(place: Path) -> None:
    data, asked, before, _, _ = MISTAKES["a level below"]
    shown = {}
    GO["frame"](table(), before or {})
    for door in DOORS:
        with pytest.raises(RelaxdpError) as caught:
            GO[door](data, asked)
        shown[door] = str(caught.value)
    assert shown["file"] == shown["frame"]
    assert "again=True re-issues a lower level" in shown["frame"]
    assert "--again re-issues a lower level" in shown["command"]
    assert shown["command"].replace("--again", "again=True") == shown["frame"]
