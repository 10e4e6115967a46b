"""Bloom filters: Google's bits, the stream's bytes, arrays like single devices, levels both ways."""

from __future__ import annotations

import pickle
import struct
from decimal import Decimal
from fractions import Fraction
from hashlib import md5, sha512
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import chi2
from tests.bloom_fleet import Fleet
from tests.refusals import refused
from tests.vectors.scalar import words

from relaxdp import Key, Relaxation
from relaxdp.errors import ColumnError, LevelError, MechanismError, RapporError
from relaxdp.estimation.schedules import Linear, NoisySampling
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.bloom import (
    ALL_COHORTS,
    Bloom,
    BloomShape,
    compute_bit_threshold,
    compute_epsilon,
    compute_noise,
    compute_report_epsilon,
    convert_words_to_text,
    draw_cohorts,
    release_bloom,
)
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.mechanisms.report_arrays import (
    count_report_column,
    count_supported_labels,
    format_bits,
    make_report_column,
    make_report_list,
    read_report_column,
    unpack_bits,
)
from relaxdp.rappor.reports import RapporDevice
from relaxdp.sampling.keyed_path import find_report, iterate_path_draws
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo, derive_path_key, encode_canonical
from relaxdp.sampling.keys import add_length_prefix
from relaxdp.theory.randomized_response import Level, compute_log_rounded_up

KEY = Key.from_bytes(bytes(range(32)))
SHAPE = BloomShape(bits=16, hashes=2, cohorts=64)
WORDS = ["cheese", "a word of many letters, more than a block", "Käse", "", "x", "eight888", "nine99999"] * 3
IDS = [f"device-{number}" for number in range(len(WORDS))]
WHERE: Any = {"name": "words-2026", "column": "word"}
PATH = PathId("words-2026", "word")


def level_of(epsilon: Any, shape: BloomShape = SHAPE) -> Level:
    return Bloom(shape).level(epsilon)


def test_bits_are_those_of_googles_client() -> None:
    """Computed by hand: MD5 of four bytes of cohort, the highest first, and the word; byte i modulo k."""
    digest = md5(b"\x00\x00\x00\x05hello", usedforsecurity=False).digest()
    assert digest[:2].hex() == "e00e"
    assert BloomShape(128, 2, 64).compute_bits("hello", 5) == (0xE0 % 128, 0x0E % 128) == (96, 14)
    word = "Käse"
    digest = md5(struct.pack(">L", 3) + word.encode("utf-8"), usedforsecurity=False).digest()
    assert BloomShape(100, 16, 8).compute_bits(word, 3) == tuple(byte % 100 for byte in digest)


def test_more_than_256_bits_are_all_reached() -> None:
    shape = BloomShape(1000, 16, 2)
    assert shape.params().endswith(b"sha512-words")
    digest = sha512(b"\x00\x00\x00\x01hello").digest()
    assert shape.compute_bits("hello", 1) == tuple(number % 1000 for number in struct.unpack(">16I", digest))
    reached = {bit for number in range(2000) for bit in shape.compute_bits(f"w{number}", 0)}
    assert len(reached) == 1000
    assert BloomShape(256, 1, 1).params().endswith(b"md5-bytes")


def test_chances_of_bits() -> None:
    for shape in (BloomShape(100, 2, 1), BloomShape(128, 1, 1), BloomShape(600, 3, 1)):
        counts = np.zeros(shape.bits)
        for number in range(20_000):
            counts[list(set(shape.compute_bits(f"w{number}", 0)))] += 1
        expected = 20_000 * shape.compute_bit_probabilities()
        assert np.abs((counts - expected) / np.sqrt(expected)).max() < 5.5  # seeds are the words: 1e-5 at most


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ((0, 1, 1), "The number of bits (k) must be a whole number from 1 to 65,536, not 0."),
        ((8, 17, 1), "The number of hashes (h) must be a whole number from 1 to 16, not 17."),
        ((8, 1, 0), "The number of cohorts (m) must be a whole number from 1 to 65,536, not 0."),
        ((1, 2, 1), "With one bit (k = 1), the number of hash functions (h) must be 1, not 2."),
    ],
)
def test_shapes_that_cannot_be(numbers: tuple[int, int, int], sentence: str) -> None:
    with pytest.raises(RapporError) as caught:
        BloomShape(*numbers)
    assert caught.value.sentence == sentence


