"""Spark DataFrames give every individual the report that a local table gives, whatever tasks go through."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import (
    ArgumentError,
    BudgetExceededError,
    EstimationError,
    IdError,
    KeyFileError,
    MetadataError,
    RowsChangedError,
    SparkError,
    UndeclaredValueError,
)
from relaxdp.sampling.keys import Key
from relaxdp.tables import spark_release as spark_module
from relaxdp.tables.snapshot import ChunkKind, Snapshot

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")]

ROWS = 5_000
VALUES = ["flu", "covid", "none"]
COLUMNS: dict[str, Any] = {"diagnosis": VALUES, "age": rx.Numeric(0, 100)}
SECRET = "an undeclared diagnosis"


def make_table(**changes: Any) -> Any:
    rng = np.random.default_rng(5)
    table = {
        "person": [f"person {number}" for number in rng.permutation(ROWS)],
        "diagnosis": np.array(VALUES, dtype=object)[rng.integers(0, 3, ROWS)],
        "age": rng.uniform(0, 100, ROWS),
        "ward": rng.integers(0, 5, ROWS),
    }
    return pa.table(table | changes)


def to_spark(spark: Any, table: Any, folder: Path, *, partitions: int = 3) -> Any:
    pa_parquet.write_table(table, folder / "table.parquet")
    return spark.read.parquet(str(folder / "table.parquet")).repartition(partitions)


@pytest.fixture
def vault(tmp_path: Path) -> rx.Vault:
    return rx.Vault.create(tmp_path / "study.vault", budget=20)


def release(vault: rx.Vault, data: Any, **more: Any) -> rx.Release:
    asked: dict[str, Any] = {"id": "person", "epsilon": 1, "name": "patients", "passthrough": ["ward"], **more}
    return vault.release(data, asked.pop("columns", COLUMNS), **asked)


def read_rows(data: Any, by: str = "person") -> list[Any]:
    """Return the rows of a Spark DataFrame or of an Arrow table in the order of their ids, as plain values."""
    table = data.orderBy(by).toArrow() if hasattr(data, "rdd") else data
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_reports_are_equal_at_any_number_of_partitions(
    spark: Any, vault: rx.Vault, tmp_path: Path, partitions: int
) -> None:
    """Also afterwards: the snapshot that workers sealed is compared with a local table, and relaxed."""
    table = make_table()
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    made = release(vault, to_spark(spark, table, tmp_path))
    local = release(vault, table)
    assert (float(made.cost), float(local.cost), made.rows) == (2, 0, ROWS)
    assert read_rows(made.to_frame()) == read_rows(local.to_frame()) == read_rows(vault.relax("patients", 1).to_frame())
    again = release(vault, to_spark(spark, table, tmp_path), epsilon=2)
    assert read_rows(again.to_frame()) == read_rows(vault.relax("patients", 2).to_frame())
    assert vault.check().is_good
    for column in ("diagnosis", "age"):
        one, two = rx.estimate(made, column), rx.estimate(local, column)
        assert np.array_equal(one.value, two.value)
        assert np.array_equal(one.interval(0.95), two.interval(0.95))
    assert list(rx.estimate(made, "diagnosis", by="ward")) == list(rx.estimate(local, "diagnosis", by="ward"))


def test_rows_that_were_chosen_by_their_reports_are_rejected(spark: Any, vault: rx.Vault, tmp_path: Path) -> None:
    frame = release(vault, to_spark(spark, make_table(), tmp_path)).to_frame()
    chosen = frame.filter(f"diagnosis = '{VALUES[0]}'")
    for changed in (chosen, frame.union(frame), frame.limit(99)):
        with refused(MetadataError, released_rows=ROWS):
            rx.estimate(changed, "diagnosis")
    chosen.write.parquet(str(tmp_path / "chosen"))
    with refused(MetadataError, released_rows=ROWS):
        rx.estimate(tmp_path / "chosen", "diagnosis")
    frame.write.parquet(str(tmp_path / "all"))
    assert np.array_equal(rx.estimate(tmp_path / "all", "diagnosis").value, rx.estimate(frame, "diagnosis").value)


def test_failed_tasks_are_repeated(
    spark: Any, vault: rx.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks, draw = tmp_path / "attempts", spark_module.draw_partition
    marks.mkdir()

    def fail_first(task: Any, batches: Any, schema: Any) -> Any:
        from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

        context: Any = TaskContext.get()
        yield from draw(task, batches, schema)
        Path(marks, f"{context.partitionId()}-{context.attemptNumber()}").touch()
        if context.attemptNumber() == 0:
            raise RuntimeError("the machine is gone")

    monkeypatch.setattr(spark_module, "draw_partition", fail_first)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    made = release(vault, to_spark(spark, make_table(), tmp_path))
    assert sorted(mark.name for mark in marks.iterdir()) == [f"{task}-{n}" for task in range(3) for n in (0, 1)]
    assert (float(made.cost), float(vault.spent)) == (2, 2)
    assert read_rows(made.to_frame()) == read_rows(vault.relax("patients", 1).to_frame())


def test_rows_join_and_leave(spark: Any, vault: rx.Vault, tmp_path: Path) -> None:
    whole = make_table()
    release(vault, to_spark(spark, whole.slice(0, 4900), tmp_path))
    later = release(vault, to_spark(spark, whole.slice(0, 4990), tmp_path), epsilon=2)
    assert (later.joined, later.left) == (90, 0)
    part = release(vault, to_spark(spark, whole.slice(0, 3000), tmp_path), epsilon=3)
    assert (part.joined, part.left, part.rows) == (0, 1990, 3000)
    back = release(vault, whole.slice(0, 4990), epsilon=3)
    assert (back.joined, back.left, float(back.cost)) == (0, 0, 0)
    reports = {row[0]: row for row in read_rows(back.to_frame())}
    assert all(reports[row[0]] == row for row in read_rows(part.to_frame()))


def test_rows_that_left_stay_in_order(spark: Any, vault: rx.Vault, tmp_path: Path) -> None:
    """Rows leave one after the other on Spark, and come back with another value to a local table of several batches."""
    table = pa.table({"person": range(2_000), "diagnosis": [VALUES[number % 3] for number in range(2_000)]})
    asked: Any = {"columns": {"diagnosis": VALUES}, "passthrough": ()}
    release(vault, to_spark(spark, table, tmp_path), **asked)
    for left in ([1], [1, 1900]):
        rest = table.filter(pa.array([number not in left for number in range(2_000)]))
        release(vault, to_spark(spark, rest, tmp_path), **asked)
    snapshot = next((vault.path / "snapshots").iterdir())
    kept = Snapshot(snapshot.parent, snapshot.stem, Key.load_from_vault(vault.path / "key"))
    assert [id for rows in kept.read_rows(ChunkKind.LEFT) for id in rows.ids.to_pylist()] == [1, 1900]
    changed = table["diagnosis"].to_pylist()
    changed[1] = "flu"
    wrong = table.set_column(1, "diagnosis", pa.array(changed))
    with refused(RowsChangedError):
        release(vault, pa.concat_tables([wrong.slice(0, 900), wrong.slice(900)]), **asked)
    assert release(vault, table, **asked).joined == 0


def test_what_is_rejected(spark: Any, vault: rx.Vault, tmp_path: Path) -> None:
    """Each rejection charges nothing and leaves nothing behind, and no message or log of Spark quotes a cell."""
    table = make_table()
    frame = to_spark(spark, table, tmp_path)
    made = release(vault, frame)
    before = vault.spent, sorted(each.name for each in (vault.path / "snapshots").iterdir())
    changed = table["diagnosis"].to_pylist()
    changed[7] = VALUES[(VALUES.index(changed[7]) + 1) % 3]
    unknown = [SECRET, *table["diagnosis"].to_pylist()[1:]]
    upper = [each.upper() for each in table["person"].to_pylist()]
    renamed = [f"individual {number}" for number in range(ROWS)]
    repeated = [table["person"][1].as_py(), *table["person"].to_pylist()[1:]]
    for column, values, kind in (
        ("diagnosis", changed, RowsChangedError),
        ("diagnosis", unknown, UndeclaredValueError),
        ("person", upper, RowsChangedError),
        ("person", renamed, RowsChangedError),
        ("person", repeated, IdError),
    ):
        wrong = table.set_column(table.schema.get_field_index(column), column, pa.array(values))
        with pytest.raises(kind) as caught:
            release(vault, to_spark(spark, wrong, tmp_path), epsilon=2)
        assert caught.value.hint
        assert SECRET not in str(caught.value)
    with refused(MetadataError):
        release(vault, made.to_frame(), columns={"diagnosis": VALUES}, name="again", passthrough=())
    with refused(BudgetExceededError):
        release(vault, frame, epsilon=11)
    with refused(ArgumentError, says="cannot be exchanged", column="gap"):
        release(vault, frame.selectExpr("*", "make_interval(1) AS gap"))
    with refused(ArgumentError, says="output"):
        release(vault, frame, output=tmp_path / "out.parquet")
    assert (vault.spent, sorted(each.name for each in (vault.path / "snapshots").iterdir())) == before
    logs = [each.read_bytes() for each in (spark.relaxdp_folder / "events").rglob("*") if each.is_file()]
    assert logs
    assert not any(SECRET.encode() in each for each in logs)
    secret = (vault.path / "key").read_text().splitlines()[1]
    assert not any(secret.encode() in each for each in logs)


def test_rows_at_different_levels_are_rejected(spark: Any, vault: rx.Vault, tmp_path: Path) -> None:
    table = make_table()
    found = rx.description(release(vault, table))
    column = replace(found.columns["diagnosis"], level_column="ward", row_epsilons=(Decimal(1),))
    stated = replace(found, columns={"diagnosis": column})
    with refused(EstimationError, says="rows at different levels", hint="Parquet file"):
        rx.estimate(to_spark(spark, table, tmp_path), description=stated)


def test_workers_need_the_key(spark: Any, tmp_path: Path) -> None:
    frame = to_spark(spark, make_table(), tmp_path)
    (tmp_path / "digits").write_text("ab" * 32)
    commanded = rx.Vault.create(tmp_path / "commanded.vault", budget=5, key_command=f"cat {tmp_path / 'digits'}")
    with refused(KeyFileError, says="workers need a file"):
        release(commanded, frame)
    elsewhere = rx.Vault.create(tmp_path / "elsewhere.vault", budget=5, worker_key_file=tmp_path / "missing")
    with refused(KeyFileError, says="A Spark worker cannot load the key"):
        release(elsewhere, frame)
    assert elsewhere.spent == 0


def test_metadata_of_fields_does_not_leave(spark: Any, vault: rx.Vault) -> None:
    """Spark keeps metadata of every field, at any depth, and writes it into files."""
    from pyspark.sql import types  # noqa: PLC0415

    note = {"comment": "a secret note"}
    inner = types.StructType([types.StructField("town", types.StringType(), metadata=note)])
    fields = [
        types.StructField("person", types.LongType(), metadata=note),
        types.StructField("diagnosis", types.StringType(), metadata=note),
        types.StructField("home", inner, metadata=note),
    ]
    rows = [(number, VALUES[number % 3], ("north",) if number % 2 else None) for number in range(1_000)]
    frame = spark.createDataFrame(rows, types.StructType(fields))
    made = release(vault, frame, columns={"diagnosis": VALUES}, passthrough=["home"]).to_frame()
    assert "a secret note" not in made.schema.json()
    assert made.where("home is null").count() == 500


@pytest.mark.parametrize("kind", ["uint64", "bytes"])
def test_types_that_spark_does_not_have(spark: Any, vault: rx.Vault, tmp_path: Path, kind: str) -> None:
    """Unsigned numbers arrive as decimals and stay the same individuals."""
    words = np.random.default_rng(7).integers(0, 2**64, 1_000, dtype=np.uint64)
    ids = pa.array(np.sort(words)) if kind == "uint64" else pa.array([word.tobytes() for word in words])
    table = pa.table({"person": ids, "diagnosis": [VALUES[number % 3] for number in range(1_000)]})
    asked: Any = {"columns": {"diagnosis": VALUES}, "passthrough": ()}
    made = release(vault, to_spark(spark, table, tmp_path), **asked)
    assert release(vault, table, **asked).cost == 0
    found = {row[0]: row[1] for row in read_rows(vault.relax("patients", 1).to_frame())}
    assert {int(row[0]) if kind == "uint64" else bytes(row[0]): row[1] for row in made.to_frame().collect()} == found


def test_a_task_that_fails_for_another_reason(
    spark: Any, vault: rx.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(task: Any, batches: Any, schema: Any) -> Any:
        raise ValueError("words of another error")
        yield

    monkeypatch.setattr(spark_module, "draw_partition", fail)
    with refused(SparkError) as caught:
        release(vault, to_spark(spark, make_table(), tmp_path))
    assert "words" not in repr(caught.value)
    assert caught.value.__context__ is None
    assert vault.spent == 0
