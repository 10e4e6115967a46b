"""Wrong calls of a vault in Python: each is an error with a hint, charges nothing and leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

import relaxdp as rx
from relaxdp.errors import RelaxdpError

ROWS = 1_000
VALUES = ["flu", "covid", "none"]
SECRET = "a secret diagnosis"
TABLE = pa.table(
    {
        "patient": [f"patient {number:04}" for number in range(ROWS)],
        "number": range(ROWS),
        "diagnosis": [VALUES[number % 3] for number in range(ROWS)],
        "age": [number % 100 for number in range(ROWS)],
        "ward": ["a", "b"] * (ROWS // 2),
        "weight": [float(number) for number in range(ROWS)],
    }
)


def put(column: str, values: Any, table: Any = TABLE) -> Any:
    return table.set_column(table.schema.get_field_index(column), column, pa.array(values))


def cell(column: str, value: Any, row: int = 7) -> Any:
    """Return the table with another value in one row."""
    return put(column, [value if number == row else each for number, each in enumerate(TABLE[column].to_pylist())])


def release(vault: rx.Vault, data: Any = TABLE, **changes: Any) -> Any:
    asked: dict[str, Any] = {"columns": {"diagnosis": VALUES}, "id": "patient", "epsilon": 2, "name": "patients"}
    asked |= changes
    return vault.release(data, asked.pop("columns"), **asked)


def columns(**said: Any) -> dict[str, Any]:
    return {"columns": said}


# What is passed to `release` instead of the right arguments; the first value is the data.
RELEASES: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "epsilon 0": lambda: (TABLE, {"epsilon": 0}),
    "negative epsilon": lambda: (TABLE, {"epsilon": -1}),
    "epsilon nan": lambda: (TABLE, {"epsilon": float("nan")}),
    "infinite epsilon": lambda: (TABLE, {"epsilon": float("inf")}),
    "epsilon in words": lambda: (TABLE, {"epsilon": "much"}),
    "epsilon None": lambda: (TABLE, {"epsilon": None}),
    "epsilon True": lambda: (TABLE, {"epsilon": True}),
    "epsilon of one half precision": lambda: (TABLE, {"epsilon": np.float32(0.1)}),
    "tiny epsilon": lambda: (TABLE, {"epsilon": "1e-30"}),
    "beyond the budget": lambda: (TABLE, {"epsilon": 7}),
    "beyond the budget, two columns": lambda: (
        TABLE, {"epsilon": 4, "columns": {"diagnosis": VALUES, "ward": ["a", "b"]}, "name": "other"},
    ),
    "planned below": lambda: (TABLE, {"planned_epsilon": 1}),
    "planned in words": lambda: (TABLE, {"planned_epsilon": "later"}),
    "no columns": lambda: (TABLE, {"columns": {}}),
    "columns None": lambda: (TABLE, {"columns": None}),
    "columns as a list": lambda: (TABLE, {"columns": ["diagnosis"]}),
    "columns as text": lambda: (TABLE, {"columns": "diagnosis"}),
    "unknown column": lambda: (TABLE, columns(disease=VALUES)),
    "column in another case": lambda: (TABLE, columns(Diagnosis=VALUES)),
    "unknown id": lambda: (TABLE, {"id": "person"}),
    "id None": lambda: (TABLE, {"id": None}),
    "id is released": lambda: (TABLE, {"id": "diagnosis"}),
    "unknown pass-through": lambda: (TABLE, {"passthrough": ["hospital"]}),
    "pass-through is released": lambda: (TABLE, {"passthrough": ["diagnosis"]}),
    "pass-through is the id": lambda: (TABLE, {"passthrough": ["patient"]}),
    "pass-through twice": lambda: (TABLE, {"passthrough": ["ward", "ward"]}),
    "pass-through was released": lambda: (
        TABLE, {"columns": {"ward": ["a", "b"]}, "passthrough": ["diagnosis"], "name": "other"},
    ),
    "protects what left": lambda: (TABLE, {"columns": {"age": rx.Numeric(0, 120)}, "name": "other"}),
    "id was released": lambda: (TABLE, {"columns": {"ward": ["a", "b"]}, "id": "diagnosis", "name": "other"}),
    "one value": lambda: (TABLE, {"columns": {"ward": ["a"]}, "name": "other"}),
    "no values": lambda: (TABLE, {"columns": {"ward": []}, "name": "other"}),
    "values as a set": lambda: (TABLE, {"columns": {"ward": {"a", "b"}}, "name": "other"}),
    "values as text": lambda: (TABLE, {"columns": {"ward": "ab"}, "name": "other"}),
    "values None": lambda: (TABLE, {"columns": {"ward": None}, "name": "other"}),
    "values twice": lambda: (TABLE, {"columns": {"ward": ["a", "b", "a"]}, "name": "other"}),
    "values of two kinds": lambda: (TABLE, {"columns": {"ward": ["a", 1]}, "name": "other"}),
    "value that cannot be declared": lambda: (TABLE, {"columns": {"ward": ["a", Decimal(1)]}, "name": "other"}),
    "true and false as values": lambda: (TABLE, {"columns": {"ward": [True, False]}, "name": "other"}),
    "dates as values": lambda: (TABLE, {"columns": {"ward": [date(2026, 1, 1), date(2026, 1, 2)]}, "name": "other"}),
    "NaN as a value": lambda: (TABLE, {"columns": {"ward": ["a", float("nan")]}, "name": "other"}),
    "bytes for text": lambda: (TABLE, {"columns": {"ward": [b"a", b"b"]}, "name": "other"}),
    "values beyond 64 bits": lambda: (TABLE, {"columns": {"number": [0, 2**64]}, "name": "other"}),
    "values of both signs beyond 64 bits": lambda: (TABLE, {"columns": {"number": [-1, 2**63]}, "name": "other"}),
    "a range without width": lambda: (TABLE, {"columns": {"weight": (5, 5)}, "name": "other"}),
    "a class for values": lambda: (TABLE, {"columns": {"weight": rx.Numeric}, "name": "other"}),
    "two missing values": lambda: (TABLE, {"columns": {"ward": ["a", "b", None, None]}, "name": "other"}),
    "a number for values": lambda: (TABLE, {"columns": {"ward": 2}, "name": "other"}),
    "other values": lambda: (TABLE, columns(diagnosis=["flu", "covid"])),
    "other order of values": lambda: (TABLE, columns(diagnosis=VALUES[::-1])),
    "more values": lambda: (TABLE, columns(diagnosis=[*VALUES, "cold"])),
    "other mechanism": lambda: (TABLE, columns(diagnosis=rx.Unary(VALUES))),
    "numbers for text": lambda: (TABLE, columns(diagnosis=rx.Numeric(0, 1))),
    "text for numbers": lambda: (TABLE, {"columns": {"number": ["a", "b"]}, "name": "other"}),
    "undeclared value": lambda: (cell("diagnosis", SECRET), {"epsilon": 2}),
    "undeclared value, new name": lambda: (cell("diagnosis", SECRET), {"name": "other"}),
    "missing value": lambda: (cell("diagnosis", None), {"name": "other"}),
    "number outside": lambda: (cell("weight", 1e9), {"columns": {"weight": rx.Numeric(0, 1000)}, "name": "other"}),
    "missing number": lambda: (cell("weight", None), {"columns": {"weight": rx.Numeric(0, 1000)}, "name": "other"}),
    "infinite number": lambda: (
        cell("weight", float("inf")), {"columns": {"weight": rx.Numeric(0, 1000)}, "name": "other"},
    ),
    "changed value": lambda: (cell("diagnosis", "flu", 1), {}),
    "changed value, same level": lambda: (cell("diagnosis", "flu", 1), {"epsilon": 1}),
    "changed value, lower level": lambda: (cell("diagnosis", "flu", 1), {"epsilon": "0.5"}),
    "respelled ids": lambda: (put("patient", [each.upper() for each in TABLE["patient"].to_pylist()]), {}),
    "ids with spaces": lambda: (put("patient", [f" {each}" for each in TABLE["patient"].to_pylist()]), {}),
    "one respelled id": lambda: (cell("patient", "Patient 0007"), {}),
    "other ids": lambda: (put("patient", [f"person {number}" for number in range(ROWS)]), {}),
    "ids of another type": lambda: (put("patient", range(ROWS)), {}),
    "repeated id": lambda: (cell("patient", "patient 0008"), {}),
    "missing id": lambda: (cell("patient", None), {}),
    "floating ids": lambda: (TABLE, {"id": "weight", "name": "other"}),
    "boolean ids": lambda: (put("number", [True, False] * 500), {"id": "number", "name": "other"}),
    "date ids": lambda: (put("number", [date(2026, 1, 1)] * ROWS), {"id": "number", "name": "other"}),
    "no rows": lambda: (TABLE.slice(0, 0), {"name": "other"}),
    "few rows": lambda: (TABLE.slice(0, 5), {"name": "other", "columns": {"ward": ["a", "b"]}, "epsilon": "0.1"}),
    "accepts new rows in words": lambda: (TABLE, {"accept_new_rows": "no"}),
    "accepts new rows by a list": lambda: (TABLE, {"accept_new_rows": [True]}),
    "dry run in words": lambda: (TABLE, {"dry_run": "no"}),
    "pass-through is a number": lambda: (TABLE, {"passthrough": 1.5}),
    "pass-through with commas": lambda: (TABLE, {"passthrough": "ward,weight"}),
    "a list as id": lambda: (TABLE, {"id": ["patient"]}),
    "a tuple as column": lambda: (TABLE, {"columns": {("ward",): ["a", "b"]}, "name": "other"}),
    "an epsilon for each column": lambda: (TABLE, {"epsilon": {"diagnosis": 1}}),
    "a list as name": lambda: (TABLE, {"name": ["patients"]}),
    "name None": lambda: (TABLE, {"name": None}),
    "empty name": lambda: (TABLE, {"name": ""}),
    "name with a blank": lambda: (TABLE, {"name": " patients"}),
    "name with a line break": lambda: (TABLE, {"name": "patients\n"}),
    "name not composed": lambda: (TABLE, {"name": "u\u0308ber"}),
    "name with half a character": lambda: (TABLE, {"name": "\ud800"}),
    "endless name": lambda: (TABLE, {"name": "n" * 501}),
    "a number as name": lambda: (TABLE, {"name": 7}),
    "retired name": lambda: (TABLE, {"name": "retired"}),
    "data None": lambda: (None, {}),
    "a number as data": lambda: (7, {}),
    "a list as data": lambda: ([1, 2], {}),
    "a dictionary as data": lambda: ({"patient": [1]}, {}),
    "a series as data": lambda: (pd.Series([1, 2]), {}),
    "bytes as data": lambda: (b"patient", {}),
    "an array as data": lambda: (np.zeros((3, 3)), {}),
    "a vault as data": lambda: ("study.vault", {}),
    "missing file": lambda: ("missing.parquet", {"output": "new.parquet"}),
    "file of another kind": lambda: ("table.xlsx", {"output": "new.parquet"}),
    "damaged file": lambda: ("damaged.parquet", {"output": "new.parquet"}),
    "text that is not UTF-8": lambda: ("latin.csv", {"output": "new.parquet", "name": "other"}),
    "decimal commas": lambda: (
        "commas.csv", {"output": "new.parquet", "name": "other", "columns": {"weight": rx.Numeric(0, 2000)}},
    ),
    "an empty folder": lambda: ("empty", {"output": "new.parquet"}),
    "an address": lambda: ("s3://nobody:secret@localhost/none.parquet", {"output": "new.parquet"}),
    "released file": lambda: ("released.parquet", {"output": "new.parquet", "name": "other"}),
    "released frame": lambda: (pd.read_parquet("released.parquet"), {"name": "other"}),
    "output exists": lambda: (TABLE, {"output": "released.parquet"}),
    "output of another kind": lambda: (TABLE, {"output": "new.xlsx"}),
    "output is a folder": lambda: (TABLE, {"output": "empty"}),
    "output in no folder": lambda: (TABLE, {"output": "nowhere/new.parquet"}),
    "output is empty": lambda: (TABLE, {"output": ""}),
    "output is bytes": lambda: (TABLE, {"output": b"new.parquet"}),
    "output is the input": lambda: ("table.parquet", {"output": "table.parquet"}),
    "output is a number": lambda: (TABLE, {"output": 7}),
    "two columns of one name": lambda: (pd.DataFrame([[1, 2]], columns=["patient", "patient"]), {}),
    "taken name of reports": lambda: (
        TABLE.append_column("weight_report", TABLE["ward"]),
        {"columns": {"weight": rx.Numeric(0, 1000)}, "passthrough": ["weight_report"], "name": "other"},
    ),
    "union as pass-through": lambda: (
        pl.DataFrame({"patient": TABLE["patient"].to_pylist(), "diagnosis": TABLE["diagnosis"].to_pylist()})
        .with_columns(odd=pl.lit(object(), dtype=pl.Object)),
        {"passthrough": ["odd"]},
    ),
}  # fmt: skip

CALLS: dict[str, Callable[[rx.Vault], object]] = {
    "relax an unknown name": lambda vault: vault.relax("people", 2),
    "relax a retired name": lambda vault: vault.relax("retired", 2),
    "relax an unknown column": lambda vault: vault.relax("patients", 2, columns=["age"]),
    "relax no column": lambda vault: vault.relax("patients", 2, columns=[]),
    "relax a column twice": lambda vault: vault.relax("patients", 2, columns=["diagnosis", "diagnosis"]),
    "relax to 0": lambda vault: vault.relax("patients", 0),
    "relax beyond the budget": lambda vault: vault.relax("patients", 7),
    "relax to an output that exists": lambda vault: vault.relax("patients", 2, output="released.parquet"),
    "relax None": lambda vault: vault.relax(None, 2),  # type: ignore[arg-type]
    "relax a list": lambda vault: vault.relax(["patients"], 2),  # type: ignore[arg-type]
    "relax a number for columns": lambda vault: vault.relax("patients", 2, columns=7),  # type: ignore[arg-type]
    "relax to a number": lambda vault: vault.relax("patients", 2, output=7),  # type: ignore[arg-type]
    "relax dryly in words": lambda vault: vault.relax("patients", 2, dry_run="no"),  # type: ignore[arg-type]
    "raise with a reason of two lines": lambda vault: vault.raise_budget(9, reason="a\nb"),
    "raise without a number": lambda vault: vault.raise_budget(None, reason="why"),  # type: ignore[arg-type]
    "retire a list": lambda vault: vault.retire(["patients"], reason="why"),  # type: ignore[arg-type]
    "back up to a number": lambda vault: vault.backup(7),  # type: ignore[arg-type]
    "back up a key in words": lambda vault: vault.backup("backup", with_key="no"),  # type: ignore[arg-type]
    "check a number": lambda vault: vault.check(7),  # type: ignore[arg-type]
    "create at a number": lambda vault: rx.Vault.create(7, budget=2),  # type: ignore[arg-type]
    "create with a number as key": lambda vault: rx.Vault.create("new.vault", budget=2, key_file=7),  # type: ignore[arg-type]
    "create with a number as command": lambda vault: rx.Vault.create("new.vault", budget=2, key_command=7),  # type: ignore[arg-type]
    "create with a number as ledger": lambda vault: rx.Vault.create("new.vault", budget=2, ledger=7),  # type: ignore[arg-type]
    "raise to less": lambda vault: vault.raise_budget(3, reason="less"),
    "raise without a reason": lambda vault: vault.raise_budget(9, reason=""),
    "raise in words": lambda vault: vault.raise_budget("more", reason="why"),
    "retire an unknown name": lambda vault: vault.retire("people", reason="why"),
    "retire twice": lambda vault: vault.retire("retired", reason="why"),
    "retire without a reason": lambda vault: vault.retire("patients", reason=" "),
    "adopt the newest": lambda vault: vault.adopt(reason="why"),
    "adopt without a reason": lambda vault: vault.adopt(reason=""),
    "back up to what exists": lambda vault: vault.backup("empty"),
    "back up into nothing": lambda vault: vault.backup("nowhere/backup"),
    "create again": lambda vault: rx.Vault.create(vault.path, budget=2),
    "create in nothing": lambda vault: rx.Vault.create("nowhere/new.vault", budget=2),
    "create without a budget": lambda vault: rx.Vault.create("new.vault", budget=0),
    "create with two keys": lambda vault: rx.Vault.create("new.vault", budget=2, key_file="k", key_command="cat k"),
    "create with the key of another": lambda vault: rx.Vault.create(
        "new.vault", budget=2, key_command=f"cat {vault.path / 'key'}"
    ),
    "create with a failing command": lambda vault: rx.Vault.create("new.vault", budget=2, key_command="false"),
    "create over a key": lambda vault: rx.Vault.create("new.vault", budget=2, key_file=vault.path / "key"),
    "create with another database": lambda vault: rx.Vault.create("new.vault", budget=2, ledger="mysql://localhost/x"),
    "open nothing": lambda vault: rx.Vault("missing.vault"),
    "open a file": lambda vault: rx.Vault("released.parquet"),
    "open a number": lambda vault: rx.Vault(7),  # type: ignore[arg-type]
    "load the key of a vault": lambda vault: rx.Key.load(vault.path / "key"),
}


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rx.Vault:
    monkeypatch.chdir(tmp_path)
    vault = rx.Vault.create("study.vault", budget=6)
    release(vault, epsilon=1, output="released.parquet", passthrough=["age"])
    release(vault, epsilon=1, name="retired")
    vault.retire("retired", reason="over")
    Path("empty").mkdir()
    Path("table.xlsx").write_bytes(b"PK")
    Path("damaged.parquet").write_bytes(Path("released.parquet").read_bytes()[:-300])
    Path("latin.csv").write_bytes("patient,diagnosis\n1,flu\n2,gr\u00fcn\n".encode("latin-1"))
    rows = "".join(f'{number:04},"{number},5"\n' for number in range(ROWS))
    Path("commas.csv").write_text(f"patient,weight\n{rows}", "utf-8")
    pa_csv.write_csv(TABLE, "table.csv")
    pa_parquet.write_table(TABLE, "table.parquet")
    return vault


def look(folder: Path) -> dict[str, bytes]:
    """Return everything in a folder, and the stamps of the vaults."""
    state = Path(os.environ["XDG_STATE_HOME"])
    files = [each for place in (folder, state) for each in place.rglob("*")]
    return {str(each): each.read_bytes() if each.is_file() else b"" for each in files}


def check_rejected(vault: rx.Vault, call: Callable[[], object]) -> None:
    before = look(vault.path.parent)
    with pytest.raises(RelaxdpError) as caught:
        call()
    problem = caught.value
    assert problem.hint, problem.message
    assert SECRET not in repr(problem)
    assert problem.__context__ is None or SECRET not in repr(problem.__context__)
    assert look(vault.path.parent) == before


@pytest.mark.parametrize("case", RELEASES)
def test_wrong_releases(vault: rx.Vault, case: str) -> None:
    data, changes = RELEASES[case]()
    check_rejected(vault, lambda: release(vault, data, **changes))


@pytest.mark.parametrize("case", CALLS)
def test_wrong_calls(vault: rx.Vault, case: str) -> None:
    check_rejected(vault, lambda: CALLS[case](vault))


def test_the_right_call(vault: rx.Vault) -> None:
    """Everything above is wrong in one point only."""
    assert float(release(vault).cost) == 1
    assert float(release(vault, "table.csv", output="new.csv", name="files").cost) == 2
    assert float(release(vault, accept_new_rows=np.True_, dry_run=0).cost) == 0
    assert vault.check("released.parquet").is_good
    assert len(RELEASES) + len(CALLS) > 160
