"""The version-1 stream: published CMAC vectors, the three vectors of the specification, what is bound into the key."""

from __future__ import annotations

import linecache
import struct
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused
from tests.vectors.scalar import block, words

from relaxdp import Categorical, Key
from relaxdp.errors import ArgumentError
from relaxdp.mechanisms.base import make_path_key_info
from relaxdp.sampling.keyed_path import AcceptedDraw, compute_tags, find_report, iterate_path_draws, reduce_word_pair
from relaxdp.sampling.keyed_stream import (
    CHUNK,
    AesBlockCipher,
    Ids,
    MacInputs,
    PathId,
    PathKeyInfo,
    Purpose,
    derive_path_key,
    encode_canonical,
    is_missing,
)
from relaxdp.theory.epsilon import compute_threshold

KEY = Key.from_bytes(bytes(range(32)))
SPECIFICATION = [
    (
        ["flu", "covid", "none"], "survey-2026", "diagnosis", "patient-17", 1,
        "bedbf120422778e8e3cb56749fa90af0db7d61ab382a83b76efd0d9e01be4d0d",
        "030000000a00000070617469656e742d31370000000000000000000000000000" "01000000000000000000000000000000",
        "5a675c54515cd823bd1868331e42c690",
        [(0, 2582915890674427738, 2), (1, 2449190947175888405, 2), (2, 115923647291579034, 0)],
        [624783968716559440, 3279723050338863581, 6717849057872324379, 12552623127150127847],
        [2, 1, 1, 1],
    ),
    (
        ["no", "yes"], "survey-2026", "smoker", -7, 1,
        "ba2c43f230a589d03e3f7b5c24942284a48da269652075cb93375e7d5493e01e",
        "0100000008000000f9ffffffffffffff" "01000000000000000000000000000000",
        "d2aea33c352ea3b664cb1097d31a5da8",
        [
            (0, 13160413342292225746, 0), (1, 6426889119785767382, 1), (2, 3780824633433392237, 1),
            (3, 2330261858018116512, 0), (4, 2012063481446471921, 1), (5, 75686010444900828, 1),
        ],
        [921569357186432047, 4517951884236491746, 8524556932045589908, 14048932482948833964],
        [1, 1, 0, 1],
    ),
    (
        [10, 20, 30, 40, 50], "Erhebung-ä", "Größe", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), 4,
        "afb213f9310f5959ef5c558fb6fd7cad7a0602c38b6f1a3b59e329f63f680fe2",
        "040000001000000000112233445566778899aabbccddeeff0000000000000000" "04000000000000000000000000000000",
        "3761a3fd205e458e10f9e2cfb803940a",
        [
            (0, 10251703622566109495, 3), (3, 6093873606147559075, 1), (4, 4788871445420600255, 4),
            (6, 4048083209352392958, 2), (9, 353858728296538575, 4),
        ],
        [380018816386628578, 2118496325504426911, 4717977891582421986, 10348292405075850221],
        [2, 2, 4, 4],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    (
        "values",
        "release",
        "attribute",
        "object_id",
        "truth",
        "derived",
        "message",
        "first",
        "path",
        "levels",
        "reports",
    ),
    SPECIFICATION,
)
def test_specification(
    values: list[int | str], release: str, attribute: str, object_id: object, truth: int, derived: str, message: str,
    first: str, path: list[tuple[int, int, int]], levels: list[int], reports: list[int],
) -> None:  # fmt: skip
    answers = Categorical(values)
    name = make_path_key_info(answers, PathId(release, attribute))
    key = derive_path_key(KEY, name)
    assert key.hex() == derived
    assert (encode_canonical(object_id) + struct.pack("<QII", truth, 0, 0)).hex() == message
    assert struct.pack("<QQ", *block(key, bytes.fromhex(message))).hex() == first
    draws = list(iterate_path_draws(words(key, encode_canonical(object_id), truth), len(values)))
    assert [tuple(draw) for draw in draws[: len(path)]] == path
    epsilons = ["0.1", "0.5", "1", "2"]
    assert [compute_threshold(epsilon, len(values)) for epsilon in epsilons] == levels
    walked = answers.path(values[truth], key=KEY, id=object_id, name=release, column=attribute)
    assert [walked.at(epsilon) for epsilon in epsilons] == [values[report] for report in reports]


# NIST SP 800-38B, appendix D.3 (AES-256): the messages of whole blocks.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_MESSAGE = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
NIST = [(16, "28a7023f452e8f82bd4bf28d8c37c35c"), (64, "e1992190549f6ed5696a2c056c315410")]


