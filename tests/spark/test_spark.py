"""The Spark engine gives everybody the report that every other engine gives, whatever its tasks go through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import (
    DescriptionError,
    KeyFileError,
    SparkError,
    TableChangedError,
    TableFileError,
    UndeclaredValueError,
)
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication.request import ColumnRequest, TableRequest
from relaxdp.publication.transaction import publish
from relaxdp.table.counting import count
from relaxdp.table.formats import Input
from relaxdp.table.release import release_table
from relaxdp.table.spark import release as spark_module
from relaxdp.table.spark.release import SparkFolderDrawing, SparkFrameDrawing, SparkInput
from relaxdp.table.spark.worker import file_and_summary

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")]

ROWS = 20_000
VALUES = ["flu", "covid", "none"]
KEY = rx.Key.from_bytes(bytes(range(32)))
EVERYONE = Subject.population("everyone")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key and a table, whose rows are in no order."""
    KEY.save(tmp_path / "key")
    write(tmp_path / "in.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, *, changed: int | None = None, ids: Any = None, value: str | None = None) -> None:
    rng = np.random.default_rng(5)
    truth = np.array(VALUES, dtype=object)[rng.integers(0, 3, ROWS)]
    if changed is not None:
        truth[changed] = value or VALUES[(VALUES.index(truth[changed]) + 1) % 3]
    table = pa.table(
        {
            "person": rng.permutation(ROWS) if ids is None else ids,
            "diagnosis": truth,
            "age": rng.uniform(0, 100, ROWS),
            "ward": rng.integers(0, 5, ROWS),
        }
    )
    pa_parquet.write_table(table, path, row_group_size=3000)


def request_of(place: Path, target: str, epsilon: str = "1") -> TableRequest:
    return TableRequest(
        source=place / "in.parquet",
        target=place / target,
        id_column="person",
        columns=[ColumnRequest("diagnosis", rx.Categorical(VALUES)), ColumnRequest("age", rx.Numeric(0, 100))],
        epsilon=as_epsilon(epsilon),
        key=rx.Key.load(place / "key"),
        release="survey",
        keep=["ward"],
    )


def released(spark: Any, request: TableRequest, account: Payer | None = None, **options: Any) -> Any:
    frame = SparkInput(spark, str(request.source)).frame
    return publish(SparkFolderDrawing(frame, request, **options, target=request.target), account)


def table_of(path: Path) -> Any:
    """The rows of a released file or folder, in the order in which they stand there."""
    table = Input(path)
    return pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays(
                [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in b], b.schema.names
            )
            for b in table.batches(table.schema.names)
        ]
    )


@pytest.fixture
def local(place: Path) -> Any:
    """What the local engine releases."""
    release_table(request_of(place, "local.parquet"), None)
    return table_of(place / "local.parquet")


@pytest.mark.parametrize("partitions", [1, 2, 5, 50])
def test_the_same_rows_at_any_number_of_partitions(spark: Any, place: Path, local: Any, partitions: int) -> None:
    outcome = released(spark, request_of(place, "out"), partitions=partitions)
    assert outcome.rows == ROWS
    assert table_of(place / "out").equals(local)  # the order of the ids too
    assert len(list((place / "out").iterdir())) == partitions
    assert Input(place / "out").description() == Input(place / "local.parquet").description()
    for column in ("diagnosis", "age"):
        one, two = (count([place / name], column=column).groups[0][1].estimate() for name in ("out", "local.parquet"))
        assert np.array_equal(one.value, two.value)
        assert np.array_equal(one.interval(0.95), two.interval(0.95))


