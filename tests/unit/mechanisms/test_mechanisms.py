"""The front door: what it returns, and that bad input gets one sentence which never shows the truth."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from decimal import Decimal
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import (
    ArgumentError,
    ColumnError,
    EpsilonError,
    IdError,
    KeyFileError,
    LevelError,
    RelaxdpError,
    UndeclaredValueError,
    ValuesError,
)

KEY = rx.Key.from_bytes(bytes(32))
WHERE: Any = {"name": "r", "column": "a"}
ANSWERS = rx.Categorical(["flu", "covid", "none"])


def release(values: Any = ("flu", "covid"), ids: Any = (1, 2), epsilon: Any = 0.5) -> Any:
    return ANSWERS.release(values, ids, key=KEY, epsilon=epsilon, **WHERE)


def test_a_path_is_the_same_in_any_order() -> None:
    levels: list[str | int] = ["0.1", "2", "0.5", "1", "0.1", "2.0", 2]
    one = ANSWERS.path("covid", key=KEY, id="x", **WHERE)
    two = ANSWERS.path("covid", key=KEY, id="x", **WHERE)
    assert [one.at(level) for level in levels] == [two.at(level) for level in reversed(levels)][::-1]
    assert one.at(0.1) == one.at("0.1") == one.at(Decimal("0.10"))
    assert release(["covid"], ["x"], "0.1") == [one.at(0.1)]


def test_huge_epsilon_is_still_not_the_bare_truth_by_definition() -> None:
    assert ANSWERS.path("covid", key=KEY, id="x", **WHERE).at(1000) == "covid"
    assert ANSWERS.threshold(Decimal(1000)) == 2**64 - 1


def test_repr_shows_no_truth() -> None:
    path = ANSWERS.path("covid", key=KEY, id="x", **WHERE)
    chain = rx.Relaxation(ANSWERS, "covid")
    truths = ANSWERS.read_true_values(["covid"])
    for thing in (path, chain, truths):
        assert "covid" not in repr(thing)
    assert repr(path) == "<relaxdp.ReportPath of 'a' of release 'r'>"
    assert repr(ANSWERS) == "Categorical(['flu', 'covid', 'none'])"


@pytest.mark.parametrize("epsilon", [0, -1, "nan", float("inf"), None, "x", np.float32(1), "1e-25"])
def test_epsilon(epsilon: Any) -> None:
    with refused(EpsilonError, says="epsilon"):
        release(epsilon=epsilon)
    with refused(EpsilonError, says="epsilon"):
        ANSWERS.path("flu", key=KEY, id=1, **WHERE).at(epsilon)
    with refused(EpsilonError, says="epsilon"):
        rx.Relaxation(ANSWERS, "flu").relax(epsilon=epsilon)


SECRET = "my-secret-illness"


@pytest.mark.parametrize(
    "values",
    [
        ["flu", SECRET],
        np.array(["flu", SECRET]),
        pa.array(["flu", SECRET]),
        pa.array(["flu", SECRET]).dictionary_encode(),
        pd.Series(["flu", SECRET]),
        pl.Series(["flu", SECRET]),
        pl.Series(["flu", SECRET], dtype=pl.Object),
        pd.Index(["flu", SECRET]),
        pd.Index(["flu", SECRET], dtype=object),
    ],
)
def test_an_undeclared_value_names_the_row_and_not_the_value(values: Any) -> None:
    with pytest.raises(UndeclaredValueError) as caught:
        release(values)
    message = "Row 2: the value is not one of the 3 declared values."
    message += " Declared: 'flu', 'covid', 'none'. Declare every value that can occur, spelled as in the table."
    message += " Nothing was released."
    assert str(caught.value) == message
    assert caught.value.fields == {"what": "value", "row": 2, "values": 3, "declared": "'flu', 'covid', 'none'"}
    _no_secret(caught.value)


@pytest.mark.parametrize("values", [pa.array([1, 2]), np.array([1.5, 2.5]), np.array([True, False])])
def test_values_of_another_kind(values: Any) -> None:
    with refused(UndeclaredValueError, values=3, declared_kind="text", says="declared values are of kind"):
        release(values)


@pytest.mark.parametrize(
    "values",
    [
        ["flu", None],
        np.array(["flu", None], dtype=object),
        pa.array(["flu", None]),
        pa.array(["flu", None]).dictionary_encode(),
        pd.Series(["flu", None], dtype="category"),
        pl.Series(["flu", None]),
    ],
)
def test_a_missing_value_is_said_to_be_missing(values: Any) -> None:
    with pytest.raises(UndeclaredValueError) as caught:
        release(values)
    message = "Row 2: the value is missing. None is not one of the 3 declared values. "
    message += "Declare None too, such as ['flu', None] (--missing NAME). None is then one more category. "
    message += "Nothing was released."
    assert str(caught.value) == message


@pytest.mark.parametrize("values", [[SECRET, 1], np.array([SECRET, "x"]), pd.Series([SECRET, 2.0]), pa.array([SECRET])])
def test_numbers_that_are_none_are_not_shown(values: Any) -> None:
    with pytest.raises(RelaxdpError) as caught:
        rx.Numeric(0, 1).release(values, list(range(len(values))), key=KEY, epsilon=1, **WHERE)
    _no_secret(caught.value)


class Telling:
    """An object that says what it holds when it is compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError(SECRET)

    __hash__ = None  # type: ignore[assignment]


