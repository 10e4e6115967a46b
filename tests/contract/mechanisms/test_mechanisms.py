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
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bridged_columns import FreshPermanent, fresh_column, keyed_column, truth_column
from relaxdp.mechanisms.keyed_reports import release_codes, release_reports
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.sampling.bridge import draw_keyed_bridge
from relaxdp.sampling.entropy import SystemEntropy
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.theory.level import compute_retention
from relaxdp.theory.randomized_response import NOISE, TRUTH

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
    return mechanism.domain == "range"


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
        assert column.type == encoding.report_type
        assert len(column) == ROWS
        read, seeds = encoding.read(column)
        assert np.array_equal(read, codes)
        assert (seeds is None) != encoding.seeded
        pieces = [
            release_reports(encoding, values[a:b], ids()[a:b], level=encoding.level(exact), **WHERE)
            for a, b in ((0, 1), (1, 40), (40, ROWS))
        ]
        assert pa.concat_arrays([piece.cast(column.type) for piece in pieces]).equals(column)
        people = encoding.reports(codes, seeds)
        for row in range(0, ROWS, 7):
            path = mechanism.path(values[row], id=ids()[row], **NAMED)
            assert path.codes_at(encoding.level(exact)) == codes[row].tolist()
            assert path.at(epsilon) == people[row]


