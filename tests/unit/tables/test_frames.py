"""Data frames through a vault: every kind gives the reports of arrays, and nothing else of the input leaves."""

from __future__ import annotations

import datetime
import itertools
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.frames import AGES, ANSWERS, COLUMNS, CONNECTION, MAKERS, ORDER, ROWS, SECRET, VALUES, made, read_columns
from tests.refusals import refused
from tests.released import KEY, open_vault

import relaxdp as rx
from relaxdp import tables
from relaxdp.errors import ColumnError, MetadataError, RelaxdpError, TableFileError

every_kind = pytest.mark.parametrize("kind", MAKERS)
EXAMPLES = itertools.count(1)


@pytest.fixture
def vault(tmp_path: Path) -> rx.Vault:
    return open_vault(tmp_path)


def release(vault: rx.Vault, frame: Any, epsilon: Any = "0.5", **more: Any) -> Any:
    """Return the released frame."""
    asked: dict[str, Any] = {"id": "person", "name": "in", "columns": {"diagnosis": ANSWERS}, "planned_epsilon": 20}
    return vault.release(frame, epsilon=epsilon, **asked | more).to_frame()


def expected(epsilon: Any = "0.5") -> list[str]:
    where: Any = {"key": KEY, "epsilon": epsilon, "name": "in", "column": "diagnosis"}
    reports: list[str] = ANSWERS.release(COLUMNS["diagnosis"][ORDER].tolist(), list(range(ROWS)), **where)
    return reports


# What comes back.


@every_kind
def test_the_same_kind_with_the_reports_of_the_arrays(vault: rx.Vault, kind: str) -> None:
    frame = made(kind)
    before = read_columns(frame)
    released = release(vault, frame, columns={"diagnosis": ANSWERS, "age": AGES}, passthrough=["region"])
    assert type(released) is type(frame)
    found = read_columns(released)
    assert list(found) == ["person", "diagnosis", "age_report", "region"]
    assert found["person"] == list(range(ROWS))
    assert found["diagnosis"] == expected()
    where: Any = {"key": KEY, "epsilon": "0.5", "name": "in", "column": "age"}
    assert found["age_report"] == AGES.release(COLUMNS["age"][ORDER].tolist(), list(range(ROWS)), **where)
    assert found["region"] == COLUMNS["region"][ORDER].tolist()
    assert read_columns(frame) == before
    assert vault.spent == 1


def test_nothing_else_of_the_input_goes_along(vault: rx.Vault) -> None:
    """Neither index, attributes and metadata, nor values of the input's dictionaries that nobody here has."""
    frame = made("pandas")
    frame["region"] = pd.Categorical(COLUMNS["region"], categories=["north", "south", SECRET])
    frame["diagnosis"] = pd.Categorical(COLUMNS["diagnosis"], categories=[*VALUES, SECRET])
    frame.columns.name = SECRET
    released = release(vault, frame, passthrough="region")
    assert released.index.equals(pd.RangeIndex(ROWS))
    assert released.index.name is None
    assert released.columns.name is None
    assert set(released.attrs) == {"relaxdp"}
    assert released["region"].dtype == frame["name"].dtype
    assert released["diagnosis"].cat.categories.tolist() == VALUES
    assert SECRET not in repr(vars(released)) + released.attrs["relaxdp"]

    table = made("pyarrow")
    region = pa.field("region", pa.dictionary(pa.int8(), pa.string()), metadata={"origin": SECRET})
    coded = pa.DictionaryArray.from_arrays(
        pa.array((COLUMNS["region"] == "south").astype(np.int8)), ["north", "south", SECRET]
    )
    released = release(vault, table.set_column(3, region, coded), passthrough=["region"])
    assert set(released.schema.metadata) == {b"relaxdp"}
    assert released.schema.field("region").metadata is None
    assert released.schema.field("region").type == pa.string()
    assert released.column("diagnosis").chunk(0).dictionary.to_pylist() == VALUES

    enum = pl.Enum(["north", "south", SECRET])
    assert (
        release(vault, made("polars").with_columns(pl.col("region").cast(enum)), passthrough=["region"])["region"].dtype
        == pl.String
    )


