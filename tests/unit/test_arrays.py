"""The array path gives the reports of the scalar path: every id type, every kind of column, rejected words too."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from relaxdp import Categorical, Key
from relaxdp.draw.canonical import canonical
from relaxdp.draw.columns import id_blocks
from relaxdp.draw.path import accepted_draws, report_at
from relaxdp.draw.path_arrays import ArrayPath
from relaxdp.draw.stream import words
from relaxdp.law.threshold import ONE, threshold

KEY = Key.from_bytes(bytes(range(100, 132)))
WHERE = {"release": "r", "attribute": "a"}
ROWS = 100_000
RNG = np.random.default_rng(77)


def integers() -> Any:
    return RNG.integers(-(2**63), 2**63, ROWS)


def unsigned() -> Any:
    return RNG.integers(2**62, 2**64, ROWS, dtype=np.uint64)


def text() -> Any:
    alphabet = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789äß漢🙂"))
    lengths = RNG.integers(0, 30, ROWS)
    return [f"{''.join(alphabet[RNG.integers(0, 40, length)])}{row}" for row, length in enumerate(lengths)]


def raw_bytes() -> Any:
    lengths = RNG.integers(0, 60, ROWS)
    return [row.to_bytes(3, "big") + RNG.bytes(length) for row, length in enumerate(lengths)]


def uuids() -> Any:
    return [uuid.UUID(bytes=RNG.bytes(16)) for _ in range(ROWS)]


@pytest.mark.parametrize("make", [integers, unsigned, text, raw_bytes, uuids])
def test_array_equals_scalar(make: Callable[[], Any]) -> None:
    """100,000 cases of each id type, five numbers of values, levels from 0.05 to 6."""
    ids = make()
    for part, values in enumerate([2, 3, 10, 256, 1000]):
        rows = slice(part * ROWS // 5, (part + 1) * ROWS // 5)
        epsilon = ["0.05", "0.3", "1", "2.5", "6"][part]
        derived, level = RNG.bytes(32), threshold(epsilon, values)
        truth = RNG.integers(0, values, ROWS // 5).astype(np.uint64)
        together = array_reports(derived, values, level, ids[rows], truth)
        alone = [
            report_at(accepted_draws(words(derived, canonical(item), index=int(t)), values), level, truth=int(t))
            for item, t in zip(ids[rows], truth, strict=True)
        ]
        assert together.tolist() == alone


def array_reports(
    derived: bytes, values: int, level: int, ids: Any, truth: Any, symbol: int = 0, chunk: int = 10_000
) -> NDArray[np.uint64]:
    path = ArrayPath(derived, values, level)
    result = np.empty(len(truth), np.uint64)
    for start in range(0, len(truth), chunk):
        part = slice(start, start + chunk)
        _, groups = id_blocks(ids[part], start)
        for chosen, blocks in groups:
            its_truth = truth[part][chosen]
            path.draw(result[part], chosen, path.cipher.absorb(blocks), its_truth, its_truth, symbol)
    path.finish()
    return result


@pytest.mark.parametrize("values", [2, 3])
def test_a_position_that_equals_the_threshold(values: int) -> None:
    """The thresholds are the positions of the path itself, and those beside them: at equality a draw still counts."""
    truth = np.array([1], np.uint64)
    for row in range(5):
        draws = [*accepted_draws(words(bytes(32), canonical(row), index=1), values)]
        for draw in draws[:6]:
            for level in (draw.position - 1, draw.position, draw.position + 1):
                alone = report_at(draws, level, truth=1)
                assert array_reports(bytes(32), values, level, [row], truth).tolist() == [alone]


def test_rejected_words() -> None:
    """With 2^63 + 1 values about half of the value words are rejected, also in the first block."""
    values, ids = 2**63 + 1, np.arange(2000)
    truth = RNG.integers(0, 2**62, 2000).astype(np.uint64)
    # Chunks of ten as well, so that every place in a chunk meets rejected neighbours.
    for level, chunk in [(1, 10), (ONE // 1000, 10), (ONE // 2, 10_000), (ONE - 1, 10)]:
        together = array_reports(bytes(32), values, level, ids, truth, symbol=5, chunk=chunk)
        for row in range(2000):
            stream = words(bytes(32), canonical(row), index=int(truth[row]), symbol=5)
            alone = report_at(accepted_draws(stream, values), level, truth=int(truth[row]))
            assert alone == int(together[row])


VALUES = ["flu", "covid", "none"]
TRUTHS = [VALUES[place] for place in RNG.integers(0, 3, 5000)]
TEXT_IDS = [f"patient-{row}" for row in range(5000)]


def release(values: Any, ids: Any, answers: Categorical | None = None) -> Any:
    return (answers or Categorical(VALUES)).release(values, ids, key=KEY, epsilon=0.5, **WHERE)


def test_every_kind_of_column_gives_the_same_reports_and_comes_back_as_it_was() -> None:
    expected = release(TRUTHS, TEXT_IDS)
    assert isinstance(expected, list)
    columns: list[tuple[Any, type]] = [
        (np.array(TRUTHS), np.ndarray),
        (np.array(TRUTHS, dtype=object), np.ndarray),
        (pa.array(TRUTHS), pa.DictionaryArray),
        (pa.chunked_array([TRUTHS[:17], TRUTHS[17:]]), pa.DictionaryArray),
        (pa.array(TRUTHS).dictionary_encode(), pa.DictionaryArray),
        (pd.Series(TRUTHS, name="d", index=range(7, 5007)), pd.Series),
        (pd.Series(TRUTHS, dtype="category"), pd.Series),
        (pl.Series("d", TRUTHS), pl.Series),
        (pl.Series("d", TRUTHS, dtype=pl.Categorical), pl.Series),
    ]
    ids: list[Any] = [
        TEXT_IDS,
        np.array(TEXT_IDS),
        np.array(TEXT_IDS, dtype=object),
        pa.array(TEXT_IDS),
        pa.array(TEXT_IDS, type=pa.string_view()),
        pa.array(TEXT_IDS).dictionary_encode(),
        pd.Series(TEXT_IDS, index=range(3, 5003)),
        pl.Series(TEXT_IDS),
    ]
    for (column, kind), id_column in zip(columns, [*ids, TEXT_IDS], strict=True):
        released = release(column, id_column)
        assert issubclass(type(released), kind)
        assert (released.to_pylist() if kind is pa.DictionaryArray else [*released]) == expected
    series = release(columns[5][0], TEXT_IDS)
    assert (series.name, list(series.index)) == ("d", list(range(7, 5007)))


def test_every_integer_dtype_gives_the_same_reports() -> None:
    numbers = list(range(100))
    answers = Categorical(range(5))
    truth = [n % 5 for n in numbers]
    expected = release(truth, numbers, answers)
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        array = np.array(numbers, dtype=dtype)
        columns: list[Any] = [array, pa.array(array), pd.Series(array), pl.Series(array), array.tolist()]
        for ids in columns:
            assert list(release(truth, ids, answers)) == expected
        assert release(np.array(truth, dtype=dtype), array, answers).dtype == np.dtype(dtype)
        assert release(pa.array(np.array(truth, dtype=dtype)), array, answers).to_pylist() == expected
    assert release(truth, pd.Series(numbers, dtype="Int64"), answers) == expected


def test_uuid_and_bytes_columns() -> None:
    ids = [uuid.UUID(int=row * 10**30) for row in range(5000)]
    expected = release(TRUTHS, ids)
    assert release(TRUTHS, pa.array([one.bytes for one in ids], pa.uuid())) == expected
    raw = [one.bytes for one in ids]
    as_bytes = release(TRUTHS, raw)
    assert as_bytes != expected  # sixteen bytes are not a UUID
    assert release(TRUTHS, pa.array(raw, pa.binary(16))) == release(TRUTHS, pa.array(raw)) == as_bytes


def test_other_kinds_of_values() -> None:
    kinds: list[tuple[list[Any], Any]] = [
        ([10, 20, 30], pa.int16()),
        ([0.5, -0.0, 2.5], pa.float64()),
        ([b"a", b"b", b"c"], pa.binary()),
    ]
    for values, kind in kinds:
        answers = Categorical(values)
        truth = [values[row % 3] for row in range(600)]
        expected = release(truth, list(range(600)), answers)
        assert release(pa.array(truth, kind), np.arange(600), answers).to_pylist() == expected
    wide = Categorical([1, 2**63 + 5])
    assert release([1, 2**63 + 5], [1, 2], wide) == release(np.array([1, 2**63 + 5], np.uint64), [1, 2], wide).tolist()


def test_many_values_and_an_empty_column() -> None:
    answers = Categorical(range(70_000))
    truth = RNG.integers(0, 70_000, 3000)
    released = release(truth, np.arange(3000), answers)
    assert released.dtype == np.int64
    assert (released == truth).mean() < 0.01
    assert release([], [], answers) == []
    assert release(np.array([], int), np.array([], int), answers).tolist() == []


def test_pieces_and_order_do_not_matter() -> None:
    order = RNG.permutation(5000)
    whole = np.array(release(TRUTHS, TEXT_IDS))
    shuffled = release([TRUTHS[row] for row in order], [TEXT_IDS[row] for row in order])
    assert shuffled == whole[order].tolist()
    assert release(TRUTHS[100:200], TEXT_IDS[100:200]) == whole[100:200].tolist()
