"""None among declared values: a category of its own for whatever is missing, in every kind of column."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused
from tests.vectors.make_missing import ENCODINGS, FILE, check, untyped

import relaxdp as rx
from relaxdp.device.report import read_typed_answer
from relaxdp.errors import EstimationError, IdError, UndeclaredValueError, ValuesError
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.report_arrays import (
    count_report_column,
    get_report_arrow_type,
    make_report_column,
    read_report_column,
)
from relaxdp.sampling.keyed_stream import encode_canonical, encode_declared_value

CASES: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["cases"]
KEY = rx.Key.from_bytes(bytes(range(32)))
WHERE: dict[str, Any] = {"key": KEY, "name": "survey-2026", "column": "diagnosis"}
MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("nan")]


def release(mechanism: rx.Categorical, column: Any) -> Any:
    return mechanism.release(column, list(range(len(column))), epsilon=2, **WHERE)


def as_plain(column: Any) -> list[Any]:
    """Return a column as a list in which whatever is missing is None."""
    items = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return [None if item is None or item is pd.NA or item != item else item for item in items]  # noqa: PLR0124


# The tag


def test_the_tag_is_only_for_declared_values() -> None:
    assert encode_declared_value(None) == bytes([7, *15 * [0]])
    with pytest.raises(ValueError, match="it must be a whole number"):
        encode_canonical(None)
    with refused(IdError, row=2):
        rx.Categorical(["a", None]).release(["a", None], ["x", None], epsilon=1, **WHERE)
    with refused(IdError, what="missing"):
        rx.Categorical(["a", None]).path("a", id=None, **WHERE)


declared = st.one_of(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6, unique=True),
    st.lists(st.binary(max_size=40), min_size=1, max_size=6, unique=True),
    st.lists(st.uuids(), min_size=1, max_size=6, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6, unique=True),
)


@pytest.mark.filterwarnings("ignore::UnicodeWarning")
@given(declared, declared, st.data())
def test_no_other_list_has_its_digest(values: list[Any], others: list[Any], data: st.DataObject) -> None:
    """The path of a list with None is that of no other list: not of another place, and not of another value there."""
    place = data.draw(st.integers(0, len(values)))
    own = [*values[:place], None, *values[place:]]
    digest = Categorical(own).digest
    candidates = [[*values[:other], None, *values[other:]] for other in range(len(values) + 1) if other != place]
    candidates += [[*values[:place], each, *values[place:]] for each in others if type(each) is type(values[0])]
    candidates += [others, values, [*others, None], [None, *others]]
    for other in candidates:
        is_usable = len(other) > 1 and len({encode_declared_value(each) for each in other}) == len(other)
        whole = [each for each in other if isinstance(each, int)]
        is_usable = is_usable and not (whole and min(whole) < 0 and max(whole) >= 2**63)  # these do not fit together
        if is_usable and list(map(encode_declared_value, other)) != list(map(encode_declared_value, own)):
            assert Categorical(other).digest != digest


@pytest.mark.parametrize("stand_in", ["", "None", "NaN", "null", "\x07", "(missing)"])
def test_no_text_stands_for_it(stand_in: str) -> None:
    assert Categorical(["a", None]).params != Categorical(["a", stand_in]).params
    column = np.array(["a", None], dtype=object)
    with refused(UndeclaredValueError, row=2, missing=True):
        rx.Categorical(["a", stand_in]).release(column, [1, 2], epsilon=1, **WHERE)


def test_what_can_be_declared() -> None:
    assert rx.Categorical(["flu", None]).values == ("flu", None)
    assert repr(rx.Categorical([1, None])) == "Categorical([1, None])"
    for missing in (float("nan"), np.float32("nan"), pd.NA, pd.NaT, Decimal("nan")):
        with refused(ValuesError, hint="Declare None instead"):
            rx.Categorical(["flu", missing])
    with refused(ValuesError, says="of one kind"):
        rx.Categorical([1, "1", None])
    with refused(ValuesError, says="fit into 64 bits"):
        rx.Categorical([-1, None, 2**63])
    with refused(ValuesError, values=1):
        rx.Categorical([None])


# The frozen vectors


def test_scalar() -> None:
    assert check() == 80


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_vectors(encoding: str) -> None:
    chosen = [case for case in CASES if case["encoding"] == encoding]
    assert len(chosen) == 20
    assert sum(case["values"][case["truth"]]["type"] == "missing" for case in chosen) > 4
    for case in chosen:
        values = [untyped(entry) for entry in case["values"]]
        options = {"buckets": case["buckets"]} if "buckets" in case else {}
        mechanism = create_mechanism(encoding, values=values, options={**options})
        where: Any = {"name": case["release"], "column": case["attribute"]}
        where["key"] = rx.Key.from_bytes(bytes.fromhex(case["key"]))
        truth, object_id = values[case["truth"]], untyped(case["object"])
        path = mechanism.path(truth, id=object_id, **where)
        for level in case["levels"]:
            packed = bytes.fromhex(level["report"])
            expected = values[int.from_bytes(packed, "little")] if encoding == "categorical" else packed
            assert str(mechanism.threshold(Decimal(level["epsilon"]))) == level["threshold"]
            assert path.at(level["epsilon"]) == expected
            assert mechanism.release([truth], [object_id], epsilon=level["epsilon"], **where) == [expected]


# Columns


TEXTS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "numpy objects": lambda rows: np.array(rows, dtype=object),
    "numpy text": lambda rows: np.array(rows, dtype=np.dtypes.StringDType(na_object=None)),
    "numpy text, NaN": lambda rows: np.array(
        [np.nan if row is None else row for row in rows], dtype=np.dtypes.StringDType(na_object=np.nan)
    ),
    "pandas": pd.Series,
    "pandas objects": lambda rows: pd.Series(rows, dtype=object),
    "pandas NaN": lambda rows: pd.Series([np.nan if row is None else row for row in rows], dtype=object),
    "pandas NA": lambda rows: pd.Series([pd.NA if row is None else row for row in rows], dtype=object),
    "pandas text": lambda rows: pd.Series(rows, dtype="string"),
    "pandas Arrow": lambda rows: pd.Series(rows, dtype=pd.ArrowDtype(pa.string())),
    "pandas categories": lambda rows: pd.Series(rows, dtype="category"),
    "pandas index": lambda rows: pd.Index(rows, dtype=object),
    "polars": lambda rows: pl.Series("x", rows, dtype=pl.String),
    "polars categories": lambda rows: pl.Series("x", rows, dtype=pl.Categorical),
    "polars enum": lambda rows: pl.Series("x", rows, dtype=pl.Enum(["unused", "covid", "flu", "none"])),
    "pyarrow": lambda rows: pa.array(rows, pa.string()),
    "pyarrow large": lambda rows: pa.array(rows, pa.large_string()),
    "pyarrow view": lambda rows: pa.array(rows, pa.string_view()),
    "pyarrow chunks": lambda rows: pa.chunked_array([pa.array(rows[:3], pa.string()), pa.array(rows[3:], pa.string())]),
    "dictionary": lambda rows: pa.array(rows, pa.string()).dictionary_encode(),
    "dictionary with a null": lambda rows: pa.DictionaryArray.from_arrays(
        pa.array([["none", None, "flu", "covid"].index(row) for row in rows], pa.int8()),
        pa.array(["none", None, "flu", "covid"]),
    ),
    "dictionary chunks": lambda rows: pa.chunked_array(
        [pa.array(rows[:3], pa.string()), pa.array(rows[3:], pa.string())]
    ).dictionary_encode(),
}


@pytest.mark.parametrize("kind", TEXTS)
@given(
    st.lists(st.sampled_from(["flu", "covid", "none", None]), min_size=0, max_size=12),
    st.permutations(["flu", "covid", "none", None]),
)
def test_text_in_every_kind_of_column(kind: str, rows: list[Any], values: list[Any]) -> None:
    answers = rx.Categorical(values)
    codes = np.array([values.index(row) for row in rows], dtype=np.uint64)
    column = TEXTS[kind](rows)
    assert answers.read_true_values(column).index.tolist() == codes.tolist()
    if not rows:
        return
    expected, reports = release(answers, rows), release(answers, column)
    assert as_plain(reports) == expected
    for each in (expected, reports):
        found, objects = count_report_column(answers, each)
        assert found.tolist() == [expected.count(value) for value in values]
        assert objects == len(rows)
        assert read_report_column(answers, each)[0][:, 0].tolist() == [values.index(row) for row in expected]
    for other in (rx.Unary(values), rx.LocalHash(values, buckets=3)):
        packed = other.release(rows, list(range(len(rows))), epsilon=2, **WHERE)
        again = make_report_column(
            other, *read_report_column(other, other.release(column, list(range(len(rows))), epsilon=2, **WHERE))
        )
        assert again.to_pylist() == packed


NUMBERS: dict[str, Callable[[list[Any]], Any]] = {
    "numpy objects": lambda rows: np.array(rows, dtype=object),
    "numpy": lambda rows: np.array(rows, dtype=float),
    "pandas": lambda rows: pd.Series(rows, dtype=float),
    "pandas nullable": lambda rows: pd.Series(rows, dtype="Float64"),
    "polars": lambda rows: pl.Series("x", rows, dtype=pl.Float64),
    "polars NaN": lambda rows: pl.Series("x", [np.nan if row is None else row for row in rows], dtype=pl.Float64),
    "pyarrow": lambda rows: pa.array(rows, pa.float64()),
}


@pytest.mark.parametrize("kind", NUMBERS)
@given(st.lists(st.sampled_from([0.5, 2.0, None]), min_size=1, max_size=8))
def test_numbers_in_every_kind_of_column(kind: str, rows: list[Any]) -> None:
    answers = rx.Categorical([0.5, None, 2.0])
    reports = release(answers, NUMBERS[kind](rows))
    assert as_plain(reports) == release(answers, rows)
    assert (
        read_report_column(answers, reports)[0].tolist()
        == read_report_column(answers, release(answers, rows))[0].tolist()
    )


@pytest.mark.parametrize("wide", [3, 2**63 + 5])
@given(st.data())
def test_whole_numbers_in_every_kind_of_column(wide: int, data: st.DataObject) -> None:
    values = [1, None, wide]
    rows = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=8))
    answers, unsigned = rx.Categorical(values), pa.array(rows, pa.uint64())
    expected = release(answers, rows)
    columns: list[Any] = [np.array(rows, dtype=object), unsigned, unsigned.dictionary_encode()]
    columns += [pl.Series("x", rows, dtype=pl.UInt64), pd.Series(rows, dtype="UInt64"), pd.Series(rows, dtype=object)]
    if wide == 3:
        columns += [pd.Series(rows, dtype="Int64"), pd.Series(rows, dtype=float), pa.array(rows, pa.int8())]
    for column in columns:
        reports = release(answers, column)
        assert as_plain(reports) == expected
        assert count_report_column(answers, reports)[0].tolist() == [expected.count(value) for value in values]


@pytest.mark.parametrize("values", [[b"a", None, b"bc"], [uuid.UUID(int=1), uuid.UUID(int=2), None]])
def test_bytes_and_uuids(values: list[Any]) -> None:
    answers, rows = rx.Categorical(values), values * 4
    expected = release(answers, rows)
    assert as_plain(release(answers, np.array(rows, dtype=object))) == expected
    column = make_report_column(answers, read_report_column(answers, expected)[0])
    assert column.type == get_report_arrow_type(answers)
    assert column.to_pylist() == expected
    assert read_report_column(answers, column)[0].tolist() == read_report_column(answers, expected)[0].tolist()


@pytest.mark.parametrize("missing", MISSING)
def test_everything_that_is_missing(missing: Any) -> None:
    answers = rx.Categorical(["flu", None])
    assert answers.read_true_values(["flu", missing]).index.tolist() == [0, 1]
    assert answers.path(missing, id=1, **WHERE).at(60) is None
    with refused(UndeclaredValueError, row=2, missing=True):
        rx.Categorical(["flu", "none"]).read_true_values(["flu", missing])


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(3), pa.nulls(3, pa.float64()), pd.Series([None] * 3, dtype=float), pd.Series([pd.NaT] * 3),
        pl.Series("x", [None] * 3), np.full(3, np.nan), pd.Series([None] * 3, dtype="category"),
        pa.nulls(3, pa.dictionary(pa.int8(), pa.string())),
    ],
)  # fmt: skip
def test_a_column_without_values(column: Any) -> None:
    """Its type is that of nothing, or pandas' choice: it says nothing about the values."""
    answers = rx.Categorical(["flu", None])
    assert answers.read_true_values(column).index.tolist() == [1, 1, 1]
    with refused(UndeclaredValueError):
        rx.Categorical(["flu", "none"]).read_true_values(column)


