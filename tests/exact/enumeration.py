"""Exact joint laws of whole transcripts, from the two samplers, by enumeration in rationals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from relaxdp.encodings.conformance import chain_law, path_law

__all__ = ["Accept", "Law", "Step", "Transcript", "chain_law", "level_lists", "path_law"]

Transcript = tuple[int, ...]
Law = dict[Transcript, Fraction]
Step = Callable[..., list[Fraction]]
Accept = Callable[..., "tuple[int, int] | None"]


def level_lists(levels: Sequence[Fraction], most: int) -> Iterator[tuple[Fraction, ...]]:
    """All non-falling lists of up to `most` levels, equal neighbours included."""

    def extend(prefix: tuple[Fraction, ...]) -> Iterator[tuple[Fraction, ...]]:
        if prefix:
            yield prefix
        if len(prefix) < most:
            for level in levels:
                if not prefix or level >= prefix[-1]:
                    yield from extend((*prefix, level))

    return extend(())
