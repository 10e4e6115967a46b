"""Counting: histograms of codes, and bits of packed reports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.kernel.loaded import kernel
from relaxdp.errors import CountsError

_PIECE = 1 << 17


def histogram(codes: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """Return how often each of 0 .. size - 1 occurs; `ValueError` where a code is outside.

    `np.bincount` first turns its whole input into 64-bit integers; piece by piece that copy never leaves the cache.
    Bytes are counted by the compiled path, or two at a time: half as many steps, and the table of pairs gives both
    counts.
    """
    # A signed byte below 0 would pass as one from 128 on: those must be outside.
    if codes.flags.c_contiguous and (codes.dtype == np.uint8 or (codes.dtype == np.int8 and size <= 128)):
        found = kernel()
        if found is not None and size <= 256:
            counted = found.histogram(codes.view(np.uint8), size)
            if counted is None:
                raise ValueError("a code is outside of the alphabet")
            return counted
    if codes.dtype == np.uint8 and codes.flags.c_contiguous and len(codes) >= _PIECE:
        even = len(codes) // 2 * 2
        pairs = _count(codes[:even].view(np.uint16), 1 << 16).reshape(256, 256)
        counts: NDArray[np.int64] = pairs.sum(axis=0) + pairs.sum(axis=1) + np.bincount(codes[even:], minlength=256)
        if counts[size:].any():
            raise ValueError("a code is outside of the alphabet")
        return np.asarray(counts[:size])
    return _count(codes, size)


def _count(codes: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    piece = max(_PIECE, 4 * size)  # with very many values, fewer and longer pieces
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(codes), piece):
        part = np.bincount(codes[start : start + piece])
        if len(part) > size:
            raise ValueError("a code is outside of the alphabet")
        counts[: len(part)] += part
    return counts


Bytes = NDArray[np.uint8]

_LOWEST = np.uint64(0x0101010101010101)
# So many rows can be added up in bytes before one could overflow.
_ROWS = 255
# A row of so many bytes is long enough for its sums to be fast, and 255 of them stay in the cache.
_LONG = 512


def pack_bits(bits: NDArray[np.unsignedinteger]) -> Bytes:
    """Return rows of bits as bytes, the lowest bit first."""
    return np.packbits(bits.astype(np.uint8, copy=False), axis=1, bitorder="little")


def unpack_bits(packed: Bytes, count: int) -> Bytes:
    """Return the first `count` bits of each row."""
    return np.unpackbits(packed, axis=1, count=count, bitorder="little")


def bit_strings(packed: Bytes, count: int) -> list[str]:
    """Return packed reports as text, the highest bit first.

    >>> bit_strings(np.array([[1], [6]], dtype=np.uint8), 4)
    ['0001', '0110']
    """
    letters = unpack_bits(packed, count)[:, ::-1] + ord("0")
    return [row.tobytes().decode("ascii") for row in letters]


def check_padding(packed: Bytes, count: int) -> None:
    """Refuse rows that have a bit set beyond the first `count`: they were made for something else."""
    if count % 8 and packed.size and int(np.bitwise_or.reduce(packed[:, -1])) >> count % 8:
        row = int(np.argmax(packed[:, -1] >> np.uint8(count % 8) != 0)) + 1
        raise CountsError("a report has more than {bits} bits: its padding is not zero.", bits=count, row=row)


def count_bits(packed: Bytes, count: int) -> NDArray[np.int64]:
    """Return in how many rows each of the first `count` bits is set.

    Eight bytes are added up as one word, whose bytes each count one bit of up to 255 rows. Short rows are counted side
    by side, so that the sums run over long ones; the few that are left over are unpacked.
    """
    packed = np.ascontiguousarray(packed)
    width = packed.shape[1]
    together = 8 * -(-_LONG // (8 * width))
    whole = len(packed) // together
    rows = packed[: whole * together].reshape(whole, together * width).view(np.uint64)
    totals = np.zeros((8, together * width), dtype=np.int64)
    for start in range(0, whole, _ROWS):
        lanes = rows[start : start + _ROWS]
        for bit in range(8):
            totals[bit] += np.add.reduce((lanes >> np.uint64(bit)) & _LOWEST, axis=0).view(np.uint8)
    left = unpack_bits(packed[whole * together :], count).sum(axis=0, dtype=np.int64)
    return np.asarray(totals.reshape(8, together, width).sum(axis=1).T.reshape(-1)[:count] + left)