def test_tasks_whose_first_attempt_fails_after_it_wrote(
    spark: Any, place: Path, local: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = place / "attempts"
    attempts.mkdir()

    def failing(folder: str, description: str, seals: bool, task: Any) -> Any:
        marks = str(attempts)

        def work(batches: Any) -> Any:
            from pyspark import TaskContext  # noqa: PLC0415 (on the worker)

            context: Any = TaskContext.get()
            yield from file_and_summary(task, folder, description, False, batches)
            Path(marks, f"{context.partitionId()}-{context.attemptNumber()}").touch()
            if context.attemptNumber() == 0:
                raise RuntimeError("the machine is gone")

        return work

    monkeypatch.setattr(spark_module, "_to_file", failing)
    with Ledger.open(place / "ledger") as ledger:
        outcome = released(spark, request_of(place, "out"), Payer(ledger, EVERYONE, budget=5), partitions=5)
        assert [str(charge.cost) for charge in outcome.charges] == ["1", "1"]
    assert sorted(file.name for file in attempts.iterdir()) == [f"{task}-{n}" for task in range(5) for n in (0, 1)]
    assert table_of(place / "out").equals(local)
    assert len(list((place / "out").iterdir())) == 5


def test_a_frame_comes_back_and_describes_itself(spark: Any, place: Path, local: Any) -> None:
    request = request_of(place, "unused")
    with Ledger.open(place / "ledger") as ledger:
        account = Payer(ledger, EVERYONE, budget=5)
        release_table(replace(request, target=place / "first.parquet"), account)
        drawing = SparkFrameDrawing(spark.read.parquet(str(request.source)), request, partitions=3)
        frame = publish(drawing, account).result
        assert ledger.balance(EVERYONE).spent == 2  # the same rows, the same fingerprint: nothing is charged again
        write(request.source, changed=3)  # the frame is kept: what changes later does not change what was released
        rows = sorted(frame.collect())
        assert [tuple(row) for row in rows] == list(zip(*local.to_pydict().values(), strict=True))
        # Files that Spark itself writes say what they are, to everybody who reads them.
        frame.write.parquet(str(place / "by-spark"))
        mine, its = (
            count([place / "first.parquet"], column="diagnosis"),
            count([place / "by-spark"], column="diagnosis"),
        )
        assert np.array_equal(mine.groups[0][1].estimate().value, its.groups[0][1].estimate().value)
        with pytest.raises(TableChangedError):
            publish(SparkFrameDrawing(spark.read.parquet(str(request.source)), request), account)


def test_what_the_fields_of_a_kept_column_say_does_not_go_along(spark: Any, place: Path) -> None:
    """Spark keeps metadata of every field, at any depth, and writes it into its files."""
    from pyspark.sql import types  # noqa: PLC0415

    note = {"comment": "a secret note"}
    inner = types.StructType([types.StructField("town", types.StringType(), metadata=note)])
    homes = types.MapType(types.StringType(), types.ArrayType(inner))
    fields = [
        types.StructField("person", types.LongType(), metadata=note),
        types.StructField("diagnosis", types.StringType(), metadata=note),
        types.StructField("homes", types.StructType([types.StructField("all", homes, metadata=note)]), metadata=note),
    ]
    rows = [(2, "flu", ({"first": [("north",)]},)), (1, "flu", None)]
    frame = spark.createDataFrame(rows, types.StructType(fields))
    request = replace(request_of(place, "out"), columns=request_of(place, "out").columns[:1], keep=["homes"])
    released_frame = publish(SparkFrameDrawing(frame, request, partitions=1), None).result
    assert [row.asDict(recursive=True)["homes"] for row in sorted(released_frame.collect())] == [
        None,
        {"all": {"first": [{"town": "north"}]}},
    ]
    assert "a secret note" not in released_frame.schema.json()
    publish(SparkFolderDrawing(frame, request, partitions=1, target=request.target), None)
    (part,) = request.target.glob("*.parquet")
    kept = pa_parquet.read_schema(part).field("homes")
    assert "a secret note" not in pa.schema([kept]).to_string(truncate_metadata=False)
    assert pa_parquet.read_table(part)["homes"].to_pylist() == [None, {"all": [("first", [{"town": "north"}])]}]


def test_what_is_refused_is_not_charged(spark: Any, place: Path) -> None:
    ids = np.arange(ROWS)
    ids[[3, 19_000]] = 7_777  # the same id, far apart
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"ids": ids}, rx.errors.ObjectIdError, "an id occurs in two rows"),
        ({"ids": pa.array([None, *range(1, ROWS)])}, rx.errors.ObjectIdError, "the id is missing"),
        ({"changed": 5, "value": "a secret illness"}, UndeclaredValueError, "not one of the 3 declared values"),
    ]
    with Ledger.open(place / "ledger") as ledger:
        account = Payer(ledger, EVERYONE, budget=5)
        for options, kind, words in cases:
            write(place / "in.parquet", **options)
            for work in ("folder", "frame"):
                frame = SparkInput(spark, str(place / "in.parquet")).frame
                make = partial(SparkFolderDrawing, target=place / "out") if work == "folder" else SparkFrameDrawing
                with pytest.raises(kind, match=words) as caught:
                    publish(make(frame, request_of(place, "out"), partitions=5), account)
                assert "secret" not in str(caught.value)
        assert EVERYONE not in ledger.subjects()
    assert sorted(file.name for file in place.iterdir() if "ledger" not in file.name) == ["in.parquet", "key"]


