"""Bits and hashes through the front door: names, advice, files of chains; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.draw.stream import PathId
from relaxdp.encodings.bits import count_bits, pack_bits, unpack_bits
from relaxdp.encodings.local_hash import best_buckets
from relaxdp.encodings.protocol import BATCH
from relaxdp.encodings.release import release_reports
from relaxdp.errors import CountsError, EncodingError, EpsilonError, ValuesError
from relaxdp.law.epsilon import as_epsilon

KEY = rx.Key.from_bytes(bytes(range(32)))
WHERE: Any = {"key": KEY, "release": "r", "attribute": "a"}


def test_names_and_reprs() -> None:
    assert repr(rx.Unary(["a", "b"])) == "Unary(['a', 'b'])"
    assert repr(rx.Unary(range(20), optimised=False)) == "<Unary of 20, optimised=False>"
    assert repr(rx.LocalHash(["a", "b"], buckets=7)) == "LocalHash(['a', 'b'], buckets=7)"
    assert rx.LocalHash(range(3), epsilon="1").values == (0, 1, 2)
    assert rx.LocalHash(range(3), epsilon=1).encoding.params != rx.LocalHash(range(3), epsilon=2).encoding.params


@pytest.mark.parametrize("given", [{}, {"buckets": 4, "epsilon": 1}])
def test_buckets_or_epsilon(given: dict[str, Any]) -> None:
    with refused(EncodingError, says="a number of buckets, or the last epsilon"):
        rx.LocalHash(range(3), **given)


@pytest.mark.parametrize("buckets", [1, 0, -3, 65537, 2.0, True, "4"])
def test_numbers_of_buckets(buckets: Any) -> None:
    with refused(ValuesError, says="from 2 to 65536"):
        rx.LocalHash(range(3), buckets=buckets)


def test_best_buckets() -> None:
    """The nearest whole number to e^epsilon + 1, from 2 to 65536, whatever was written."""
    assert [best_buckets(epsilon) for epsilon in ("1e-9", "0.405", "0.406", "2", "11", "12", "1000")] == [
        2, 2, 3, 8, 59875, 65536, 65536,
    ]  # fmt: skip


def test_mechanism() -> None:
    assert isinstance(rx.mechanism(range(4), encoding="auto", epsilon=1), rx.Categorical)
    assert isinstance(rx.mechanism(range(40), epsilon=1), rx.Unary)
    with refused(EncodingError, says="pass epsilon=, the last one that is planned"):
        rx.mechanism(range(4))
    with refused(EncodingError, name="none", says="no encoding named"):
        rx.mechanism(range(4), encoding="none")
    with refused(EncodingError, encoding="categorical", options="buckets"):
        rx.mechanism(range(4), encoding="categorical", buckets=3)
    assert rx.mechanism(range(4), encoding="local-hash", buckets=3, epsilon=2).encoding.alphabet == 3
    with pytest.raises(EncodingError):
        rx.mechanism(range(4), encoding="local-hash")


def test_advice() -> None:
    advice = rx.best_encoding(1000, 1)
    assert isinstance(advice, rx.Advice)
    assert advice.best == advice.choices[0].encoding == "local-hash"
    assert {each.encoding for each in advice.choices} == {
        "categorical", "unary-symmetric", "unary-optimised", "local-hash",
    }  # fmt: skip
    for each in advice.choices:  # what is promised is what is made
        encoding = rx.mechanism(range(1000), encoding=each.encoding, epsilon=1).encoding
        assert each.bytes_per_report == (encoding.report_width or 2)
    assert "1,000 values" in str(advice) == repr(advice)
    with pytest.raises(ValueError, match="from 2 to"):
        rx.best_encoding(1, 1)
    with pytest.raises(EpsilonError):
        rx.best_encoding(5, 0)


def test_too_little_for_half() -> None:
    tiny = "2e-19"
    rx.Unary(range(2)).encoding.threshold(as_epsilon(tiny))
    with refused(EpsilonError, parts=2):
        rx.Unary(range(2), optimised=False).encoding.threshold(as_epsilon("1e-19"))


@pytest.mark.parametrize("width", [1, 2, 3, 8, 13, 128])
@pytest.mark.parametrize("rows", [0, 1, 254, 5000])
def test_counting_bits(width: int, rows: int) -> None:
    bits = np.random.default_rng(rows).integers(0, 2, (rows, 8 * width - 3)).astype(np.uint8)
    packed = pack_bits(bits)
    assert packed.shape == (rows, width)
    assert np.array_equal(unpack_bits(packed, bits.shape[1]), bits)
    assert count_bits(packed, bits.shape[1]).tolist() == bits.sum(axis=0).tolist()
    assert count_bits(packed[::2], bits.shape[1]).tolist() == bits[::2].sum(axis=0).tolist()


def test_all_ones_do_not_overflow() -> None:
    packed = np.full((200_000, 2), 255, dtype=np.uint8)
    assert set(count_bits(packed, 16).tolist()) == {200_000}


@pytest.mark.long
def test_more_symbols_than_a_batch() -> None:
    """A single object with more bits than are drawn at a time, and a few objects across batches."""
    values = BATCH + 40
    answers = rx.Unary(range(values), optimised=False)
    reports = answers.release(np.array([5, values - 1]), np.arange(2), epsilon=100, **WHERE)
    counts, objects = answers.encoding.count_reports(reports)
    assert objects == 2
    assert np.flatnonzero(counts).tolist() == [5, values - 1]
    mixed = rx.Unary(range(3000))
    truth = np.arange(1000) % 3000
    whole = release_reports(
        mixed.encoding,
        truth,
        np.arange(1000),
        level=mixed.encoding.level(as_epsilon(1)),
        key=KEY,
        path=PathId("r", "a"),
    )
    for row in (0, 349, 350, 999):
        alone = release_reports(
            mixed.encoding,
            truth[row : row + 1],
            [row],
            level=mixed.encoding.level(as_epsilon(1)),
            key=KEY,
            path=PathId("r", "a"),
        )
        assert whole[row] == alone[0]


def test_one_missing_report_is_named() -> None:
    answers = rx.Unary(range(12))
    with refused(CountsError, bits=12):
        answers.estimate([b"\x00\x10"], epsilon=1)
    with refused(CountsError, alphabet=4, says="a report names a bucket that is not one of"):
        rx.LocalHash(range(12), buckets=4).estimate([bytes(8) + b"\x04"], epsilon=1)
