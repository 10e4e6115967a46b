"""Repeated ids are found in whole columns of every kind, with the compiled path and without it; and no other is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.conftest import missing
from tests.refusals import refused

from relaxdp.errors import IdError
from relaxdp.sampling import arrow_columns
from relaxdp.sampling.arrow_columns import get_text_buffers, reject_duplicate_ids
from relaxdp.sampling.kernel import c_library
from relaxdp.sampling.kernel.c_library import SETTING, Kernel, get_kernel
from relaxdp.sampling.keyed_stream import CHUNK

PIECE = 1 << c_library._PIECE_BITS
SIZES = (0, 1, 2, 3, PIECE - 1, PIECE, PIECE + 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1)


@pytest.fixture(params=["compiled", "off"])
def setting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Look for repeats with the compiled path, or without it."""
    if request.param == "off":
        monkeypatch.setenv(SETTING, "off")
        return "off"
    monkeypatch.delenv(SETTING, raising=False)  # also where everything else is drawn by NumPy
    if get_kernel() is None:
        missing("the compiled path is not built")
    return "compiled"


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.delenv(SETTING, raising=False)
    return get_kernel() or missing("the compiled path is not built")


def _texts(numbers: Any) -> list[str]:
    return ["é" * (number % 3) + str(number) + "x" * (number % 29) for number in numbers.tolist()]


def _bytes(numbers: Any) -> list[bytes]:
    return [number.to_bytes(16, "little") for number in numbers.tolist()]


KINDS: dict[str, Callable[[Any], pa.Array]] = {
    "int64": lambda numbers: pa.array(numbers - 5),
    "uint64": lambda numbers: pa.array(numbers.astype(np.uint64) + np.uint64(2**63)),
    "int32": lambda numbers: pa.array(numbers.astype(np.int32)),
    "far apart": lambda numbers: pa.array(numbers << 44),
    "string": lambda numbers: pa.array(_texts(numbers), pa.string()),
    "large_string": lambda numbers: pa.array(_texts(numbers), pa.large_string()),
    "binary": lambda numbers: pa.array(_bytes(numbers), pa.binary()),
    "large_binary": lambda numbers: pa.array(_bytes(numbers), pa.large_binary()),
    "fixed": lambda numbers: pa.array(_bytes(numbers), pa.binary(16)),
    "uuid": lambda numbers: pa.ExtensionArray.from_storage(pa.uuid(), pa.array(_bytes(numbers), pa.binary(16))),
}


@cache
def _all_ids(kind: str) -> pa.Array:
    return KINDS[kind](np.arange(SIZES[-1]))


def _make_ids(kind: str, numbers: Any) -> pa.Array:
    """Return the ids of these numbers; an id is made once, because most of the time goes there."""
    ids = _all_ids(kind)
    taken = getattr(ids, "storage", ids).take(pa.array(numbers, pa.int64()))
    return pa.ExtensionArray.from_storage(ids.type, taken) if kind == "uuid" else taken


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["ascending", "shuffled", "descending"])
def test_every_kind_and_size(kind: str, order: str, setting: str) -> None:
    random = np.random.default_rng(5)
    for size in SIZES:
        numbers = np.arange(size) if order == "ascending" else np.arange(size)[::-1].copy()
        if order == "shuffled":
            random.shuffle(numbers)
        ids = _make_ids(kind, numbers)
        reject_duplicate_ids(ids)
        reject_duplicate_ids(ids[1:])
        # The first id, the last one and one at a border of chunks come again in another row.
        for first, again in {(0, 1), (0, size - 1), (size - 2, size - 1), (CHUNK - 1, CHUNK), (0, CHUNK)}:
            if 0 <= first < again < size:
                repeated = numbers.copy()
                repeated[again] = repeated[first]
                with refused(IdError, row=again + 1, says="The id occurs in an earlier row"):
                    reject_duplicate_ids(_make_ids(kind, repeated))


@pytest.mark.parametrize("kind", KINDS)
def test_all_ids_are_equal(kind: str, setting: str) -> None:
    for size in (2, PIECE + 700, CHUNK + 1):  # more than a piece has room for
        with refused(IdError, row=2, says="The id occurs in an earlier row"):
            reject_duplicate_ids(_make_ids(kind, np.full(size, 7)))


def test_texts_that_differ_in_a_byte_or_in_length(setting: str) -> None:
    items = [b"\0" * length for length in range(70)]
    for length in (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48):
        items += [bytes(place) + b"\1" + bytes(length - place - 1) for place in range(length)]
    for kind in (pa.binary(), pa.large_binary()):
        reject_duplicate_ids(pa.array(items[::-1], kind))
        for again in (0, 1, 8, 16, 17, len(items) - 1):
            with refused(IdError, row=len(items) + 1):
                reject_duplicate_ids(pa.array([*items[::-1], items[again]], kind))


def test_equal_hashes_reject_nothing(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a secret all texts of up to eight bytes have the hash 0."""
    monkeypatch.setattr("secrets.token_bytes", bytes)
    for size in (2, 3, PIECE + 700):
        ids = pa.array([f"{number:06d}" for number in range(size)][::-1])
        assert not kernel.are_distinct(get_text_buffers(ids))
        reject_duplicate_ids(ids)
        with refused(IdError, row=size + 1):
            reject_duplicate_ids(pa.concat_arrays([ids, ids[:1]]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_themselves_decide(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_columns, "_has_distinct_hashes", lambda ids: False)
    numbers = np.random.default_rng(1).permutation(CHUNK + 1)
    reject_duplicate_ids(_make_ids(kind, numbers))
    with refused(IdError, row=CHUNK + 2):
        reject_duplicate_ids(_make_ids(kind, np.append(numbers, numbers[3])))


def test_distinct_ids_need_no_other_check(kernel: Kernel) -> None:
    """An error of the hashes would only be slow, so it would not be noticed otherwise."""
    numbers = np.random.default_rng(2).permutation(300_000)
    assert kernel.are_distinct(numbers)
    assert kernel.are_distinct(numbers << 44)
    assert kernel.are_distinct(-numbers.astype(np.int32))
    assert kernel.are_distinct(get_text_buffers(pa.array(_texts(numbers))))
    assert kernel.are_distinct(get_text_buffers(pa.array(_bytes(numbers))))
    numbers[-1] = numbers[0]
    assert not kernel.are_distinct(numbers)
    assert not kernel.are_distinct(get_text_buffers(pa.array(_texts(numbers))))


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_offsets_outside_of_the_bytes_are_not_followed(width: type[np.signedinteger], kernel: Kernel) -> None:
    data = np.frombuffer(b"abcdef", np.uint8)
    whole = np.array([0, 2, 6], width)
    assert kernel.are_distinct((whole, data))
    for damaged in ([0, 2, 7], [-1, 2, 6], [0, 4, 2], [0, 2, np.iinfo(width).max], [np.iinfo(width).min, 2, 6]):
        assert not kernel.are_distinct((np.array(damaged, width), data))
        assert kernel.find_labels((whole, data), (np.array(damaged, width), data)) is None
        assert kernel.find_labels((np.array(damaged, width), data), (whole, data)) is None


@pytest.mark.long
def test_two_in_ten_million(setting: str) -> None:
    numbers = np.random.default_rng(3).permutation(10_000_000)
    reject_duplicate_ids(pa.array(numbers))
    reject_duplicate_ids(pa.array(numbers).cast(pa.string()))
    numbers[9_876_543] = numbers[12]
    for ids in (pa.array(numbers), pa.array(numbers).cast(pa.string())):
        with refused(IdError, row=9_876_544):
            reject_duplicate_ids(ids)