def test_a_changed_table_is_refused_or_forced(spark: Any, place: Path) -> None:
    with Ledger.open(place / "ledger") as ledger:
        account = Payer(ledger, EVERYONE, budget=5)
        released(spark, request_of(place, "one"), account)
        write(place / "in.parquet", changed=3)
        with pytest.raises(TableChangedError):
            released(spark, request_of(place, "two"), account)
        forced = replace(account, force=True)
        outcome = released(spark, request_of(place, "two"), forced)
        assert [(charge.path.epoch, str(charge.cost)) for charge in outcome.charges] == [(2, "1"), (1, "0")]
        release_table(request_of(place, "two.parquet"), replace(account, again=True))
    assert table_of(place / "two").equals(table_of(place / "two.parquet"))


def test_an_empty_table(spark: Any, place: Path) -> None:
    pa_parquet.write_table(pa_parquet.read_table(place / "in.parquet").slice(0, 0), place / "in.parquet")
    frame = SparkInput(spark, str(place / "in.parquet")).frame
    with Ledger.open(place / "ledger") as ledger:
        account = Payer(ledger, EVERYONE, budget=5)
        with refused(TableFileError, says="the table has no rows"):
            released(spark, request_of(place, "out"), account)
        with refused(TableFileError, says="the table has no rows"):
            publish(SparkFrameDrawing(frame, request_of(place, "out")), account)
        assert ledger.history() == []
    assert not [file for file in place.iterdir() if "out" in file.name]


def test_the_key_on_a_worker(spark: Any, place: Path) -> None:
    request = request_of(place, "out")
    with pytest.raises(KeyFileError, match="on a worker, there is no key file '/nowhere/key'. Nothing was released."):
        released(spark, request, worker_key="/nowhere/key")
    rx.Key.from_bytes(bytes(32)).save(place / "other")
    with refused(KeyFileError, key_file=str(place / "other"), known="404702b4a9c7e559", says="on a worker"):
        released(spark, request, worker_key=str(place / "other"))
    with refused(KeyFileError, says="must come from a file that every worker can read"):
        released(spark, replace(request, key=KEY))


