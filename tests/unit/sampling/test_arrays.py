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
from tests.refusals import refused
from tests.vectors.scalar import words

from relaxdp import Categorical, Key
from relaxdp.errors import ColumnError, IdError
from relaxdp.sampling.arrow_columns import ids_to_arrow, read_ids, to_arrow
from relaxdp.sampling.keyed_path import NumpyPathSampler, find_report, iterate_path_draws
from relaxdp.sampling.keyed_stream import MacInputs, encode_canonical
from relaxdp.theory.epsilon import ONE, compute_threshold

KEY = Key.from_bytes(bytes(range(100, 132)))
WHERE: Any = {"name": "r", "column": "a"}
RNG = np.random.default_rng(77)


def integers(rows: int) -> Any:
    return RNG.integers(-(2**63), 2**63, rows)


def unsigned(rows: int) -> Any:
    return RNG.integers(2**62, 2**64, rows, dtype=np.uint64)


def text(rows: int) -> Any:
    alphabet = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789äß漢🙂"))
    lengths = RNG.integers(0, 30, rows)
    return [f"{''.join(alphabet[RNG.integers(0, 40, length)])}{row}" for row, length in enumerate(lengths)]


def raw_bytes(rows: int) -> Any:
    lengths = RNG.integers(0, 60, rows)
    return [row.to_bytes(3, "big") + RNG.bytes(length) for row, length in enumerate(lengths)]


