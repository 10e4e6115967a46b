"""What is drawn under a key, for arrays of objects: by the compiled path where there is one, else by NumPy.

Both give the same words, bit for bit. NumPy's is the one to read: tests hold the other against it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np

from relaxdp.draw.bridge_arrays import ArrayBridges
from relaxdp.draw.kernel.loaded import Kernel, kernel
from relaxdp.draw.messages import Messages
from relaxdp.draw.path_arrays import ArrayPath, Codes
from relaxdp.draw.stream import RowCipher, Words


class KeyedPath(Protocol):
    """The reports of many objects on one path, at one threshold."""

    def draw_objects(self, target: Codes, messages: Messages, index: Words) -> None:
        """Draw over `target`, the truths of at most CHUNK objects, (objects, symbols); ready after `finish`."""
        ...

    def finish(self) -> None:
        """Put every report into its place."""
        ...


class KeyedTags(Protocol):
    """The CMACs of many messages, whose last blocks hold an index, a symbol and try 0."""

    def tags(self, messages: Messages, index: Words | None, symbol: Words | int) -> tuple[Words, Words]:
        """Return the first word of each of at most CHUNK tags, and the sum of all as two words."""
        ...


class KeyedBridges(Protocol):
    """Bridges of all symbols of many objects, from one level to another."""

    def reports(self, messages: Messages, lower_reports: Codes, upper_reports: Codes, *, first: int) -> Codes:
        """Return the reports of each object, from codes of shape (objects, symbols): at most CHUNK symbols in all.

        Where the lower level is noise, zeros stand in the place of its reports. `first` is the first symbol's number.
        """
        ...


def keyed_path(derived: bytes, values: int, threshold: int) -> KeyedPath:
    """Return what draws a path here."""
    found = kernel()
    # A threshold of 0 would be noise, which nobody releases; the compiled path has no rule for it.
    if found is None or threshold < 1:
        return ArrayPath(derived, values, threshold)
    return _CompiledPath(found, derived, values, threshold)


def keyed_tags(derived: bytes) -> KeyedTags:
    """Return what makes tags here."""
    found = kernel()
    return ArrayTags(derived) if found is None else _CompiledTags(found, derived)


def keyed_bridges(derived: bytes, values: int, lower: Fraction, middle: Fraction, upper: Fraction) -> KeyedBridges:
    """Return what draws bridges here."""
    found, reference = kernel(), ArrayBridges(derived, values, lower, middle, upper)
    return reference if found is None else _CompiledBridges(found, derived, values, reference)


class ArrayTags:
    """Tags by NumPy."""

    def __init__(self, derived: bytes) -> None:
        self._cipher = RowCipher(derived)

    def tags(self, messages: Messages, index: Words | None, symbol: Words | int) -> tuple[Words, Words]:
        """Return the first word of each of at most CHUNK tags, and the sum of all as two words."""
        words, sums = np.empty(len(messages), np.uint64), np.zeros(2, np.uint64)
        for chosen, blocks in messages.groups():
            first = np.uint64(0) if index is None else index[chosen]
            second = symbol if isinstance(symbol, int) else symbol[chosen]
            rows = self._cipher.last_block(self._cipher.absorb(blocks), first, second)
            tags = self._cipher.encrypt(rows)
            words[chosen] = tags[:, 0]
            sums += tags.sum(axis=0, dtype=np.uint64)
        return words, sums


class _CompiledPath:
    def __init__(self, found: Kernel, derived: bytes, values: int, threshold: int) -> None:
        self._kernel, self._derived, self._values, self._threshold = found, derived, values, threshold

    def draw_objects(self, target: Codes, messages: Messages, index: Words) -> None:
        self._kernel.draw(self._derived, self._values, self._threshold, messages, index, target)

    def finish(self) -> None:
        """Nothing waits here."""


class _CompiledTags:
    def __init__(self, found: Kernel, derived: bytes) -> None:
        self._kernel, self._derived = found, derived

    def tags(self, messages: Messages, index: Words | None, symbol: Words | int) -> tuple[Words, Words]:
        if isinstance(symbol, int):
            symbols = None if symbol == 0 else np.full(len(messages), symbol, np.uint64)
        else:
            symbols = symbol
        return self._kernel.tags(self._derived, messages, index, symbols)


class _CompiledBridges:
    def __init__(self, found: Kernel, derived: bytes, values: int, reference: ArrayBridges) -> None:
        self._kernel, self._derived, self._values, self._reference = found, derived, values, reference

    def reports(self, messages: Messages, lower_reports: Codes, upper_reports: Codes, *, first: int) -> Codes:
        self._reference.check(lower_reports, upper_reports)
        made = self._kernel.bridge(
            self._derived,
            self._values,
            self._reference.cut_digits(),
            messages,
            first,
            (lower_reports, upper_reports),
        )
        # One in 2^64 words equals a cut or is rejected: then NumPy draws this chunk, and the word's symbol alone.
        return self._reference.reports(messages, lower_reports, upper_reports, first=first) if made is None else made
