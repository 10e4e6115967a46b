"""One object's bridge draw is exact: every word of a small source is fed."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction as F

import pytest

from relaxdp.sampling.bridge import draw_from_mixture, draw_keyed_bridge_report, draw_uniform, find_interval
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo
from relaxdp.sampling.keys import Key
from relaxdp.theory.randomized_response import compute_bridge_mixture


@pytest.mark.parametrize("one", [4, 8])
def test_below_is_exact(one: int) -> None:
    """With cuts on the grid of two words, every pair of words is fed and the counts are the probabilities."""
    grid = one**2
    for cuts in [(F(3, grid), F(7, grid)), (F(0), F(one + 1, grid)), (F(5, grid), F(5, grid)), (F(0), F(1))]:
        parts = Counter(find_interval(cuts, iter(words), base=one) for words in itertools.product(range(one), repeat=2))
        edges = (F(0), *cuts, F(1))
        assert [F(parts[part], grid) for part in range(3)] == [b - a for a, b in itertools.pairwise(edges)]


def test_below_off_the_grid_is_bounded_by_what_is_left() -> None:
    cut, one, depth = F(1, 3), 4, 4
    decided: Counter[int | str] = Counter()
    for words in itertools.product(range(one), repeat=depth):
        try:
            decided[find_interval((cut,), iter(words), base=one)] += 1
        except StopIteration:
            decided["open"] += 1
    assert decided["open"] == 1  # exactly one string of words still touches the cut
    assert F(decided[0], one**depth) < cut < F(decided[0] + 1, one**depth)


def test_uniform_rejects_the_incomplete_run() -> None:
    for values in (2, 3, 5, 7):
        draws = Counter(draw_uniform(values, iter([word, 0]), base=8) for word in range(8 - 8 % values))
        assert set(draws.values()) == {8 // values}
        for word in range(8 - 8 % values, 8):
            assert draw_uniform(values, iter([word, 1]), base=8) == 1
    with pytest.raises(AssertionError, match="ended before a value was drawn"):
        draw_uniform(3, iter([6, 7]), base=8)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1)])
def test_draw_mixture_has_the_bridges_law(low: int, high: int) -> None:
    """All strings of words that can decide; weights by how many words were read."""
    values, one = 4, 16
    mixture = compute_bridge_mixture(values, F(1, 4), F(1, 2), F(1), ends_agree=low == high)
    law, undecided = [F(0)] * values, F(0)
    words = itertools.product(range(one), repeat=3)
    for first, second, value in words:
        try:
            report = draw_from_mixture(
                mixture,
                values,
                iter([(first, value), (second, one - 1)]),
                lower_report=low,
                upper_report=high,
                base=one,
            )
            law[report] += F(1, one**3)
        except StopIteration:
            undecided += F(1, one**3)
    exact = mixture.compute_distribution(values, lower_report=low, upper_report=high)
    assert undecided <= F(2, one**2)
    for measured, wanted in zip(law, exact, strict=True):
        assert measured <= wanted <= measured + undecided


def test_keyed_bridge_is_a_pure_function_that_binds_everything() -> None:
    name = PathKeyInfo(PathId("r", "a"), "categorical", 5, b"")
    levels = F(1, 10), F(1, 2), F(9, 10)
    key = Key.from_bytes(bytes(32))

    def column(key: Key = key, name: PathKeyInfo = name, levels: tuple[F, F, F] = levels, symbol: int = 0) -> list[int]:
        return [
            draw_keyed_bridge_report(key, name, i, *levels, lower_report=i % 5, upper_report=i % 3, symbol=symbol)
            for i in range(200)
        ]

    first = column()
    assert first == column()
    unnamed = [
        draw_keyed_bridge_report(key, name, i, *levels, lower_report=i % 5, upper_report=i % 3) for i in range(200)
    ]
    assert unnamed == first
    assert len(set(first)) == 5
    others = [
        column(key=Key.from_bytes(bytes(31) + b"x")),
        column(name=PathKeyInfo(PathId("r", "b"), "categorical", 5, b"")),
        column(levels=(F(1, 11), F(1, 2), F(9, 10))),
        column(symbol=1),
    ]
    assert all(other != first for other in others)
