"""The vault: what neither files nor copies of it may show or allow."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ColumnError, LedgerError, MechanismError, OldVaultError, VaultError
from relaxdp.mechanisms import registry
from relaxdp.mechanisms.base import TrueValues
from relaxdp.mechanisms.registry import MechanismKind, register_mechanism
from relaxdp.tables import transaction
from relaxdp.tables.files import BATCH_ROWS
from relaxdp.tables.snapshot import ChunkKind, TrueRows
from relaxdp.tables.snapshot_comparison import SnapshotComparer

VALUES = ["no", "a very long answer that takes many letters"]


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rx.Vault:
    monkeypatch.chdir(tmp_path)
    return rx.Vault.create("study.vault", budget=9)


def release(vault: rx.Vault, data: Any, **more: Any) -> rx.Release:
    asked: dict[str, Any] = {"id": "id", "epsilon": 1, "name": "answers", **more}
    return vault.release(data, {"answer": VALUES}, **asked)


def row_groups(file: str) -> list[int]:
    metadata = pa_parquet.ParquetFile(file).metadata
    return [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]


@pytest.mark.parametrize("share", [0, 50, 99])
def test_row_groups_do_not_depend_on_true_values(vault: rx.Vault, share: int) -> None:
    """A block of a text file holds more rows where the answers are short: the output must not show it."""
    rows = 2 * BATCH_ROWS + 100
    lines = (f"{number:07},{VALUES[number % 100 < share]}\n" for number in range(rows))
    Path("in.csv").write_text("id,answer\n" + "".join(lines), "utf-8")
    release(vault, "in.csv", output="out.parquet")
    vault.relax("answers", 2, output="relaxed.parquet")
    assert row_groups("out.parquet") == row_groups("relaxed.parquet") == [BATCH_ROWS, BATCH_ROWS, 100]
    (snapshot,) = (vault.path / "snapshots").iterdir()
    again = rx.Vault.create("other.vault", budget=9)
    release(again, pa.table({"id": [f"{number:07}" for number in range(rows)], "answer": [VALUES[0]] * rows}))
    (other,) = (again.path / "snapshots").iterdir()
    assert snapshot.stat().st_size == other.stat().st_size


def test_chunks_of_a_frame_do_not_show(vault: rx.Vault) -> None:
    parts = [
        pa.table({"id": range(1234), "answer": [VALUES[0]] * 1234}),
        pa.table({"id": range(1234, 3000), "answer": [VALUES[1]] * 1766}),
    ]
    release(vault, pa.concat_tables(parts), output="out.parquet")
    assert row_groups("out.parquet") == [3000]


def test_a_slice_does_not_carry_other_rows_along(vault: rx.Vault) -> None:
    table = pa.table(
        {
            "id": range(2000),
            "answer": [VALUES[number % 2] for number in range(2000)],
            "zip": [f"zip {n}" for n in range(2000)],
        }
    )
    for data in (table.slice(0, 1000), table.to_pandas().head(1000)):
        made = release(vault, data, passthrough=["zip"])
        for kept in (made, made.to_frame()):
            assert b"zip 999" in pickle.dumps(kept)
            assert b"zip 1999" not in pickle.dumps(kept)


def test_two_copies_are_not_charged_one_after_the_other(vault: rx.Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were planned before either was charged. The second one is behind the stamp by then."""
    shutil.copytree(vault.path, "copy.vault")
    copy, charge = rx.Vault("copy.vault"), transaction._charge
    table = pa.table({"id": range(1000), "answer": VALUES * 500})

    def charge_copy_first(*arguments: Any) -> Any:
        monkeypatch.setattr(transaction, "_charge", charge)
        release(copy, table, name="copy")
        return charge(*arguments)

    monkeypatch.setattr(transaction, "_charge", charge_copy_first)
    with refused(OldVaultError, says="forgotten"):
        release(vault, table)
    assert float(copy.spent) == 1
    with refused(OldVaultError):
        vault.spent  # noqa: B018
    vault.adopt(reason="the other copy is gone")
    assert float(vault.spent) == 0


