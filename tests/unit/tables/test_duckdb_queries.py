"""Queries about a file: one SELECT, of this file only, and no message shows a cell."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE, until
from tests.unit.tables.test_table_source import SECRET, read, rejected

from relaxdp.errors import QueryError
from relaxdp.tables.table_source import open_source

VISITS = """patient,time,weight
017,2026-01-31 10:30:00,"58,5"
018,2026-01-31 12:00:00,"60,25"
017,2026-02-01 15:00:00,"59,0"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(VISITS)
    Path("other.csv").write_text(VISITS)
    return tmp_path


def query(sql: str, path: str = "t.csv", id_column: str = "patient") -> list[dict[str, Any]]:
    with open_source(path, sql=sql) as source:
        return read(source, source.schema.names, id_column)


def test_input_is_a_relation_and_a_path(place: Path) -> None:
    assert query("SELECT patient, max(hour(time)) AS hour FROM input GROUP BY patient") == [
        {"patient": "017", "hour": 15},
        {"patient": "018", "hour": 12},
    ]
    rows = query("FROM read_csv(getvariable('input'), decimal_separator=',') WHERE time < '2026-02-01'")
    assert [row["weight"] for row in rows] == [58.5, 60.25]
    with open_source("t.csv", sql="SELECT 1 AS a") as source:
        assert (source.default_name, source.label, source.rows) == ("t", "the result of the query", 1)


def test_every_kind_of_file_is_input(place: Path) -> None:
    Path("semicolons.csv").write_text("patient;weight\n1;58,5\n")
    Path("latin.csv").write_bytes("patient,name\n1,Müller\n".encode("latin-1"))
    Path("o'b[1].csv.gz").write_bytes(gzip.compress(b"patient,a\n1,x\n"))
    Path("folder").mkdir()
    table = pa.table({"patient": [1], "a": ["x"]})
    for name in ("t.parquet", "folder/a.parquet", "folder/b.pq"):
        pa_parquet.write_table(table, name)
    assert query("FROM read_csv(getvariable('input'), decimal_separator=',')", "semicolons.csv")[0]["weight"] == 58.5
    assert query("FROM read_csv(getvariable('input'), encoding='latin-1')", "latin.csv")[0]["name"] == "Müller"
    assert query("FROM input", "o'b[1].csv.gz") == table.to_pylist()
    assert query("FROM INPUT", "t.parquet") == table.to_pylist()
    for sql in ("SELECT DISTINCT * FROM input", "SELECT DISTINCT * FROM read_parquet(getvariable('input'))"):
        assert query(sql, "folder") == table.to_pylist()
    with rejected(QueryError, "encoding='latin-1'"):
        query("FROM input", "latin.csv")


def test_types_are_those_of_duckdb(place: Path) -> None:
    sql = "SELECT uuid() AS id, sum(1) AS n, true AS b, DATE '2026-01-31' AS d, 'x'::ENUM('x') AS e, 1 AS a, 2 AS a"
    with open_source("t.csv", sql=sql) as source:
        kinds = [str(field.type) for field in source.schema]
    assert kinds[:4] == ["extension<arrow.uuid>", "int64", "bool", "date32[day]"]
    assert len(kinds) == 7


@pytest.mark.parametrize("sql", [
    "", "SELECT 1; SELECT 2", "CREATE TABLE a AS SELECT 1", "COPY (SELECT 1) TO 'x.csv'", "INSTALL httpfs",
    "LOAD httpfs", "SET enable_external_access = true", "ATTACH 'x.db'", "PRAGMA version", "CALL pragma_version()",
    "PIVOT input ON patient",
])  # fmt: skip
def test_one_select_and_nothing_else(place: Path, sql: str) -> None:
    with rejected(QueryError, "Expected one SELECT"):
        query(sql)
    assert sorted(each.name for each in Path().iterdir()) == ["other.csv", "t.csv"]


@pytest.mark.parametrize("source", [
    "'other.csv'", "read_csv('other.csv')", "read_text('/etc/hostname')", "glob('*')", "'https://localhost:1/t.csv'",
    "read_csv(['t.csv', 'other.csv'])", "read_blob('*.csv')", "sniff_csv('other.csv')",
])  # fmt: skip
def test_only_the_input_is_read(place: Path, source: str) -> None:
    with rejected(QueryError, "may only read `input`"):
        query(f"SELECT * FROM {source}")


@pytest.mark.parametrize(("sql", "words"), [
    ("SELEC 1", "Parser Error: syntax error"), ("SELECT age FROM input", 'Binder Error: Referenced column "age"'),
    ("SELECT foo(1)", "Catalog Error: Scalar Function"), ("FROM inputs", "Catalog Error: Table with name inputs"),
])  # fmt: skip
def test_errors_about_the_query_are_shown(place: Path, sql: str, words: str) -> None:
    with rejected(QueryError, words) as caught:
        query(sql)
    assert "Candidate" not in str(caught.value)  # the names of a table without a header are data


@pytest.mark.parametrize("sql", [
    "SELECT CAST(a AS INT) AS a FROM input", "SELECT error(a::VARCHAR) AS a FROM input",
    "SELECT strptime(a::VARCHAR, '%Y') FROM input",
    "FROM read_csv(getvariable('input'), types={'a': 'INT'})", "SELECT a::ENUM('x') FROM input",
    "FROM read_csv(getvariable('input'), columns={'patient': 'INT'}, strict_mode=true)",
])  # fmt: skip
def test_errors_about_rows_are_not_shown(place: Path, sql: str) -> None:
    Path("t.csv").write_text("patient,a\n" + "1,2\n" * 300_000 + f"1,{SECRET}\n")
    with rejected(QueryError, "run the query in DuckDB"):
        query(sql)


def test_types_that_no_file_holds(place: Path) -> None:
    with rejected(QueryError, "CAST"):
        query("SELECT INTERVAL 1 DAY AS i")


_WAIT = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from relaxdp.cli.terminal import handle_signals
from relaxdp.tables.table_source import open_source
with handle_signals():
    with open_source("t.csv", sql=sys.argv[2]) as source:
        print("open", flush=True)
        sys.stdin.read()
"""


@pytest.mark.parametrize("sql", ["FROM input", "SELECT sum(range) FROM range(300000000000)"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_results_are_private_and_removed(place: Path, sql: str, number: signal.Signals) -> None:
    """A kill leaves the result behind, until the next query."""
    Path("tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _WAIT, "tmp", sql], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        if sql == "FROM input":
            assert process.stdout.readline() == b"open\n"
        expected = 1 if sql == "FROM input" else 2  # the result, and the rows that do not fit into memory
        until(lambda: len(list(Path("tmp").iterdir())) == expected)
        assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in Path("tmp").iterdir())
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    if number == signal.SIGKILL:
        assert len(list(Path("tmp").iterdir())) == expected
        again = [sys.executable, "-c", _WAIT, "tmp", "FROM input"]
        subprocess.run(again, input=b"", check=True, timeout=PATIENCE, capture_output=True)
    assert list(Path("tmp").iterdir()) == []
