"""Exact draws from a bridge's mixture for one object; Algorithm 1, blur and bridge are all drawn here."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import tee

from relaxdp.draw.canonical import canonical
from relaxdp.draw.entropy import Entropy
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathName, bridge_key, words
from relaxdp.law.bridge import TRUTH, Mixture, bridge_mixture
from relaxdp.law.epsilon import ONE


def below(boundaries: tuple[Fraction, ...], position_words: Iterator[int], *, one: int = ONE) -> int:
    """Return into which part of [0, 1), cut at `boundaries`, a uniform real number falls; exactly.

    The number is drawn digit by digit (a word is one digit) until it is clear on which side of every boundary it
    lies, so that no probability is ever rounded.

    Claim: every word is fed in tests/exact/draw/test_bridge_draw.py.
    """
    low, width = Fraction(0), Fraction(1)
    while True:
        part = sum(cut <= low for cut in boundaries)
        if part == sum(cut < low + width for cut in boundaries):
            return part
        width /= one
        low += next(position_words) * width


def uniform(values: int, value_words: Iterator[int], *, one: int = ONE) -> int:
    """Return a uniform value; the last, incomplete run of words is rejected."""
    for word in value_words:
        if word <= one - 1 - one % values:
            return word % values
    raise AssertionError("the words of a source never end")


def draw_mixture(
    mixture: Mixture,
    values: int,
    *,
    lower_report: int,
    upper_report: int,
    position_words: Iterator[int],
    value_words: Iterator[int],
    one: int = ONE,
) -> int:
    """Return one exact draw from a bridge's law."""
    cuts = (mixture.to_upper, mixture.to_upper + mixture.to_lower)
    part = below(cuts, position_words, one=one)
    if part == 2:
        return uniform(values, value_words, one=one)
    return (upper_report, lower_report)[part]


def fresh_bridge(
    values: int,
    lower: Fraction,
    middle: Fraction,
    upper: Fraction,
    *,
    lower_report: int,
    upper_report: int,
    entropy: Entropy,
) -> int:
    """Return a report at `middle` between two reports, with fresh randomness. It must be kept: once is once."""
    mixture = bridge_mixture(values, lower, middle, upper, agree=lower_report == upper_report)
    source = entropy.words()
    return draw_mixture(
        mixture,
        values,
        lower_report=lower_report,
        upper_report=upper_report,
        position_words=source,
        value_words=source,
    )


def fresh_step(values: int, old: Fraction, new: Fraction, *, truth: int, last: int, entropy: Entropy) -> int:
    """Return the next report of Algorithm 1: a bridge between the last report and the truth.

    Calling it twice for one level draws twice, which breaks the guarantee. `relaxdp.Relaxation` keeps the report.
    """
    return fresh_bridge(values, old, new, TRUTH, lower_report=last, upper_report=truth, entropy=entropy)


def keyed_bridge(
    key: Key,
    name: PathName,
    object_id: object,
    lower: Fraction,
    middle: Fraction,
    upper: Fraction,
    *,
    lower_report: int,
    upper_report: int,
    symbol: int = 0,
) -> int:
    """Return a report at `middle` between two reports, as a pure function of the key and its arguments.

    With `lower` = 0 it is a blur, and `lower_report` must be 0. The position comes from the first words of the
    blocks (as many as it needs), the value from the first second word that is not rejected.
    """
    mixture = bridge_mixture(name.alphabet, lower, middle, upper, agree=lower_report == upper_report)
    derived = bridge_key(key, name, lower, middle, upper)
    prefix = canonical(object_id) + upper_report.to_bytes(8, "little") + lower_report.to_bytes(8, "little")
    first, second = tee(words(derived, prefix, symbol=symbol))
    return draw_mixture(
        mixture,
        name.alphabet,
        lower_report=lower_report,
        upper_report=upper_report,
        position_words=(position for position, _ in first),
        value_words=(value for _, value in second),
    )
