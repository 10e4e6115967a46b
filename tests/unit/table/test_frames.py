"""Data frames: every kind gives the reports of the file tool, comes back as it was, and nothing leaves uncharged."""

from __future__ import annotations

import gc
import sys
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
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.draw.stream import PathId
from relaxdp.errors import (
    BudgetExceededError,
    BudgetMissingError,
    ColumnError,
    CountsError,
    DescriptionError,
    IdTypeError,
    LedgerAccessError,
    LevelError,
    MixedFilesError,
    ObjectIdError,
    RangeError,
    RelaxdpError,
    TableChangedError,
    TableFileError,
    UndeclaredValueError,
    UnknownColumnError,
    ValuesError,
    WrongKeyError,
)
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication.derive import ColumnNames
from relaxdp.table import frame_description, frame_estimate, frame_kinds, frame_release
from relaxdp.table.counting import count, count_pairs
from relaxdp.table.engine import Engine

ROWS = 2000
VALUES = ["flu", "covid", "none"]
ANSWERS, AGES = rx.Categorical(VALUES), rx.Numeric(0, 120)
KEY = rx.Key.from_bytes(bytes(range(32)))
RNG = np.random.default_rng(7)
COLUMNS: dict[str, Any] = {
    "person": RNG.permutation(ROWS),
    "diagnosis": RNG.choice(VALUES, ROWS),
    "age": RNG.integers(0, 100, ROWS),
    "region": RNG.choice(["north", "south"], ROWS),
    "name": np.array(["secret name"] * ROWS),
}
ORDER = np.argsort(COLUMNS["person"])
SECRET = "secret-illness"
CONNECTION = duckdb.connect()


def to_pandas(columns: dict[str, Any]) -> Any:
    frame = pd.DataFrame({name: list(values) for name, values in columns.items()})
    frame.index = pd.Index([f"row {row}" for row in range(len(frame))], name="label")
    frame.attrs["origin"] = "a secret place"
    return frame


def to_arrow(columns: dict[str, Any]) -> Any:
    arrays = {name: pa.array(list(values)) for name, values in columns.items()}
    return pa.table(arrays).replace_schema_metadata({"origin": "a secret place"})


def to_duckdb(columns: dict[str, Any]) -> Any:
    return CONNECTION.from_arrow(to_arrow(columns))


MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": to_pandas,
    "polars": lambda columns: pl.DataFrame({name: list(values) for name, values in columns.items()}),
    "lazy": lambda columns: pl.LazyFrame({name: list(values) for name, values in columns.items()}),
    "pyarrow": to_arrow,
    "duckdb": to_duckdb,
}
every_kind = pytest.mark.parametrize("kind", MAKERS)


def made(kind: str, **changes: Any) -> Any:
    return MAKERS[kind](COLUMNS | changes)


def content(frame: Any) -> dict[str, list[Any]]:
    """The columns of any frame as lists."""
    if isinstance(frame, pd.DataFrame):
        return {str(name): frame[name].tolist() for name in frame.columns}
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    if isinstance(frame, pa.Table):
        return frame.to_pydict()  # type: ignore[no-any-return]
    rows = frame.fetchall()
    return {name: [row[place] for row in rows] for place, name in enumerate(frame.columns)}


def release(frame: Any, epsilon: Any = "0.5", ledger: Any = None, **more: Any) -> Any:
    options: dict[str, Any] = {"id": "person", "key": KEY, "release": "in", "columns": {"diagnosis": ANSWERS}} | more
    return rx.release(frame, epsilon=epsilon, ledger=ledger, **options)


def expected(epsilon: Any = "0.5") -> list[str]:
    reports: list[str] = ANSWERS.release(
        COLUMNS["diagnosis"][ORDER].tolist(), list(range(ROWS)), key=KEY, epsilon=epsilon, release="in",
        attribute="diagnosis",
    )  # fmt: skip
    return reports


def spent(ledger: Path) -> Decimal:
    with Ledger.open(ledger, create=False) as book:
        return book.balance(Subject.population("everyone")).spent


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


# What comes back.


