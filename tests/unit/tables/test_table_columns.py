"""Columns: cells as the kind of what is declared, ids by their type, and hints that work."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.tables.test_table_source import SECRET, read, rejected

import relaxdp as rx
from relaxdp.errors import ColumnError, IdError, RelaxdpError, TableFileError, ValuesError
from relaxdp.tables.table_columns import (
    convert_column_for_mechanism,
    convert_declared_values,
    get_id_type,
    suggest_name,
)
from relaxdp.tables.table_source import open_source

DAY = datetime.date(2026, 1, 31)


@pytest.mark.parametrize(("cells", "values", "expected"), [
    (pa.array([True, None, False]), ["true", "false"], ["true", None, "false"]),
    (pa.array([DAY, None]), ["2026-01-31", "2026-02-01"], ["2026-01-31", None]),
    (pa.array([DAY]).cast(pa.date64()).dictionary_encode(), ["2026-01-31", "never"], ["2026-01-31"]),
    (pa.array(["flu", None]), ["flu", "none"], ["flu", None]), (pa.array([1, 2]), [1, 2], [1, 2]),
])  # fmt: skip
def test_booleans_and_dates_are_declared_as_text(cells: Any, values: list[Any], expected: list[Any]) -> None:
    assert convert_column_for_mechanism(cells, rx.Categorical(values)).to_pylist() == expected


def test_text_becomes_numbers_for_a_range() -> None:
    encoding = rx.Numeric(0, 120)
    for cells in (["1.5", None, "-2"], [1.5, None, -2.0], [Decimal("1.5"), None, Decimal("-2.0")]):
        for column in (pa.array(cells), pa.array(cells).dictionary_encode()):
            assert convert_column_for_mechanism(column, encoding).to_pylist() == [1.5, None, -2.0]
    with rejected(ValuesError, "Row 12: the value is not a number") as caught:
        convert_column_for_mechanism(pa.array(["1", SECRET]), encoding, 10, "age")
    assert caught.value.fields["row"] == 12


@pytest.mark.parametrize(("cells", "hint"), [
    (pa.array([True]), "Declare the values 'true' and 'false'"),
    (pa.array([DAY]), "Declare dates such as '2026-01-31'"),
])  # fmt: skip
def test_other_values_of_booleans_and_dates_are_rejected(cells: Any, hint: str) -> None:
    with rejected(ValuesError, hint):
        convert_column_for_mechanism(cells, rx.Categorical(["yes", "no"]), name="smoker")


def test_declared_texts_are_numbers_for_a_column_of_them() -> None:
    assert convert_declared_values(["1", 2, None], pa.int16()) == (1, 2, None)
    assert convert_declared_values(["1", "2"], pa.string()) == ("1", "2")
    with rejected(ValuesError, "whole numbers"):
        convert_declared_values([SECRET], pa.int64())


@pytest.mark.parametrize(("kind", "name"), [
    (pa.int8(), "integer"), (pa.string_view(), "text"), (pa.dictionary(pa.int8(), pa.string()), "text"),
    (pa.uuid(), "uuid"), (pa.binary(3), "bytes"), (pa.large_binary(), "bytes"),
])  # fmt: skip
def test_types_of_ids(kind: Any, name: str) -> None:
    assert get_id_type(kind) == name


@pytest.mark.parametrize(("kind", "hint"), [
    (pa.float64(), 'astype\\("Int64"\\)'), (pa.decimal128(38), "AS BIGINT"), (pa.bool_(), "to text"),
])  # fmt: skip
def test_types_that_identify_nobody(kind: Any, hint: str) -> None:
    with rejected(IdError, hint):
        get_id_type(kind)


def test_hints_of_names() -> None:
    assert suggest_name("ag", ["age", "sex"]) == "Did you mean 'age'?"
    assert suggest_name("x", ["age", "sex"]) == "Choose one of: 'age', 'sex'."
    assert suggest_name("x", [f"column{place}" for place in range(14)]).endswith("'column11' and 2 more.")
    assert suggest_name("x", []) == ""


@pytest.mark.parametrize(("content", "error", "expected"), [
    ('id,a\n1,"58,5"\n', ValuesError, 58.5),
    ("id;a\n1;58.5\n", ColumnError, 58.5), ("id|a\n1|58.5\n", ColumnError, 58.5),
    ("id,a\n1,Müller\n", TableFileError, "Müller"),
])  # fmt: skip
def test_the_hint_is_a_query_that_works(tmp_path: Path, content: str, error: type[RelaxdpError], expected: Any) -> None:
    """Fails first, and then with the copied query gives the rows."""
    file = tmp_path / "t.csv"
    file.write_bytes(content.encode("latin-1"))
    with rejected(error) as caught, open_source(file) as source:
        source.names.require_column("id")
        convert_column_for_mechanism(pa.array([row["a"] for row in read(source, ["id", "a"])]), rx.Numeric(0, 120))
    copied = re.search(r'--sql "([^"]*)"', str(caught.value))
    assert copied is not None
    with open_source(file, sql=copied[1]) as source:
        rows = read(source, ["id", "a"])
    assert rows == [{"id": 1, "a": expected}]
