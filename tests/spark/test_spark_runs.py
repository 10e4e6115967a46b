"""Sorted tables on Spark are read by the tasks themselves; what only looks sorted is shuffled as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.conftest import require
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import NothingChangedError, ObjectIdError
from relaxdp.table.spark import runs
from relaxdp.table.spark.release import SparkFolderDrawing
from relaxdp.table.spark.runs import ascending_pieces, runs_of, tasks_for

pytestmark = pytest.mark.long

ROWS, GROUP = 1_000, 100


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    return tmp_path


def write(name: str, ids: Any, **more: Any) -> None:
    table = pa.table({"id": ids, "answer": np.array(["no", "yes"])[np.arange(len(ids)) % 2], **more})
    Path(name).parent.mkdir(exist_ok=True)
    pa_parquet.write_table(table, name, row_group_size=GROUP)


def shown(source: str, *columns: str) -> list[int] | None:
    found = ascending_pieces(source, "id", ["id", "answer", *columns])
    return None if found is None else [piece.first for piece in found]


def test_what_statistics_show(place: Path) -> None:
    write("in.parquet", np.arange(ROWS))
    assert shown("in.parquet") == list(range(0, ROWS, GROUP))
    assert shown("in.parquet", "region") is None
    write("mixed.parquet", np.random.default_rng(1).permutation(ROWS))
    assert shown("mixed.parquet") is None
    write("touching.parquet", np.r_[np.arange(GROUP), np.arange(GROUP - 1, ROWS)])
    assert shown("touching.parquet") is None
    assert shown("nothing.parquet") is None
    assert shown("s3://bucket/table") is None


def test_files_of_a_folder_go_by_their_ids(place: Path) -> None:
    write("folder/b.parquet", np.arange(GROUP))
    write("folder/a.parquet", np.arange(GROUP, 2 * GROUP))
    assert shown("folder") == [0, GROUP]
    write("folder/c.parquet", np.arange(2 * GROUP, 3 * GROUP).astype(np.int32))  # of another type
    assert shown("folder") is None


@pytest.mark.parametrize("tasks", [1, 3, 10, 64])
def test_runs_hold_every_row_group_once_and_in_order(place: Path, tasks: int) -> None:
    write("in.parquet", np.arange(ROWS))
    pieces = ascending_pieces("in.parquet", "id", ["id"])
    assert pieces is not None
    found = runs_of(pieces, tasks)
    assert [piece for run in found for piece in run] == pieces
    assert len(found) == min(tasks, 10)
    assert max(map(len, found)) <= -(-10 // tasks)


@pytest.mark.parametrize(("rows", "tasks"), [(1_000, 2), (10_000_000, 2), (15_000_000, 3), (50_000_000, 4), (10**9, 4)])
def test_a_core_gets_a_second_task_where_that_is_worth_its_start(rows: int, tasks: int) -> None:
    assert tasks_for(rows, 2) == tasks


def release(source: str, target: str, **more: Any) -> Any:
    """Java has another working folder than the tests: names are whole."""
    answers, whole = {"answer": ["no", "yes"]}, Path.cwd()
    where: Any = {"to": str(whole / target), "key": whole / "key", **more}
    return rx.release(str(whole / source), answers, id="id", epsilon=1, release="survey", budget=1, **where)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether tasks read files, or Spark shuffled, each time that something was drawn."""
    found: list[bool] = []
    read, shuffled = runs.SparkRunsDrawing._read, SparkFolderDrawing._summaries

    def noted(self: Any, *words: Any) -> Any:
        found.append(True)
        return read(self, *words)

    def otherwise(self: Any, *words: Any) -> Any:
        found.append(False)
        return shuffled(self, *words)

    monkeypatch.setattr(runs.SparkRunsDrawing, "_read", noted)
    monkeypatch.setattr(SparkFolderDrawing, "_summaries", otherwise)
    return found


def test_the_same_reports_without_a_shuffle(place: Path, spark: Any, counted: list[bool]) -> None:
    require("java")
    write("in.parquet", np.arange(ROWS))
    # In order from group to group, and in no order within them: statistics cannot tell.
    inner = np.concatenate([start + np.random.default_rng(1).permutation(GROUP) for start in range(0, ROWS, GROUP)])
    table = pa_parquet.read_table("in.parquet")
    pa_parquet.write_table(table.take(inner), "inner.parquet", row_group_size=GROUP)
    release("in.parquet", "here.parquet")
    release("in.parquet", "there", engine="spark")
    assert counted == [True]
    release("inner.parquet", "inner", engine="spark")
    assert counted == [True, True, False]
    # Where a change may be forced the table is looked at first, in the same way.
    with refused(NothingChangedError):
        release("inner.parquet", "forced", engine="spark", force=True)
    assert counted[3:] == [True, False]
    here = pa_parquet.read_table("here.parquet")
    assert pa_parquet.read_table("there").equals(here)
    assert pa_parquet.read_table("inner").equals(here)


def test_an_id_in_two_tasks_is_noticed_whatever_statistics_say(
    place: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, counted: list[bool]
) -> None:
    write("twice.parquet", np.r_[np.arange(GROUP), np.arange(GROUP - 1, ROWS)])
    honest = runs._is_ascending
    monkeypatch.setattr(
        runs, "_is_ascending", lambda pieces: pieces[0].file.endswith("twice.parquet") or honest(pieces)
    )
    with refused(ObjectIdError, says="an id occurs in two rows"):
        release("twice.parquet", "there", engine="spark", partitions=10)
    assert counted == [True, False]
    assert not Path("there").exists()
