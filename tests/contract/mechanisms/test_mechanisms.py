"""One suite for every encoding: whatever the symbols are, path, arrays, Algorithm 1, bridges and counting agree."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ColumnError, EstimationError, IdError, LevelError, RelaxdpError, StateFileError
from relaxdp.mechanisms import registry
from relaxdp.mechanisms.base import Mechanism, make_path_key_info
from relaxdp.mechanisms.bridged_columns import DrawnOnceRandomness, draw_bridged_column, make_noiseless_column
from relaxdp.mechanisms.keyed_reports import release_codes, release_reports
from relaxdp.mechanisms.numeric import RangeMechanism
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.mechanisms.report_arrays import (
    count_report_column,
    count_supported_labels,
    get_report_arrow_type,
    get_report_width,
    make_report_list,
    read_report_column,
)
from relaxdp.sampling.entropy import SystemEntropy
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.theory.randomized_response import NOISE, TRUTH, compute_retention

LETTERS = list("abcdefghijk")
MECHANISMS: dict[str, Mechanism] = {
    "categorical": rx.Categorical(LETTERS),
    "unary-symmetric": rx.Unary(LETTERS, optimised=False),
    "unary-optimised": rx.Unary(LETTERS),
    "local-hash": rx.LocalHash(LETTERS, buckets=5),
    "numeric": rx.Numeric(-1, 10),
    "numeric-missing": rx.Numeric(-1, 10, missing=True),
    "wave": rx.SquareWave(-1, 10, bins=23, window=8),
}
ELSEWHERE = {"bloom", "test-bits", "hadamard"}
"""Encodings that have a suite of their own."""
KEY = rx.Key.from_bytes(bytes(range(32)))
WHERE: Any = {"key": KEY, "path": PathId("r", "a")}
NAMED: Any = {"key": KEY, "name": "r", "column": "a"}
ROWS = 300


def test_every_registered_encoding_is_here() -> None:
    assert set(registry._kinds) - ELSEWHERE == set(MECHANISMS)


@pytest.fixture(params=sorted(MECHANISMS))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param]


def is_numeric(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, RangeMechanism)


def values_of(mechanism: Mechanism, rows: int = ROWS) -> list[Any]:
    numeric = is_numeric(mechanism)
    return [(row * 7 % 11) - 0.5 if numeric else LETTERS[row * 7 % 11] for row in range(rows)]


def ids(rows: int = ROWS) -> list[str]:
    """Ids of one, two and three blocks, mixed."""
    return [f"id {row * 7919} " * (1 + row % 3) for row in range(rows)]


def test_path_arrays_and_pieces_are_one(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    for epsilon in ("0.2", "1", "4", "80"):
        exact = Decimal(epsilon)
        codes = release_codes(encoding, values, ids(), level=encoding.level(exact), **WHERE)
        assert codes.shape == (ROWS, encoding.symbols)
        column = release_reports(encoding, values, ids(), level=encoding.level(exact), **WHERE)
        assert column.type == get_report_arrow_type(encoding)
        assert len(column) == ROWS
        read, seeds = read_report_column(encoding, column)
        assert np.array_equal(read, codes)
        assert (seeds is None) != encoding.seeded
        pieces = [
            release_reports(encoding, values[a:b], ids()[a:b], level=encoding.level(exact), **WHERE)
            for a, b in ((0, 1), (1, 40), (40, ROWS))
        ]
        assert pa.concat_arrays([piece.cast(column.type) for piece in pieces]).equals(column)
        people = make_report_list(encoding, codes, seeds)
        for row in range(0, ROWS, 7):
            path = mechanism.path(values[row], id=ids()[row], **NAMED)
            assert path.draw_codes(encoding.level(exact)).tolist() == [codes[row].tolist()]
            assert path.at(epsilon) == people[row]


def test_integer_ids_and_no_rows(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    codes = release_codes(encoding, values, np.arange(ROWS), level=encoding.level(1), **WHERE)
    for row in range(0, ROWS, 50):
        assert np.array_equal(
            mechanism.path(values[row], id=row, **NAMED).draw_codes(encoding.level(1)), codes[row : row + 1]
        )
    empty = release_reports(encoding, values[:0], np.arange(0), level=encoding.level(1), **WHERE)
    assert (len(empty), empty.type) == (0, get_report_arrow_type(encoding))
    assert count_report_column(encoding, empty)[1] == 0
    with pytest.raises(ColumnError):
        release_reports(encoding, values, [1], level=encoding.level(1), **WHERE)
    with refused(IdError, says="of different kinds"):
        mechanism.release(values[:2], [1, "1"], epsilon=1, **NAMED)


def test_without_noise_a_report_is_the_truth(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    codes = release_codes(encoding, values, ids(), level=encoding.level(120), **WHERE)
    counts = count_supported_labels(
        encoding,
        codes,
        read_report_column(encoding, release_reports(encoding, values, ids(), level=encoding.level(120), **WHERE))[1],
    )
    if encoding.name in ("categorical", "unary-symmetric"):
        assert counts.tolist() == [values.count(letter) for letter in LETTERS]
    if encoding.name == "unary-optimised":  # a fair coin hides one half for good
        assert codes.sum(axis=1).max() == 1
        assert 100 < codes.sum() < 200


def test_seeds_are_public(mechanism: Mechanism) -> None:
    """They are the same whatever the truth and the level are, and differ between objects."""
    encoding, values = mechanism, values_of(mechanism)
    if not encoding.seeded:
        return
    one = read_report_column(encoding, release_reports(encoding, values, ids(), level=encoding.level(1), **WHERE))[1]
    other = read_report_column(
        encoding, release_reports(encoding, values[::-1], ids(), level=encoding.level(Decimal(3)), **WHERE)
    )[1]
    assert one is not None
    assert other is not None
    assert np.array_equal(one, other)
    assert len(set(one.tolist())) == ROWS


def test_counting(mechanism: Mechanism) -> None:
    encoding = mechanism
    column = release_reports(encoding, values_of(mechanism), ids(), level=encoding.level(1), **WHERE)
    codes, seeds = read_report_column(encoding, column)
    supports = encoding.find_supported_labels(codes, seeds)
    assert supports.shape == (ROWS, len(encoding.labels))
    expected = supports.sum(axis=0).tolist()
    assert count_supported_labels(encoding, codes, seeds).tolist() == expected
    counts, objects = count_report_column(encoding, column)
    assert (counts.tolist(), objects) == (expected, ROWS)
    chunked = pa.chunked_array([column[:100], column[100:]])
    assert count_report_column(encoding, chunked)[0].tolist() == expected
    if encoding.joint == "exclusive":
        assert set(supports.sum(axis=1).tolist()) == {1}


def test_every_kind_of_column(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    expected, _ = count_report_column(
        encoding, release_reports(encoding, values, ids(), level=encoding.level(1), **WHERE)
    )
    columns = [values, np.array(values), pa.array(values), pd.Series(values, name="x"), pl.Series("x", values)]
    for column in columns:
        released = mechanism.release(column, ids(), epsilon=1, **NAMED)
        assert len(released) == ROWS
        assert type(released).__module__.partition(".")[0] == type(column).__module__.partition(".")[0]
        assert count_report_column(encoding, released)[0].tolist() == expected.tolist()
    again = list(mechanism.release(values, ids(), epsilon=1, **NAMED))
    assert count_report_column(encoding, again)[0].tolist() == expected.tolist()
    assert count_report_column(encoding, np.array(again, dtype=object))[0].tolist() == expected.tolist()


def test_estimate(mechanism: Mechanism) -> None:
    rows = 30_000
    values = values_of(mechanism, rows)
    column = release_reports(mechanism, values, np.arange(rows), level=mechanism.level(2), **WHERE)
    estimate = mechanism.estimate(column, epsilon=2)
    numeric = is_numeric(mechanism)
    truth: Any = np.mean(values) if numeric else np.array([values.count(letter) for letter in LETTERS]) / rows
    assert np.all(np.abs(estimate.value - truth) < 6 * estimate.std_error)  # 2e-9 a value
    low, high = estimate.interval(0.999999, simultaneous=True)
    assert np.all((low < truth) & (truth < high))
    assert "estimate" in repr(estimate)


def test_algorithm_1(mechanism: Mechanism, tmp_path: Path) -> None:
    truth = values_of(mechanism, 1)[0]
    place = tmp_path / "chain.json"
    chain = rx.Relaxation(mechanism, truth, state=place)
    first = chain.relax(epsilon="0.5")
    assert rx.Relaxation(mechanism, truth, state=place).relax(epsilon=0.5) == first
    last = chain.relax(epsilon=130)
    assert [chain.relax(epsilon=epsilon) for epsilon in (131, 140)] == [last, last]
    codes, seeds = read_report_column(mechanism, [last])
    if mechanism.seeded:
        before = read_report_column(mechanism, [first])[1]
        assert seeds is not None
        assert before is not None
        assert seeds.tolist() == before.tolist()
    support = mechanism.find_supported_labels(codes, seeds)[0]
    if mechanism.name in ("categorical", "unary-symmetric", "local-hash"):
        assert support[LETTERS.index(truth)]
    other = next(each for each in MECHANISMS.values() if each is not mechanism and not is_numeric(each))
    with pytest.raises(StateFileError, match="another mechanism"):
        rx.Relaxation(other, LETTERS[0], state=place)


def test_algorithm_1_for_an_array(mechanism: Mechanism, tmp_path: Path) -> None:
    """A step goes from one column of reports to the next; kept randomness and reports are in the state file."""
    encoding, values = mechanism, values_of(mechanism, 500)
    relaxation = rx.Relaxation(mechanism, values, state=tmp_path / "state")
    first, last = relaxation.relax(0.5), relaxation.relax(130)
    again = rx.Relaxation(mechanism, values, state=tmp_path / "state")
    assert again.relax(130) == relaxation.relax(131) == last
    assert len(first) == len(last) == 500
    (_, seeds), (codes, last_seeds) = read_report_column(encoding, first), read_report_column(encoding, last)
    assert (seeds is None) == (not encoding.seeded)
    assert seeds is None or (last_seeds is not None and np.array_equal(seeds, last_seeds))
    if encoding.name in ("categorical", "unary-symmetric", "local-hash"):
        assert encoding.find_supported_labels(codes, last_seeds)[
            np.arange(500), [LETTERS.index(each) for each in values]
        ].all()


def test_kept_randomness_is_drawn_once() -> None:
    permanent = DrawnOnceRandomness(SystemEntropy(), 4)
    assert permanent.draw_words("seed").tolist() == permanent.draw_words("seed").tolist()
    assert (
        permanent.draw_words("seed").tolist() == permanent.draw_words("seed", 3).tolist()
    )  # public: of the object alone
    coins = [permanent.draw_words("coin", symbol).tolist() for symbol in (0, 1, 0)]
    assert coins[0] == coins[2] != coins[1] != permanent.draw_words("seed").tolist()


def test_columns_are_relaxed_blurred_and_bridged(mechanism: Mechanism) -> None:
    encoding, entropy = mechanism, SystemEntropy()
    truth = make_noiseless_column(encoding, values_of(mechanism), entropy=entropy)
    low, middle, high = (compute_retention(encoding.threshold(Decimal(epsilon))) for epsilon in ("0.5", "1", "2"))
    first = draw_bridged_column(encoding, NOISE, low, TRUTH, lower_reports=None, upper_reports=truth, entropy=entropy)
    second = draw_bridged_column(encoding, low, high, TRUTH, lower_reports=first, upper_reports=truth, entropy=entropy)
    between = draw_bridged_column(
        encoding, low, middle, high, lower_reports=first, upper_reports=second, entropy=entropy
    )
    for column in (first, second, between):
        assert column.type == get_report_arrow_type(encoding)
        if encoding.seeded:
            assert read_report_column(encoding, column)[1].tolist() == read_report_column(encoding, truth)[1].tolist()  # type: ignore[union-attr]
    same = draw_bridged_column(encoding, low, high, high, lower_reports=first, upper_reports=second, entropy=entropy)
    assert same.equals(second)
    empty = draw_bridged_column(
        encoding, NOISE, low, TRUTH, lower_reports=None, upper_reports=truth[:0], entropy=entropy
    )
    assert (len(empty), empty.type) == (0, get_report_arrow_type(encoding))
    with pytest.raises(ColumnError):
        draw_bridged_column(encoding, low, middle, high, lower_reports=first[:3], upper_reports=second, entropy=entropy)


def test_seeds_of_two_objects_are_not_bridged() -> None:
    encoding, entropy = MECHANISMS["local-hash"], SystemEntropy()
    one, two = (make_noiseless_column(encoding, LETTERS, entropy=entropy) for _ in range(2))
    with refused(LevelError, says="their seeds differ"):
        draw_bridged_column(
            encoding, Fraction(1, 4), Fraction(1, 3), TRUTH, lower_reports=one, upper_reports=two, entropy=entropy
        )


def test_levels_are_ordered(mechanism: Mechanism) -> None:
    levels = [mechanism.threshold(Decimal(epsilon)) for epsilon in ("0.01", "0.5", "0.51", "3", "90")]
    assert levels == sorted(set(levels))


def test_a_truth_is_shown_nowhere(mechanism: Mechanism) -> None:
    secret: Any = 417.25 if is_numeric(mechanism) else "secret"
    with pytest.raises(RelaxdpError) as caught:
        mechanism.release([secret], [1], epsilon=1, **NAMED)
    assert str(secret) not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "Nothing was released" in str(caught.value)


def test_options_make_the_same_encoding(mechanism: Mechanism) -> None:
    if is_numeric(mechanism):
        return
    encoding = mechanism
    again = create_mechanism(encoding.name, values=LETTERS, options=get_mechanism_arguments(encoding)["options"])
    assert make_path_key_info(again, PathId("r", "a")) == make_path_key_info(encoding, PathId("r", "a"))
    other = create_mechanism(encoding.name, values=LETTERS[::-1], options=get_mechanism_arguments(encoding)["options"])
    assert other.params != encoding.params


@pytest.mark.parametrize("name", ["unary-symmetric", "unary-optimised", "local-hash"])
def test_what_is_no_report_is_refused(name: str) -> None:
    encoding = MECHANISMS[name]
    width = get_report_width(encoding)
    assert width is not None
    good = bytes(width)
    wrong: list[Any] = [
        [good + b"\0"], [good[:-1]], np.zeros((2, width + 1), np.uint8), pa.array([good, None]), ["text"], [7],
        pa.array([good + b"\0"], pa.binary(width + 1)), np.array([b"x" * (width + 1)]), [good, good + b"\0"],
        [good[:-1] + b"\xff"],
    ]  # fmt: skip
    for column in wrong:
        with pytest.raises(EstimationError):
            count_report_column(encoding, column)
        with pytest.raises(EstimationError):
            read_report_column(encoding, column)
    with refused(EstimationError, row=2):
        count_report_column(encoding, [good, good + b"\0"])
    with refused(EstimationError, row=2, says="The report is missing"):
        count_report_column(encoding, pa.array([good, None]))
    assert count_report_column(encoding, [good, good])[1] == 2
    for column in (np.array([good, good], f"S{width}"), np.array([good, good], f"V{width}"), pa.array([good] * 2)):
        assert count_report_column(encoding, column)[1] == 2
