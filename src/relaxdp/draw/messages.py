"""The messages of many objects up to their last block: ids as canonical blocks, and what comes after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.canonical import INTEGER
from relaxdp.draw.stream import Words

Selection = slice | NDArray[np.intp]
Groups = Iterator[tuple[Selection, Words]]

_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
NO_BYTES: NDArray[np.uint8] = np.empty(0, np.uint8)
NO_OFFSETS: NDArray[np.int64] = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class Ids:
    """The ids of some objects, checked and not laid out yet: whole numbers, or bytes behind a tag.

    Id i is `data[offsets[i] : offsets[i + 1]]` where there are no integers. Its `repr` shows none of them.
    """

    kind: str
    tag: int
    integers: NDArray[np.integer] | None
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    @classmethod
    def of_integers(cls, numbers: NDArray[np.integer]) -> Self:
        """Return whole numbers as ids."""
        return cls("integer", INTEGER, numbers, NO_OFFSETS, NO_BYTES)

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.integers is None else len(self.integers)

    def groups(self) -> Groups:
        """Return their canonical blocks, grouped by equal numbers of blocks.

        Each group is (which of the objects, words of shape (blocks, objects, 2)).
        """
        if self.integers is not None:
            return _integer_blocks(self.integers)
        return _variable_blocks(self.offsets, self.data, self.tag)


@dataclass(frozen=True, slots=True, repr=False)
class Messages:
    """The ids of some objects and, after them, blocks of (blocks, objects, 2) words. Its `repr` shows none of them.

    Blocks without ids are those of one object, whose bytes are known already.
    """

    ids: Ids | None
    more: Words | None = None

    def __len__(self) -> int:
        if self.ids is not None:
            return len(self.ids)
        return 0 if self.more is None else self.more.shape[1]

    def groups(self) -> Groups:
        """Return all blocks, laid out: objects with equally many go together."""
        if self.ids is None:
            if self.more is not None:
                yield slice(None), self.more
            return
        for chosen, blocks in self.ids.groups():
            # Contiguous, because AES takes whole rows.
            more = None if self.more is None else np.ascontiguousarray(self.more[:, chosen])
            yield chosen, blocks if more is None else np.concatenate([blocks, more])


def _header(tag: int, length: int) -> np.uint64:
    return np.uint64(tag | length << 32)


def _integer_blocks(numbers: NDArray[Any]) -> Groups:
    """Every integer dtype gives the same bytes; only 2^63 and more has a tag of its own."""
    blocks = np.empty((1, len(numbers), 2), dtype=np.uint64)
    blocks[0, :, 0] = _header(INTEGER, 8)
    if numbers.dtype.kind == "u":
        blocks[0, :, 1] = numbers
        blocks[0, :, 0] += blocks[0, :, 1] >> np.uint64(63)
    else:
        blocks[0, :, 1] = numbers.astype(np.int64, copy=False).view(np.uint64)
    yield slice(None), blocks


def _variable_blocks(offsets: NDArray[np.int64], payload: NDArray[np.uint8], tag: int) -> Groups:
    """Pack text or bytes of any length, eight bytes at a time; objects with equally many blocks go together."""
    if len(offsets) == 1:
        return
    data = np.zeros(len(payload) // 8 + 2, dtype="<u8")  # a copy, aligned and padded
    data.view(np.uint8)[: len(payload)] = payload
    begins, lengths = offsets[:-1], np.diff(offsets)
    counts = (lengths + 23) // 16
    if (least := int(counts.min())) == counts.max():
        yield slice(None), _pack(data, begins, lengths, least, tag)
        return
    for count in np.flatnonzero(np.bincount(counts)).tolist():
        chosen = np.flatnonzero(counts == count)
        yield chosen, _pack(data, begins[chosen], lengths[chosen], count, tag)


def _pack(data: Words, begins: NDArray[np.int64], lengths: NDArray[np.int64], count: int, tag: int) -> Words:
    """Return the blocks of payloads that begin anywhere: each word is put together from two aligned ones."""
    blocks = np.empty((count, len(begins), 2), dtype=np.uint64)
    blocks[0, :, 0] = lengths.astype(np.uint64) << np.uint64(32) | np.uint64(tag)
    word, shift = begins >> 3, (begins.astype(np.uint64) & np.uint64(7)) << np.uint64(3)
    back = np.uint64(63) - shift
    shortest = int(lengths.min())
    here = data.take(word, mode="clip")
    for position in range(2 * count - 1):
        following = data.take(word + (position + 1), mode="clip")
        payload = here >> shift | following << back << np.uint64(1)
        if shortest < 8 * (position + 1):
            left = np.minimum(np.maximum(lengths - 8 * position, 0), 8)
            payload &= _FIRST_BYTES.take(left)  # past the end there are zeros
        blocks[(position + 1) // 2, :, (position + 1) % 2] = payload
        here = following
    return blocks