@every_kind
def test_the_same_kind_with_the_reports_of_the_arrays(kind: str, ledger: Path) -> None:
    frame = made(kind)
    before = content(frame)
    released = release(
        frame, ledger=ledger, budget=3, keep=["region"], columns={"diagnosis": ANSWERS, "age": AGES}, threads=2
    )
    assert type(released) is type(frame)
    found = content(released)
    assert list(found) == ["person", "diagnosis", "age", "region"]
    assert found["person"] == list(range(ROWS))
    assert found["diagnosis"] == expected()
    assert found["age"] == AGES.release(
        COLUMNS["age"][ORDER].tolist(), list(range(ROWS)), key=KEY, epsilon="0.5", release="in", attribute="age"
    )
    assert found["region"] == COLUMNS["region"][ORDER].tolist()
    assert content(frame) == before
    assert spent(ledger) == 1


def test_nothing_else_of_the_input_goes_along() -> None:
    """Neither index, attributes and metadata, nor values of the input's dictionaries that nobody here has."""
    frame = made("pandas")
    frame["region"] = pd.Categorical(COLUMNS["region"], categories=["north", "south", SECRET])
    frame["diagnosis"] = pd.Categorical(COLUMNS["diagnosis"], categories=[*VALUES, SECRET])
    frame.columns.name = SECRET
    released = release(frame, keep="region")
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
    released = release(table.set_column(3, region, coded), keep=["region"])
    assert set(released.schema.metadata) == {b"relaxdp"}
    assert released.schema.field("region").metadata is None
    assert released.schema.field("region").type == pa.string()
    assert released.column("diagnosis").chunk(0).dictionary.to_pylist() == VALUES

    enum = pl.Enum(["north", "south", SECRET])
    assert (
        release(made("polars").with_columns(pl.col("region").cast(enum)), keep=["region"])["region"].dtype == pl.String
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
def test_nothing_goes_along_inside_of_a_kept_column(kind: str) -> None:
    released = release(nested(kind), keep=["home"])
    assert [home["homes"] for home in content(released)["home"]] == [[home] for home in COLUMNS["region"][ORDER]]
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


def test_what_an_extension_of_polars_says_does_not_go_along() -> None:
    kept = pl.Series("region", COLUMNS["region"].tolist()).ext.to(pl.Extension("a.name", pl.String, SECRET))
    released = release(made("polars").with_columns(kept), keep=["region"])
    assert released["region"].dtype == pl.String
    assert released["region"].to_list() == COLUMNS["region"][ORDER].tolist()


def test_objects_that_carry_more_than_they_show_are_not_kept() -> None:
    frame = made("pandas")
    frame["home"] = [pd.Categorical([home], categories=["north", "south", SECRET]) for home in COLUMNS["region"]]
    with refused(ColumnError, says="a kept column holds Python objects"):
        release(frame, keep=["home"])
    frame["home"] = [{"at": [home, None, 1.5]} for home in COLUMNS["region"]]
    assert release(frame, keep=["home"])["home"].tolist() == [
        {"at": [home, None, 1.5]} for home in COLUMNS["region"][ORDER]
    ]


@every_kind
def test_no_rows(kind: str) -> None:
    table = made("pyarrow").slice(0, 0)
    frames: dict[str, Any] = {"pandas": table.to_pandas(), "polars": pl.from_arrow(table), "pyarrow": table}
    frames |= {"lazy": frames["polars"].lazy(), "duckdb": CONNECTION.from_arrow(table)}
    with refused(TableFileError, says="the table has no rows"):
        release(frames[kind])


def test_a_relation_belongs_to_the_connection_that_it_came_from() -> None:
    connection = duckdb.connect()
    released = release(connection.from_arrow(made("pyarrow")))
    regions = connection.from_arrow(made("pyarrow").select(["person", "region"]))
    assert len(released.join(regions, "person").fetchall()) == ROWS
    connection.execute("SET python_enable_replacements = false")
    assert content(release(connection.from_arrow(made("pyarrow"))))["diagnosis"] == expected()
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
def test_ids_and_values_of_every_type(name: str) -> None:
    ids, make = TYPES[name]
    frame = make()
    released = release(frame)
    assert type(released) is type(frame)
    order = sorted(range(ROWS), key=lambda row: ids[row].bytes if isinstance(ids[row], uuid.UUID) else ids[row])
    found = content(released)
    assert found["person"] == [ids[row] for row in order]
    assert found["diagnosis"] == ANSWERS.release(
        COLUMNS["diagnosis"][order].tolist(), found["person"], key=KEY, epsilon="0.5", release="in",
        attribute="diagnosis",
    )  # fmt: skip
    if isinstance(frame, pd.DataFrame) and "cat" not in name and "dict" not in name:
        assert released["person"].dtype == frame["person"].dtype


VALUE_TYPES: dict[str, tuple[list[Any], list[Any]]] = {
    "integer": ([3, 1, 2], COLUMNS["person"] % 3 + 1),
    "number": ([0.5, 1.5], COLUMNS["person"] % 2 + 0.5),
    "bytes": ([b"a", b"b"], [b"ab"[number % 2 : number % 2 + 1] for number in NUMBERS]),
}


@pytest.mark.parametrize("name", VALUE_TYPES)
@every_kind
def test_values_of_every_type(kind: str, name: str) -> None:
    values, truth = VALUE_TYPES[name]
    mechanism = rx.Categorical(values)
    released = release(made(kind, diagnosis=truth), columns={"diagnosis": mechanism})
    truth = [truth[row] for row in ORDER]
    reports = mechanism.release(truth, list(range(ROWS)), key=KEY, epsilon="0.5", release="in", attribute="diagnosis")
    assert content(released)["diagnosis"] == reports
    assert rx.estimate(released).value.tolist() == mechanism.estimate(reports, epsilon="0.5").value.tolist()


ids_of = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=30),
    st.lists(st.text("abc\0é☃ '\"", max_size=20), unique=True, min_size=1, max_size=30),
    st.lists(st.binary(max_size=20), unique=True, min_size=1, max_size=30),
)


