"""Local hashing (OLH): a value becomes one of g buckets, by a hash whose public seed differs between individuals.

The hash is a line over the integers modulo the prime 2^31 - 1, cut into buckets.

    seed   64 bits;  a = its lowest 31 bits mod p,  b = bits 32 .. 62 mod p,  p = 2^31 - 1
    point  of value v:  (v + 506952122)^5 mod p
    bucket of value v:  floor(((a * point + b) mod p) * g / p)

Over all (a, b), two different points fall on every pair of places equally often, so that two values share a bucket for
1/g of all seeds; because 31 bits name the residue 0 twice, it is off by less than 2^-29. The fifth power is one-to-one
(5 does not divide p - 1). Pairs do not need it; it keeps three neighbours from standing in a row, which would make
their buckets move together. Reports are counted with one multiplication and a few sums for each value.

Claim: exact for every pair of values and every seed of a small prime; tests/exact/mechanisms/test_hash_lines.py.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import MechanismError, ValuesError
from relaxdp.mechanisms.base import Joint, KeptRandomness, TrueValues, check_option
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.report_arrays import Codes, get_code_dtype
from relaxdp.sampling.keyed_stream import Words
from relaxdp.sampling.keys import add_length_prefix
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.randomized_response import SupportProbabilities

MAX_BUCKETS = 1 << 16
HASH_NAME = "mersenne31"
BITS = 31
PRIME = (1 << BITS) - 1
UNEVEN = Fraction(1, 1 << 29)
"""More than the share of seeds that put two values into one bucket differs from one in so many buckets."""
POWER = 5
OFFSET = 506952122  # 2^32 divided by the golden ratio, modulo the prime


def choose_bucket_count(epsilon: Epsilon) -> int:
    """Return the number of buckets with the least error at this level: e^epsilon + 1, to the nearest whole number.

    It is fixed for the life of a path, so it is chosen for the last level that is planned.

    >>> choose_bucket_count("0.1"), choose_bucket_count(1), choose_bucket_count(3)
    (2, 4, 21)
    """
    exact = min(as_epsilon(epsilon), Decimal(20))
    context = Context(prec=30, rounding=ROUND_HALF_EVEN)
    return max(2, min(int(context.to_integral_value(context.exp(exact) + 1)), MAX_BUCKETS))


class LocalHash(DeclaredMechanism):
    """Optimised local hashing (OLH): very many declared values, as a short report with a public seed and a bucket.

    A report supports every value that its seed hashes into its bucket. The seed is drawn from the individual alone, so
    it reveals nothing about the true value. Given the seed, the bucket is a randomized response over `buckets` values.

    Args:
        values: The declared values, as in `Categorical`.
        buckets: The number of buckets. It is part of every path, so it is chosen once.
        epsilon: Instead of `buckets`: the last epsilon that is planned, for which the best number is taken.

    Raises:
        ValuesError: The values are too few, repeated, or of different kinds.
        MechanismError: Both or none of `buckets` and `epsilon` are given.

    Example:
        >>> LocalHash(["flu", "covid", "none"], epsilon=1)
        LocalHash(['flu', 'covid', 'none'], buckets=4)
    """

    name = "local-hash"
    seeded = True
    joint: Joint = "independent"

    def __init__(
        self, values: Sequence[Hashable], *, buckets: int | None = None, epsilon: Epsilon | None = None
    ) -> None:
        super().__init__(values)
        if (buckets is None) == (epsilon is None):
            raise MechanismError(
                "Local hashing needs either `buckets` or `epsilon`, the largest epsilon that you plan; got {given}.",
                hint="Pass epsilon=, such as epsilon=2, or buckets=, such as buckets=8.",
                given="neither" if epsilon is None else "both",
            )
        if epsilon is not None:
            buckets = choose_bucket_count(epsilon)
        assert buckets is not None  # noqa: S101 (checked above)
        check_option("buckets", buckets, 2, MAX_BUCKETS)
        if len(self.values) >= PRIME:
            raise ValuesError(
                "Local hashing needs fewer than 2**31 - 1 values, not {values:,}.",
                hint="Combine values, or use RAPPOR for words that are not declared: `relaxdp rappor encode`.",
                values=len(self.values),
            )
        self.alphabet = self.buckets = buckets

    @property
    def params(self) -> bytes:
        """The number of buckets, the name of the hash, and the digest of the ordered values."""
        return struct.pack("<Q", self.alphabet) + add_length_prefix(HASH_NAME.encode()) + self.digest

    def compute_true_symbols(self, true_values: TrueValues, randomness: KeptRandomness) -> Codes:
        points = self._value_hash_points.take(true_values.index.astype(np.intp))
        found = compute_hash_buckets(randomness.draw_words("seed"), points, self.alphabet)
        return found.astype(get_code_dtype(self.alphabet))[:, None]

    def find_supported_labels(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        assert seeds is not None  # noqa: S101 (every report has one)
        # Moving a line down by the start of the reported bucket turns "is in that bucket" into "is below its width".
        starts, stops = (self._bucket_offsets.take(codes[:, :1].astype(np.intp) + step) for step in (0, 1))
        slope, height = compute_hash_lines(seeds[:, None])
        height = _reduce_modulo_in_place(height + np.uint64(PRIME) - starts, BITS)
        order: Any = "C" if len(self.values) > len(seeds) else "F"  # the longer axis is the inner one
        places = np.multiply(slope, self._value_hash_points, order=order)
        places += height
        return np.asarray(_reduce_modulo_in_place(places, BITS) < stops - starts)

    def compute_noise_and_gain(self, retention: Fraction) -> SupportProbabilities:
        """Return the noise, 1/g over all seeds, and the gain by the kept true value."""
        other = Fraction(1, self.alphabet)
        return SupportProbabilities(noise=other, gain=retention * (1 - other))

    @cached_property
    def _value_hash_points(self) -> Words:
        return compute_hash_points(np.arange(len(self.values), dtype=np.uint64))

    @cached_property
    def _bucket_offsets(self) -> Words:
        """The first place of each bucket, and the end of the last one."""
        ends = -(-np.arange(self.buckets + 1, dtype=np.int64) * PRIME // self.buckets)
        return ends.astype(np.uint64)

    def _format_repr_options(self) -> str:
        return f", buckets={self.alphabet}"


def compute_hash_points(value_indices: Words, *, bits: int = BITS) -> Words:
    """Return the point at which each value is hashed, from its index, which is below the prime."""
    start = _reduce_modulo_in_place(value_indices.astype(np.uint64) + np.uint64(OFFSET % ((1 << bits) - 1)), bits)
    result = start
    for _ in range(POWER - 1):
        result = _reduce_modulo_in_place(result * start, bits)
    return result


def compute_hash_lines(seeds: Words, *, bits: int = BITS) -> tuple[Words, Words]:
    """Return the line of each seed: its slope and its height."""
    mask = np.uint64((1 << bits) - 1)
    return _reduce_modulo_in_place(seeds & mask, bits), _reduce_modulo_in_place((seeds >> np.uint64(32)) & mask, bits)


def compute_hash_buckets(seeds: Words, points: Words, n_buckets: int, *, bits: int = BITS) -> Words:
    """Return the bucket of a point under a seed; both arrays may be broadcast against each other."""
    slope, height = compute_hash_lines(seeds, bits=bits)
    place = _reduce_modulo_in_place(slope * points + height, bits)
    return np.asarray(place * np.uint64(n_buckets) // np.uint64((1 << bits) - 1), dtype=np.uint64)


def _reduce_modulo_in_place(numbers: Words, bits: int) -> Words:
    """Reduce numbers, at most a product of two residues plus a third, in place modulo the prime of so many bits.

    The high bits are added to the low ones. What is left is below twice the prime; a negative number wraps to a large
    one, so the smaller of two is the residue. That is several times faster than NumPy's remainder.
    """
    prime = np.uint64((1 << bits) - 1)
    high = numbers >> np.uint64(bits)
    numbers &= prime
    numbers += high
    np.subtract(numbers, prime, out=high)
    np.minimum(numbers, high, out=numbers)
    return numbers
