"""The one publication on Spark: crashes at every point, and drivers that are killed while their tasks go on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from tests.conftest import require
from tests.faults.collector.campaign import sizes
from tests.faults.forking import Zygote
from tests.faults.table.releases import EVERYONE, charged, prepare, request_of
from tests.faults.table.test_publication import POINTS, Killed, Point, crashing, spent

from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication.transaction import Drawing, publish
from relaxdp.table.release import TableDrawing
from relaxdp.table.spark.release import SparkFolderDrawing, SparkFrameDrawing

pytestmark = pytest.mark.long

Rows = list[tuple[int, str]]


def wanted(folder: Path, epsilon: str) -> Rows:
    """Return the rows that the local engine gives."""
    request = request_of(folder, "reference.parquet", epsilon)
    publish(TableDrawing(request), None)
    found = rows_of(request.target)
    request.target.unlink()
    return found


def rows_of(place: Path) -> Rows:
    table = pa_parquet.read_table(place)
    return list(zip(table["id"].to_pylist(), table["answer"].cast("string").to_pylist(), strict=True))


def drawing_of(spark: Any, kind: str, folder: Path) -> Drawing:
    request = request_of(folder, "out", "2")
    frame = spark.read.parquet(str(request.source))
    if kind == "folder":
        return SparkFolderDrawing(frame, request, request.target, partitions=2)
    return SparkFrameDrawing(frame, request, partitions=2)


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        pytest.param(
            kind,
            point,
            id=f"{kind}-{'-'.join(point)}",
        )
        for kind in ("folder", "frame")
        for point in POINTS
    ],
)
def test_a_crash_at_any_point(spark: Any, tmp_path: Path, kind: str, point: Point) -> None:
    prepare(tmp_path, 300)
    target, reference = tmp_path / "out", wanted(tmp_path, "2")
    is_charged = POINTS.index(point) >= POINTS.index(("charge", "after"))
    is_there = kind == "folder" and point == ("publish", "after")
    with Ledger.open(tmp_path / "ledger") as ledger:
        payer = Payer(ledger, EVERYONE, budget=5)
        with pytest.MonkeyPatch.context() as patch:
            drawing = drawing_of(spark, kind, tmp_path)
            crashing(drawing, point, patch)
            with pytest.raises(Killed):
                publish(drawing, payer)
        assert ledger.account(EVERYONE).spent == (2 if is_charged else 0)
        assert target.exists() == is_there
        if is_there:
            assert rows_of(target) == reference
            return
        again = publish(drawing_of(spark, kind, tmp_path), payer)
        assert [charge.cost for charge in again.charges] == [0 if is_charged else 2]
        assert ledger.account(EVERYONE).spent == 2
    if kind == "folder":
        assert rows_of(target) == reference
        assert not list(tmp_path.glob(".out*"))
    else:
        found = sorted((row["id"], row["answer"]) for row in again.result.collect())
        assert found == reference


@pytest.fixture
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Zygote]:
    require("java")
    local = tmp_path / "spark"
    local.mkdir()
    settings = {"spark.local.dir": str(local), "spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    arguments = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
    one = Zygote("tests.faults.table.spark_zygote")
    yield one
    one.close()


@pytest.mark.parametrize("kills", sizes(6, 20))
def test_drivers_that_are_killed_at_random_instants(drivers: Zygote, tmp_path: Path, kills: int) -> None:
    """No half-written folder, nothing unpaid, nothing paid twice; and what comes out is what the local engine gives."""
    prepare(tmp_path, 3000)
    rng = random.Random(7)
    order = {"folder": str(tmp_path), "budget": "1000"}
    usual = 60.0
    for number in range(4):  # the first one waits for Spark
        began = time.perf_counter()
        drivers.start({**order, "target": f"warm-{number}", "epsilon": f"0.00{number + 1}"})
        assert drivers.line() == [0]
        usual = min(usual, time.perf_counter() - began)
    died = appeared = paid = 0
    before = spent(tmp_path)
    for number in range(1, kills + 1):
        epsilon, target = f"{number * 0.01:.2f}", tmp_path / f"out-{number}"
        (child,) = drivers.start({**order, "target": target.name, "epsilon": epsilon})
        time.sleep(rng.random() * usual * 1.4)  # also when it is almost done
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        killed = drivers.line() == [-signal.SIGKILL]
        died += killed
        usual *= 1.1 if killed else 0.8  # what else runs on this machine changes
        reference, after = wanted(tmp_path, epsilon), spent(tmp_path)
        assert after in (before, Decimal(epsilon))
        paid += after == Decimal(epsilon)
        if target.exists():
            appeared += 1
            assert after == Decimal(epsilon)
        else:
            drivers.start({**order, "target": target.name, "epsilon": epsilon})
            assert drivers.line() == [0]
        assert rows_of(target) == reference
        before = spent(tmp_path)
        assert before == Decimal(epsilon)
        assert len([each for each in charged(tmp_path, epsilon) if each.cost]) == 1
    assert died > kills / 3, "too few drivers were killed while they ran"
    print(f"Spark folder: {kills} kills, {died} while it ran; {paid} had paid, {appeared} of them had appeared")