def uuids(rows: int) -> Any:
    return [uuid.UUID(bytes=RNG.bytes(16)) for _ in range(rows)]


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("make", [integers, unsigned, text, raw_bytes, uuids])
def test_array_equals_scalar(make: Callable[[int], Any], count: int) -> None:
    """10,000 or 100,000 cases of each id type, five numbers of values, levels from 0.05 to 6."""
    ids = make(count)
    for part, values in enumerate([2, 3, 10, 256, 1000]):
        rows = slice(part * count // 5, (part + 1) * count // 5)
        epsilon = ["0.05", "0.3", "1", "2.5", "6"][part]
        derived, level = RNG.bytes(32), compute_threshold(epsilon, values)
        truth = RNG.integers(0, values, count // 5).astype(np.uint64)
        together = array_reports(derived, values, level, ids[rows], truth)
        alone = [
            find_report(iterate_path_draws(words(derived, encode_canonical(item), int(t)), values), level, truth=int(t))
            for item, t in zip(ids[rows], truth, strict=True)
        ]
        assert together.tolist() == alone


TEXTS = ["", *("abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"[:length] for length in range(1, 42)), "a\0b", "漢🙂ß"]
NUMBERS = [0, 1, 127, 2**31, 2**62 + 3]
UUIDS = [uuid.UUID(int=number * 3**70) for number in range(5)]
RAW = [text.encode() for text in TEXTS]
COLUMNS: dict[str, tuple[str, Any, list[Any]]] = {
    "texts": ("text", TEXTS, TEXTS),
    "a tuple": ("text", tuple(TEXTS), TEXTS),
    "NumPy texts": ("text", np.array(TEXTS), TEXTS),
    "NumPy ASCII": ("text", np.array(TEXTS[:42]), TEXTS[:42]),
    "NumPy ASCII in steps": ("text", np.array(TEXTS[:42])[::2], TEXTS[:42:2]),
    "NumPy letters": ("text", np.array(["ā", "ß", "漢a"]), ["ā", "ß", "漢a"]),
    "NumPy last ASCII": ("text", np.array(["\x7f", "b"]), ["\x7f", "b"]),
    "NumPy first beyond ASCII": ("text", np.array(["\x80", "b"]), ["\x80", "b"]),
    "NumPy with a NUL first": ("text", np.array(["\0ab", "cde"]), ["\0ab", "cde"]),
    "NumPy with a NUL inside": ("text", np.array(["a\0b", "cde"]), ["a\0b", "cde"]),
    "NumPy with NULs in front of a word": ("text", np.array(["abc\0\0\0\0\0i", "d"]), ["abc\0\0\0\0\0i", "d"]),
    "NumPy with a NUL that ends a word": ("text", np.array(["abcdefg\0i", "d"]), ["abcdefg\0i", "d"]),
    "NumPy with a NUL that begins a word": ("text", np.array(["abcdefgh\0i", "d"]), ["abcdefgh\0i", "d"]),
    "NumPy empty texts": ("text", np.array(["", ""]), ["", ""]),
    "no NumPy texts": ("text", np.array([], "U3"), []),
    "texts of 7 letters": ("text", ["abcdefg", "hijklmn"], ["abcdefg", "hijklmn"]),
    "texts of 15 letters": ("text", pa.array(["abcdefghijklmno"] * 3), ["abcdefghijklmno"] * 3),
    "NumPy objects": ("text", np.array(TEXTS, object), TEXTS),
    "NumPy bytes": ("bytes", np.array(RAW), RAW),
    "Arrow texts": ("text", pa.array(TEXTS), TEXTS),
    "a piece of Arrow texts": ("text", pa.array(TEXTS)[3:30], TEXTS[3:30]),
    "Arrow large texts": ("text", pa.array(TEXTS, pa.large_string())[1:], TEXTS[1:]),
    "Arrow views": ("text", pa.array(TEXTS, pa.string_view()), TEXTS),
    "Arrow dictionary": ("text", pa.array(TEXTS).dictionary_encode(), TEXTS),
    "Arrow chunks": ("text", pa.chunked_array([TEXTS[:5], TEXTS[5:]]), TEXTS),
    "no Arrow texts": ("text", pa.array([], pa.string()), []),
    "bytes": ("bytes", RAW, RAW),
    "a piece of Arrow bytes": ("bytes", pa.array(RAW)[7:], RAW[7:]),
    "Arrow byte views": ("bytes", pa.array(RAW, pa.binary_view()), RAW),
    "Arrow bytes of one width": ("bytes", pa.array(RAW[8:9] * 2, pa.binary(8)), RAW[8:9] * 2),
    "UUIDs": ("uuid", UUIDS, UUIDS),
    "a piece of Arrow UUIDs": ("uuid", pa.array([one.bytes for one in UUIDS], pa.uuid())[1:], UUIDS[1:]),
    "numbers": ("integer", [-3, *NUMBERS], [-3, *NUMBERS]),
    "large numbers": ("integer", [*NUMBERS, 2**63, 2**64 - 1], [*NUMBERS, 2**63, 2**64 - 1]),
    "the first large number": ("integer", [0, 2**63], [0, 2**63]),
    "small NumPy numbers": ("integer", np.array([-128, 127], np.int8), [-128, 127]),
    "unsigned NumPy numbers": ("integer", np.array([0, 2**63 - 1, 2**63], np.uint64), [0, 2**63 - 1, 2**63]),
    "Arrow numbers": ("integer", pa.array([-3, *NUMBERS]), [-3, *NUMBERS]),
    "pandas texts": ("text", pd.Series(TEXTS[:42], index=range(9, 51)), TEXTS[:42]),
    "pandas objects": ("text", pd.Series(TEXTS, dtype=object), TEXTS),
    "polars texts": ("text", pl.Series(TEXTS), TEXTS),
}  # fmt: skip


def blocks_of(column: Any) -> tuple[str, list[bytes | None]]:
    ids = read_ids(ids_to_arrow(column), 0)
    kind, groups = ids.kind, ids.group_by_block_count()
    seen: list[bytes | None] = [None] * len(column)
    for chosen, blocks in groups:
        assert blocks.dtype == np.uint64
        for place, row in enumerate(np.arange(len(column))[chosen].tolist()):
            assert seen[row] is None
            seen[row] = blocks[:, place].tobytes()
    return kind, seen


@pytest.mark.parametrize("name", COLUMNS)
def test_the_blocks_of_a_column_are_the_canonical_bytes(name: str) -> None:
    kind, column, items = COLUMNS[name]
    assert blocks_of(column) == (kind, [encode_canonical(item) for item in items])


def test_what_has_no_canonical_bytes_is_refused_as_a_column_too() -> None:
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
    with refused(IdError, says="not valid UTF-8"):
        read_ids(broken, 0)
    with refused(IdError, says="An id must be a whole number"):
        read_ids(ids_to_arrow(np.array([1j, 2j])), 0)


def test_whole_numbers_are_not_rounded_to_floats() -> None:
    assert to_arrow([2**53, 0.5]).to_pylist() == [2.0**53, 0.5]
    with refused(ColumnError, says="The values"):
        to_arrow([2**53 + 1, 0.5])


def test_every_container_becomes_one_arrow_array() -> None:
    same = pa.array([1, 2])
    assert to_arrow(same) is same
    for column in ([1, 2], (1, 2), np.arange(1, 3), pd.Series([1, 2]), pl.Series([1, 2]), pd.array([1, 2])):
        assert to_arrow(column).to_pylist() == [1, 2]
    assert to_arrow(pd.Index([3, 4])).to_pylist() == [3, 4]
    assert to_arrow(pl.Series(UUIDS, dtype=pl.Object)).to_pylist() == UUIDS
    assert to_arrow(np.array([1, 2], ">i8")).to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "column", ["ab", b"ab", {1, 2}, {1: 2}, list, iter([1, 2]), np.zeros((2, 2)), np.array(1), pd.DataFrame({"a": [1]})]
)
def test_what_is_no_column(column: Any) -> None:
    with refused(ColumnError, says="of one dimension"):
        to_arrow(column)


def test_what_a_mask_hides_is_not_released() -> None:
    with refused(ColumnError, says="masked"):
        to_arrow(np.ma.array([1, 2], mask=[True, False]))


def array_reports(
    derived: bytes, values: int, level: int, ids: Any, truth: Any, symbol: int = 0, chunk: int = 10_000
) -> NDArray[np.uint64]:
    path = NumpyPathSampler(derived, values, level)
    result = np.repeat(np.asarray(truth, np.uint64)[:, None], symbol + 1, axis=1)
    for start in range(0, len(truth), chunk):
        part = slice(start, start + chunk)
        path.replace_symbols_by_reports(MacInputs(read_ids(ids_to_arrow(ids[part]), start)), truth[part], result[part])
    return np.asarray(result[:, symbol])


@pytest.mark.parametrize("values", [2, 3])
def test_a_position_that_equals_the_threshold(values: int) -> None:
    """The thresholds are the positions of the path itself, and those beside them: at equality a draw still counts."""
    truth = np.array([1], np.uint64)
    for row in range(5):
        draws = [*iterate_path_draws(words(bytes(32), encode_canonical(row), 1), values)]
        for draw in draws[:6]:
            for level in (draw.position - 1, draw.position, draw.position + 1):
                alone = find_report(draws, level, truth=1)
                assert array_reports(bytes(32), values, level, [row], truth).tolist() == [alone]


class Fed:
    """Prepared words in the place of a cipher: a row is the number of its object, and of the try."""

    def __init__(self, prepared: NDArray[np.uint64], most: int) -> None:
        self._prepared, self._most = prepared, most  # (objects, tries, 2), and how many rows a cipher has room for

    def compute_chaining_state(self, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.asarray(blocks[0])

    def make_last_blocks(self, state: Any, index: Any, symbols: Any) -> NDArray[np.uint64]:
        numbers = (state[:, :1] + symbols).reshape(-1)
        return np.stack([numbers, np.zeros_like(numbers)], axis=1)

    def encrypt(self, rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
        assert len(rows) <= self._most
        found: NDArray[np.uint64] = self._prepared[rows[:, 0], rows[:, 1] >> np.uint64(32)]
        return found

    def iterate_word_pairs(self, row: Any) -> Any:
        return iter(self._prepared[int(row[0])].tolist())


@pytest.mark.parametrize("values", [2, 3, 2**63 + 1])
@pytest.mark.parametrize("level", [1, ONE // 5, (ONE - 1) // 3, 2**62, 2**63, 2**63 + 1, ONE - 1])
def test_words_that_lie_on_a_boundary(values: int, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last word that is accepted, the first that is rejected, the threshold itself; in small chunks as well."""
    limit, tries = ONE - ONE % values, 12
    near = [level - 1, level, min(level + 1, ONE - 1), 2 * level % ONE, 3 * level % ONE]
    positions = np.array([0, 1, 2**63 - 1, 2**63, 2**63 + 1, ONE - 2, ONE - 1, *near], np.uint64)
    numbers = np.array([0, 1, values, limit - 1, limit % ONE, ONE - 1], np.uint64)
    prepared = np.stack([RNG.choice(each, (600, tries)) for each in (positions, numbers)], axis=2)
    prepared[:, -1] = 0  # the end of every path
    truth = np.ones(600, np.uint64)
    alone = [find_report(iterate_path_draws(each.tolist(), values), level, truth=1) for each in prepared]
    numbers = np.stack([np.arange(600, dtype=np.uint64)] * 2, axis=1)
    for chunk in (1 << 16, 64):
        monkeypatch.setitem(NumpyPathSampler.draw_from_last_blocks.__globals__, "CHUNK", chunk)
        path = NumpyPathSampler(bytes(32), values, level)
        path.cipher = Fed(prepared, chunk)  # type: ignore[assignment]
        for symbols in (1, 3, 100):  # once more symbols than go into a small chunk
            target = np.ones((600 // symbols, symbols), np.uint64)
            path.replace_symbols_by_reports(MacInputs(None, numbers[None, ::symbols]), truth, target)
            assert target.reshape(-1).tolist() == alone


@pytest.mark.long
def test_rejected_words() -> None:
    """With 2^63 + 1 values about half of the value words are rejected, also in the first block."""
    values, ids = 2**63 + 1, np.arange(2000)
    truth = RNG.integers(0, 2**62, 2000).astype(np.uint64)
    # Chunks of ten as well, so that every place in a chunk meets rejected neighbours.
    for level, chunk in [(1, 10), (ONE // 1000, 10), (ONE // 2, 10_000), (ONE - 1, 10)]:
        together = array_reports(bytes(32), values, level, ids, truth, symbol=5, chunk=chunk)
        for row in range(2000):
            stream = words(bytes(32), encode_canonical(row), int(truth[row]), 5)
            alone = find_report(iterate_path_draws(stream, values), level, truth=int(truth[row]))
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