def nested(kind: str) -> Any:
    """A frame whose region stands in a list in a struct, with a dictionary and metadata that name a secret."""
    names = ["north", "south", SECRET]
    home = pa.DictionaryArray.from_arrays(pa.array((COLUMNS["region"] == "south").astype(np.int8)), names)
    homes = pa.ListArray.from_arrays(np.arange(ROWS + 1, dtype=np.int32), home)
    column = pa.StructArray.from_arrays([homes], fields=[pa.field("homes", homes.type, metadata={"note": SECRET})])
    table = made("pyarrow").append_column("home", column)
    if kind == "duckdb":
        connection = duckdb.connect()
        listed = ", ".join(f"'{name}'" for name in names)
        return connection.from_arrow(made("pyarrow")).project(
            f"*, {{'homes': [CAST(region AS ENUM ({listed}))]}} AS home"
        )
    if kind == "pandas":
        frame = made("pandas")
        frame["home"] = pd.arrays.ArrowExtensionArray(pa.chunked_array([column]))
        return frame
    if kind == "pyarrow":
        return table
    kept = pl.struct(homes=pl.concat_list(pl.col("region").cast(pl.Enum(names)))).alias("home")
    return made(kind).with_columns(kept)


@every_kind
def test_nothing_goes_along_inside_of_a_kept_column(vault: rx.Vault, kind: str) -> None:
    released = release(vault, nested(kind), passthrough=["home"])
    assert [home["homes"] for home in read_columns(released)["home"]] == [[home] for home in COLUMNS["region"][ORDER]]
    assert SECRET not in kinds_of(released)
    assert "dictionary" not in kinds_of(released)


def kinds_of(frame: Any) -> str:
    """Everything that the type of the kept column says."""
    if isinstance(frame, pd.DataFrame):
        return str(pa.schema([("home", frame["home"].dtype.pyarrow_dtype)]))
    if isinstance(frame, pa.Table):
        return str(pa.schema([frame.schema.field("home")]))
    if isinstance(frame, pl.LazyFrame | pl.DataFrame):
        return str(frame.lazy().collect_schema()["home"])
    return str(frame.types)


def test_what_an_extension_of_polars_says_does_not_go_along(vault: rx.Vault) -> None:
    kept = pl.Series("region", COLUMNS["region"].tolist()).ext.to(pl.Extension("a.name", pl.String, SECRET))
    released = release(vault, made("polars").with_columns(kept), passthrough=["region"])
    assert released["region"].dtype == pl.String
    assert released["region"].to_list() == COLUMNS["region"][ORDER].tolist()


def test_objects_that_carry_more_than_they_show_are_not_kept(vault: rx.Vault) -> None:
    frame = made("pandas")
    frame["home"] = [pd.Categorical([home], categories=["north", "south", SECRET]) for home in COLUMNS["region"]]
    with refused(ColumnError, name="home"):
        release(vault, frame, passthrough=["home"])
    assert vault.spent == 0


def test_a_relation_belongs_to_the_connection_that_it_came_from(vault: rx.Vault) -> None:
    connection = duckdb.connect()
    released = release(vault, connection.from_arrow(made("pyarrow")))
    regions = connection.from_arrow(made("pyarrow").select(["person", "region"]))
    assert len(released.join(regions, "person").fetchall()) == ROWS
    connection.execute("SET python_enable_replacements = false")
    assert read_columns(release(vault, connection.from_arrow(made("pyarrow"))))["diagnosis"] == expected()
    assert connection.sql("SHOW TABLES").fetchall() == []


# Ids and values of every type.

NUMBERS = COLUMNS["person"].tolist()
TEXTS = [f"p-{number}" for number in NUMBERS]
UUIDS = [uuid.UUID(int=(number * 2**100 + 17) % 2**128) for number in NUMBERS]
BYTES = [text.encode() for text in TEXTS]
FOUR_BYTES = [number.to_bytes(4) for number in NUMBERS]


def _arrow(ids: pa.Array) -> pa.Table:
    return pa.table({"person": ids, "diagnosis": COLUMNS["diagnosis"]})


def _uuid_array() -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([each.bytes for each in UUIDS], pa.binary(16)))


def _duckdb_uuids() -> Any:
    table = pa.table({"person": [str(each) for each in UUIDS], "diagnosis": COLUMNS["diagnosis"]})
    return CONNECTION.from_arrow(table).project("CAST(person AS UUID) AS person, diagnosis")


def _duckdb_enum() -> Any:
    relation = CONNECTION.from_arrow(pa.table({"person": TEXTS, "diagnosis": COLUMNS["diagnosis"]}))
    kinds = "ENUM('none', 'flu', 'covid', 'other')"
    return relation.project(f"person, CAST(diagnosis AS {kinds}) AS diagnosis")


