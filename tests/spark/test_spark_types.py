"""Types of files that Spark does not have: the reports, and the files, are those of the local engine nevertheless."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ObjectIdError, SparkError
from relaxdp.table.formats import Input

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")]

ROWS = 1_000
RANDOM = np.random.default_rng(7).bytes(16 * ROWS)
UUIDS = pa.ExtensionArray.from_storage(
    pa.uuid(), pa.array(sorted(RANDOM[place : place + 16] for place in range(0, 16 * ROWS, 16)), pa.binary(16))
)
NUMBERS = pa.array(np.sort(np.frombuffer(RANDOM, "<u8")[:ROWS]))
"""Half of them are larger than any number that Spark has."""
KINDS = {"uint64": NUMBERS, "uuid": UUIDS, "bytes": UUIDS.storage}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    return tmp_path


def write(ids: Any, *, shuffled: bool = False) -> Any:
    number = pa.array(np.arange(ROWS, dtype=np.uint64) % 3)
    table = pa.table({"id": ids, "number": number, "kept": NUMBERS, "other": UUIDS, "small": number.cast(pa.uint16())})
    table = table.take(np.random.default_rng(1).permutation(ROWS)) if shuffled else table
    pa_parquet.write_table(table, "in.parquet", row_group_size=200)
    return table


def release(source: str, target: str, **more: Any) -> Any:
    """Java has another working folder than the tests: names are whole."""
    said, whole = {"number": [0, 1, 2]}, Path.cwd()
    keep = ["kept", "other", "small"]
    where: Any = {"to": whole / target, "key": whole / "key", "keep": keep, "release": "in", "budget": 1, **more}
    return rx.release(source, said, id="id", epsilon=1, **where)


@pytest.mark.parametrize(
    ("kind", "shuffled"),
    [(kind, shuffled) for kind in KINDS for shuffled in (False, True)],
)
def test_the_same_files_as_on_one_machine(spark: Any, place: Path, kind: str, shuffled: bool) -> None:
    write(KINDS[kind], shuffled=shuffled)
    release("in.parquet", "here.parquet")
    release(str(place / "in.parquet"), "there", engine="spark", partitions=3)
    here, there = pa_parquet.read_table("here.parquet"), pa_parquet.read_table("there")
    assert here.schema.field("id").type == KINDS[kind].type
    assert there.schema == here.schema
    assert there.equals(here)
    assert Input(Path("there")).description() == Input(Path("here.parquet")).description()


def test_a_frame_of_numbers_that_spark_has_no_type_for(spark: Any, place: Path) -> None:
    """Spark hands them over as decimals, and as such they come back; the people are those of the file."""
    pa_parquet.write_table(write(NUMBERS).drop_columns("other"), "in.parquet")
    release("in.parquet", "here.parquet", keep=[])
    frame = spark.read.parquet(str(place / "in.parquet")).select("id", "number")
    where: Any = {"id": "id", "epsilon": 1, "key": rx.Key.load("key"), "release": "in"}
    released = rx.release(frame.withColumn("number", frame.number.cast("long")), {"number": [0, 1, 2]}, **where)
    here = pa_parquet.read_table("here.parquet")
    assert [(int(row[0]), row[1]) for row in sorted(released.collect())] == list(
        zip(*here.to_pydict().values(), strict=True)
    )
    assert np.array_equal(rx.estimate(released).value, rx.estimate(here).value)
    for wrong in (-1, 2**64):
        other = spark.createDataFrame([(Decimal(wrong), 1)], "id decimal(20,0), number long")
        with refused(ObjectIdError, says="are taken for unsigned 64-bit numbers"):
            rx.release(other, {"number": [0, 1, 2]}, **{**where, "ledger": None})


def test_uuids_at_an_address_are_refused_in_our_words(spark: Any, place: Path) -> None:
    write(UUIDS)
    with refused(SparkError, what="reads UUIDs only from a file, or a folder of files, whose path is on this machine"):
        release((place / "in.parquet").as_uri(), "there", engine="spark")
