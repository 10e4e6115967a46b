"""Spark drivers that are killed at random instants: nothing is drawn twice, unpaid, charged twice or lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.conftest import require
from tests.faults.forking import Zygote
from tests.spark.zygote import ASKED, COLUMNS

import relaxdp as rx

pytestmark = pytest.mark.long
KILLS = int(os.environ.get("RELAXDP_SPARK_KILLS", "30"))


@pytest.fixture
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Zygote]:
    require("java")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    zygote = Zygote("tests.spark.zygote")
    yield zygote
    zygote.close()


def test_killed_drivers(drivers: Zygote, tmp_path: Path) -> None:
    rng = random.Random(7)
    table = pa.table({"person": np.random.default_rng(1).permutation(3_000), "answer": ["no", "yes"] * 1_500})
    pa_parquet.write_table(table, tmp_path / "in.parquet")
    vault = rx.Vault.create(tmp_path / "study.vault", budget=1_000)
    usual = 60.0
    for number in range(3):  # the first one waits for Spark
        began = time.perf_counter()
        drivers.start({"folder": str(tmp_path), "target": f"warm-{number}", "epsilon": "1"})
        assert drivers.line() == [0]
        usual = min(usual, time.perf_counter() - began)
    number = died = paid = appeared = 0
    before = vault.spent
    while died < KILLS:
        number += 1
        assert number < 5 * KILLS, "too few drivers were killed while they ran"
        epsilon = f"{1 + number * 0.01:.2f}"
        order = {"folder": str(tmp_path), "target": f"out-{number}", "epsilon": epsilon}
        (child,) = drivers.start(order)
        time.sleep(usual * rng.uniform(*rng.choice([(0, 1.2), (0.7, 1.2)])))  # the steps after the charge are short
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        killed = drivers.line() == [-signal.SIGKILL]
        died += killed
        usual *= 1.1 if killed else 0.8  # what else runs on this machine changes
        after = vault.spent
        assert after in (before, Decimal(epsilon))
        paid += killed and after != before
        file = tmp_path / f"out-{number}"
        appeared += killed and file.exists()
        assert not file.exists() or after == Decimal(epsilon), "it left before it was paid"
        file.unlink(missing_ok=True)
        drivers.start(order)
        assert drivers.line() == [0]
        cost, rows = json.loads(file.read_text("utf-8"))
        assert Decimal(cost) == Decimal(epsilon) - after
        local = vault.release(table, COLUMNS, epsilon=epsilon, **ASKED)
        found = local.to_frame().to_pydict()
        assert float(local.cost) == 0
        assert rows == [list(row) for row in zip(found["person"], found["answer"], strict=True)]
        before = vault.spent
        assert before == Decimal(epsilon)
    assert vault.check().is_good
    assert len(list((vault.path / "snapshots").iterdir())) == 1
    print(f"Spark: {died} kills in {number} releases; {paid} had paid, {appeared} of them had appeared")