def _pandas(ids: Any, values: Any = None) -> Any:
    return pd.DataFrame({"person": ids, "diagnosis": COLUMNS["diagnosis"] if values is None else values})


def _polars(ids: Any, values: Any = None) -> Any:
    return pl.DataFrame({"person": ids, "diagnosis": COLUMNS["diagnosis"] if values is None else values})


TYPES: dict[str, tuple[list[Any], Callable[[], Any]]] = {
    "pandas int32": (NUMBERS, lambda: _pandas(np.array(NUMBERS, np.int32))),
    "pandas uint64": (NUMBERS, lambda: _pandas(np.array(NUMBERS, np.uint64))),
    "pandas Int64": (NUMBERS, lambda: _pandas(pd.array(NUMBERS, dtype="Int64"))),
    "pandas int64[pyarrow]": (NUMBERS, lambda: _pandas(pd.array(NUMBERS, dtype="int64[pyarrow]"))),
    "pandas objects of int": (NUMBERS, lambda: _pandas(pd.Series(NUMBERS, dtype=object))),
    "pandas category of int": (NUMBERS, lambda: _pandas(pd.Categorical(NUMBERS))),
    "pandas objects of text": (TEXTS, lambda: _pandas(pd.Series(TEXTS, dtype=object))),
    "pandas string": (TEXTS, lambda: _pandas(pd.array(TEXTS, dtype="string"))),
    "pandas string[python]": (TEXTS, lambda: _pandas(pd.array(TEXTS, dtype="string[python]"))),
    "pandas string[pyarrow]": (TEXTS, lambda: _pandas(pd.array(TEXTS, dtype=pd.ArrowDtype(pa.string())))),
    "pandas dictionary": (
        TEXTS, lambda: _pandas(pd.array(TEXTS, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))))
    ),
    "pandas category": (TEXTS, lambda: _pandas(pd.Categorical(TEXTS), pd.Categorical(COLUMNS["diagnosis"]))),
    "pandas UUID": (UUIDS, lambda: _pandas(UUIDS)),
    "pandas bytes": (BYTES, lambda: _pandas(BYTES)),
    "polars Int16": (NUMBERS, lambda: _polars(pl.Series(NUMBERS, dtype=pl.Int16))),
    "polars Categorical": (
        TEXTS, lambda: _polars(TEXTS).cast(pl.Categorical)
    ),
    "polars Enum": (
        TEXTS, lambda: _polars(TEXTS, pl.Series(COLUMNS["diagnosis"], dtype=pl.Enum(["other", *reversed(VALUES)])))
    ),
    "polars bytes": (BYTES, lambda: _polars(BYTES)),
    "polars UUID": (UUIDS, lambda: _polars(pl.Series(UUIDS, dtype=pl.Object))),
    "pyarrow chunks": (
        NUMBERS, lambda: pa.concat_tables(_arrow(pa.array(NUMBERS)).slice(start, 700) for start in range(0, ROWS, 700))
    ),
    "pyarrow views": (TEXTS, lambda: _arrow(pa.array(TEXTS, pa.string_view()))),
    "pyarrow dictionary": (TEXTS, lambda: _arrow(pa.array(TEXTS).dictionary_encode())),
    "pyarrow UUID": (UUIDS, lambda: _arrow(_uuid_array())),
    "pyarrow fixed bytes": (FOUR_BYTES, lambda: _arrow(pa.array(FOUR_BYTES, pa.binary(4)))),
    "duckdb UUID": (UUIDS, _duckdb_uuids),
    "duckdb ENUM": (TEXTS, _duckdb_enum),
    "duckdb BLOB": (BYTES, lambda: CONNECTION.from_arrow(_arrow(pa.array(BYTES)))),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_ids_and_values_of_every_type(vault: rx.Vault, name: str) -> None:
    ids, make = TYPES[name]
    frame = make()
    released = release(vault, frame)
    assert type(released) is type(frame)
    order = sorted(range(ROWS), key=lambda row: ids[row].bytes if isinstance(ids[row], uuid.UUID) else ids[row])
    found = read_columns(released)
    assert found["person"] == [ids[row] for row in order]
    assert found["diagnosis"] == ANSWERS.release(
        COLUMNS["diagnosis"][order].tolist(), found["person"], key=KEY, epsilon="0.5", name="in",
        column="diagnosis",
    )  # fmt: skip
    if isinstance(frame, pd.DataFrame) and not any(word in name for word in ("cat", "dict", "objects")):
        assert released["person"].dtype == frame["person"].dtype