def test_params_and_stream_byte_by_byte() -> None:
    encoding = Bloom(SHAPE, 13)
    assert encoding.params == struct.pack("<IIII", 16, 2, 64, 13) + add_length_prefix(b"md5-bytes")
    assert isinstance(create_mechanism("bloom", options=get_mechanism_arguments(Bloom(SHAPE))["options"]), Bloom)
    whole = PathKeyInfo(PathId("words-2026", "word"), "bloom", 2, SHAPE.params(ALL_COHORTS))
    cohort = next(words(derive_path_key(KEY, whole, "cohort"), encode_canonical("device-1")))[0] % 64
    assert draw_cohorts(SHAPE, ["device-1"], key=KEY, path=PATH).tolist() == [cohort]
    # Every bit: a key of its own for the cohort; the id, the word, no index, the symbol, the try.
    mine = PathKeyInfo(PathId("words-2026", "word"), "bloom", 2, SHAPE.params(cohort))
    prefix, truth = encode_canonical("device-1") + encode_canonical("cheese"), SHAPE.compute_bits("cheese", cohort)
    bits = []
    for symbol in range(16):
        drawn = iterate_path_draws(words(derive_path_key(KEY, mine), prefix, 0, symbol), 2)
        bits.append(find_report(drawn, compute_bit_threshold(SHAPE, 4), truth=int(symbol in truth)))
    report = RapporDevice(SHAPE, "cheese", key=KEY, id="device-1", **WHERE).get_report(4)
    assert (report.cohort, report.bits) == (cohort, "".join(map(str, reversed(bits))))


def test_cohorts_do_not_depend_on_words_and_are_even() -> None:
    ids = np.arange(20_000)
    cohorts = draw_cohorts(SHAPE, ids, key=KEY, path=PATH)
    first = release_bloom(SHAPE, ["a"] * 50, ids[:50], key=KEY, level=level_of(1), path=PATH)
    second = release_bloom(SHAPE, ["b"] * 50, ids[:50], key=KEY, level=level_of(3), path=PATH)
    assert first.cohorts.tolist() == second.cohorts.tolist() == cohorts[:50].tolist()
    counts = np.bincount(cohorts, minlength=64)
    assert ((counts - 312.5) ** 2 / 312.5).sum() < chi2.isf(1e-6, 63)


def test_arrays_are_like_single_devices() -> None:
    for epsilon in (Decimal("0.5"), Decimal(4)):
        reports = release_bloom(SHAPE, WORDS, IDS, key=KEY, level=level_of(epsilon), path=PATH)
        texts = format_bits(reports.packed, SHAPE.bits)
        for word, device_id, cohort, bits in zip(WORDS, IDS, reports.cohorts.tolist(), texts, strict=True):
            report = RapporDevice(SHAPE, word, key=KEY, id=device_id, **WHERE).get_report(epsilon)
            assert (report.cohort, report.bits, report.epsilon) == (cohort, bits, epsilon)


def test_ids_of_any_length_beside_words_of_any_length() -> None:
    """Ids and words take one block of the cipher or several; arrays group them and give what devices give."""
    ids = ["x" * (number % 40) + str(number) for number in range(len(WORDS) * 4)]
    some = BloomShape(bits=19, hashes=3, cohorts=2)
    found = release_bloom(some, WORDS * 4, ids, key=KEY, level=level_of(2, some), path=PATH)
    devices = [RapporDevice(some, word, key=KEY, id=one, **WHERE) for word, one in zip(WORDS * 4, ids, strict=True)]
    assert found.cohorts.tolist() == [device.cohort for device in devices]
    assert format_bits(found.packed, 19) == [device.get_report(2).bits for device in devices]


@pytest.mark.parametrize("kind", ["list", "numpy", "arrow", "pandas", "polars"])
def test_every_kind_of_column(kind: str) -> None:
    makers = {"list": list, "numpy": np.array, "arrow": pa.array, "pandas": pd.Series, "polars": pl.Series}
    numbers = list(range(len(WORDS)))
    plain = release_bloom(SHAPE, WORDS, numbers, key=KEY, level=level_of(2), path=PATH)
    made = release_bloom(
        SHAPE,
        makers[kind](WORDS),
        makers[kind](numbers),
        key=KEY,
        level=level_of(2),
        path=PATH,
    )
    assert np.array_equal(plain.packed, made.packed)
    assert np.array_equal(plain.cohorts, made.cohorts)


def test_words_that_are_none_are_refused_without_showing_them() -> None:
    for column, sentence in [
        (["a", None], "Row 12: the word is missing."),
        ([1, 2], "The words must be text."),
        ([True], "The words must be text."),
    ]:
        with pytest.raises(RapporError) as caught:
            convert_words_to_text(SHAPE, column, 10)
        assert caught.value.sentence == sentence
    with pytest.raises(RapporError) as caught:
        release_bloom(SHAPE, ["a", None], [1, 2], key=KEY, level=level_of(1), path=PATH)
    assert caught.value.sentence == "Row 2: the word is missing."
    with pytest.raises(ColumnError):
        release_bloom(SHAPE, ["a"], [1, 2], key=KEY, level=level_of(1), path=PATH)
    with refused(RapporError, says="Words of different lengths"):
        Bloom(SHAPE, 0).read_true_values(["a", "a long word, longer than a block"])