@pytest.mark.parametrize("column", [pa.array(["flu", "cold", None]), np.array(["flu", "cold"]), pd.Series([1.5, None])])
def test_a_value_that_is_not_declared_is_not_missing(column: Any) -> None:
    with refused(UndeclaredValueError):
        rx.Categorical(["flu", None]).read_true_values(column)
    with refused(UndeclaredValueError):
        rx.Categorical([1, None]).read_true_values(column)
    with refused(EstimationError):
        count_report_column(rx.Categorical(["flu", None]), column)


def test_an_index_of_nothing_is_not_missing() -> None:
    """An index outside of the dictionary is damage, wherever None stands among the values."""
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int8()), pa.array(["a", "b"]), safe=False)
    for values in (["a", None, "b"], ["a", "b", None]):
        with pytest.raises((EstimationError, pa.ArrowException, ValueError)):
            read_report_column(rx.Categorical(values), damaged)


# Estimates


def test_a_typed_answer_is_never_missing() -> None:
    with refused(UndeclaredValueError):
        read_typed_answer(rx.Categorical(["flu", None]), "None")


def test_estimates_name_it() -> None:
    answers = rx.Categorical(["flu", None, "covid"])
    result = answers.estimate(["flu", None, None, "covid"] * 100, epsilon=4)
    assert result.key_columns == {"value": ["flu", None, "covid"]}
    assert result.to_frame()["value"].is_null().to_pylist() == [False, True, False]
    assert "\n(missing)  " in repr(result)
    assert "None" not in repr(result)
    assert "<td>(missing)</td>" in result._repr_html_()
    change = rx.compare(result, answers.estimate(["flu", None, "flu", "covid"] * 100, epsilon=4))
    assert "(missing): " in repr(change)
    labels = [each.get_text() for each in result.plot().get_yticklabels()]
    assert labels == ["flu", "(missing)", "covid"]