@pytest.mark.parametrize(("length", "code"), NIST)
def test_nist_cmac(length: int, code: str) -> None:
    message = NIST_MESSAGE[:length]
    cipher = AesBlockCipher(NIST_KEY)
    rows = np.frombuffer(message, "<u8").reshape(-1, 1, 2)
    last = rows[-1] ^ cipher.subkey
    if length > 16:
        last = cipher.compute_chaining_state(rows[:-1]) ^ last
    assert cipher.encrypt(np.ascontiguousarray(last)).tobytes().hex() == code


def test_a_full_chunk_fits_into_the_ciphers_buffer() -> None:
    rows = np.arange(2 * CHUNK, dtype=np.uint64).reshape(CHUNK, 2)
    alone = AesBlockCipher(NIST_KEY).encrypt(rows[-1:]).tolist()
    assert AesBlockCipher(NIST_KEY).encrypt(rows)[-1:].tolist() == alone


def test_the_last_blocks_of_all_symbols_are_those_of_each() -> None:
    cipher, numbers = AesBlockCipher(NIST_KEY), np.arange(40, dtype=np.uint64)
    state, index = cipher.encrypt(np.arange(10, dtype=np.uint64).reshape(5, 2)).copy(), np.arange(5, dtype=np.uint64)
    together = cipher.make_last_blocks(state, index, numbers[None])
    for symbol in range(40):
        of_each = np.full((5, 1), symbol, np.uint64)
        assert np.array_equal(together[symbol::40], cipher.make_last_blocks(state, index, of_each))


def test_the_words_of_a_row_go_on() -> None:
    for key in (NIST_KEY, bytes(32), bytes(31) + b"1", bytes(31) + b"2"):  # with either first bit of E(0)
        cipher = AesBlockCipher(key)
        state = cipher.compute_chaining_state(np.frombuffer(encode_canonical(7), "<u8").reshape(-1, 1, 2))
        (row,) = cipher.make_last_blocks(state, np.array([3], np.uint64), np.array([[5]], np.uint64))
        assert list(islice(cipher.iterate_word_pairs(row), 100)) == list(
            islice(words(key, encode_canonical(7), 3, 5), 100)
        )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0100000008000000" "0000000000000000"),
        (2**63 - 1, "0100000008000000" "ffffffffffffff7f"),
        (-(2**63), "0100000008000000" "0000000000000080"),
        (2**63, "0200000008000000" "0000000000000080"),
        (2**64 - 1, "0200000008000000" "ffffffffffffffff"),
        (np.int8(-1), "0100000008000000" "ffffffffffffffff"),
        ("", "0300000000000000" "0000000000000000"),
        ("12345678", "0300000008000000" "3132333435363738"),
        ("123456789", "0300000009000000" "3132333435363738" "3900000000000000" "0000000000000000"),
        (b"\x00", "0500000001000000" "0000000000000000"),
        (1.0, "0600000008000000" "000000000000f03f"),
        (-0.0, "0600000008000000" "0000000000000000"),
    ],
)  # fmt: skip
def test_canonical_bytes(value: object, expected: str) -> None:
    assert encode_canonical(value).hex() == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        np.True_,
        np.timedelta64(1, "s"),
        2**64,
        -(2**63) - 1,
        float("nan"),
        float("inf"),
        "\ud800",
        "a\udfff",
        object(),
        1j,
    ],
)
def test_no_canonical_bytes(value: object) -> None:
    with pytest.raises(ValueError, match=r"whole number|finite|surrogate") as caught:
        encode_canonical(value)
    assert repr(value) not in str(caught.value)
    assert type(caught.value) is ValueError  # one of `encode` has the text in it


def test_text_that_is_not_composed_warns_and_keeps_its_bytes() -> None:
    with pytest.warns(UnicodeWarning, match="NFC"):
        decomposed = encode_canonical("e\u0301")
    assert decomposed != encode_canonical("\u00e9")


def test_the_warning_is_of_the_callers_line() -> None:
    answers, key = Categorical(["flu", "none"]), Key.from_bytes(bytes(32))
    names: Any = {"key": key, "name": "r", "column": "a"}
    for work in (
        lambda: answers.release(["flu"], ["e\u0301"], epsilon=1, **names),
        lambda: answers.path("flu", id="e\u0301", **names),
        lambda: Categorical(["e\u0301", "b"]),
    ):
        with pytest.warns(UnicodeWarning, match="NFC") as seen:
            work()
        assert {each.filename for each in seen} == {__file__}
        assert all("u0301" in linecache.getline(__file__, each.lineno) for each in seen)
    # A thread that has nothing else to do has no caller.
    with ThreadPoolExecutor(1) as pool, pytest.warns(UnicodeWarning, match="NFC"):
        pool.submit(encode_canonical, "e\u0301").result()


