"""The kept rounding of a number is exact, to an end of its range and to a bin of it, also where floats cannot tell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from relaxdp.mechanisms.numeric import round_stochastically
from relaxdp.theory.epsilon import ONE


def exact(word: int, number: float, low: float, high: float) -> bool:
    share = (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
    return word < share * ONE // 1


RANGES = pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-3.5, 120.0), (0.1, 0.3), (1e-200, 2e-200), (-1e300, 1e300)]
)


@RANGES
def test_words_at_the_boundary(low: float, high: float) -> None:
    """Words right at, just below and just above every number's boundary, where floats alone would fail."""
    rng = np.random.default_rng(3)
    inside = np.clip(low + (high / 2 - low / 2) * 2 * rng.random(200), low, high)
    numbers = [low, high, np.nextafter(low, high), *inside]
    words, repeated = [], []
    for number in map(float, numbers):
        share = (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
        boundary = int(share * ONE)
        for word in {boundary - 1, boundary, boundary + 1, boundary + 2**17, boundary - 2**17, 0, ONE - 1}:
            if 0 <= word < ONE:
                words.append(word)
                repeated.append(number)
    result = round_stochastically(np.array(words, np.uint64), np.array(repeated), low, high, bins=2)
    assert result.tolist() == [exact(word, number, low, high) for word, number in zip(words, repeated, strict=True)]


def test_the_ends_are_never_rounded_away() -> None:
    words = np.array([0, 1, ONE // 2, ONE - 1], np.uint64)
    assert round_stochastically(words, np.full(4, 7.0), -1.0, 7.0, bins=2).all()
    assert not round_stochastically(words, np.full(4, -1.0), -1.0, 7.0, bins=2).any()


def exact_bin(word: int, number: float, low: float, high: float, bins: int) -> int:
    place = (bins - 1) * (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low))
    return int(place // 1) + (word < (place % 1) * ONE // 1)


@RANGES
@pytest.mark.parametrize("bins", [2, 3, 64, 1024])
def test_words_at_the_boundary_of_a_bin(low: float, high: float, bins: int) -> None:
    """Numbers in, at and right beside bins, with words at, just below and just above their boundaries."""
    rng = np.random.default_rng(4)
    inside = np.clip(low + (high / 2 - low / 2) * 2 * rng.random(40), low, high)
    on = np.clip(np.linspace(low / 2, high / 2, bins)[[0, 1, bins // 2, -2, -1]] * 2, low, high)
    numbers = [*on, *np.nextafter(on[:-1], high), *np.nextafter(on[1:], low), *inside]
    words, repeated = [], []
    for number in map(float, numbers):
        boundary = int((bins - 1) * (Fraction(number) - Fraction(low)) / (Fraction(high) - Fraction(low)) % 1 * ONE)
        for word in {*(boundary + step for step in (-(2**27), -1, 0, 1, 2**27)), 0, 1, ONE // 2, ONE - 1}:
            if 0 <= word < ONE:
                words.append(word)
                repeated.append(number)
    found = round_stochastically(np.array(words, np.uint64), np.array(repeated), low, high, bins)
    expected = [exact_bin(word, number, low, high, bins) for word, number in zip(words, repeated, strict=True)]
    assert found.tolist() == expected
    assert max(expected) == bins - 1
