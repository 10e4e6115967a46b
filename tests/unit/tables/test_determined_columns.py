"""Pass-through columns that give away a protected column cause a warning, and others do not."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.released import open_vault

import relaxdp as rx
from relaxdp.cli.main import main
from relaxdp.errors import DeterminedColumnWarning

ROWS = 2_000
RNG = np.random.default_rng(6)
DIAGNOSES = RNG.choice(["flu", "covid", "none"], ROWS, p=[0.1, 0.1, 0.8])
INCOMES = RNG.uniform(0, 100, ROWS)
CODES = np.searchsorted(["covid", "flu", "none"], DIAGNOSES)
FRAME = pd.DataFrame(
    {
        "id": np.arange(ROWS),
        "diagnosis": DIAGNOSES,
        "income": INCOMES,
        "code": CODES,
        "subcode": 10 * CODES + RNG.integers(0, 9, ROWS),
        "copy": DIAGNOSES,
        "amount": INCOMES,
        "name": [f"SECRET-{row}" for row in range(ROWS)],
        "region": RNG.choice(list("abcdefgh"), ROWS),
        "constant": 1,
        "listed": [[1]] * ROWS,
    }
)
DANGEROUS = {"code": "diagnosis", "subcode": "diagnosis", "copy": "diagnosis", "amount": "income"}
HARMLESS = ["name", "region", "constant"]
COLUMNS = {"diagnosis": ["flu", "covid", "none"], "income": rx.Numeric(0, 100)}


def list_warnings(vault: rx.Vault, data: Any, passthrough: list[str], columns: Any = COLUMNS, **more: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeterminedColumnWarning)
        vault.release(data, columns, id="id", epsilon=1, name="s", passthrough=passthrough, **more)
    assert "SECRET" not in str([each.message for each in caught])
    return [str(each.message) for each in caught if each.category is DeterminedColumnWarning]


@pytest.mark.parametrize("kind", ["frame", "shuffled", "csv", "parquet"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_columns_that_determine_a_protected_one_are_named(tmp_path: Path, kind: str, dry_run: bool) -> None:
    frame = FRAME if kind == "frame" else FRAME.sample(frac=1, random_state=1)
    passthrough: Any = [*DANGEROUS, *HARMLESS, *(["listed"] if kind == "parquet" else [])]
    data: Any = tmp_path / f"in.{kind}" if kind in ("csv", "parquet") else frame
    if kind == "csv":
        frame.drop(columns="listed").to_csv(data, index=False)
    elif kind == "parquet":
        frame.to_parquet(data)
    found = list_warnings(open_vault(tmp_path), data, passthrough, dry_run=dry_run)
    assert len(found) == len(DANGEROUS)
    for name, protected in DANGEROUS.items():
        assert any(f"{name!r} determines the protected column {protected!r}" in each for each in found)


def test_the_warning_changes_neither_reports_nor_costs(tmp_path: Path) -> None:
    vault = open_vault(tmp_path)
    for name in ("code", "region"):
        list_warnings(vault, FRAME, [name], output=tmp_path / f"{name}.parquet")
        assert vault.spent == 2
    one, other = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("code", "region"))
    assert one["diagnosis"].equals(other["diagnosis"])


def test_a_warning_that_is_an_error_charges_nothing(tmp_path: Path) -> None:
    vault = open_vault(tmp_path)
    with pytest.raises(DeterminedColumnWarning):  # as all warnings are in tests
        vault.release(FRAME, COLUMNS, id="id", epsilon=1, name="s", passthrough=["code"], output=tmp_path / "out.csv")
    assert not vault.spent
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("rows", [4, 20])
def test_chance_explains_what_few_rows_show(tmp_path: Path, rows: int) -> None:
    """Almost unique values determine everything. Few rows show nothing."""
    frame = FRAME[["id", "diagnosis"]].head(rows)
    frame["diagnosis"] = np.where(np.arange(rows) < rows // 2, "flu", "none")
    frame["pair"] = np.arange(rows) if rows > 4 else np.arange(rows) // 2
    columns = {"diagnosis": COLUMNS["diagnosis"]}
    assert list_warnings(open_vault(tmp_path), frame, ["pair"], columns, planned_epsilon=50) == []


def test_one_row_that_contradicts_is_enough(tmp_path: Path) -> None:
    frame = FRAME.assign(code=np.where(np.arange(ROWS) == ROWS - 1, 9 - CODES, CODES))
    frame.loc[ROWS - 1, "code"] = 2 if frame.loc[ROWS - 1, "diagnosis"] != "none" else 0
    assert list_warnings(open_vault(tmp_path), frame, ["code"]) == []


@pytest.mark.filterwarnings("default::relaxdp.errors.DeterminedColumnWarning")
def test_the_command_prints_a_line(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    open_vault(tmp_path)
    FRAME.drop(columns="listed").to_csv(tmp_path / "in.csv", index=False)
    vault = next(path for path in tmp_path.iterdir() if path.is_dir())
    words = f"relaxdp release {tmp_path}/in.csv {tmp_path}/out.csv --id id --vault {vault} --epsilon 1 --dry-run"
    monkeypatch.setattr("sys.argv", [*words.split(), "--column", "diagnosis=flu,covid,none", "--passthrough", "code"])
    with suppress(SystemExit):
        main()
    assert (
        "Warning: The pass-through column 'code' determines the protected column 'diagnosis'" in capsys.readouterr().err
    )
