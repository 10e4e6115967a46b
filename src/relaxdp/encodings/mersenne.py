"""The hash of local hashing: a line over the integers modulo the prime 2^31 - 1, cut into buckets.

    seed   64 bits;  a = its lowest 31 bits mod p,  b = bits 32 .. 62 mod p,  p = 2^31 - 1
    point  of value v:  (v + 506952122)^5 mod p
    bucket of value v:  floor(((a * point + b) mod p) * g / p)

Over all (a, b), two different points fall on every pair of places equally often, so that two values share a bucket for
1/g of all seeds; because 31 bits name the residue 0 twice, it is off by less than 2^-29. The fifth power is one-to-one
(5 does not divide p - 1). Pairs do not need it; it keeps three neighbours from standing in a row, which would make
their buckets move together. Reports are counted with one multiplication and a few sums for each value.

Claim: exact for every pair of values and every seed of a small prime; tests/exact/encodings/test_mersenne.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.stream import Words

NAME = "mersenne31"
BITS = 31
PRIME = (1 << BITS) - 1
UNEVEN = Fraction(1, 1 << 29)
"""More than how many seeds put two values into one bucket differs from one in so many buckets."""
POWER = 5
OFFSET = 506952122  # 2^32 divided by the golden ratio, modulo the prime

# So many places at a time that all of them stay in the processor's cache.
_PIECE = 1 << 15


def points(index: Words, *, bits: int = BITS) -> Words:
    """Return the point of each value, from its index, which is below the prime."""
    start = _modulo(index.astype(np.uint64) + np.uint64(OFFSET % ((1 << bits) - 1)), bits)
    result = start
    for _ in range(POWER - 1):
        result = _modulo(result * start, bits)
    return result


def lines(seeds: Words, *, bits: int = BITS) -> tuple[Words, Words]:
    """Return slope and height of each seed's line."""
    mask = np.uint64((1 << bits) - 1)
    return _modulo(seeds & mask, bits), _modulo((seeds >> np.uint64(32)) & mask, bits)


def buckets(seeds: Words, where: Words, count: int, *, bits: int = BITS) -> Words:
    """Return the bucket of a point under a seed; both arrays may be broadcast against each other."""
    slope, height = lines(seeds, bits=bits)
    place = _modulo(slope * where + height, bits)
    return np.asarray(place * np.uint64(count) // np.uint64((1 << bits) - 1), dtype=np.uint64)


def _modulo(numbers: Words, bits: int) -> Words:
    """Return numbers modulo the Mersenne prime of so many bits, for a product of two residues plus a third at most.

    The high bits are added to the low ones. What is left is below twice the prime; a negative number wraps to a large
    one, so the smaller of two is the residue. That is several times faster than NumPy's remainder.
    """
    prime = np.uint64((1 << bits) - 1)
    folded = (numbers & prime) + (numbers >> np.uint64(bits))
    return np.minimum(folded, folded - prime)


def count_supports(seeds: Words, codes: NDArray[np.unsignedinteger], where: Words, count: int) -> NDArray[np.int64]:
    """Return for how many of the reports (a seed and a bucket) each point falls into the reported bucket.

    Moving a line down by the start of the reported bucket turns "is in that bucket" into "is below its width". The rest
    is `_modulo`, in place.
    """
    starts = np.array([-(-bucket * PRIME // count) for bucket in range(count + 1)], dtype=np.uint64)
    places = codes.astype(np.intp)
    prime, shift = np.uint64(PRIME), np.uint64(BITS)
    slope, height = lines(seeds)
    height = _modulo(height + prime - starts[places], BITS)
    width = (starts[1:] - starts[:-1])[places]
    totals = np.zeros(len(where), dtype=np.int64)
    for first in range(0, len(seeds), _PIECE):
        objects = slice(first, first + _PIECE)
        a, b, below = slope[objects], height[objects], width[objects]
        step = max(1, _PIECE // max(len(a), 1))
        place, other = np.empty((2, step, len(a)), dtype=np.uint64)
        inside = np.empty((step, len(a)), dtype=np.bool_)
        for start in range(0, len(where), step):
            x = where[start : start + step, None]
            here, high, hits = place[: len(x)], other[: len(x)], inside[: len(x)]
            np.multiply(a, x, out=here)
            np.add(here, b, out=here)
            np.right_shift(here, shift, out=high)
            np.bitwise_and(here, prime, out=here)
            np.add(here, high, out=here)
            np.subtract(here, prime, out=high)
            np.minimum(here, high, out=here)  # a negative number wraps to a large one
            np.less(here, below, out=hits)
            if len(x) == 1:  # much faster than along an axis
                totals[start] += np.count_nonzero(hits)
            else:
                totals[start : start + len(x)] += np.count_nonzero(hits, axis=1)
    return totals
