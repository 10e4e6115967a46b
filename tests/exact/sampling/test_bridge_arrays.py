"""Array bridges are exact: a source that holds every byte is fed, and ties read further digits."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from relaxdp.hazmat import bridge_once, relax_once
from relaxdp.mechanisms.bridged_columns import draw_bridged_column
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.report_arrays import make_report_column
from relaxdp.sampling.bridge import (
    FRESH_CHUNK,
    _AgreeDifferProbability,
    _FreshBridgeSampler,
    draw_fresh_bridge_reports,
)
from relaxdp.sampling.entropy import Keystream, SystemEntropy
from relaxdp.theory.epsilon import ONE
from relaxdp.theory.randomized_response import NOISE, TRUTH, BridgeMixture, compute_bridge_mixture


class Feed:
    """A source that hands out prepared bytes, call by call."""

    def __init__(self, *buffers: NDArray[np.uint8]) -> None:
        self.buffers = list(buffers)

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        buffer[:] = self.buffers.pop(0)


def every_byte(calls: int) -> list[NDArray[np.uint8]]:
    numbers = np.arange(256**calls, dtype=np.uint32)
    return [(numbers >> np.uint32(8 * call)).astype(np.uint8) for call in range(calls)]


@pytest.mark.long
@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 3)])
def test_every_triple_of_bytes(low: int, high: int) -> None:
    """Four values: all 2^24 triples (to the upper end? redraw? which value?) are fed; counts are the law."""
    agree, differ = BridgeMixture(F(3, 4), F(0), F(1, 4)), BridgeMixture(F(1, 4), F(1, 4), F(1, 2))
    feed = every_byte(3)
    size = len(feed[0])
    lower, upper = (np.full(size, report, dtype=np.uint8) for report in (low, high))
    result = np.empty(size, dtype=np.uint8)
    for start in range(0, size, FRESH_CHUNK):
        part = slice(start, start + FRESH_CHUNK)
        draw = _FreshBridgeSampler(4, agree, differ, Feed(*(every[part] for every in feed)))
        draw.draw_into(result[part], lower[part], upper[part])
    law = (agree if low == high else differ).compute_distribution(4, lower_report=low, upper_report=high)
    assert [F(int(count), size) for count in np.bincount(result, minlength=4)] == law


@pytest.mark.parametrize("agree", [True, False])
def test_two_values_take_one_byte(agree: bool) -> None:
    mixtures = BridgeMixture(F(5, 8), F(0), F(3, 8)), BridgeMixture(F(1, 8), F(1, 2), F(3, 8))
    upper = np.ones(256, dtype=np.uint8)
    lower = upper if agree else upper - np.uint8(1)
    result = np.empty_like(upper)
    _FreshBridgeSampler(2, *mixtures, Feed(*every_byte(1))).draw_into(result, lower, upper)
    law = mixtures[0 if agree else 1].compute_distribution(2, lower_report=int(lower[0]), upper_report=1)
    assert [F(int(count), 256) for count in np.bincount(result, minlength=2)] == law


def test_a_tie_reads_further_digits_until_it_is_decided() -> None:
    """A chance of 77/256 + 1/3 * 2^-8: byte 77 ties, then 64-bit digits of 1/3, and again."""
    chance = F(77, 256) + F(1, 3 * 256)
    digit = ONE // 3
    rest = F(ONE, 3) - digit
    for words, expected in [
        ([digit - 1], True),
        ([digit + 1], False),
        ([digit, int(rest * ONE) - 1], True),
        ([digit, int(rest * ONE) + 1], False),
    ]:
        feed = Feed(np.array([77], np.uint8), *(np.array([word], "<u8").view(np.uint8) for word in words))
        draw = _FreshBridgeSampler(
            3, BridgeMixture(1 - chance, F(0), chance), BridgeMixture(1 - chance, F(0), chance), feed
        )
        assert draw._draw_flags(_AgreeDifferProbability(chance, chance), np.zeros(1, np.uint8)).tolist() == [expected]
        assert not feed.buffers


@pytest.mark.parametrize("values", [3, 5, 10, 100, 200, 255, 256])
def test_uniform_bytes(values: int) -> None:
    limit = 256 - 256 % values
    again = [np.zeros(256 - limit, np.uint8)] if limit < 256 else []
    draw = _FreshBridgeSampler(
        values, BridgeMixture(F(0), F(0), F(1)), BridgeMixture(F(0), F(0), F(1)), Feed(*every_byte(1), *again)
    )
    counts = np.bincount(draw._draw_uniform(256, np.uint8), minlength=values)
    counts[0] -= 256 - limit  # the rejected ones, which were fed a zero
    assert set(counts.tolist()) == {256 // values}


def test_uniform_bytes_are_rejected_again() -> None:
    always = BridgeMixture(F(0), F(0), F(1))
    feed = Feed(*(np.array(each, np.uint8) for each in ([254, 255, 0, 255], [255, 7], [254])))
    assert _FreshBridgeSampler(255, always, always, feed)._draw_uniform(4, np.uint8).tolist() == [254, 254, 0, 7]


def test_uniform_words() -> None:
    """The last word of a complete run is taken, the first one after it is rejected, and again."""
    always = BridgeMixture(F(0), F(0), F(1))
    last = ONE - 1 - ONE % 300
    words = [[0, 301, last, last + 1, ONE - 1], [last + 1, 7], [last]]
    feed = Feed(*(np.array(each, "<u8").view(np.uint8) for each in words))
    assert _FreshBridgeSampler(300, always, always, feed)._draw_uniform(5, np.uint64).tolist() == [0, 1, 299, 299, 7]


@pytest.mark.parametrize(("values", "kind"), [(3, "u1"), (256, "u1"), (257, "<u8")])
def test_a_redraw_takes_bytes_up_to_256_values_and_words_beyond(values: int, kind: str) -> None:
    always = BridgeMixture(F(0), F(0), F(1))
    drawn = np.array([0, 2, values - 1], kind)
    feed = Feed(np.zeros(3, np.uint8), np.array([0, 254, 255], np.uint8), drawn.view(np.uint8))
    ends = np.ones(3, np.uint16)
    result = np.empty_like(ends)
    _FreshBridgeSampler(values, always, always, feed).draw_into(result, ends, ends)
    assert result.tolist() == [0, 2, values - 1]
    assert not feed.buffers


def test_chances_of_both_kinds_are_exact_at_their_ties() -> None:
    """One chance ends with its first byte, the other has a digit more; one object of each kind at each tie."""
    chances = F(77, 256), F(80, 256) + F(5, 256 * ONE)
    kinds = np.array([0, 0, 1, 1, 1, 1, 0], np.uint8)
    for chance, which in [
        (_AgreeDifferProbability(*chances), kinds),
        (_AgreeDifferProbability(*chances[::-1]), 1 - kinds),
    ]:
        words = np.array([0, 5, 4, 5], "<u8")
        feed = Feed(np.array([76, 77, 79, 80, 80, 80, 78], np.uint8), words.view(np.uint8))
        draw = _FreshBridgeSampler(3, BridgeMixture(F(0), F(0), F(1)), BridgeMixture(F(0), F(0), F(1)), feed)
        assert draw._draw_flags(chance, which).tolist() == [True, False, True, False, True, False, False]


def test_certainty() -> None:
    """Equal levels return the last report; a bridge to an end at its own level is that end."""
    rng = np.random.default_rng(5)
    upper, lower = rng.integers(0, 5, (2, 10_000)).astype(np.uint8)
    level = F(2, 3)
    for low, middle, expected in [(level, level, lower), (level, TRUTH, upper), (NOISE, NOISE, lower)]:
        drawn = draw_fresh_bridge_reports(
            5, low, middle, TRUTH, lower_reports=lower, upper_reports=upper, entropy=SystemEntropy()
        )
        assert np.array_equal(drawn, expected)
    same = draw_fresh_bridge_reports(
        5, level, level, level, lower_reports=lower, upper_reports=lower, entropy=SystemEntropy()
    )
    assert np.array_equal(same, lower)


def test_what_would_leak_or_cannot_be_is_refused() -> None:
    codes = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="pure noise"):
        bridge_once(10, F(0), F(0), F(1, 2), lower_reports=None, upper_reports=codes)
    with pytest.raises(ValueError, match="pure noise"):
        relax_once(10, F(0), F(0), truths=codes, last_reports=None)
    with pytest.raises(ValueError, match="Lower reports are missing"):
        relax_once(10, F(1, 3), F(1, 2), truths=codes, last_reports=None)
    encoding = Categorical(["a", "b"])
    column: Any = {"lower_reports": None, "upper_reports": make_report_column(encoding, codes[:, None])}
    with pytest.raises(ValueError, match="Lower reports are missing"):
        draw_bridged_column(encoding, F(1, 3), F(1, 2), TRUTH, **column, entropy=SystemEntropy())
    with pytest.raises(ValueError, match="one unsigned type and one length"):
        relax_once(10, F(1, 3), F(1, 2), truths=codes, last_reports=codes[:1])
    with pytest.raises(ValueError, match="does not fit into the type"):
        relax_once(1000, NOISE, F(1, 2), truths=codes, last_reports=None)
    with pytest.raises(ValueError, match="outside of the alphabet"):
        relax_once(2, NOISE, F(1, 2), truths=codes + np.uint8(2), last_reports=None)
    level = F(1, 3)
    with pytest.raises(ValueError, match="Different reports at equal levels"):
        bridge_once(3, level, level, level, lower_reports=codes, upper_reports=codes + np.uint8(1))


def test_fresh_is_fresh_and_every_system_stream_has_its_own_seed() -> None:
    truth = np.zeros(4096, np.uint8)
    one, two = (
        draw_fresh_bridge_reports(
            2, NOISE, F(1, 2), TRUTH, lower_reports=None, upper_reports=truth, entropy=SystemEntropy()
        )
        for _ in range(2)
    )
    assert not np.array_equal(one, two)


def test_a_long_keystream_is_one_keystream() -> None:
    whole, pieces = np.empty(200_000, np.uint8), np.empty(200_000, np.uint8)
    Keystream(bytes(48)).fill(whole)
    stream = Keystream(bytes(48))
    for start in range(0, 200_000, 7_000):
        stream.fill(pieces[start : start + 7_000])
    assert np.array_equal(whole, pieces)


def test_keystream_is_aes_ctr() -> None:
    """NIST SP 800-38A, F.5.5 (CTR-AES256): the keystream is ciphertext XOR plaintext of the published vector."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    cipher = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5")
    buffer = np.empty(32, np.uint8)
    Keystream(key + counter).fill(buffer)
    assert bytes(buffer) == bytes(a ^ b for a, b in zip(plain, cipher, strict=True))


def test_mixture_of_algorithm_1_is_what_arrays_draw() -> None:
    agree = compute_bridge_mixture(2, F(1, 4), F(1, 2), TRUTH, ends_agree=True)
    differ = compute_bridge_mixture(2, F(1, 4), F(1, 2), TRUTH, ends_agree=False)
    draw = _FreshBridgeSampler(2, agree, differ, Feed())
    flip = _AgreeDifferProbability(
        agree.compute_distribution(2, lower_report=0, upper_report=0)[1],
        differ.compute_distribution(2, lower_report=1, upper_report=0)[1],
    )
    assert vars(draw._flip) == vars(flip)
    ends = _FreshBridgeSampler(3, agree, BridgeMixture(F(1, 8), F(1, 4), F(5, 8)), Feed())
    assert vars(ends._to_upper) == vars(_AgreeDifferProbability(F(0), F(1, 3)))
    assert vars(ends._redraw) == vars(_AgreeDifferProbability(agree.redraw, F(5, 8)))
    sure = _AgreeDifferProbability(F(1), F(0))
    assert int(sure.top) == 255
    assert sure.rests == (F(1), F(0))
