"""The wave keeps the guarantee: all transcripts, over every word that an object can keep, in rationals.

Words have three bits here. A number at an eighth between two bins looks at the first three bits of the word that rounds
it, the offset at the last two of another, so eight words each are all there are.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction as F
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.exact.checks import check_guarantee
from tests.exact.enumeration import (
    Law,
    Transcript,
    compute_blur_distribution,
    compute_transcript_distribution,
    path_law,
)
from tests.refusals import refused

from relaxdp.audit.exact_check import check_exactly
from relaxdp.errors import MechanismError
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.sampling.keyed_stream import Purpose, Words
from relaxdp.theory.randomized_response import (
    compute_bridge_mixture,
    compute_odds,
    compute_report_distribution,
)

WORD, BITS = 8, 3
BINS = 3
TRUTHS = [0.0, 1.0, 3.0, 8.0, 12.0, 15.0, 16.0]  # of a range from 0 to 16, whose bins are 0, 8 and 16
LEVELS = [(F(3, 8),), (F(1, 8), F(5, 8)), (F(2, 8), F(2, 8), F(6, 8)), (F(1, 8), F(4, 8), F(7, 8))]
Sampler = Callable[[int, tuple[F, ...], int], Law]


class Every:
    """Every pair of words: that which rounds, in its first bits, and that of the offset, in its last."""

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        rounds, offsets = np.divmod(np.arange(WORD * WORD, dtype=np.uint64), np.uint64(WORD))
        junk = np.uint64(0x5A5A5A5A5A5A5A << BITS)
        return {"round": rounds << np.uint64(64 - BITS) | junk, "coin": offsets | junk}[purpose]


def wave(window: int) -> SquareWave:
    return SquareWave(0, 16, bins=BINS, window=window)


def places(encoding: SquareWave, truth: float) -> list[tuple[int, int, int]]:
    """The kept place of a truth, with the two words that lead to it."""
    codes = encoding.compute_true_symbols(encoding.read_true_values([truth] * WORD**2), Every())[:, 0].tolist()
    return [(code, *divmod(number, WORD)) for number, code in enumerate(codes)]


@cache
def by_path(alphabet: int, levels: tuple[F, ...], place: int) -> Law:
    return path_law(alphabet, [int(level * WORD) for level in levels], place, one=WORD)


@cache
def by_chain(alphabet: int, levels: tuple[F, ...], place: int) -> Law:
    return compute_transcript_distribution(alphabet, levels, place)


@cache
def by_bridges(alphabet: int, levels: tuple[F, ...], place: int) -> Law:
    """The last report comes first; the lowest one is blurred from it, and the one between is a bridge."""
    law: Law = {}
    last = levels[-1]
    for top, chance in enumerate(compute_report_distribution(alphabet, last, truth=place)):
        if len(levels) == 1:
            law[top,] = chance
            continue
        for first, blurred in enumerate(compute_blur_distribution(alphabet, levels[0], last, report=top)):
            if len(levels) == 2:
                law[first, top] = chance * blurred
                continue
            mixture = compute_bridge_mixture(alphabet, *levels, ends_agree=first == top)
            for middle, bridged in enumerate(
                mixture.compute_distribution(alphabet, lower_report=first, upper_report=top)
            ):
                law[first, middle, top] = chance * blurred * bridged
    return {reports: chance for reports, chance in law.items() if chance}


def law_of(encoding: SquareWave, levels: tuple[F, ...], truth: float, sampler: Sampler) -> Law:
    found: defaultdict[Transcript, F] = defaultdict(F)
    for place, _, _ in places(encoding, truth):
        for reports, chance in sampler(encoding.alphabet, levels, place).items():
            found[reports] += chance / WORD**2
    return dict(found)


def spread(encoding: SquareWave) -> F:
    return F(encoding.alphabet, encoding.window)


@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_all_reports_cost_the_last_level(window: int, levels: tuple[F, ...]) -> None:
    """On the keyed path, by Algorithm 1, and by blurs and bridges: the three laws are one."""
    encoding = wave(window)
    laws = [law_of(encoding, levels, truth, by_path) for truth in TRUTHS]
    assert all(sum(law.values()) == 1 for law in laws)
    check_guarantee(laws, spread(encoding), levels[-1])
    for sampler in (by_chain, by_bridges):
        assert [law_of(encoding, levels, truth, sampler) for truth in TRUTHS] == laws


@pytest.mark.parametrize("window", [2, 4])
def test_levels_below_the_last_cost_the_highest_of_them(window: int) -> None:
    """Two levels below the last: the second is a bridge, and two blurs would be caught."""
    encoding, levels = wave(window), (F(1, 8), F(4, 8), F(7, 8))
    lower = [without_last(law_of(encoding, levels, truth, by_bridges)) for truth in TRUTHS]
    assert lower == [law_of(encoding, levels[:2], truth, by_path) for truth in TRUTHS]
    check_guarantee(lower, spread(encoding), levels[1])
    blurred = [law_of(encoding, levels, truth, by_blurs) for truth in TRUTHS]
    assert all(sum(law.values()) == 1 for law in blurred)
    ratios = [max(chances) / min(chances) for each in blurred[0] if (chances := [law[each] for law in blurred])]
    assert max(ratios) > compute_odds(levels[1], spread(encoding))


def without_last(law: Law) -> Law:
    found: defaultdict[Transcript, F] = defaultdict(F)
    for reports, chance in law.items():
        found[reports[:-1]] += chance
    return dict(found)


def by_blurs(alphabet: int, levels: tuple[F, ...], place: int) -> Law:
    """What must fail: both of the lower levels are blurred from the last one, each for itself."""
    found: defaultdict[Transcript, F] = defaultdict(F)
    for top, chance in enumerate(compute_report_distribution(alphabet, levels[-1], truth=place)):
        first, second = (compute_blur_distribution(alphabet, level, levels[-1], report=top) for level in levels[:-1])
        for (one, weight), (other, also) in itertools.product(enumerate(first), enumerate(second)):
            found[one, other] += chance * weight * also
    return dict(found)


@pytest.mark.parametrize("window", [2, 4])
def test_the_law_of_a_report(window: int) -> None:
    """r/w + (1 - r)/D in the window of the bin, (1 - r)/D elsewhere; and its mean is what the estimate assumes."""
    encoding, keep = wave(window), F(5, 8)
    alphabet = encoding.alphabet
    assert alphabet == BINS + window - 1
    for bin_ in range(BINS):
        law = law_of(encoding, (keep,), 8.0 * bin_, by_path)
        for place in range(alphabet):
            inside = bin_ <= place < bin_ + window
            assert law[place,] == (1 - keep) / alphabet + inside * keep / window
        mean = sum(place * chance for (place,), chance in law.items())
        assert mean == keep * (bin_ + F(window - 1, 2)) + (1 - keep) * F(alphabet - 1, 2)


def test_a_number_is_rounded_to_its_neighbours() -> None:
    """To the upper one with the chance that its distance from the lower one is of the way, whatever the offset is."""
    for truth in TRUTHS:
        kept = places(wave(4), truth)
        for offset in range(WORD):
            bins = [place - offset % 4 for place, _, of in kept if of == offset]
            assert F(sum(bins), len(bins)) == F(truth) / 8
            assert set(bins) <= {int(truth // 8), int(-(-truth // 8))}


@pytest.mark.long
@pytest.mark.parametrize("window", [1, 2, 4])
def test_it_passes_as_any_encoding_does(window: int) -> None:
    found = check_exactly(wave(window), TRUTHS)
    assert found.transcripts == (BINS + window - 1) ** 3
    assert Decimal("2.9999999") < found.privacy_loss <= 3
    check_exactly(
        SquareWave(wave(window).low, wave(window).high, bins=BINS, window=window, clip=True), [-7.0, *TRUTHS, 1e9]
    )


# What must fail.


def marked_law(alphabet: int, levels: tuple[F, ...]) -> Law:
    """The readings of a path whose truth is a mark: a number that is never drawn."""
    return by_path(alphabet, levels, alphabet)


def redrawn_law(encoding: SquareWave, levels: tuple[F, ...], truth: float, group: Callable[[Any], int]) -> Law:
    """The noise is one path, but wherever it shows the truth, a level has words of its own; `group` stays the same."""
    kept = places(encoding, truth)
    of_group: defaultdict[int, list[int]] = defaultdict(list)
    for each in kept:
        of_group[group(each)].append(each[0])
    found: defaultdict[Transcript, F] = defaultdict(F)
    for members in of_group.values():
        law = {place: F(members.count(place), len(members)) for place in set(members)}
        for chosen in itertools.product(law, repeat=len(levels)):
            weight = F(len(members), len(kept))
            for place in chosen:
                weight *= law[place]
            for readings, chance in marked_law(encoding.alphabet, levels).items():
                shown = (own if each == encoding.alphabet else each for own, each in zip(chosen, readings, strict=True))
                found[tuple(shown)] += weight * chance
    return dict(found)


@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("what", ["nothing", "offset", "rounding"])
def test_what_is_drawn_again_is_caught(window: int, what: str) -> None:
    """An offset, or a rounding, that each level draws for itself tells more than the last level."""
    encoding, levels = wave(window), (F(4, 8), F(6, 8))
    same = {"nothing": lambda each: each[1:], "offset": lambda each: each[1], "rounding": lambda each: each[2]}[what]
    laws = [redrawn_law(encoding, levels, truth, same) for truth in TRUTHS]
    assert all(sum(law.values()) == 1 for law in laws)
    if what == "nothing":  # the same enumeration, of what is right
        check_guarantee(laws, spread(encoding), levels[-1])
    else:
        with pytest.raises(AssertionError):
            check_guarantee(laws, spread(encoding), levels[-1])


@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("claimed", ["off by one, wider", "off by one, narrower", "the number of places"])
def test_another_fraction_in_the_threshold_is_caught(window: int, claimed: str) -> None:
    encoding, level = wave(window), F(5, 8)
    laws = [law_of(encoding, (level,), truth, by_path) for truth in TRUTHS]
    wrong = {
        "off by one, wider": F(encoding.alphabet, window + 1),
        "off by one, narrower": F(encoding.alphabet, window - 1),  # never reached: it would waste epsilon
        "the number of places": F(encoding.alphabet),
    }[claimed]
    with pytest.raises(AssertionError):
        check_guarantee(laws, wrong, level)
    check_guarantee(laws, spread(encoding), level)


def test_a_window_that_is_no_power_of_two_is_refused_and_would_be_caught() -> None:
    """Three places out of two bits: one of them is twice as likely, and the ratio larger than is said."""
    for window in (3, 6, 12, 1000):
        with refused(MechanismError, window=window, says="power of two"):
            wave(window)
    alphabet, level = BINS + 3 - 1, F(5, 8)
    laws = []
    for bin_ in range(BINS):
        law: defaultdict[Transcript, F] = defaultdict(F)
        for word in range(4):
            for reports, chance in by_path(alphabet, (level,), bin_ + word % 3).items():
                law[reports] += chance / 4
        laws.append(dict(law))
    with pytest.raises(AssertionError):
        check_guarantee(laws, F(alphabet, 3), level)
