"""The public calls with files: one call does what a command does, byte for byte; what makes no sense is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import (
    CountsError,
    DeriveError,
    LedgerAccessError,
    OptionError,
    PathChangedError,
    TableChangedError,
    ValuesError,
)
from relaxdp.ledger.ledger import Ledger

ROWS = 3_000
WHERE: dict[str, Any] = {"id": "id", "epsilon": "0.5", "key": "key"}
WORDS = ["--id", "id", "--epsilon", "0.5", "--key", "key", "--budget", "9"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rx.Key.from_bytes(bytes(range(32))).save("key")
    write(range(ROWS))
    Path("map.csv").write_text("a,ill\nb,ill\nc,well\n")
    return tmp_path


def write(ids: Any, name: str = "in.parquet") -> None:
    numbers = np.array(ids)
    answers = np.array(["a", "b", "c"])[numbers % 3]
    holes = [None if number % 5 == 0 else answer for number, answer in zip(numbers, answers, strict=True)]
    columns = {"id": numbers, "answer": answers, "hole": holes, "number": numbers % 90, "flag": numbers % 2 == 0}
    pa_parquet.write_table(pa.table(columns), name)


@pytest.mark.parametrize(
    ("column", "said", "words"),
    [
        ("answer", ["a", "b", "c"], ["--values", "a,b,c"]),
        ("answer", rx.Categorical(["a", "b", "c"]), ["--values", "a,b,c"]),
        ("answer", rx.Column(map="map.csv"), ["--map", "map.csv"]),
        ("answer", rx.Column(map={"a": "ill", "b": "ill", "c": "well"}), ["--map", "map.csv"]),
        ("answer", rx.Column(values=["a", "b", "c"], encoding="unary-optimised"),
         ["--values", "a,b,c", "--encoding", "unary-optimised"]),
        ("hole", rx.Column(values=["a", "b", "c"], nulls="none"), ["--values", "a,b,c", "--nulls", "none"]),
        ("number", rx.Column(bins=[18, 65]), ["--bins", "18,65"]),
        ("number", rx.Column(range=(0, 90)), ["--range", "0", "90"]),
        ("number", rx.Numeric(0, 90), ["--range", "0", "90"]),
        ("number", list(range(90)), ["--values", ",".join(map(str, range(90)))]),
        ("flag", ["true", "false"], ["--values", "true,false"]),
    ],
)  # fmt: skip
def test_a_call_writes_what_the_command_writes(column: str, said: Any, words: list[str]) -> None:
    done = rx.release("in.parquet", {column: said}, to="call.parquet", budget=9, accept=True, **WHERE)
    assert (done.rows, done.columns, done.to, done.release) == (ROWS, (column,), Path("call.parquet"), "in")
    assert [str(charge.cost) for charge in done.charges] == ["0.5"]
    result = CliRunner().invoke(app, ["release", "in.parquet", "command.parquet", "--column", column, *words, *WORDS])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "cost 0;" in result.output  # the same path, at the same level
    assert Path("call.parquet").read_bytes() == Path("command.parquet").read_bytes()
    frame = rx.release(pa_parquet.read_table("in.parquet"), {column: said}, release="in", **WHERE)
    assert frame.column(column).to_pylist() == pa_parquet.read_table("call.parquet").column(column).to_pylist()


def test_estimates_from_files_are_those_from_frames() -> None:
    columns: Any = {"answer": ["a", "b", "c"], "number": rx.Column(bins=[30, 60])}
    for level, budget in (("0.5", 9), ("2", None)):
        where = WHERE | {"epsilon": level}
        rx.release("in.parquet", columns, to=f"{level}.parquet", keep=["flag"], budget=budget, **where)
    one, both = "2.parquet", list[str | Path](["0.5.parquet", Path("2.parquet")])
    frames = [pa_parquet.read_table(file) for file in both]
    assert np.array_equal(rx.estimate(one, "answer").value, rx.estimate(frames[1], "answer").value)
    assert np.array_equal(rx.estimate(both, "answer").value, rx.estimate(frames, "answer").value)
    groups = rx.estimate(one, "answer", by="flag")
    assert sorted(groups) == ["false", "true"]
    crossed, other = (rx.estimate(each, "answer", cross="number") for each in (one, frames[1]))
    assert np.array_equal(crossed.value, other.value)
    assert rx.count(one, "answer").objects == ROWS
    tally: Any = rx.count(both, "answer")
    assert tally.levels == {"2": ROWS}
    with refused(CountsError, option="by"):
        rx.estimate(one, "answer", by="flag", cross="number")


def test_a_dry_run_writes_and_charges_nothing() -> None:
    said: Any = {"answer": ["a", "b", "c"]}
    quote = rx.release("in.parquet", said, to="out.parquet", budget=9, dry_run=True, **WHERE)
    assert (quote.rows, str(quote.charges[0].cost)) == (None, "0.5")
    assert not Path("out.parquet").exists()
    assert not Path("key.ledger").exists()
    with refused(OptionError, option="dry_run"):
        rx.release("in.parquet", said, to="out.parquet", ledger=None, dry_run=True, **WHERE)


def test_reports_are_relaxed_once() -> None:
    said: Any = {"answer": ["a", "b", "c"]}
    rx.release("in.parquet", said, to="old.parquet", budget=9, **WHERE)
    where = WHERE | {"epsilon": 1}
    done = rx.relax_reports("in.parquet", said, reports="old.parquet", to="new.parquet", **where)
    assert (done.rows, str(done.charges[0].cost)) == (ROWS, "0.5")
    with refused(rx.errors.LevelError, says="a second draw at one level would break the guarantee"):
        rx.relax_reports("in.parquet", said, reports="old.parquet", to="again.parquet", **where)


def test_rows_join_and_leave() -> None:
    said: Any = {"answer": ["a", "b", "c"]}
    rx.release("in.parquet", said, to="one.parquet", budget=9, growing=True, **WHERE)
    write(range(20, ROWS + 20))
    assert rx.release("in.parquet", said, to="two.parquet", growing=True, **WHERE).rows == ROWS
    with refused(PathChangedError):
        rx.release("in.parquet", said, to="three.parquet", **WHERE)
    with refused(OptionError, option="growing"):
        rx.release(pa_parquet.read_table("in.parquet"), said, release="in", growing=True, **WHERE)


def test_tags_need_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database has no folder beside it, and a key that comes from no file has none either."""
    with Ledger.open("ledger.db") as ledger:
        monkeypatch.setattr(Ledger, "address", "postgresql://example/ledger")
        where = WHERE | {"key": rx.Key.from_bytes(bytes(range(32))), "ledger": ledger}
        with refused(OptionError, option="growing", says="this key comes from no file"):
            rx.release("in.parquet", {"answer": ["a", "b", "c"]}, to="out.parquet", growing=True, budget=9, **where)


