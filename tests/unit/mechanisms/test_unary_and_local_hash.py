"""Bits and hashes through the front door: names, advice, files of chains; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EpsilonError, EstimationError, MechanismError
from relaxdp.estimation.mechanism_choice import MechanismRanking, rank_mechanisms
from relaxdp.mechanisms.keyed_reports import release_reports
from relaxdp.mechanisms.local_hash import choose_bucket_count
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.mechanisms.report_arrays import (
    BATCH,
    count_bits,
    count_report_column,
    get_packed_width,
    pack_bits,
    unpack_bits,
)
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.theory.epsilon import as_epsilon

KEY = rx.Key.from_bytes(bytes(range(32)))
WHERE: Any = {"key": KEY, "name": "r", "column": "a"}


def test_names_and_reprs() -> None:
    assert repr(rx.Unary(["a", "b"])) == "Unary(['a', 'b'])"
    assert repr(rx.Unary(range(20), optimised=False)) == "<Unary of 20, optimised=False>"
    assert repr(rx.LocalHash(["a", "b"], buckets=7)) == "LocalHash(['a', 'b'], buckets=7)"
    assert rx.LocalHash(range(3), epsilon="1").values == (0, 1, 2)
    assert rx.LocalHash(range(3), epsilon=1).params != rx.LocalHash(range(3), epsilon=2).params


@pytest.mark.parametrize("given", [{}, {"buckets": 4, "epsilon": 1}])
def test_buckets_or_epsilon(given: dict[str, Any]) -> None:
    with refused(MechanismError, says="needs either `buckets` or `epsilon`"):
        rx.LocalHash(range(3), **given)


@pytest.mark.parametrize("buckets", [1, 0, -3, 65537, 2.0, True, "4"])
def test_numbers_of_buckets(buckets: Any) -> None:
    with refused(MechanismError, option="buckets", minimum=2, maximum=65536):
        rx.LocalHash(range(3), buckets=buckets)


def test_best_buckets() -> None:
    """The nearest whole number to e^epsilon + 1, from 2 to 65536, whatever was written."""
    assert [choose_bucket_count(epsilon) for epsilon in ("1e-9", "0.405", "0.406", "2", "11", "12", "1000")] == [
        2, 2, 3, 8, 59875, 65536, 65536,
    ]  # fmt: skip


def test_mechanism() -> None:
    with refused(MechanismError, name="none", says="Unknown mechanism"):
        create_mechanism("none", values=range(4))
    with refused(MechanismError, mechanism="categorical", options="buckets"):
        create_mechanism("categorical", values=range(4), options={"buckets": 3})
    assert create_mechanism("local-hash", values=range(4), epsilon=2, options={"buckets": 3}).alphabet == 3
    with pytest.raises(MechanismError):
        create_mechanism("local-hash", values=range(4))


def test_advice() -> None:
    advice = rank_mechanisms(1000, 1)
    assert isinstance(advice, MechanismRanking)
    assert advice.best == advice.mechanisms[0].name == "local-hash"
    assert {each.name for each in advice.mechanisms} == {
        "categorical", "unary-symmetric", "unary-optimised", "local-hash",
    }  # fmt: skip
    for each in advice.mechanisms:  # what is promised is what is made
        encoding = create_mechanism(each.name, values=range(1000), epsilon=1)
        assert each.bytes_per_report == get_packed_width(encoding)
    assert "1,000 values" in str(advice) == repr(advice)
    with pytest.raises(ValueError, match="from 2 to"):
        rank_mechanisms(1, 1)
    with pytest.raises(EpsilonError):
        rank_mechanisms(5, 0)


def test_too_little_for_half() -> None:
    tiny = "2e-19"
    rx.Unary(range(2)).threshold(as_epsilon(tiny))
    with refused(EpsilonError, parts=2):
        rx.Unary(range(2), optimised=False).threshold(as_epsilon("1e-19"))


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
    counts, objects = count_report_column(answers, reports)
    assert objects == 2
    assert np.flatnonzero(counts).tolist() == [5, values - 1]
    mixed = rx.Unary(range(3000))
    truth = np.arange(1000) % 3000
    whole = release_reports(
        mixed,
        truth,
        np.arange(1000),
        level=mixed.level(as_epsilon(1)),
        key=KEY,
        path=PathId("r", "a"),
    )
    for row in (0, 349, 350, 999):
        alone = release_reports(
            mixed,
            truth[row : row + 1],
            [row],
            level=mixed.level(as_epsilon(1)),
            key=KEY,
            path=PathId("r", "a"),
        )
        assert whole[row] == alone[0]


def test_one_missing_report_is_named() -> None:
    answers = rx.Unary(range(12))
    with refused(EstimationError, bits=12):
        answers.estimate([b"\x00\x10"], epsilon=1)
    with refused(EstimationError, alphabet=4, says="The report cannot come from"):
        rx.LocalHash(range(12), buckets=4).estimate([bytes(8) + b"\x04"], epsilon=1)