def test_a_task_that_always_fails_shows_nothing_of_its_rows(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(folder: str, description: str, seals: bool, task: Any) -> Any:
        first = task.columns[0]
        fails = replace(first.request, derivations=(lambda column, row: 1 / 0,))
        bad = replace(task, columns=(replace(first, request=fails),))
        return lambda batches: file_and_summary(bad, folder, description, seals, batches)

    monkeypatch.setattr(spark_module, "_to_file", failing)
    with pytest.raises(SparkError, match="gave up on a task .* Nothing was released."):
        released(spark, request_of(place, "out"), partitions=2)
    assert not [file for file in place.iterdir() if "out" in file.name]
    log = (spark.relaxdp_folder / "spark.log").read_text()
    assert "a task failed: ZeroDivisionError" in log


def test_nothing_that_spark_writes_down_has_the_key_or_a_truth(spark: Any, place: Path) -> None:
    write(place / "in.parquet", changed=5, value="a secret illness")
    with pytest.raises(UndeclaredValueError):
        released(spark, request_of(place, "out"))
    secret = bytes(range(32))
    written = [file for file in spark.relaxdp_folder.rglob("*") if file.is_file() and "warehouse" not in file.parts]
    logs = [file for file in written if "events" in str(file) or file.suffix == ".log"]
    assert len(logs) >= 2
    for file in logs:
        content = file.read_bytes()
        assert secret not in content
        assert secret.hex().encode() not in content
        assert b"secret illness" not in content


def test_the_front_door_takes_spark_frames(spark: Any, place: Path) -> None:
    """The same call as for every other frame; counting happens on the workers, groups and levels included."""
    key = rx.Key.load(place / "key")
    answers = {"diagnosis": rx.Categorical(VALUES)}
    table = pa_parquet.read_table(place / "in.parquet")
    options: dict[str, Any] = {"id": "person", "key": key, "release": "survey", "ledger": None, "keep": ["ward"]}
    frames, tables = (
        [rx.release(source, answers, epsilon=epsilon, **options) for epsilon in (0.5, 2)]
        for source in (spark.read.parquet(str(place / "in.parquet")), table)
    )
    assert [tuple(row) for row in sorted(frames[1].collect())] == list(
        zip(*tables[1].to_pydict().values(), strict=True)
    )
    for one, two in ((frames[0], tables[0]), (frames, tables)):
        found, wanted = rx.estimate(one), rx.estimate(two)
        assert np.array_equal(found.value, wanted.value)
        assert np.array_equal(found.interval(), wanted.interval())
        groups, expected = rx.estimate(one, by="ward"), rx.estimate(two, by="ward")
        assert groups.keys() == expected.keys()
        assert all(np.array_equal(groups[ward].value, expected[ward].value) for ward in groups)
    assert rx.description(frames[0]) == rx.description(tables[0])
    with refused(DescriptionError, released_rows=20_000):
        rx.estimate(frames[0].where("diagnosis = 'flu'"))
    twice = frames[0].union(frames[0])
    with pytest.raises(rx.errors.CountsError, match="an id stands twice at one level"):
        rx.estimate([twice, frames[1]])
    other = frames[0].replace("flu", "something else", "diagnosis")
    with pytest.raises(rx.errors.CountsError, match="it was changed after its release"):
        rx.estimate(other, description=frames[0])


def test_two_levels_side_by_side_are_not_mistaken_for_one_another(spark: Any, place: Path) -> None:
    key, answers = rx.Key.load(place / "key"), {"diagnosis": rx.Categorical(VALUES)}
    source = frame_of(spark, request_of(place, "unused"))
    where: dict[str, Any] = {"id": "person", "key": key, "release": "survey", "ledger": None}
    low, high = (rx.release(source, answers, epsilon=epsilon, **where) for epsilon in (0.5, 3))
    joined = low.join(high.withColumnRenamed("diagnosis", "later"), "person")
    joined.write.parquet(str(place / "joined"))
    for name, alone in (("diagnosis", low), ("later", high)):
        expected = rx.estimate(alone).value
        assert np.array_equal(rx.estimate(joined, name).value, expected)
        assert np.array_equal(count([place / "joined"], column=name).groups[0][1].estimate().value, expected)
    for changed in (high.union(high), high.limit(5).union(high.limit(5))):
        with pytest.raises(rx.errors.CountsError, match="an id stands twice at one level"):
            rx.estimate(changed, description=high)


@pytest.fixture
def strict(spark: Any) -> Iterator[None]:
    """Let a cell that cannot be cast be an error, as in Spark 4; before it that is a setting, and the cell is null."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.usefixtures("strict")
def test_what_spark_quotes_does_not_come_along(spark: Any, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(place / "in.parquet", changed=5, value="a secret illness")
    frame = frame_of(spark, request_of(place, "unused")).selectExpr("person", "cast(diagnosis as int) as diagnosis")
    where: Any = {"id": "person", "epsilon": 1, "key": rx.Key.load(place / "key"), "release": "survey", "ledger": None}
    with pytest.raises(SparkError, match="Nothing was released") as caught:
        rx.release(frame, {"diagnosis": rx.Categorical([0, 1])}, **where)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    shown = capfd.readouterr()
    assert "cast" not in shown.out + shown.err  # pyspark logs what it raises, with the cell that could not be cast


def test_nothing_stays_in_the_checkpoint_folder_of_what_is_refused(spark: Any, place: Path) -> None:
    folder = place / "checkpoints"
    spark.sparkContext.setCheckpointDir(str(folder))
    request = request_of(place, "unused")
    try:
        with Ledger.open(place / "ledger") as ledger:
            account = Payer(ledger, EVERYONE, budget=5)
            kept = publish(SparkFrameDrawing(frame_of(spark, request), request), account).result
            before = sorted(folder.rglob("part-*"))
            assert before
            write(request.source, changed=3)
            assert kept.count() == ROWS
            with pytest.raises(TableChangedError):
                publish(SparkFrameDrawing(frame_of(spark, request), request), account)
        assert sorted(folder.rglob("part-*")) == before
    finally:
        context = spark.sparkContext._jsc.sc()
        getattr(context, "checkpointDir_$eq")(spark._jvm.scala.Option.empty())


@pytest.mark.parametrize("encoding", ["unary-optimised", "local-hash"])
def test_packed_encodings(spark: Any, place: Path, encoding: str) -> None:
    """Reports that are bytes: the same from Spark, in folders, in frames, and in files that Spark writes."""
    mechanism = rx.mechanism(VALUES, encoding=encoding, epsilon=1)
    request = replace(request_of(place, "out"), columns=[ColumnRequest("diagnosis", mechanism)])
    release_table(replace(request, target=place / "local.parquet"), None)
    released(spark, request, partitions=3)
    assert table_of(place / "out").equals(table_of(place / "local.parquet"))
    frame = publish(SparkFrameDrawing(spark.read.parquet(str(request.source)), request), None).result
    frame.write.parquet(str(place / "by-spark"))
    expected = count([place / "local.parquet"]).groups[0][1].estimate()
    for found in (
        count([place / "out"]).groups[0][1].estimate(),
        count([place / "by-spark"]).groups[0][1].estimate(),
        rx.estimate(frame),
        rx.estimate(
            [
                frame,
                publish(
                    SparkFrameDrawing(frame_of(spark, request), replace(request, epsilon=as_epsilon("0.5"))), None
                ).result,
            ]
        ),
    ):
        assert np.array_equal(found.value, expected.value)
        assert np.array_equal(found.interval(), expected.interval())


def frame_of(spark: Any, request: TableRequest) -> Any:
    return spark.read.parquet(str(request.source))


def test_every_part_says_the_rows_of_the_whole_folder(spark: Any, place: Path) -> None:
    """A part that was filtered or removed is noticed, and the folder read as one table is whole."""
    released(spark, request_of(place, "out"), partitions=4)
    parts = sorted((place / "out").iterdir())
    assert {Input(part).description().rows for part in parts} == {ROWS}  # type: ignore[union-attr]
    whole = pa_parquet.read_table(place / "out")
    estimate = count([place / "out"], column="diagnosis").groups[0][1].estimate()
    assert np.array_equal(rx.estimate(whole, "diagnosis").value, estimate.value)
    assert count(parts, column="diagnosis").objects == ROWS
    content = pa_parquet.read_table(parts[2])
    kept = content.filter(pc.equal(content["diagnosis"].cast(pa.string()), "flu"))
    pa_parquet.write_table(kept, parts[2])
    with refused(DescriptionError, released_rows=ROWS, rows=ROWS - len(content) + len(kept)):
        count([place / "out"], column="diagnosis")
    parts[2].unlink()
    with refused(DescriptionError, released_rows=ROWS):
        count([place / "out"], column="diagnosis")


def test_a_table_that_changes_while_it_is_read_is_not_released(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkFolderDrawing, "_count", lambda _: ROWS + 1)
    with Ledger.open(place / "ledger") as ledger:
        with refused(TableChangedError, before=ROWS + 1, rows=ROWS):
            released(spark, request_of(place, "out"), Payer(ledger, EVERYONE, budget=5))
        assert ledger.subjects() == []
    assert not (place / "out").exists()