def test_retiring_removes_what_a_kill_left(vault: rx.Vault) -> None:
    table = pa.table({"id": range(1000), "answer": VALUES * 500})
    pa_parquet.write_table(table, "in.parquet")
    release(vault, table)
    program = (
        "import os, relaxdp as rx; from relaxdp.tables import transaction\n"
        "transaction._charge = lambda *_: os._exit(9)\n"
        f"rx.Vault('study.vault').release('in.parquet', {{'answer': {VALUES!r}}}, id='id', epsilon=2, name='answers')\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, env=dict(os.environ)).returncode == 9
    assert len(list((vault.path / "snapshots").iterdir())) == 2
    vault.retire("answers", reason="over")
    assert not list((vault.path / "snapshots").iterdir())


def test_relaxing_gives_two_columns_no_common_name(vault: rx.Vault) -> None:
    ids = range(1000)
    vault.release(
        pa.table({"id": ids, "age": [20.0, 60.0] * 500}), {"age": rx.Numeric(0, 100)}, id="id", epsilon=1, name="n"
    )
    vault.release(
        pa.table({"id": ids, "age_report": VALUES * 500}), {"age_report": VALUES}, id="id", epsilon=1, name="n"
    )
    with refused(ColumnError, column="age_report"):
        vault.relax("n", 2)
    assert vault.relax("n", 2, columns=["age"]).rows == 1000


def test_a_link_does_not_hide_the_mode_of_a_vault(vault: rx.Vault) -> None:
    Path("link.vault").symlink_to(vault.path)
    vault.path.chmod(0o755)
    with refused(VaultError, says="can be read by other users"):
        rx.Vault("link.vault")


def test_a_run_out_of_order_is_rejected() -> None:
    """Rows of it would be taken for new ones, and drawn a second time."""

    class Disordered:
        def read_rows(self, kind: ChunkKind) -> Any:
            for first in (5, 1) if kind is ChunkKind.PRESENT else ():
                yield TrueRows(pa.array([first, first + 1]), TrueValues(np.zeros(2, np.uint64)))

    comparison = SnapshotComparer(Disordered(), has_left=False)  # type: ignore[arg-type]
    with refused(VaultError, says="order"):
        comparison.compare_rows(TrueRows(pa.array([9]), TrueValues(np.zeros(1, np.uint64))))


@pytest.mark.parametrize("letter", ["\u200b", "\u00ad", "\ufeff", "\x00", "\x0b", "\x85", "\u00a0"])
def test_characters_that_are_not_seen_make_no_new_individual(vault: rx.Vault, letter: str) -> None:
    ids = [f"person {number}" for number in range(1000)]
    table = pd.DataFrame({"id": ids, "answer": VALUES * 500})
    release(vault, table)
    table.loc[7, "id"] = ids[7] + letter
    with pytest.raises(rx.errors.RowsChangedError, match="differ from released ones only"):
        release(vault, table)


@pytest.mark.parametrize(
    ("known", "written"),
    [("Weiß", "WEISS"), ("Νίκος", "ΝΊΚΟΣ"), ("\ufb01nn", "FINN"), ("J\u030c", "\u01f0"), ("７.0", "007")],
)
def test_letters_of_another_case_make_no_new_individual(vault: rx.Vault, known: str, written: str) -> None:
    ids = [known, *(f"person {number}" for number in range(999))]
    table = pd.DataFrame({"id": ids, "answer": VALUES * 500})
    release(vault, table)
    table.loc[0, "id"] = written
    with pytest.raises(rx.errors.RowsChangedError, match="differ from released ones only"):
        release(vault, table)


def test_a_missing_key_is_not_replaced(vault: rx.Vault) -> None:
    (vault.path / "key").rename("elsewhere")
    with refused(VaultError, says="of the vault is missing") as caught:
        rx.Vault("study.vault")
    assert "Copy the vault's key" in caught.value.hint


def test_a_backup_with_the_key_is_a_vault_without_the_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the key was kept outside of the vault."""
    monkeypatch.chdir(tmp_path)
    vault = rx.Vault.create("study.vault", budget=9, key_file="outside.key")
    release(vault, pa.table({"id": range(1000), "answer": VALUES * 500}))
    vault.backup("copy.vault", with_key=True)
    vault.backup("bare.vault")
    shutil.rmtree("study.vault")
    rx.Vault("bare.vault")
    Path("outside.key").unlink()
    assert rx.Vault("copy.vault").check().is_good
    with refused(VaultError, says="is missing"):
        rx.Vault("bare.vault")


def test_releases_and_balances_print_as_tables_with_the_risk(vault: rx.Vault) -> None:
    assert repr(vault).splitlines() == [
        "Vault 'study.vault': spent 0 of the budget 9, 9 remaining.",
        "Nothing was released yet.",
    ]
    made = release(vault, pd.DataFrame({"id": range(1000), "answer": [VALUES[0]] * 1000}))
    risk = "Risk at epsilon 1 of all releases together: a guess between two answers is right at most 73.2 % of the time"
    for text in (repr(made), repr(vault), made._repr_html_(), vault._repr_html_()):
        assert "k-ary randomized response" in text
        assert risk in text
    # Columns may depend on one another, so a second one raises the risk of both.
    second = release(vault, pd.DataFrame({"id": range(1000), "answer": [VALUES[0]] * 1000}), name="second")
    assert "at most 88.1 %" in repr(second).splitlines()[2]
    assert vault.releases()["risk"].tolist() == ["at most 88.1 %"] * 2


def test_a_lazy_frame_is_released_without_a_warning(vault: rx.Vault) -> None:
    frame = pl.LazyFrame({"id": range(1000), "answer": VALUES * 500})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert release(vault, frame).to_frame().collect().height == 1000


def test_an_empty_ledger_url_creates_no_vault(tmp_path: Path) -> None:
    """Such as --ledger "$URL" with the variable unset: copies of a vault that counts as shared would go unnoticed."""
    with refused(LedgerError, says="must be the URL"):
        rx.Vault.create(tmp_path / "study.vault", budget=1, ledger="")
    assert list(tmp_path.iterdir()) == []


def test_snapshots_that_vanish_are_damage(vault: rx.Vault) -> None:
    shutil.rmtree(vault.path / "snapshots")
    with refused(VaultError, name="snapshots"):
        release(vault, pa.table({"id": [1, 2], "answer": VALUES}), planned_epsilon=9)


class Grades(rx.Mechanism):
    """A mechanism of somebody else, which is derived from the base class."""

    name = "grades"

    def __init__(self, values: Any) -> None:
        self._inner = rx.Categorical(values)
        self.alphabet = len(values)

    @property
    def labels(self) -> Any:
        return self._inner.values

    @property
    def params(self) -> bytes:
        return self._inner.params

    def read_true_values(self, column: Any, first_row: int = 0) -> TrueValues:
        return self._inner.read_true_values(column, first_row)

    def compute_true_symbols(self, truths: TrueValues, permanent: Any) -> Any:
        return self._inner.compute_true_symbols(truths, permanent)

    def read_label_column(self, column: Any) -> Any:
        return self._inner.read_label_column(column)


@pytest.mark.parametrize("highest", [0, 299])
def test_a_mechanism_of_somebody_else_is_relaxed_and_estimated(
    vault: rx.Vault, monkeypatch: pytest.MonkeyPatch, highest: int
) -> None:
    """The length of its snapshot shows no true value either: 255 is the last that fits into a byte."""
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    grades = Grades(range(300))
    frame = pa.table({"id": range(2000), "grade": [0] * 1999 + [highest]})
    asked: dict[str, Any] = {"id": "id", "epsilon": 8, "name": "grades"}
    with refused(MechanismError, mechanism="grades", column="grade"):  # it could never be relaxed
        vault.release(frame, {"grade": grades}, **asked)
    assert vault.spent == 0
    register_mechanism(MechanismKind("grades", "values", Grades))
    first = vault.release(frame, {"grade": grades}, **asked)
    assert rx.estimate(first)[0].value > 0.5
    assert vault.release(frame, {"grade": grades}, **asked).cost == 0
    assert vault.relax("grades", 9).to_frame().num_rows == 2000
    (snapshot,) = (vault.path / "snapshots").iterdir()
    other = rx.Vault.create("other.vault", budget=9)
    other.release(frame.set_column(1, "grade", pa.array([7] * 2000)), {"grade": grades}, **asked)
    (same,) = (other.path / "snapshots").iterdir()
    assert snapshot.stat().st_size == same.stat().st_size