VALUE_TYPES: dict[str, tuple[list[Any], list[Any]]] = {
    "integer": ([3, 1, 2], COLUMNS["person"] % 3 + 1),
    "number": ([0.5, 1.5], COLUMNS["person"] % 2 + 0.5),
    "bytes": ([b"a", b"b"], [b"ab"[number % 2 : number % 2 + 1] for number in NUMBERS]),
}


@pytest.mark.parametrize("name", VALUE_TYPES)
@every_kind
def test_values_of_every_type(vault: rx.Vault, kind: str, name: str) -> None:
    values, truth = VALUE_TYPES[name]
    mechanism = rx.Categorical(values)
    released = release(vault, made(kind, diagnosis=truth), columns={"diagnosis": mechanism})
    truth = [truth[row] for row in ORDER]
    reports = mechanism.release(truth, list(range(ROWS)), key=KEY, epsilon="0.5", name="in", column="diagnosis")
    assert read_columns(released)["diagnosis"] == reports
    assert rx.estimate(released).value.tolist() == mechanism.estimate(reports, epsilon="0.5").value.tolist()


ids_of = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=9, max_size=30),
    st.lists(st.text("abc\0é☃ '\"", max_size=20), unique=True, min_size=9, max_size=30),
    st.lists(st.binary(max_size=20), unique=True, min_size=9, max_size=30),
)


@given(ids=ids_of, data=st.data(), epsilon=st.sampled_from(["0.1", "1", "4"]))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_kinds_agree(vault: rx.Vault, ids: list[Any], data: st.DataObject, epsilon: str) -> None:
    truth = data.draw(st.lists(st.sampled_from(VALUES), min_size=len(ids), max_size=len(ids)))
    name = f"example {next(EXAMPLES)}"
    reports = ANSWERS.release(truth, ids, key=KEY, epsilon=epsilon, name=name, column="diagnosis")
    pairs = sorted(zip(ids, reports, strict=True))
    wanted = {"person": [pair[0] for pair in pairs], "diagnosis": [pair[1] for pair in pairs]}
    for make in MAKERS.values():
        frame = make({"person": ids, "diagnosis": truth})
        assert read_columns(release(vault, frame, epsilon, name=name)) == wanted
    assert read_columns(vault.relax(name, epsilon).to_frame()) == wanted


# Files and frames are one path.


@every_kind
def test_a_file_and_a_frame_are_one_path(kind: str, vault: rx.Vault, tmp_path: Path) -> None:
    """Released from a file first and from a frame then: the same reports for free; also the other way round."""
    pa_parquet.write_table(made("pyarrow"), tmp_path / "in.parquet")

    def release_file(output: str, epsilon: str) -> dict[str, list[Any]]:
        made = vault.release(
            tmp_path / "in.parquet", {"diagnosis": ANSWERS}, id="person", epsilon=epsilon, name="in",
            output=tmp_path / output, passthrough=["region"],
        )  # fmt: skip
        return read_columns(made.to_frame())

    by_file = release_file("one.parquet", "0.5")
    assert read_columns(release(vault, made(kind), passthrough=["region"])) == by_file
    assert vault.spent == Decimal("0.5")
    by_frame = read_columns(release(vault, made(kind), "1", passthrough=["region"]))
    assert vault.spent == 1
    assert release_file("two.parquet", "1") == by_frame
    assert read_columns(vault.relax("in", 1).to_frame()) == by_frame
    assert vault.spent == 1


def test_columns_that_are_called_by_numbers(vault: rx.Vault) -> None:
    frame = pd.DataFrame({0: range(2_000), 1: ["a", "b"] * 1_000, 2: ["x"] * 2_000})
    asked: Any = {"epsilon": 1, "id": "0", "passthrough": ["2"]}
    released = vault.release(frame, {"1": ["a", "b"]}, name="numbers", **asked).to_frame()
    assert list(released.columns) == [0, 1, 2]
    named = vault.release(
        frame.set_axis(["0", "1", "2"], axis=1), {"1": ["a", "b"]}, name="numbers", **asked
    ).to_frame()
    assert released[1].to_list() == named["1"].to_list()
    assert np.array_equal(rx.estimate(released, 1).value, rx.estimate(named, "1").value)
    assert list(rx.estimate(released, 1, by=2)) == ["x"]


# Values that are declared as text, and frames that are rejected.

DAYS = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)]


