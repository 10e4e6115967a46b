"""What people get wrong first, on Spark: the sentences of the local engine, and its reports where nothing is wrong."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import DescriptionError, RangeError, RelaxdpError, SparkError, TableFileError, UnknownColumnError
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication.column import Column, Opening
from relaxdp.publication.request import TableRequest
from relaxdp.publication.transaction import publish
from relaxdp.table.formats import Input
from relaxdp.table.release import release_table
from relaxdp.table.spark.release import SparkFolderDrawing, SparkFrameDrawing, SparkInput
from relaxdp.table.spark.session import SparkPlace, spark_sentences

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")]

DAYS = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)]
ANSWERS = rx.Categorical(["true", "false"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rx.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(column: list[Any]) -> None:
    pa_parquet.write_table(pa.table({"id": range(len(column)), "x": column}), "in.parquet")


def request_of(table: Any, target: str, **declared: Any) -> TableRequest:
    column = Column(**declared).request("x", table, Opening(Decimal(1)))
    return TableRequest(
        source=Path("in.parquet"), target=Path(target), id_column="id", columns=[column], epsilon=as_epsilon(60),
        key=rx.Key.load("key"), release="in",
    )  # fmt: skip


def both(spark: Any, **declared: Any) -> list[str]:
    """Release on Spark and here; return the sentence of each that was refused, and nothing if both gave the same."""
    table = SparkInput(spark, str(Path("in.parquet").absolute()))
    sentences = []
    try:
        request = request_of(table, "out", **declared)
        publish(SparkFolderDrawing(table.frame, request, partitions=1, target=request.target), None)
    except RelaxdpError as problem:
        sentences.append(problem.message)
    try:
        release_table(request_of(Input(Path("in.parquet")), "out.parquet", **declared), None)
    except RelaxdpError as problem:
        sentences.append(problem.message)
    if not sentences:
        one, two = Input(Path("out")), Input(Path("out.parquet"))
        assert one.description() == two.description()
        assert pa_parquet.read_table("out")["x"].to_pylist() == pa_parquet.read_table("out.parquet")["x"].to_pylist()
    return sentences


@pytest.mark.parametrize(
    ("column", "declared", "reports"),
    [
        ([True, False], {"values": ["true", "false"]}, ["true", "false"]),
        ([True, None, False], {"values": ["true", "false"], "nulls": "unknown"}, ["true", "unknown", "false"]),
        (DAYS, {"values": ["2026-01-31", "2026-02-01"]}, ["2026-01-31", "2026-02-01"]),
    ],
)
def test_true_false_and_dates(
    spark: Any, place: Path, column: list[Any], declared: dict[str, Any], reports: list[str]
) -> None:
    write(column)
    assert both(spark, **declared) == []
    assert pa_parquet.read_table("out")["x"].to_pylist() == reports


def test_refusals_are_those_of_the_local_engine(spark: Any, place: Path) -> None:
    (place / "map.csv").write_text("a,1\nb,2\n")
    write(["a", "secret-illness"])
    for declared in ({"map": Path("map.csv"), "nulls": "unknown"}, {"values": ["a", "b"]}):
        one, two = both(spark, **declared)
        assert one == two
        assert one.startswith("row 2: the value is not ")
        assert "secret" not in one
    write([True, False])
    for values in (["yes", "no"], ["1", "0"]):
        one, two = both(spark, values=values)
        assert one == two
        assert "declared as 'true' and 'false'" in one
    assert not (place / "out").exists()


def test_a_missing_number_in_a_frame(spark: Any, place: Path) -> None:
    write([5.0, None])
    frame = spark.read.parquet(str(Path("in.parquet").absolute())).repartition(1)
    with refused(RangeError, row=2, missing=True, remedy="missing_number"):
        rx.release(
            frame, {"x": rx.Numeric(0, 10)}, id="id", epsilon=1, key=rx.Key.load("key"), release="in", ledger=None
        )


def test_reports_are_no_truth_and_a_folder_is_not_written_over(spark: Any, place: Path) -> None:
    write(["true", "false"])
    table = SparkInput(spark, str(Path("in.parquet").absolute()))
    request = request_of(table, "out", values=["true", "false"])
    with Ledger.open(place / "ledger") as ledger:
        account = Payer(ledger, Subject.population("everyone"), budget=60, accept=True)
        publish(SparkFolderDrawing(table.frame, request, target=request.target), account)
        with pytest.raises(TableFileError) as caught:
            publish(SparkFolderDrawing(table.frame, request, target=request.target), account)
    assert str(caught.value) == (
        "'out' exists already. Name another folder or remove it: this level again costs nothing. Nothing was released."
    )
    key: dict[str, Any] = {"id": "id", "epsilon": 1, "key": rx.Key.load("key"), "release": "in", "ledger": None}
    released = rx.release(table.frame, {"x": ANSWERS}, **key)
    released.write.parquet(str(place / "spark-out"))
    for frame in (released, spark.read.parquet(str(place / "spark-out"))):
        with refused(DescriptionError, what="'x' of the frame", says="holds reports instead of the truth"):
            rx.release(frame, {"x": ANSWERS}, **key)
    # What our own files say about themselves Spark does not show, so the command looks for it where it can.
    found = SparkPlace("out", Path("again"))
    found.table = SparkInput(spark, str(place / "out"))
    with refused(DescriptionError, what="'x' of 'out'", says="was released by relaxdp"):
        found.drawing(request)


def test_the_names_of_a_frame_may_be_data_and_those_of_a_file_may_not(spark: Any, place: Path) -> None:
    """A frame that was read from a table without a header is called by its first row."""
    key = rx.Key.load(place / "key")
    options: dict[str, Any] = {"id": "id", "epsilon": 60, "key": key, "release": "in", "ledger": None}
    with pytest.raises(UnknownColumnError) as caught:
        rx.release(spark.createDataFrame([(1, "true")], ["idd", "x-positive"]), {"x": ANSWERS}, **options)
    assert caught.value.message.startswith("the table has no column 'id'. It has 2 columns, whose names are not shown")
    frame = spark.createDataFrame([(1, "true", "true")], ["id", "x", "y"])
    released = rx.release(frame, {"x": ANSWERS, "y": ANSWERS}, **options)
    for column in (None, "z"):
        with pytest.raises(UnknownColumnError) as caught:
            rx.estimate(released.withColumnRenamed("x", "x-positive"), column)
        assert "x-positive" not in f"{caught.value!r} {caught.value.fields}"
    write(["true"])
    table = SparkInput(spark, str(Path("in.parquet").absolute()))
    request = replace(request_of(table, "out", values=["true", "false"]), id_column="idd")
    with refused(UnknownColumnError, column="idd", hint=" Did you mean 'id'?"):
        SparkFrameDrawing(table.frame, request, names=table.names)


def test_a_java_that_is_gone_is_no_other_mistake() -> None:
    with refused(SparkError, what="stopped before the work was done; its log says why"), spark_sentences():
        raise ConnectionRefusedError(111, "Connection refused")