MECHANISMS = [ANSWERS, rx.Categorical([1, 2]), rx.Unary(["flu", "covid"]), rx.Numeric(0, 1)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize(
    "truth",
    [pd.NA, pd.NaT, Decimal("sNaN"), f"{SECRET} \ud800", pd.Series([SECRET]), Telling(), [SECRET], 10**400],
    ids=lambda truth: type(truth).__name__,
)
def test_truths_that_are_none_are_refused_in_a_sentence_of_ours(mechanism: Any, truth: Any) -> None:
    """Whatever Python, pandas or Arrow say of them may quote them."""
    known = mechanism.labels[0]
    doors: list[Callable[[], Any]] = [
        lambda: mechanism.path(truth, key=KEY, id=1, **WHERE),
        lambda: mechanism.release([known, truth], [1, 2], key=KEY, epsilon=1, **WHERE),
        lambda: mechanism.release(pd.Series([known, truth], dtype=object), [1, 2], key=KEY, epsilon=1, **WHERE),
        lambda: mechanism.estimate([known, truth], epsilon=1),
        lambda: mechanism.release([known, known], [1, truth], key=KEY, epsilon=1, **WHERE),
        lambda: rx.Relaxation(mechanism, truth).relax(epsilon=1),
    ]
    for door in doors:
        with pytest.raises(RelaxdpError) as caught:
            door()
        problem: BaseException | None = caught.value
        while problem is not None:
            assert SECRET not in f"{problem!r} {getattr(problem, 'fields', '')}"
            problem = None if problem.__suppress_context__ else problem.__context__


def test_names_and_values_of_no_use_are_refused_in_a_sentence_of_ours() -> None:
    with refused(ArgumentError, says="half of a character"):
        ANSWERS.release(["flu"], [1], key=KEY, epsilon=1, name="a \ud800", column="a")
    for values in (None, 7, str):
        with refused(ValuesError, says="The values must be a list"):
            rx.Categorical(values)  # type: ignore[arg-type]
    with refused(ValuesError, says="must be numbers"):
        rx.Numeric(0, 10**400)


def test_not_columns() -> None:
    """What has another shape, or hides part of itself, is refused whether it is values or ids."""
    masked = np.ma.MaskedArray(np.array([1, 2]), mask=[False, True])
    for wrong in (np.array([[1], [2]]), pd.DataFrame({"a": [1, 2]}), np.array(1), {1, 2}, {1: 2}, "ab", 7, masked):
        with pytest.raises(ColumnError, match="Nothing was released"):
            release(ids=wrong)
        with pytest.raises(ColumnError, match="Nothing was released"):
            rx.Categorical([1, 2]).release(wrong, [1, 2], key=KEY, epsilon=1, **WHERE)


def test_text_with_a_nul_is_one_object_in_every_kind_of_column() -> None:
    texts = ["a\0b", "a", "b\0\0c"]
    expected = release(["flu"] * 3, texts)
    assert release(["flu"] * 3, np.array(texts)) == expected
    assert release(["flu"] * 3, pl.Series(texts)) == expected
    raw = [text.encode() for text in texts]
    assert release(["flu"] * 3, np.array(raw)) == release(["flu"] * 3, raw)
    spaced = rx.Categorical(["a\0b", "a"])
    assert spaced.release(np.array(["a\0b", "a"]), [1, 2], key=KEY, epsilon=60, **WHERE).tolist() == ["a\0b", "a"]


def test_columns_of_python_objects_in_polars() -> None:
    ids = [uuid.UUID(int=1), uuid.UUID(int=2)]
    assert release(ids=pl.Series(ids, dtype=pl.Object)) == release(ids=ids)


def test_big_endian_numbers() -> None:
    numbers = rx.Categorical([10, 20, 30])
    expected = numbers.release([10, 30], [1, 2], key=KEY, epsilon=1, **WHERE)
    big = numbers.release(np.array([10, 30], ">i8"), np.array([1, 2], ">i4"), key=KEY, epsilon=1, **WHERE)
    assert big.tolist() == expected


def test_wrong_key_and_names() -> None:
    with refused(KeyFileError, says="must be a relaxdp.Key"):
        ANSWERS.path("flu", key=bytes(32), id=1, **WHERE)  # type: ignore[arg-type]
    with refused(ArgumentError, says="must be text"):
        ANSWERS.path("flu", key=KEY, id=1, name=None, column="a")  # type: ignore[arg-type]


def test_a_path_that_is_interrupted_or_shared_by_threads_gives_the_same_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every reading starts anew: an interrupt must not leave draws behind from which the bare truth would come."""
    answers = rx.Categorical(range(1000))
    path = answers.path(7, key=KEY, id="x", **WHERE)
    expected = [path.at(level) for level in ("0.001", "0.5", "3")]
    with monkeypatch.context() as patch:

        def broken(*given: Any) -> None:
            given[-1][:] = 0
            raise KeyboardInterrupt

        patch.setattr("relaxdp.mechanisms.keyed_reports.replace_symbols_by_reports", broken)
        with pytest.raises(KeyboardInterrupt):
            path.at("0.001")
    seen: list[list[int]] = []
    threads = [Thread(target=lambda: seen.append([path.at(e) for e in ("0.001", "0.5", "3")])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 8


def test_what_holds_a_truth_is_not_pickled() -> None:
    for thing in (ANSWERS.path("flu", key=KEY, id=1, **WHERE), rx.Relaxation(ANSWERS, "flu")):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)


def test_scalar_truth_is_not_shown() -> None:
    for use in (
        lambda: ANSWERS.path(SECRET, key=KEY, id=1, **WHERE),
        lambda: rx.Relaxation(ANSWERS, SECRET),
    ):
        with pytest.raises(UndeclaredValueError) as caught:
            use()
        _no_secret(caught.value)


def _no_secret(problem: BaseException | None) -> None:
    """Not in the error, nor in what it was raised from or while: `from None` hides a context but keeps it."""
    while problem is not None:
        assert SECRET not in str(problem) + repr(problem) + repr(getattr(problem, "fields", ""))
        problem = problem.__cause__ or problem.__context__


@pytest.mark.parametrize("values", [["flu", bytearray(b"flu")], ["flu", 7], [7, SECRET]])
def test_a_column_of_mixed_kinds_names_the_row_and_not_the_value(values: list[Any]) -> None:
    with refused(ColumnError, row=2, says="not of one kind") as caught:
        release(values)
    _no_secret(caught.value)


def test_true_is_not_one() -> None:
    for other in ([True], [1.0]):
        with refused(UndeclaredValueError, declared_kind="integer"):
            rx.Categorical([0, 1]).release(other, [1], key=KEY, epsilon=1, **WHERE)
    for outside in (-1, 2):
        with refused(UndeclaredValueError, row=2):
            rx.Categorical([0, 1]).release(np.array([0, outside]), [1, 2], key=KEY, epsilon=1, **WHERE)


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ([], {"values": 0}),
        (["only"], {"values": 1}),
        (["a", "b", "a"], {"value": "a", "says": "is declared twice"}),
        ([0.0, -0.0], {"value": 0.0, "says": "is declared twice"}),
        ([1, "1"], {"says": "must be of one kind"}),
        ([True, False], {"says": "Expected numbers, text, bytes or UUIDs"}),
        ([None, None], {"value": None, "says": "is declared twice"}),
        ([1.0, float("nan")], {"type": "float", "says": "Only None is accepted"}),
        ([1.0, float("inf")], {"problem": "a number must be finite"}),
        (["a", "\ud800"], {"problem": "the text contains a lone surrogate, so it has no UTF-8 form"}),
        ([1, 2**64], {"problem": "a whole number must be between -2**63 and 2**64 - 1"}),
        ("ab", {"says": "must be a list"}),
        ({"a", "b"}, {"says": "the order decides which reports are drawn"}),
        ({"a": 1, "b": 2}, {"says": "must be a list"}),
        ([-1, 2**63], {"says": "must fit into 64 bits"}),
        ([b"a", bytearray(b"b")], {"type": "bytearray"}),
        ([Decimal("1.5"), Decimal("2.5")], {"type": "Decimal", "hint": "rx.Numeric"}),
    ],
)
def test_declared_values(values: Any, fields: dict[str, Any]) -> None:
    with refused(ValuesError, **fields):
        rx.Categorical(values)


@pytest.mark.parametrize(
    ("ids", "fields"),
    [
        ([1, None], {"row": 2, "says": "The id is missing"}),
        ([1, float("nan")], {"row": 2, "says": "The id is missing"}),
        (["a", pd.NA], {"row": 2, "says": "The id is missing"}),
        (pa.array([None, 1]), {"row": 1, "says": "The id is missing"}),
        (pa.array(["a", None]), {"row": 2, "says": "The id is missing"}),
        (pd.Series([1, None], dtype="Int64"), {"row": 2, "says": "The id is missing"}),
        (pl.Series([1, None]), {"row": 2, "says": "The id is missing"}),
        ([1.0, 2.0], {"says": "must not be a floating-point number"}),
        ([1, 2.5], {"says": "must not be a floating-point number"}),
        (np.array([1.0, 2.0]), {"says": "must not be a floating-point number"}),
        (pd.Series([1, 2.5]), {"says": "must not be a floating-point number"}),
        ([True, False], {"says": "An id must be a whole number"}),
        (np.array([True, False]), {"says": "An id must be a whole number"}),
        ([Decimal(1), Decimal(2)], {"type": "decimal128(1, 0)"}),
        ([1, "1"], {"says": "The ids are of different kinds"}),
        ([1, True], {"says": "An id must be a whole number"}),
        (["a", "\ud800"], {"says": "lone surrogate"}),
        ([-1, 2**63], {"says": "must fit into 64 bits"}),
        ([0, 2**64], {"says": "must fit into 64 bits"}),
        (np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"), {"says": "An id must be a whole number"}),
        ([7, 7], {"row": 2, "says": "The id occurs in an earlier row"}),
        (np.array([7, 7]), {"row": 2, "says": "The id occurs in an earlier row"}),
        (["a", "a"], {"row": 2, "says": "The id occurs in an earlier row"}),
        (pa.array(["a", "a"]), {"row": 2, "says": "The id occurs in an earlier row"}),
        (np.array(["a", "a"]), {"row": 2, "says": "The id occurs in an earlier row"}),
        (np.array(["a", None], object), {"row": 2, "says": "The id is missing"}),
        (pl.Series(["a", "a"]), {"row": 2, "says": "The id occurs in an earlier row"}),
        (pd.Series(["a", "a"]), {"row": 2, "says": "The id occurs in an earlier row"}),
        ([uuid.UUID(int=1)] * 2, {"row": 2, "says": "The id occurs in an earlier row"}),
        (pa.array([bytes(16)] * 2, pa.uuid()), {"row": 2, "says": "The id occurs in an earlier row"}),
    ],
)
def test_ids(ids: Any, fields: dict[str, Any]) -> None:
    with refused(IdError, **fields):
        release(ids=ids)


@pytest.mark.parametrize(
    "ids", [pa.array(["a", "b", "b"]), ["a", "b", "a", "b"], np.array([5, 3, 5, 3]), np.array(["b", "a", "b"])]
)
def test_the_first_repeat_is_named(ids: Any) -> None:
    with refused(IdError, row=3, says="The id occurs in an earlier row"):
        release(["flu"] * len(ids), ids)


def test_repeats_far_apart_and_unsorted() -> None:
    for ids in (np.arange(200_000), np.arange(200_000)[::-1].copy(), np.arange(200_000).astype(np.uint32)):
        values = np.array(["flu"] * len(ids))
        release(values, ids)
        ids[131_072] = ids[65_535]
        with refused(IdError, row=131073, says="The id occurs"):
            release(values, ids)


@pytest.mark.parametrize("object_id", [None, 1.0, float("nan"), True, (1, 2), 2**64])
def test_one_id(object_id: Any) -> None:
    with refused(IdError, says="id"):
        ANSWERS.path("flu", key=KEY, id=object_id, **WHERE)


def test_lengths_and_mixed_chunks() -> None:
    with refused(ColumnError, rows=2, other_rows=3, one="values", other="ids"):
        release(ids=[1, 2, 3])
    many = [*range(40_000), *map(str, range(40_000))]
    with refused(IdError, says="of different kinds"):
        release(["flu"] * 80_000, many)


def test_privacy_loss() -> None:
    loss = rx.theory.privacy_loss(["0.1", "0.5", "1"], [0, 2, 1], m=3)
    assert round(loss.spent, 12) == round(loss.guarantee, 12) == 1
    assert round(loss.basic_composition, 12) == Decimal("2.2")  # 0.1 + (0.1 + 0.5) + (0.5 + 1)
    assert round(rx.theory.privacy_loss([1, 1, 2], [1, 1, 1], m=2).basic_composition, 9) == 4
    for repeated in ([0], [2, 2], [1, 1, 1]):  # compared with a truth that nobody reported, or it would seem free
        loss = rx.theory.privacy_loss(["0.25", "0.5", "1"][: len(repeated)], repeated, m=3)
        assert loss.spent == loss.guarantee > Decimal("0.24")
    with refused(LevelError, says="cannot occur together"):
        rx.theory.privacy_loss([1, 1], [0, 1], m=2)
    with refused(LevelError, says="may only grow"):
        rx.theory.privacy_loss([1, "0.5"], [0, 1], m=2)
    with refused(LevelError, says="one report per epsilon"):
        rx.theory.privacy_loss([1], [0, 1], m=2)
    with refused(LevelError, says="and at least one"):
        rx.theory.privacy_loss([], [], m=2)
    for outside in (-1, 2, "yes"):
        with refused(LevelError, m=2):
            rx.theory.privacy_loss([1], [outside], m=2)  # type: ignore[list-item]
        with refused(LevelError, m=2):
            rx.theory.privacy_loss([1, 2], [0, outside], m=2)  # type: ignore[list-item]
    assert round(rx.theory.privacy_loss([1, 2], [5, 7], m=2**32).guarantee, 9) == 2
    assert rx.theory.relaxation_law(m=2**32, old_epsilon=1, new_epsilon=2).p_aa < 1