@given(ids=ids_of, data=st.data(), epsilon=st.sampled_from(["0.1", "1", "4"]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_kinds_agree(ids: list[Any], data: st.DataObject, epsilon: str) -> None:
    truth = data.draw(st.lists(st.sampled_from(VALUES), min_size=len(ids), max_size=len(ids)))
    reports = ANSWERS.release(truth, ids, key=KEY, epsilon=epsilon, release="in", attribute="diagnosis")
    pairs = sorted(zip(ids, reports, strict=True))
    wanted = {"person": [pair[0] for pair in pairs], "diagnosis": [pair[1] for pair in pairs]}
    for make in MAKERS.values():
        assert content(release(make({"person": ids, "diagnosis": truth}), epsilon)) == wanted


# The ledger.


@every_kind
def test_a_file_and_a_frame_are_one_path(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Released by the command first and as a frame then: the same reports, and no further cost; also the other way."""
    monkeypatch.chdir(tmp_path)
    KEY.save(tmp_path / "key")
    pa_parquet.write_table(made("pyarrow"), "in.parquet")

    def command(target: str, epsilon: str) -> dict[str, list[Any]]:
        words = ["in.parquet", target, "--id", "person", "--column", "diagnosis", "--values", ",".join(VALUES)]
        words += ["--epsilon", epsilon, "--key", "key", "--budget", "2", "--keep", "region"]
        result = CliRunner().invoke(app, ["release", *words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return content(pa_parquet.read_table(target))

    ledger = tmp_path / "key.ledger"
    by_file = command("one.parquet", "0.5")
    assert content(release(made(kind), ledger=ledger, keep=["region"])) == by_file
    assert spent(ledger) == Decimal("0.5")
    by_frame = content(release(made(kind), "1", ledger=ledger, keep=["region"]))
    assert spent(ledger) == 1
    assert command("two.parquet", "1") == by_frame
    assert spent(ledger) == 1


def test_an_open_ledger_stays_open_and_counts(ledger: Path) -> None:
    with Ledger.open(ledger) as book:
        first = release(made("polars"), ledger=book, budget=1, population="hospital", reason="the spring survey")
        assert release(made("polars"), ledger=book, population="hospital").equals(first)
        release(made("polars"), "0.7", ledger=book, population="hospital")
        balance = book.balance(Subject.population("hospital"))
        assert (balance.spent, balance.left) == (Decimal("0.7"), Decimal("0.3"))
        assert {event.reason for event in book.history()} == {"the spring survey", "release of in"}
        with pytest.raises(BudgetExceededError, match=r"0.3 left of 1, this release needs 0.8. Nothing was released."):
            release(made("polars"), "1.5", ledger=book, population="hospital")
        with pytest.raises(LevelError):
            release(made("polars"), "0.1", ledger=book, population="hospital")
        again = release(made("polars"), "0.1", ledger=book, population="hospital", again=True)
        assert again["diagnosis"].to_list() == expected("0.1")


def test_a_key_that_comes_from_no_file_has_no_ledger_beside_it() -> None:
    with refused(LedgerAccessError, remedy="say_ledger"):
        rx.release(made("polars"), {"diagnosis": ANSWERS}, id="person", epsilon=1, key=KEY, release="in")


def test_what_a_path_began_with_may_not_change(ledger: Path) -> None:
    frame = made("pandas")
    with pytest.raises(BudgetMissingError):
        release(frame, ledger=ledger)
    release(frame, ledger=ledger, budget=9)
    changed = frame.copy()
    changed.iloc[5, 1] = next(value for value in VALUES if value != changed.iloc[5, 1])
    refusals: list[tuple[Any, dict[str, Any], type[RelaxdpError]]] = [
        (changed, {}, TableChangedError),
        (frame.iloc[1:], {}, TableChangedError),
        (frame, {"key": rx.Key.from_bytes(bytes(32))}, WrongKeyError),
        (frame.assign(person=frame["person"].astype(str)), {}, IdTypeError),
        (frame, {"columns": {"diagnosis": rx.Categorical([*VALUES, "other"])}}, ValuesError),
    ]
    for other, more, error in refusals[:4]:
        with pytest.raises(error, match="Nothing was released"):
            release(other, "1", ledger=ledger, **more)
    assert spent(ledger) == Decimal("0.5")
    forced = release(changed, "1", ledger=ledger, force=True)
    assert spent(ledger) == Decimal("1.5")
    assert rx.description(forced).columns["diagnosis"].path == PathId("in", "diagnosis", 2)
    assert forced["diagnosis"].tolist() != expected("1")
    assert release(changed, "1", ledger=ledger).equals(forced)


# Refusals, which show nothing of a cell.

REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], type[RelaxdpError], str]] = {
    "undeclared": (
        {"diagnosis": [*COLUMNS["diagnosis"][:9], SECRET, *COLUMNS["diagnosis"][10:]]}, {}, UndeclaredValueError,
        "row 10: the value is not one of the 3 declared values. Declared: 'flu', 'covid', 'none'. "
        "Nothing was released.",
    ),
    "missing value": (
        {"diagnosis": [*COLUMNS["diagnosis"][:9], None, *COLUMNS["diagnosis"][10:]]}, {}, UndeclaredValueError,
        "row 10: the value is missing, which is not one of the 3 declared values. "
        "fillna (fill_null in polars) makes it a value, which must be declared. Nothing was released.",
    ),
    "repeated id": (
        {"person": [*NUMBERS[:9], NUMBERS[3], *NUMBERS[10:]]}, {}, ObjectIdError,
        "row 10: the id stands in an earlier row already. One id is one object",
    ),
    "missing id": (
        {"person": [*TEXTS[:9], None, *TEXTS[10:]]}, {}, ObjectIdError,
        "row 10: the id is missing. Nothing was released.",
    ),
    "float ids": (
        {"person": [float(number) for number in NUMBERS]}, {}, ObjectIdError,
        "the ids are floating-point numbers, which have no exact identity. In pandas, a column of whole",
    ),
    "truth values as ids": (
        {"person": [number % 2 == 0 for number in NUMBERS]}, {}, ObjectIdError, "ids must be whole numbers, text, bytes"
    ),
    "out of range": (
        {"age": [200, *COLUMNS["age"][1:].tolist()]}, {"columns": {"age": AGES}}, RangeError,
        "row 1: the number is not within the range 0 .. 120. clip=True puts numbers into it. Nothing was released.",
    ),
    "no such column": ({}, {"id": "persons"}, UnknownColumnError, "has no column 'persons'. It has 5 columns,"),
    "kept and released": ({}, {"keep": ["diagnosis"]}, UnknownColumnError, "only one of these, and once"),
    "no mechanism": ({}, {"columns": {"diagnosis": "flu"}}, ValuesError, "the values must be a list"),
    "no columns": ({}, {"columns": {}}, ValuesError, "say what each column can be"),
}  # fmt: skip


def shown(problem: BaseException | None) -> str:
    """Everything that an exception and what led to it would print."""
    texts = []
    while problem is not None:
        texts.append(f"{problem!r} {problem}")
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
    return " ".join(texts)


@pytest.mark.parametrize("name", REFUSED)
@every_kind
def test_refusals(kind: str, name: str, ledger: Path) -> None:
    changes, more, error, sentence = REFUSED[name]
    with pytest.raises(error) as caught:
        release(made(kind, **changes), ledger=ledger, budget=1, **more)
    assert sentence in str(caught.value)
    assert SECRET not in shown(caught.value)
    with Ledger.open(ledger) as book:
        assert book.subjects() == []


def test_pandas_makes_whole_numbers_float_where_one_is_missing() -> None:
    frame = made("pandas")
    frame["person"] = pd.Series([None, *NUMBERS[1:]], index=frame.index, dtype="float64")
    with refused(ObjectIdError, kind="double"):
        release(frame)


def test_objects_of_several_kinds_are_no_column() -> None:
    for odd in ([SECRET, 17], [SECRET, SECRET.encode()], [17, uuid.UUID(int=1)], [SECRET, "\ud800"], [2**63, -1]):
        frame = pd.DataFrame({"person": pd.Series(odd, dtype=object), "diagnosis": ["flu", "none"]})
        with refused(ColumnError, name="person") as caught:
            release(frame)
        assert SECRET not in shown(caught.value)
    large = pd.DataFrame({"person": pd.Series([2**64 - 1, 3], dtype=object), "diagnosis": ["flu", "none"]})
    assert content(release(large))["person"] == [3, 2**64 - 1]
    with refused(ColumnError, type="Int128"):
        release(pl.DataFrame({"person": pl.Series([1, 2], dtype=pl.Int128), "diagnosis": ["flu", "none"]}))
    with refused(ObjectIdError, kind="decimal128(38, 0)"):
        release(duckdb.sql("SELECT 1::HUGEINT AS person, 'flu' AS diagnosis"))


def test_what_is_no_data_frame() -> None:
    for odd in ({"person": [1]}, [1, 2], None, np.zeros(3), pd.Series([1]), pl.Series([1])):
        with refused(ColumnError, type=type(odd).__name__, says="is not a data frame that is known here"):
            release(odd)
    for twice in (pd.DataFrame([[1, 2]], columns=["person", "person"]), pa.table([[1], [2]], names=["other", "other"])):
        with refused(ColumnError, says="two columns of the frame have one name"):
            release(twice)
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 1 AS person, 'flu' AS diagnosis")
    with refused(ColumnError, says="Is the connection closed"):
        release(relation)
    with refused(UnknownColumnError, column="person", says="is the index, not a column: release frame.reset_index"):
        release(made("pandas").set_index("person"))
    numbered = made("pandas").rename(columns={"name": 7, "age": ("a", "b")})
    assert content(release(numbered))["diagnosis"] == expected()


def test_lazy_frames_that_fail_show_nothing() -> None:
    relation = duckdb.sql(f"SELECT CAST('{SECRET}' AS INTEGER) AS person, 'flu' AS diagnosis FROM range(3)")
    lazy = pl.LazyFrame({"person": [SECRET], "diagnosis": ["flu"]}).with_columns(pl.col("person").cast(pl.Int64))
    for frame in (relation, lazy):
        with refused(ColumnError, says="cannot be carried out") as caught:
            release(frame)
        assert SECRET not in shown(caught.value)


def test_lazy_frames_are_carried_out_once() -> None:
    calls = []

    def seen(frame: pl.DataFrame) -> pl.DataFrame:
        calls.append(frame.height)
        return frame

    release(made("lazy").map_batches(seen), force=False, keep=["region"])
    assert calls == [ROWS]


# Safety: what fails costs nothing, and nothing is returned before it was charged.


@every_kind
def test_a_failure_while_drawing_charges_nothing(kind: str, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release(made(kind), ledger=ledger, budget=2)
    places: list[tuple[Any, str]] = [
        (Engine, "run"), (frame_release, "id_order"), (frame_kinds.Frame, "released"),
        (frame_release, "describe"), (Payer, "charge"),
    ]  # fmt: skip
    for owner, name in places:
        with monkeypatch.context() as patch:

            def fail(*_: Any, **__: Any) -> Any:
                raise KeyboardInterrupt

            patch.setattr(owner, name, fail)
            with pytest.raises(KeyboardInterrupt):
                release(made(kind), "1", ledger=ledger)
        assert spent(ledger) == Decimal("0.5")


def _interrupted(line: int, work: Callable[[], Any]) -> tuple[bool, Any]:
    """Run until the given line of the frames' own code, and break there. Tell whether the work was over before."""
    passed = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal passed
        place = frame.f_code.co_filename
        if not place.startswith(str(Path(frame_release.__file__).parent)) or "frame" not in Path(place).stem:
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
def test_an_interrupt_at_any_line_never_gives_out_what_was_not_charged(ledger: Path) -> None:
    frame = made("pyarrow").slice(0, 50)
    lost, line, finished = 0, 0, False
    with Ledger.open(ledger) as book:
        while not finished:
            line += 1
            options = {"ledger": book, "population": f"line {line}", "budget": 1, "accept": True}
            finished, released = _interrupted(line, partial(release, frame, **options))
            charged = Subject.population(f"line {line}") in book.subjects()
            assert charged or released is None
            lost += charged and not finished
            # What was interrupted can be run again, and costs once.
            assert release(frame, **options).num_rows == 50
            assert book.balance(Subject.population(f"line {line}")).spent == Decimal("0.5")
    assert line > 60
    assert 1 <= lost <= 6  # after the charge nothing is left to do but to return


# Estimates.


@every_kind
def test_estimates_are_those_of_files(kind: str, tmp_path: Path) -> None:
    columns = {"diagnosis": ANSWERS, "age": AGES, "region": rx.Categorical(["north", "south"])}
    released = release(made(kind), columns=columns, keep=["name"])
    table = release(made("pyarrow"), columns=columns, keep=["name"])
    pa_parquet.write_table(table, tmp_path / "out.parquet")
    files = [tmp_path / "out.parquet"]
    for column in ("diagnosis", "age"):
        wanted = count(files, column=column).groups[0][1].estimate()
        found = rx.estimate(released, column)
        assert type(found) is type(wanted)
        assert np.array_equal(found.value, wanted.value)
        assert np.array_equal(found.interval(), wanted.interval())
    groups = rx.estimate(released, "diagnosis", by="name")
    assert list(groups) == ["secret name"]
    assert np.array_equal(groups["secret name"].value, rx.estimate(released, "diagnosis").value)
    pairs = count_pairs(files, column="diagnosis", cross="region").estimate()
    assert np.array_equal(rx.estimate(released, "diagnosis", cross="region").value, pairs.value)
    with refused(UnknownColumnError, listed="'diagnosis', 'age', 'region'"):
        rx.estimate(released)
    with refused(UnknownColumnError, says="is a released column"):
        rx.estimate(released, "diagnosis", by="region")


def test_groups() -> None:
    for kind in MAKERS:
        released = release(made(kind), keep=["region"])
        found = rx.estimate(released, by="region")
        assert list(found) == ["north", "south"]
        mine = np.array(expected())[COLUMNS["region"][ORDER] == "south"]
        assert np.array_equal(found["south"].value, ANSWERS.estimate(mine, epsilon="0.5").value)


@every_kind
def test_objects_count_once_at_their_highest_level(kind: str) -> None:
    """All objects at 0.5, and half of them at 2; kinds may be mixed."""
    half = {name: values[COLUMNS["person"] < ROWS // 2] for name, values in COLUMNS.items()}
    low, high = release(made(kind)), release(MAKERS["polars"](half), "2")
    counts = rx.Counts(ANSWERS)
    counts.add(expected("2")[: ROWS // 2], epsilon="2")
    counts.add(expected()[ROWS // 2 :], epsilon="0.5")
    assert np.array_equal(rx.estimate([low, high]).value, counts.estimate().value)
    assert np.array_equal(rx.estimate([low, high], method="precision").value, counts.estimate("precision").value)
    with refused(MixedFilesError, says="a frame is named twice: its objects would count twice"):
        rx.estimate([low, low])
    other = release(made(kind), "2", key=rx.Key.from_bytes(bytes(32)))
    with refused(MixedFilesError, file="frame 2", words="another key", first_file="frame 1"):
        rx.estimate([low, other])


@pytest.mark.parametrize("mechanism", [rx.Unary(VALUES), rx.LocalHash(VALUES, buckets=5)], ids=["unary", "hash"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_packed_reports_count_once_and_can_be_described(kind: Any, mechanism: Any) -> None:
    where: dict[str, Any] = {"id": "person", "key": KEY, "release": "survey", "ledger": None}
    low, high = (rx.release(kind(COLUMNS), {"diagnosis": mechanism}, epsilon=level, **where) for level in (0.5, 2))
    alone, both = rx.estimate(high), rx.estimate([low, high])
    assert np.array_equal(both.value, alone.value)
    assert np.array_equal(both.interval(), alone.interval())
    told = rx.estimate(high, "diagnosis", mechanism=mechanism, epsilon=2)
    assert np.array_equal(told.value, alone.value)


def test_clipping_is_part_of_the_description() -> None:
    where: dict[str, Any] = {"id": "person", "key": KEY, "release": "survey", "ledger": None, "epsilon": 1}
    plain, clipped = (
        rx.release(to_pandas(COLUMNS), {"age": rx.Numeric(0, 14400, clip=clip)}, **where) for clip in (False, True)
    )
    assert [rx.description(each).columns["age"].clip for each in (plain, clipped)] == [False, True]
    with refused(MixedFilesError, words="numbers that were clipped, or not"):
        rx.estimate([plain, clipped])


def test_a_description_travels_with_pandas_and_pyarrow(tmp_path: Path) -> None:
    frame, table = release(made("pandas")), release(made("pyarrow"))
    wanted = rx.estimate(frame).value
    frame.to_parquet(tmp_path / "pandas.parquet")
    pa_parquet.write_table(table, tmp_path / "arrow.parquet")
    travelled = [
        frame.copy(), frame.sort_values("diagnosis"), frame.assign(more=1), pd.concat([frame]),
        pd.read_parquet(tmp_path / "pandas.parquet"), pa_parquet.read_table(tmp_path / "pandas.parquet"),
        pa.Table.from_pandas(frame), pa.Table.from_pandas(frame).to_pandas(),
        pa_parquet.read_table(tmp_path / "arrow.parquet"), table.select(["diagnosis"]),
    ]  # fmt: skip
    for each in travelled:
        assert np.array_equal(rx.estimate(each).value, wanted)
    assert rx.description(table) == rx.description(frame) == rx.description(tmp_path / "arrow.parquet")
    assert rx.description(frame).columns["diagnosis"].values == tuple(VALUES)


def test_polars_frames_are_recognised_while_they_live(tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left
    known = len(frame_description._RELEASED)
    released = release(made("polars"))
    assert len(frame_description._RELEASED) == known + 1
    rx.estimate(released)
    text = rx.description(released).dumps()
    released.write_parquet(tmp_path / "out.parquet", metadata={"relaxdp": text})
    value = rx.estimate(released).value
    copy = released.clone()
    for changed in (copy, released.filter(pl.col("diagnosis") == "flu"), released.lazy()):
        with refused(DescriptionError, says="does not say what it holds"):
            rx.estimate(changed)
    assert np.array_equal(rx.estimate(copy, description=released).value, value)
    assert np.array_equal(rx.estimate(copy, "diagnosis", mechanism=ANSWERS, epsilon=0.5).value, value)
    del released
    gc.collect()
    assert len(frame_description._RELEASED) == known
    again = pl.read_parquet(tmp_path / "out.parquet")
    with refused(DescriptionError, says="does not say what it holds"):
        rx.estimate(again)
    assert np.array_equal(rx.estimate(again, description=tmp_path / "out.parquet").value, value)
    assert np.array_equal(count([tmp_path / "out.parquet"]).groups[0][1].estimate().value, value)


def test_filters_and_joins_are_never_a_silent_wrong_answer() -> None:
    """Metadata outlives a filter by reports, whose estimate would be wrong; and a join that repeats objects."""
    frame, table = release(made("pandas"), keep=["region"]), release(made("pyarrow"), keep=["region"])
    twice = pd.DataFrame({"region": ["north", "north", "south"]})
    for changed in (
        frame[frame["diagnosis"] == "flu"],
        pd.concat([frame, frame]),
        frame.merge(twice, on="region"),
        table.filter(pc.equal(table["diagnosis"].cast(pa.string()), "flu")),
        pa.concat_tables([table, table]),
        table.slice(5),
        table.rename_columns(["person", "illness", "region"]),
        table.drop_columns(["diagnosis"]),
    ):
        with pytest.raises(DescriptionError):
            rx.estimate(changed)
    with refused(DescriptionError, released_rows=2000):
        rx.estimate(frame.query("diagnosis == 'flu'"))
    north = frame[frame["region"] == "north"]
    chosen = rx.estimate(north, description=rx.description(north))
    assert np.array_equal(chosen.value, rx.estimate(frame, by="region")["north"].value)
    with refused(CountsError, says="an id stands in two rows"):
        rx.estimate(frame.merge(twice, on="region"), description=frame)
    joined = frame.merge(pd.DataFrame({"person": range(ROWS), "weight": 1.0}), on="person")
    assert np.array_equal(rx.estimate(joined, description=frame).value, rx.estimate(frame).value)


def test_questions_that_make_no_sense() -> None:
    low, high = release(made("polars")), release(made("polars"), "2")
    mistakes: list[tuple[Any, dict[str, Any], type[RelaxdpError], dict[str, Any]]] = [
        ([low, high], {"description": low}, DescriptionError, {"says": "a list with a description for each"}),
        (low, {"mechanism": ANSWERS}, DescriptionError, {"says": "go together"}),
        (low, {"mechanism": ANSWERS, "epsilon": 1}, DescriptionError, {"says": "with the column's name"}),
        ([], {}, CountsError, {"says": "no frame"}),
        (low, {"by": "region", "cross": "x"}, CountsError, {"option": "by"}),
        (
            [low, high.drop("person")], {"description": [None, high]},
            UnknownColumnError, {"name": "frame 2", "column": "person"},
        ),
        (
            [low, high.cast({"person": pl.String})], {"description": [None, high]},
            DescriptionError, {"name": "frame 2", "expected": "integer"},
        ),
        (
            low.with_columns(diagnosis=pl.lit(SECRET)), {"description": low},
            CountsError, {"values": 3, "undeclared": ROWS, "column": "diagnosis"},
        ),
        (made("pyarrow"), {}, DescriptionError, {"says": "does not say what it holds"}),
        ("in.parquet", {}, TableFileError, {"path": "in.parquet"}),
    ]  # fmt: skip
    for frame, more, error, fields in mistakes:
        with refused(error, **fields) as caught:
            rx.estimate(frame, **more)
        assert SECRET not in shown(caught.value)
    assert np.array_equal(
        rx.estimate([low.clone(), high.clone()], description=[low, high]).value, rx.estimate(high).value
    )


def test_a_frame_takes_the_place_of_a_file() -> None:
    table = made("pyarrow").select(["person"])
    found = frame_estimate.FrameInput("the frame", ColumnNames.of_frame(["person", "region"]), table)
    assert found.schema.names == ["person", "region"]
    assert sum(batch.num_rows for batch in found.batches(["person"])) == ROWS


def test_columns_that_are_called_by_numbers() -> None:
    import pandas as pd  # noqa: PLC0415

    frame = pd.DataFrame({0: range(2_000), 1: ["a", "b"] * 1_000, 2: ["x"] * 2_000})
    where: Any = {"epsilon": 1, "key": KEY, "release": "r", "ledger": None}
    released = rx.release(frame, {1: ["a", "b"]}, id=0, keep=[2], **where)
    assert list(released.columns) == [0, 1, 2]
    named = rx.release(frame.set_axis(["0", "1", "2"], axis=1), {"1": ["a", "b"]}, id="0", keep=["2"], **where)
    assert released[1].to_list() == named["1"].to_list()
    assert np.array_equal(rx.estimate(released, 1).value, rx.estimate(named, "1").value)
    assert list(rx.estimate(released, 1, by=2)) == ["x"]
    both = frame.set_axis([0, 1, "1"], axis=1)
    with pytest.raises(ValuesError):  # which of them is meant nobody can tell
        rx.release(both, {1: ["a", "b"]}, id=0, **where)