def check_paths_apart(derive: Callable[[Key, PathKeyInfo, Purpose], bytes]) -> None:
    """Nothing that tells two paths apart may be left out of the key."""
    base = PathKeyInfo(PathId("r", "a"), "categorical", 3, b"p")
    others = [
        PathKeyInfo(PathId("s", "a"), "categorical", 3, b"p"),
        PathKeyInfo(PathId("r", "b"), "categorical", 3, b"p"),
        PathKeyInfo(PathId("r", "a"), "unary", 3, b"p"),
        PathKeyInfo(PathId("r", "a"), "categorical", 4, b"p"),
        PathKeyInfo(PathId("r", "a"), "categorical", 3, b"q"),
        PathKeyInfo(PathId("ra", ""), "categorical", 3, b"p"),
    ]
    purposes: tuple[Purpose, ...] = ("path", "coin", "round", "seed", "cohort", "fingerprint")
    keys = {derive(KEY, name, purpose) for name in (base, *others) for purpose in purposes}
    keys.add(derive(Key.from_bytes(bytes(32)), base, "path"))
    assert len(keys) == 6 * 7 + 1


def test_everything_is_bound_into_the_key() -> None:
    check_paths_apart(derive_path_key)


@pytest.mark.parametrize(("release", "attribute"), [(1, "a"), ("r", b"a"), (None, None)])
def test_names_are_text(release: Any, attribute: Any) -> None:
    with refused(ArgumentError, says="must be text"):
        PathKeyInfo(PathId(release, attribute), "categorical", 3, b"p")


def test_a_path_that_breaks_off_is_no_report() -> None:
    with pytest.raises(RuntimeError, match="ended above the threshold"):
        find_report([AcceptedDraw(0, 5, 1)], 5, truth=0)


def test_mutant_attributes_that_share_a_path_is_caught() -> None:
    def shared(key: Key, name: PathKeyInfo, purpose: Purpose) -> bytes:
        return derive_path_key(key, replace(name, path=replace(name.path, attribute="")), purpose)

    with pytest.raises(AssertionError):
        check_paths_apart(shared)


def test_why_attributes_must_not_share_a_path() -> None:
    """Exactly: two truths read from one path show different reports only if both are the truth itself."""
    one, threshold_, values = 8, 4, 3
    seen: set[tuple[int, int, int, int]] = set()
    for (u, v), x, y in product(product(range(one), repeat=2), range(values), range(values)):
        drawn = reduce_word_pair(u, v, one, values, base=one)
        if drawn is not None:
            draws = [AcceptedDraw(0, *drawn), AcceptedDraw(1, 0, 0)]
            reports = (find_report(draws, threshold_, truth=x), find_report(draws, threshold_, truth=y))
            seen.add((x, y, *reports))
    assert {(x, y) for x, y, first, second in seen if (first, second) == (0, 1)} == {(0, 1)}


def test_values_are_bound_in_their_order() -> None:
    one, two = Categorical(["a", "b", "c"]), Categorical(["a", "c", "b"])
    assert one.params != two.params
    encoded = struct.pack("<Q", 3) + b"".join(encode_canonical(value) for value in "abc")
    assert one.params == sha256(encoded).digest()
    assert Categorical([1, 2]).params != Categorical(["1", "2"]).params


def check_truth_is_bound(stream: Callable[[int], int]) -> None:
    """Damage limitation: with another truth an object's noise is other noise."""
    assert len({stream(truth) for truth in range(50)}) == 50


def test_the_truth_is_part_of_the_stream_and_a_mutant_without_it_is_caught() -> None:
    derived = derive_path_key(KEY, PathKeyInfo(PathId("r", "a"), "categorical", 50, b""))
    ids = MacInputs(Ids.from_integers(np.array([7])))
    check_truth_is_bound(lambda truth: int(compute_tags(derived, ids, np.array([truth], np.uint64))[0]))
    with pytest.raises(AssertionError):
        check_truth_is_bound(lambda truth: int(compute_tags(derived, ids, None)[0]))


def test_what_is_missing() -> None:
    missing = (None, float("nan"), np.float32("nan"), np.float16("nan"), Decimal("nan"), Decimal("snan"))
    assert all(is_missing(value) for value in missing)
    assert not any(is_missing(value) for value in (0, 0.0, np.float32(0), Decimal(0), "", "nan", b"", False, object()))


def test_half_a_letter_names_no_path() -> None:
    for names in (("\ud800", "a"), ("r", "\ud800")):
        with refused(ArgumentError, says="half of a character"):
            PathId(*names)
