"""A folder that Spark released is relaxed from its snapshot, which the workers sealed part by part."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

import relaxdp as rx
from relaxdp.ledger.entries import Subject

pytestmark = pytest.mark.long

ROWS = 3000
VALUES = ["flu", "covid", "none"]
SAID: dict[str, Any] = {"answer": VALUES, "age": rx.Numeric(0, 120)}


@pytest.mark.parametrize("is_sorted", [True, False])
def test_relaxing_what_spark_released(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_sorted: bool
) -> None:
    """The table is changed and gone; what comes is what the local engine would have drawn from it."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    order = np.arange(ROWS) if is_sorted else random.permutation(ROWS)
    table = pa.table({"id": order, "answer": random.choice(VALUES, ROWS), "age": random.uniform(0, 120, ROWS)})
    pa_parquet.write_table(table, "in.parquet", row_group_size=500)
    rx.Key.generate().save("key")
    said: Any = {"id": "id", "release": "study", "accept": True, "key": tmp_path / "key"}
    done = rx.release(
        str(tmp_path / "in.parquet"), SAID, epsilon=0.5, to=tmp_path / "at-0.5", budget=9, engine="spark", partitions=3,
        **said,
    )  # fmt: skip
    (tmp_path / "in.parquet").rename("old.parquet")
    assert done.snapshot is not None
    assert done.snapshot.stat().st_size < ROWS * (8 + 1 + 1 + 8) + 10_000
    assert done.snapshot.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("**/*unfinished*"))
    relaxed = rx.relax("study", epsilon=1, key="key", to="at-1.parquet", accept=True)
    assert (relaxed.rows, [charge.cost for charge in relaxed.charges]) == (ROWS, [Decimal("0.5")] * 2)
    again = rx.release("old.parquet", SAID, epsilon=1, to="local.parquet", **said)
    assert [charge.cost for charge in again.charges] == [0, 0]
    assert pa_parquet.read_table("at-1.parquet").equals(pa_parquet.read_table("local.parquet"))
    with rx.Ledger.open("key.ledger") as ledger:
        assert ledger.account(Subject.population("everyone")).spent == 2