def test_integer_ids_and_no_rows(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    codes = release_codes(encoding, values, np.arange(ROWS), level=encoding.level(1), **WHERE)
    for row in range(0, ROWS, 50):
        assert mechanism.path(values[row], id=row, **NAMED).codes_at(encoding.level(1)) == codes[row].tolist()
    empty = release_reports(encoding, values[:0], np.arange(0), level=encoding.level(1), **WHERE)
    assert (len(empty), empty.type) == (0, encoding.report_type)
    assert encoding.count_reports(empty)[1] == 0
    with pytest.raises(ColumnError):
        release_reports(encoding, values, [1], level=encoding.level(1), **WHERE)
    with refused(IdError, says="of different kinds"):
        mechanism.release(values[:2], [1, "1"], epsilon=1, **NAMED)


def test_without_noise_a_report_is_the_truth(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    codes = release_codes(encoding, values, ids(), level=encoding.level(120), **WHERE)
    counts = encoding.count(
        codes, encoding.read(release_reports(encoding, values, ids(), level=encoding.level(120), **WHERE))[1]
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
    one = encoding.read(release_reports(encoding, values, ids(), level=encoding.level(1), **WHERE))[1]
    other = encoding.read(release_reports(encoding, values[::-1], ids(), level=encoding.level(Decimal(3)), **WHERE))[1]
    assert one is not None
    assert other is not None
    assert np.array_equal(one, other)
    assert len(set(one.tolist())) == ROWS


def test_counting(mechanism: Mechanism) -> None:
    encoding = mechanism
    column = release_reports(encoding, values_of(mechanism), ids(), level=encoding.level(1), **WHERE)
    codes, seeds = encoding.read(column)
    supports = encoding.supports(codes, seeds)
    assert supports.shape == (ROWS, len(encoding.labels))
    expected = supports.sum(axis=0).tolist()
    assert encoding.count(codes, seeds).tolist() == expected
    counts, objects = encoding.count_reports(column)
    assert (counts.tolist(), objects) == (expected, ROWS)
    chunked = pa.chunked_array([column[:100], column[100:]])
    assert encoding.count_reports(chunked)[0].tolist() == expected
    if encoding.joint == "exclusive":
        assert set(supports.sum(axis=1).tolist()) == {1}


def test_every_kind_of_column(mechanism: Mechanism) -> None:
    encoding, values = mechanism, values_of(mechanism)
    expected, _ = encoding.count_reports(release_reports(encoding, values, ids(), level=encoding.level(1), **WHERE))
    columns = [values, np.array(values), pa.array(values), pd.Series(values, name="x"), pl.Series("x", values)]
    for column in columns:
        released = mechanism.release(column, ids(), epsilon=1, **NAMED)
        assert len(released) == ROWS
        assert type(released).__module__.partition(".")[0] == type(column).__module__.partition(".")[0]
        assert encoding.count_reports(released)[0].tolist() == expected.tolist()
    again = list(mechanism.release(values, ids(), epsilon=1, **NAMED))
    assert encoding.count_reports(again)[0].tolist() == expected.tolist()
    assert encoding.count_reports(np.array(again, dtype=object))[0].tolist() == expected.tolist()


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
    codes, seeds = mechanism.read([last])
    if mechanism.seeded:
        before = mechanism.read([first])[1]
        assert seeds is not None
        assert before is not None
        assert seeds.tolist() == before.tolist()
    support = mechanism.supports(codes, seeds)[0]
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
    (_, seeds), (codes, last_seeds) = encoding.read(first), encoding.read(last)
    assert (seeds is None) == (not encoding.seeded)
    assert seeds is None or (last_seeds is not None and np.array_equal(seeds, last_seeds))
    if encoding.name in ("categorical", "unary-symmetric", "local-hash"):
        assert encoding.supports(codes, last_seeds)[np.arange(500), [LETTERS.index(each) for each in values]].all()


def test_kept_randomness_is_drawn_once() -> None:
    permanent = FreshPermanent(SystemEntropy(), 4)
    assert permanent.words("seed").tolist() == permanent.words("seed").tolist()
    assert permanent.words("seed").tolist() == permanent.words("seed", 3).tolist()  # public: of the object alone
    coins = [permanent.words("coin", symbol).tolist() for symbol in (0, 1, 0)]
    assert coins[0] == coins[2] != coins[1] != permanent.words("seed").tolist()


def test_columns_are_relaxed_blurred_and_bridged(mechanism: Mechanism) -> None:
    encoding, entropy = mechanism, SystemEntropy()
    truth = truth_column(encoding, values_of(mechanism), entropy=entropy)
    low, middle, high = (compute_retention(encoding.threshold(Decimal(epsilon))) for epsilon in ("0.5", "1", "2"))
    first = fresh_column(encoding, NOISE, low, TRUTH, lower=None, upper=truth, entropy=entropy)
    second = fresh_column(encoding, low, high, TRUTH, lower=first, upper=truth, entropy=entropy)
    between = fresh_column(encoding, low, middle, high, lower=first, upper=second, entropy=entropy)
    for column in (first, second, between):
        assert column.type == encoding.report_type
        if encoding.seeded:
            assert encoding.read(column)[1].tolist() == encoding.read(truth)[1].tolist()  # type: ignore[union-attr]
    same = fresh_column(encoding, low, high, high, lower=first, upper=second, entropy=entropy)
    assert same.equals(second)
    name = encoding.path_name(PathId("r", "a"))
    levels: tuple[Fraction, Fraction, Fraction]
    for levels, lower in (((low, middle, high), first), ((NOISE, middle, high), None)):
        given: Any = {"ids": ids(), "key": KEY, "name": name}
        keyed = keyed_column(encoding, *levels, lower=lower, upper=second, **given)
        assert keyed_column(encoding, *levels, lower=lower, upper=second, **given).equals(keyed)
        above, below, drawn = (encoding.read(each)[0] for each in (second, second if lower is None else lower, keyed))
        for row in range(0, ROWS, 60):
            for symbol in range(encoding.symbols):
                assert drawn[row, symbol] == draw_keyed_bridge(
                    KEY, name, ids()[row], *levels, symbol=symbol, upper_report=int(above[row, symbol]),
                    lower_report=0 if lower is None else int(below[row, symbol]),
                )  # fmt: skip
    empty = fresh_column(encoding, NOISE, low, TRUTH, lower=None, upper=truth[:0], entropy=entropy)
    assert (len(empty), empty.type) == (0, encoding.report_type)
    with pytest.raises(ColumnError):
        fresh_column(encoding, low, middle, high, lower=first[:3], upper=second, entropy=entropy)
    with pytest.raises(ColumnError):
        keyed_column(encoding, low, middle, high, lower=first, upper=second, ids=[1], key=KEY, name=name)


def test_seeds_of_two_objects_are_not_bridged() -> None:
    encoding, entropy = MECHANISMS["local-hash"], SystemEntropy()
    one, two = (truth_column(encoding, LETTERS, entropy=entropy) for _ in range(2))
    with refused(LevelError, says="their seeds differ"):
        fresh_column(encoding, Fraction(1, 4), Fraction(1, 3), TRUTH, lower=one, upper=two, entropy=entropy)


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
    again = create_mechanism(encoding.name, values=LETTERS, options={**encoding.options})
    assert again.path_name(PathId("r", "a")) == encoding.path_name(PathId("r", "a"))
    other = create_mechanism(encoding.name, values=LETTERS[::-1], options={**encoding.options})
    assert other.params != encoding.params


@pytest.mark.parametrize("name", ["unary-symmetric", "unary-optimised", "local-hash"])
def test_what_is_no_report_is_refused(name: str) -> None:
    encoding = MECHANISMS[name]
    width = encoding.report_width
    assert width is not None
    good = bytes(width)
    wrong: list[Any] = [
        [good + b"\0"], [good[:-1]], np.zeros((2, width + 1), np.uint8), pa.array([good, None]), ["text"], [7],
        pa.array([good + b"\0"], pa.binary(width + 1)), np.array([b"x" * (width + 1)]), [good, good + b"\0"],
        [good[:-1] + b"\xff"],
    ]  # fmt: skip
    for column in wrong:
        with pytest.raises(EstimationError):
            encoding.count_reports(column)
        with pytest.raises(EstimationError):
            encoding.read(column)
    with refused(EstimationError, row=2):
        encoding.count_reports([good, good + b"\0"])
    with refused(EstimationError, row=2, says="The report is missing"):
        encoding.count_reports(pa.array([good, None]))
    assert encoding.count_reports([good, good])[1] == 2
    for column in (np.array([good, good], f"S{width}"), np.array([good, good], f"V{width}"), pa.array([good] * 2)):
        assert encoding.count_reports(column)[1] == 2