@every_kind
@pytest.mark.parametrize(
    ("truth", "values"), [([True, False], ["true", "false"]), (DAYS, ["2026-01-31", "2026-02-01"])]
)
def test_true_false_and_dates_are_declared_as_text(
    vault: rx.Vault, kind: str, truth: list[Any], values: list[str], tmp_path: Path
) -> None:
    """Every kind of frame, a file, and text of the same spelling are one path, with the same reports."""
    declared, ids = rx.Categorical(values), list(range(100))
    columns = {"person": ids, "diagnosis": truth * 50}
    released = read_columns(release(vault, MAKERS[kind](columns), columns={"diagnosis": declared}))
    where: Any = {"key": KEY, "epsilon": "0.5", "name": "in", "column": "diagnosis"}
    assert released["diagnosis"] == declared.release(values * 50, ids, **where)
    pa_parquet.write_table(pa.table(columns), tmp_path / "in.parquet")
    from_file = release(vault, tmp_path / "in.parquet", columns={"diagnosis": declared}, output=tmp_path / "o.parquet")
    assert read_columns(from_file) == released


@every_kind
def test_reports_are_not_true_values_and_no_rows_are_no_table(vault: rx.Vault, kind: str) -> None:
    released = release(vault, made(kind), "1", passthrough=["region"])
    with refused(MetadataError, column="diagnosis"):
        release(vault, released, "2", name="reports")
    none = made(kind).limit(0) if kind in ("lazy", "duckdb") else made(kind)[:0]
    with refused(TableFileError):
        release(vault, none, "1", name="none")
    assert vault.spent == 1


@every_kind
def test_no_error_shows_a_cell(vault: rx.Vault, kind: str) -> None:
    changed: dict[str, Any] = {
        "undeclared": {"diagnosis": [SECRET, *COLUMNS["diagnosis"][1:]]},
        "missing": {"diagnosis": [None, *COLUMNS["diagnosis"][1:]]},
        "repeated": {"person": [SECRET, SECRET, *map(str, range(ROWS - 2))]},
        "no id": {"person": [None, *map(str, range(ROWS - 1))]},
    }
    for name, change in changed.items():
        with pytest.raises(RelaxdpError) as caught:
            release(vault, made(kind, **change), name=name)
        problem: BaseException | None = caught.value
        while problem is not None:
            assert SECRET not in f"{problem!r} {problem} {getattr(problem, 'fields', '')}"
            problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
        assert caught.value.hint
    assert vault.spent == 0
    assert list((vault.path / "snapshots").iterdir()) == []


@pytest.mark.long
@pytest.mark.usefixtures("interruptible_person")
def test_a_query_that_is_stopped(vault: rx.Vault) -> None:
    """DuckDB notices at once, or when its work is done, which takes seconds here."""
    long = duckdb.connect().sql("SELECT sum(range)::BIGINT AS person, 'flu' AS diagnosis FROM range(3000000000)")
    person = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    person.start()
    with pytest.raises(KeyboardInterrupt):
        release(vault, long)
    person.join()


# Nothing is returned before it was charged.

TRANSACTION = ("transaction.py", "vault.py", "release_output.py", "vault_folder.py")


def _interrupt(line: int, work: Callable[[], Any]) -> tuple[bool, Any]:
    """Run until the given line of the transaction, and break there. Return whether it ended before."""
    passed, folder = 0, Path(tables.__file__).parent

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal passed
        place = Path(frame.f_code.co_filename)
        if place.parent != folder or place.name not in TRANSACTION:
            return None
        if event == "line":
            passed += 1
            if passed == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return True, work()
    except KeyboardInterrupt:
        return False, None
    finally:
        sys.settrace(before)


@pytest.mark.long
def test_an_interrupt_at_any_line_returns_nothing_that_was_not_charged(tmp_path: Path) -> None:
    frame = made("pyarrow").slice(0, 50)
    for line in itertools.count(1):
        if line % 50 == 1:  # a ledger is read from its first event, so that a long one takes long
            vault = rx.Vault.create(tmp_path / f"{line}.vault", budget=999)
        ended, released = _interrupt(line, partial(release, vault, frame, name=f"line {line}"))
        charged = f"line {line}" in set(vault.releases()["name"])
        assert charged or released is None
        # What was interrupted can be run again, and costs once.
        before = vault.spent
        assert release(vault, frame, name=f"line {line}").num_rows == 50
        assert vault.spent - before == (0 if charged else Decimal("0.5"))
        if ended:
            break
    assert line > 200
    assert vault.check().problems == []
