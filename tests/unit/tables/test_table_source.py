"""Sources: every data frame and file gives the same rows in id order, and no error shows a cell."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE

import relaxdp as rx
from relaxdp.errors import (
    ArgumentError,
    ColumnError,
    IdError,
    MetadataError,
    RelaxdpError,
    TableFileError,
)
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables import duckdb_queries
from relaxdp.tables.data_frames import convert_table
from relaxdp.tables.files import BATCH_ROWS, SIDECAR
from relaxdp.tables.metadata import METADATA_KEY, ColumnDescription, FileDescription, attach_description
from relaxdp.tables.table_columns import ColumnNames, check_columns
from relaxdp.tables.table_source import NotAscendingError, TableSource, open_source

SECRET = "secret-illness"
TABLE = pa.table({"id": [30, 10, 20], "illness": ["flu", SECRET, None], "age": [1.5, 2.5, 3.5]})
IN_ORDER: list[dict[str, Any]] = [
    {"id": 10, "illness": SECRET},
    {"id": 20, "illness": None},
    {"id": 30, "illness": "flu"},
]


class Stream:
    """Anything with an Arrow stream, which can be read once."""

    def __init__(self, table: pa.Table) -> None:
        self._reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas objects": lambda table: table.to_pandas().astype(object),
    "pandas arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars-lazy": lambda table: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "pyarrow": lambda table: table,
    "pyarrow batch": lambda table: table.combine_chunks().to_batches()[0],
    "pyarrow reader": lambda table: table.to_reader(),
    "duckdb": duckdb.from_arrow,
    "stream": Stream,
}


def read(source: TableSource, columns: list[str], id_column: str = "id") -> list[dict[str, Any]]:
    """Read as a release does: through a sort, where the ids do not ascend."""
    try:
        with source.batches(columns, id_column) as batches:
            return [row for batch in batches for row in batch.to_pylist()]
    except NotAscendingError:
        source.sort_from_now_on()
    with source.batches(columns, id_column) as batches:
        return [row for batch in batches for row in batch.to_pylist()]


@contextmanager
def rejected(kind: type[RelaxdpError], words: str = ".") -> Iterator[pytest.ExceptionInfo[RelaxdpError]]:
    """Expect an error with these words and a hint, in which no cell is shown."""
    with pytest.raises(kind, match=words) as caught:
        yield caught
    problem: BaseException | None = caught.value
    assert caught.value.hint
    while problem is not None:
        assert SECRET not in str(problem)
        problem = problem.__cause__ or problem.__context__


def describe_reports() -> FileDescription:
    encoding = rx.Categorical(["flu", "none"])
    described = ColumnDescription.from_level(encoding, encoding.level("1"), path=PathId("r", "illness"))
    return FileDescription("id", {"illness": described}, rows=3)


# Data frames.


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_library_are_read_in_id_order(kind: str) -> None:
    with open_source(FRAMES[kind](TABLE)) as source:
        assert source.names.usable_names == TABLE.column_names
        assert str(source.schema.field("id").type) == "int64"
        assert read(source, ["id", "illness"]) == IN_ORDER
        assert source.rows == 3
        assert [source.find_original_row(row) for row in (1, 2, 3)] == [2, 3, 1]
        assert (source.label, source.default_name, source.report_description) == ("the data frame", None, None)
        with pytest.raises(KeyError):  # rows that are read again could be others
            read(source, ["id", "age"])


@pytest.mark.parametrize("kind", ["pandas", "pandas arrow", "polars", "polars-lazy", "pyarrow", "duckdb"])
def test_released_rows_are_of_the_callers_library(kind: str) -> None:
    rows = pa.table({"id": pa.array([1, 2**60]), "illness": ["flu", "none"], "visits": pa.array([2**60 + 1, None])})
    native = FRAMES[kind](rows)
    with open_source(native) as source:
        made = convert_table(rows, source.library, source.native)
    assert type(made) is type(native)
    with open_source(made) as source:
        assert read(source, rows.column_names) == rows.to_pylist()
    assert convert_table(rows, "file") is rows


def test_numbers_as_column_names_come_back() -> None:
    frame = pd.DataFrame({0: [2, 1], 1: ["a", "b"]})
    with open_source(frame) as source:
        assert read(source, ["0", "1"], "0") == [{"0": 1, "1": "b"}, {"0": 2, "1": "a"}]
        made = convert_table(pa.table({"0": [1, 2], "1_report": ["a", "b"]}), source.library, source.native)
    assert list(made.columns) == [0, "1_report"]


def test_a_lazy_frame_is_executed_once() -> None:
    runs = []

    def count(rows: pl.DataFrame) -> pl.DataFrame:
        runs.append(1)
        return rows

    lazy = pl.LazyFrame({"id": [2, 1], "a": ["x", "y"]}).map_batches(count, schema={"id": pl.Int64, "a": pl.String})
    with open_source(lazy) as source:
        assert str(source.schema.field("a").type) == "large_string"
        assert not runs
        read(source, ["id", "a"])
    assert len(runs) == 1


@pytest.mark.parametrize("kind", ["uuid", "text", "bytes", "dictionary", "view"])
def test_ids_of_every_type_are_sorted(kind: str, tmp_path: Path) -> None:
    some = [uuid.UUID(int=number << 100) for number in (3, 1, 2)]
    ids = {
        "uuid": pa.array([each.bytes for each in some], pa.uuid()),
        "text": pa.array(["b", "a", "ä"]),
        "bytes": pa.array([b"\xff", b"", b"\x00"]),
        "dictionary": pa.array(["b", "a", "c"]).dictionary_encode(),
        "view": pa.array(["b", "a", "c"], pa.string_view()),
    }[kind]
    table = pa.table({"id": ids, "a": [1, 2, 3]})
    pa_parquet.write_table(
        table if kind != "view" else table.cast(pa.schema([("id", "string"), ("a", "int64")])), tmp_path / "t.parquet"
    )
    expected = sorted(table.to_pylist(), key=lambda row: getattr(row["id"], "bytes", row["id"]))
    for data in (table, tmp_path / "t.parquet"):
        with open_source(data) as source:
            assert read(source, ["id", "a"]) == expected


def test_many_batches_stay_in_order(tmp_path: Path) -> None:
    ids = np.random.default_rng(1).permutation(2 * BATCH_ROWS + 7)
    table = pa.table({"id": ids, "a": pa.array(ids).cast(pa.string())})
    pa_parquet.write_table(table, tmp_path / "t.parquet")
    for data in (table, tmp_path / "t.parquet"):
        with open_source(data) as source:
            assert [row["a"] for row in read(source, ["a", "id"])] == [str(number) for number in range(len(ids))]


@pytest.mark.parametrize(("data", "words"), [
    (None, "got NoneType"), (3, "got int"), ([1, 2], "got list"), ({"id": [1]}, "got dict"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name"),
    (pl.Series([1]), "got Series"),
])  # fmt: skip
def test_other_objects_are_rejected(data: Any, words: str) -> None:
    with rejected(ColumnError, words), open_source(data):
        pass


def test_an_index_is_not_a_column() -> None:
    frame = TABLE.to_pandas().set_index("id")
    with open_source(frame) as source, rejected(ColumnError, "reset_index"):
        source.names.require_column("id")


def test_mixed_objects_are_rejected_without_a_cell_only_where_they_are_read() -> None:
    with open_source(pd.DataFrame({"id": [1, 2], "mixed": [SECRET, b"x"], "a": [1, 2]})) as source:
        assert source.schema.field("a").type == pa.int64()
        with rejected(ColumnError, "'mixed'"):
            source.schema.field("mixed")
    lazy = pl.LazyFrame({"id": [1], "a": [SECRET]}).with_columns(pl.col("a").cast(pl.Int64))
    with open_source(lazy) as source, rejected(ColumnError, "Execute it yourself"):
        read(source, ["id", "a"])


# Files.


def write_csv(path: Path, table: pa.Table = TABLE) -> None:
    text = pa.BufferOutputStream()
    pa_csv.write_csv(table, text, pa_csv.WriteOptions(delimiter="\t" if ".tsv" in path.name else ","))
    content = text.getvalue().to_pybytes()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.zst", "T.CSV"])
def test_text_files_have_text_only(tmp_path: Path, name: str) -> None:
    write_csv(tmp_path / name)
    with open_source(str(tmp_path / name)) as source:
        assert (source.library, source.label, source.default_name) == ("file", repr(name), name[0])
        assert source.rows is None
        assert read(source, ["id", "illness"]) == [{**row, "id": str(row["id"])} for row in IN_ORDER]
        assert source.find_original_row(1) is None


def test_text_may_have_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a\n" + "".join(f'{row:06},"x\ny"\n' for row in range(200_000)))
    with open_source(tmp_path / "t.csv") as source:
        rows = read(source, ["id", "a"])
    assert (len(rows), rows[-1]) == (200_000, {"id": "199999", "a": "x\ny"})


def test_parquet_files_folders_and_addresses(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    pa_parquet.write_table(TABLE.slice(1), folder / "a.parquet")
    pa_parquet.write_table(TABLE.slice(0, 1), folder / "b.parquet")
    pa_parquet.write_table(TABLE, tmp_path / "t.parquet")
    for data in (folder, tmp_path / "t.parquet", (tmp_path / "t.parquet").as_uri()):
        with open_source(data) as source:
            assert (source.rows, source.schema.field("age").type) == (3, pa.float64())
            assert read(source, ["id", "illness"]) == IN_ORDER
        with open_source(folder) as source:  # these two files are in id order
            assert source.find_original_row(2) == 2


def test_an_address_keeps_its_secrets() -> None:
    with (
        rejected(TableFileError, "'t.parquet' cannot be read from its s4 address"),
        open_source(f"s4://name:{SECRET}@bucket/t.parquet?{SECRET}=1"),
    ):
        pass


@pytest.mark.parametrize(("name", "content", "error", "words"), [
    ("t.csv", f"id,a\n1,{SECRET},x\n", TableFileError, "Row 1 of"),
    ("t.csv", f"id,a\n1,{SECRET}ü\n".encode("latin-1"), TableFileError, "encoding='latin-1'"),
    ("t.csv", "id,a\n" + "1,b\n" * 100_000 + f"1,{SECRET}ü\n", TableFileError, "encoding='latin-1'"),
    ("t.csv", "", TableFileError, "empty"),
    ("t.csv.gz", f"id,a\n1,{SECRET}\n", TableFileError, "damaged"),
    ("t.parquet", f"id,a\n1,{SECRET}\n", TableFileError, "damaged"),
    ("t.xlsx", "", TableFileError, "does not end in .parquet, .csv or .tsv"),
])  # fmt: skip
def test_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: str | bytes, error: type[RelaxdpError], words: str
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    with rejected(error, words), open_source(tmp_path / name) as source:
        read(source, ["id", "a"])


def test_files_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with rejected(TableFileError, "There is no file"), open_source(tmp_path / "t.csv"):
        pass
    with rejected(TableFileError, "no Parquet files"), open_source(tmp_path):
        pass
    pa_parquet.write_table(TABLE, tmp_path / "a.parquet")
    pa_parquet.write_table(TABLE.select(["id"]), tmp_path / "b.parquet")
    with rejected(TableFileError, "or one of another type than the first file"), open_source(tmp_path) as source:
        read(source, ["id", "illness"])


def test_a_sort_that_fails_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(tmp_path / "t.csv")
    cells = f"(SELECT CAST(CASE WHEN range > 300000 THEN '{SECRET}' ELSE '1' END AS INT) AS c0 FROM range(400000))"
    monkeypatch.setattr(duckdb_queries, "make_relation_sql", lambda *_: cells)
    with open_source(tmp_path / "t.csv") as source, rejected(TableFileError, "could not be sorted"):
        read(source, ["id"])


def test_spilled_rows_are_private_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spills = tmp_path / "spills"
    spills.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spills))
    monkeypatch.setattr(duckdb_queries, "MEMORY_LIMIT", "100MB")
    ids = np.random.default_rng(1).permutation(4_000_000)
    pa_parquet.write_table(pa.table({"id": ids, "a": pa.array(ids).cast(pa.string())}), tmp_path / "t.parquet")
    with open_source(tmp_path / "t.parquet") as source:
        source.sort_from_now_on()
        with source.batches(["id", "a"], "id") as batches:
            next(batches)
            (folder,) = spills.iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
            assert any(each.stat().st_size > 1_000_000 for each in folder.iterdir())
    assert list(spills.iterdir()) == []


# A sort that takes for ever, so that a signal need not be quick.
_SORTING = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from relaxdp.cli.terminal import handle_signals
from relaxdp.tables import duckdb_queries
from relaxdp.tables.table_source import open_source
duckdb_queries.make_relation_sql = lambda *_: print(flush=True) or "(SELECT sum(range) AS c0 FROM range(300000000000))"
with handle_signals(), open_source("t.csv") as source:
    source.sort_from_now_on()
    with source.batches(["id"], "id") as batches:
        next(batches)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_sort_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    write_csv(tmp_path / "t.csv")
    spills = tmp_path / "spills"
    spills.mkdir()
    words = [sys.executable, "-c", _SORTING, str(spills)]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"  # its folder is there
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert list(spills.iterdir()) == []


# Ids.


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
@pytest.mark.parametrize(("ids", "words"), [
    ([1, 2, None], "Row 3 of .* has no id"), ([2, None, 1], "Row 2 of .* has no id"),
    ([1, 2, 2], "Rows 2 and 3 of .* have the same id"), ([3, 1, 2, 3], "Rows 1 and 4 of .* have the same id"),
    ([*range(9, 50), 7, 3, 8, 7, 3, 7, 3, 7], "Rows 43 and 46 of .* have the same id"),
])  # fmt: skip
def test_missing_and_repeated_ids_name_the_rows(tmp_path: Path, kind: str, ids: list[Any], words: str) -> None:
    table = pa.table({"id": ids, "a": ["x"] * len(ids)})
    data: Any = table
    if kind == "parquet":
        data = tmp_path / "t.parquet"
        pa_parquet.write_table(table, data)
    elif kind == "csv":
        data = tmp_path / "t.csv"
        data.write_text("id,a\n" + "".join(f"{'' if each is None else each},x\n" for each in ids))
    with open_source(data) as source, rejected(IdError, words):
        read(source, ["id", "a"])


# Names.


def test_names_are_shown_where_they_are_a_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"17,{SECRET}\n18,flu\n")
    (tmp_path / "header.csv").write_text("patient,diagnosis\n18,flu\n")
    with open_source(tmp_path / "t.csv") as source, rejected(ColumnError, "not shown"):
        check_columns(source.names, "patient", ["diagnosis"], [])
    with open_source(tmp_path / "header.csv") as source, rejected(ColumnError, "Did you mean 'diagnosis'"):
        check_columns(source.names, "patient", ["diagnose"], [])
    for kind in ("pandas", "polars", "polars-lazy", "pyarrow", "duckdb", "stream"):
        with open_source(FRAMES[kind](TABLE)) as source, rejected(ColumnError, "Did you mean 'illness'"):
            source.names.require_column("ilness")
    with open_source(pd.DataFrame({0: [1], SECRET: [2]})) as source, rejected(ColumnError, "not shown"):
        source.names.require_column("patient")


def test_columns_are_named_once(tmp_path: Path) -> None:
    names = ColumnNames(["id", "a", "b", "b"])
    check_columns(names, "id", ["a"], [])
    for released, passthrough in ((["id"], []), (["a"], ["a"]), (["a", "a"], [])):
        with rejected(ColumnError, "named twice"):
            check_columns(names, "id", released, passthrough)
    with rejected(ColumnError, "2 columns named 'b'"):
        names.require_column("b")
    with rejected(ColumnError, "got Series"):
        names.require_column(pd.Series([SECRET]))
    (tmp_path / "t.csv").write_text("id;a\n1;2\n")
    with open_source(tmp_path / "t.csv") as source, rejected(ColumnError, "delim=';'"):
        source.names.require_column("id")


# Reports fed back.


def test_reports_are_recognised(tmp_path: Path) -> None:
    said = describe_reports()
    rows = pa.table({"id": [1, 2, 3], "illness": ["flu", "none", "flu"]})
    released = rows.replace_schema_metadata({METADATA_KEY: said.to_json()})
    pa_parquet.write_table(released, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,illness\n1,flu\n")
    (tmp_path / f"t.csv{SIDECAR}").write_text(said.to_json())
    frame = attach_description(rows.to_pandas(), said)
    frame.to_parquet(tmp_path / "pandas.parquet")
    polars = attach_description(pl.from_arrow(rows), said)
    data = [released, released.to_reader(), Stream(released), frame, polars]
    data += [tmp_path / name for name in ("t.parquet", "t.csv", "pandas.parquet")]
    for each in data:
        with open_source(each) as source:
            assert source.report_description == said, each
    with rejected(MetadataError, "was released by relaxdp"), open_source(tmp_path / "t.csv", sql="FROM input"):
        pass
    (tmp_path / f"t.csv{SIDECAR}").write_bytes(b"\xff")
    with rejected(MetadataError, "cannot be read"), open_source(tmp_path / "t.csv"):
        pass


def test_sql_is_for_files() -> None:
    with (
        rejected(ArgumentError, "is only valid for files, and a data frame was passed"),
        open_source(TABLE, sql="FROM input"),
    ):
        pass