def test_one_bit_is_a_boolean() -> None:
    shape = BloomShape(1, 1, 4)
    assert shape.max_differing_bits == 1
    truths = [True, False, True, True]
    for column in (truths, [1, 0, 1, 1], ["True", "false", "1", "true"], np.array(truths), pa.array(truths)):
        reports = release_bloom(shape, column, [1, 2, 3, 4], key=KEY, level=level_of(60, shape), path=PATH)
        assert reports.packed[:, 0].tolist() == [1, 0, 1, 1]
    with pytest.raises(RapporError) as caught:
        convert_words_to_text(shape, ["true", "maybe"])
    assert caught.value.sentence.startswith("Row 2: the value is neither false nor true.")
    assert "maybe" not in str(caught.value.__context__)


def test_levels_convert_both_ways_to_the_private_side() -> None:
    for shape in (SHAPE, BloomShape(128, 3, 8), BloomShape(1, 1, 1)):
        for noise in ("0.5", "0.3", "0.001", "0.999"):
            level = compute_epsilon(shape, noise)
            exact = compute_log_rounded_up(((2 - Fraction(noise)) / Fraction(noise)) ** shape.max_differing_bits)
            assert level < exact < level + Decimal("1e-9")
            # A level made from f has at least the noise f, and its own f says so.
            assert 1 - Fraction(compute_bit_threshold(shape, level), 2**64) >= Fraction(noise)
            assert Decimal(noise) <= compute_noise(shape, level) < Decimal(noise) + Decimal("1e-9")
        for epsilon in ("0.1", "1", "5"):
            noise_text = str(compute_noise(shape, epsilon))
            assert (
                compute_epsilon(shape, noise_text)
                <= Decimal(epsilon)
                < compute_epsilon(shape, noise_text) + Decimal("1e-7")
            )
    for noise in ("0", "1"):
        with pytest.raises(RapporError):
            compute_epsilon(SHAPE, noise)


def test_a_device_keeps_its_own_pace_and_limit() -> None:
    device = RapporDevice(SHAPE, "cheese", key=KEY, id=7, limit=3, **WHERE)
    steady = list(device.iterate_reports(Linear(1, 5, steps=5)))
    assert [str(report.epsilon) for report in steady] == ["1", "2", "3"]
    assert device.get_report(2) == steady[1]
    as_sampled = [compute_report_epsilon(SHAPE, level) for level in NoisySampling(1, "0.5", samples=10)]
    assert len(list(device.iterate_reports(as_sampled))) == sum(level <= 3 for level in as_sampled)
    with refused(LevelError, limit="3", epsilon="3.5"):
        device.get_report("3.5")
    assert "cheese" not in repr(device)
    with pytest.raises(TypeError):
        pickle.dumps(device)


def test_algorithm_one_keeps_the_last_report() -> None:
    chain = Relaxation(Bloom(SHAPE, 5), "cheese")
    first = chain.relax(epsilon=1)
    assert chain.relax(epsilon=1) == first
    assert len(first) == 2
    last = unpack_bits(np.frombuffer(chain.relax(epsilon=300), np.uint8)[None], 16)[0]
    assert set(np.flatnonzero(last).tolist()) == set(SHAPE.compute_bits("cheese", 5))


def test_declared_values_are_not_its_business() -> None:
    with refused(MechanismError, mechanism="bloom", domain="words that are not declared"):
        create_mechanism("bloom", values=["a", "b"])


def test_packed_reports_are_counted() -> None:
    encoding = Bloom(SHAPE, 1)
    codes = np.random.default_rng(1).integers(0, 2, (300, 16)).astype(np.uint8)
    counts, reports = count_report_column(encoding, make_report_column(encoding, codes))
    assert reports == 300
    assert counts.tolist() == codes.sum(axis=0).tolist() == count_supported_labels(encoding, codes).tolist()
    assert np.array_equal(read_report_column(encoding, make_report_list(encoding, codes))[0], codes)


def test_fleet() -> None:
    generator = np.random.default_rng(1)
    chosen = generator.choice(["a", "b", "c"], 5000)
    cohorts = generator.integers(0, 64, 5000)
    fleet = Fleet(SHAPE, chosen, cohorts, entropy=SeededEntropy(1))
    with refused(LevelError, says="has not reported yet"):
        fleet.counts()
    fleet.relax(epsilon=2)
    first = fleet.reports.copy()
    assert fleet.counts().sum() == first.sum()
    assert fleet.devices.tolist() == np.bincount(cohorts, minlength=64).tolist()
    with refused(LevelError, epsilon="2", exact="2"):
        fleet.relax(epsilon=2)
    fleet.relax(epsilon=300)
    for row in (0, 17, 4999):
        device = fleet.order[row]
        bits = set(SHAPE.compute_bits(str(chosen[device]), int(cohorts[device])))
        assert set(np.flatnonzero(fleet.reports[row]).tolist()) == bits
    with refused(RapporError, last=63, says="cohorts are whole numbers from 0 to"):
        Fleet(SHAPE, ["a"], [64])