def test_the_ledger_beside_the_key_is_the_default() -> None:
    said: Any = {"answer": ["a", "b", "c"]}
    rx.release("in.parquet", said, to="one.parquet", budget=9, **WHERE)
    assert Path("key.ledger").exists()
    rx.Key.generate().save("other")
    with refused(LedgerAccessError, other="key.ledger", file="other.ledger", remedy="which_ledger"):
        rx.release("in.parquet", said, to="two.parquet", budget=9, **(WHERE | {"key": "other"}))
    write(range(ROWS), "next-year.parquet")
    with refused(PathChangedError, column="answer", other="in", remedy="which_release"):
        rx.release("next-year.parquet", said, to="two.parquet", **(WHERE | {"epsilon": 1}))
    rx.release("next-year.parquet", said, to="two.parquet", **(WHERE | {"release": "bom"}))
    with refused(PathChangedError, column="answer", listed="'bom', 'in'", remedy="which_releases"):
        rx.release("next-year.parquet", said, to="three.parquet", **WHERE)
    changed = pa_parquet.read_table("in.parquet").slice(1)
    with refused(TableChangedError):
        rx.release(changed, said, release="in", **WHERE)


MISTAKES: dict[str, tuple[dict[str, Any], type[rx.errors.RelaxdpError], dict[str, Any]]] = {
    "no target": ({"to": None}, OptionError, {"option": "to", "remedy": "to"}),
    "a frame with a target": ({"source": pa.table({"id": [1], "answer": ["a"]})}, OptionError, {"option": "to"}),
    "no such engine": ({"engine": "magic"}, OptionError, {"engine": "magic"}),
    "Spark's words without Spark": ({"partitions": 3}, OptionError, {"options": "partitions", "remedy": "engine"}),
    "no columns": ({"columns": {}}, ValuesError, {"remedy": "columns"}),
    "columns without a word": ({"columns": ["answer"]}, ValuesError, {"remedy": "columns"}),
    "a text for a list": ({"columns": {"answer": "abc"}}, ValuesError, {}),
    "an empty map": ({"columns": {"answer": rx.Column(map={})}}, DeriveError, {}),
    "a map of numbers": ({"columns": {"answer": rx.Column(map={1: 2})}}, DeriveError, {}),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_makes_no_sense(mistake: str) -> None:
    changes, kind, fields = MISTAKES[mistake]
    asked: dict[str, Any] = {"source": "in.parquet", "columns": {"answer": ["a", "b", "c"]}, "to": "out.parquet"}
    asked |= WHERE | {"budget": 9, "release": "in"} | changes
    source, columns = asked.pop("source"), asked.pop("columns")
    with refused(kind, **fields) as caught:
        rx.release(source, columns, **asked)
    assert caught.value.consequence == "Nothing was released."
    assert not Path("out.parquet").exists()


def test_a_frame_needs_a_name() -> None:
    with refused(OptionError, option="release", remedy="release"):
        rx.release(pa_parquet.read_table("in.parquet"), {"answer": ["a", "b", "c"]}, budget=9, **WHERE)


IN_A_NOTEBOOK = """
import sys, types
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["ipywidgets"] = None
import relaxdp as rx
rx.release("mixed.parquet", {"answer": ["a", "b", "c"]}, to="out.parquet", id="id", epsilon=1, key="key", budget=9)
print(rx.estimate("out.parquet").labels)
"""


def test_a_notebook_needs_no_widgets() -> None:
    """DuckDB refuses to be told that it draws no bar where it could not draw one: sorting and counting go on."""
    write(range(ROWS, 0, -1), "mixed.parquet")
    done = subprocess.run(
        [sys.executable, "-c", IN_A_NOTEBOOK], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == "('a', 'b', 'c')\n", done.stderr
