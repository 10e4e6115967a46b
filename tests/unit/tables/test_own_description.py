"""A released table that describes itself is estimated by its own description, whatever the caller gives."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import status_and_words
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import MetadataError

VALUES = ["yes", "no"]
ROWS = 3000
TRUE_SHARE = 0.7
TABLE = {
    "person": np.arange(ROWS),
    "smokes": np.where(np.arange(ROWS) < TRUE_SHARE * ROWS, *VALUES),
    "region": np.where(np.arange(ROWS) % 2 == 0, *VALUES),
}


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rx.Vault:
    monkeypatch.chdir(tmp_path)
    pa_parquet.write_table(pa.table(TABLE), "in.parquet")
    return rx.Vault.create("study.vault", budget=20)


@pytest.fixture
def files(vault: rx.Vault) -> dict[str, Path]:
    """One release at two levels, as Parquet and CSV, with a pass-through column that looks like reports."""
    for epsilon in ("0.5", "2"):
        for ending in ("parquet", "csv"):
            release(vault, "in.parquet", epsilon, output=f"{epsilon}.{ending}")
    other = rx.Vault.create("other.vault", budget=2)
    columns = {"columns": {"region": VALUES}, "passthrough": ["smokes"]}
    release(other, "in.parquet", "2", output="region.parquet", **columns)
    return {each.name: each for each in Path().iterdir()}


def release(vault: rx.Vault, data: Any, epsilon: str, **more: Any) -> rx.Release:
    options: Any = {"columns": {"smokes": rx.Categorical(VALUES)}, "passthrough": ["region"], "name": "survey", **more}
    return vault.release(data, id="person", epsilon=epsilon, **options)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_at_another_level(files: dict[str, Path], ending: str) -> None:
    low, high = files[f"0.5.{ending}"], files[f"2.{ending}"]
    own = rx.estimate(low)
    assert abs(own.value[0] - TRUE_SHARE) < 4 * own.std_error[0]
    status, message = status_and_words("estimate", str(low), "--description", str(high))
    assert status == 2
    assert (
        f"{str(low)!r} has its own metadata: 'smokes' was released at epsilon 0.5. The given description (epsilon"
        in message
    )
    with refused(MetadataError, column="smokes", own_epsilon="0.5", given_epsilon="2"):
        rx.estimate(low, description=high)
    with refused(MetadataError, column="smokes", own_epsilon="0.5", given_epsilon="2"):
        rx.count(low, description=high)
    assert np.array_equal(rx.estimate(low, description=low).value, own.value)


def test_one_file_of_a_folder_at_another_level(files: dict[str, Path]) -> None:
    Path("folder").mkdir()
    for name in ("0.5.parquet", "2.parquet"):
        shutil.copy(files[name], Path("folder", name))
    with refused(MetadataError, own_epsilon="2", given_epsilon="0.5"):
        rx.estimate("folder", description=files["0.5.parquet"])


def test_pass_through_columns_are_not_read_as_reports(vault: rx.Vault, files: dict[str, Path]) -> None:
    status, message = status_and_words("estimate", "2.parquet", "--description", "region.parquet")
    assert status == 2
    assert "'region' is not a released column" in message
    with refused(MetadataError, column="region"):
        rx.estimate(pa_parquet.read_table("2.parquet"), description="region.parquet")
    frame = release(vault, pd.DataFrame(TABLE), "2").to_frame()
    with refused(MetadataError, column="region"):
        rx.estimate(frame, "region", mechanism=rx.Categorical(VALUES), epsilon=2)


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_frames(vault: rx.Vault, kind: Any) -> None:
    low, high = (release(vault, kind(TABLE), epsilon).to_frame() for epsilon in ("0.5", "2"))
    own = rx.estimate(low)
    for given in (
        {"description": high},
        {"mechanism": rx.Categorical(VALUES), "epsilon": 2},
        {"mechanism": rx.Categorical(VALUES[::-1]), "epsilon": "0.5"},
        {"mechanism": rx.Unary(VALUES), "epsilon": "0.5"},
    ):
        with refused(MetadataError, column="smokes", own_epsilon="0.5"):
            rx.estimate(low, "smokes", **given)
    with refused(MetadataError, own_epsilon="2", given_epsilon="0.5"):
        rx.estimate([low, high], description=[low, low])
    for given in ({"description": low}, {"mechanism": rx.Categorical(VALUES), "epsilon": "0.5"}):
        assert np.array_equal(rx.estimate(low, "smokes", **given).value, own.value)


def test_another_release(vault: rx.Vault, files: dict[str, Path]) -> None:
    """Else two releases could be counted as one, each person at one of the two levels."""
    release(vault, "in.parquet", "2", output="other.parquet", name="other")
    with refused(MetadataError, column="smokes"):
        rx.estimate(["0.5.parquet", "other.parquet"], description=["0.5.parquet", "2.parquet"])
