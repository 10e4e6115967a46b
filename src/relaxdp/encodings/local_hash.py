"""Local hashing (OLH): a value becomes one of g buckets, by a hash whose seed is public and the object's own."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.stream import Words
from relaxdp.encodings import mersenne
from relaxdp.encodings.declared import DeclaredEncoding
from relaxdp.encodings.packed import PackedEncoding
from relaxdp.encodings.protocol import (
    Codes,
    Joint,
    Option,
    Packed,
    Parameters,
    Permanent,
    Truths,
    code_dtype,
    whole_bytes,
)  # fmt: skip
from relaxdp.encodings.registry import register
from relaxdp.errors import CountsError, EncodingError, ValuesError
from relaxdp.law.epsilon import Epsilon, as_epsilon, release_threshold
from relaxdp.law.level import retention
from relaxdp.law.support import Cover, Support

MOST_BUCKETS = 1 << 16
_SEED_BYTES = 8


def best_buckets(epsilon: Epsilon) -> int:
    """Return the number of buckets with the least error at this level: e^epsilon + 1, to the nearest whole number.

    It is fixed for the life of a path, so it is chosen for the last level that is planned.

    >>> best_buckets("0.1"), best_buckets(1), best_buckets(3)
    (2, 4, 21)
    """
    exact = min(as_epsilon(epsilon), Decimal(20))
    context = Context(prec=30, rounding=ROUND_HALF_EVEN)
    return max(2, min(int(context.to_integral_value(context.exp(exact) + 1)), MOST_BUCKETS))


@register
class LocalHashEncoding(DeclaredEncoding, PackedEncoding):
    """A report is a seed and a bucket. It supports every value that this seed hashes into that bucket.

    The seed is drawn from the object alone, so it tells nothing of the truth. Given the seed, the bucket is a
    categorical report with g values.
    """

    name = "local-hash"
    meaning = "a short hash, for very many answers"
    symbols = 1
    seeded = True
    joint: Joint = "independent"
    takes = (Option("buckets", "Into how many buckets values are hashed.", 2, MOST_BUCKETS, is_planned=True),)
    parameters = Parameters("the list of values, their order or the number of buckets", "same_values")

    def __init__(self, values: Sequence[Hashable], buckets: int) -> None:
        """Declare the values, in an order that is part of the path, and how many buckets there are."""
        super().__init__(values)
        if isinstance(buckets, bool) or not isinstance(buckets, int) or not 2 <= buckets <= MOST_BUCKETS:
            raise ValuesError(
                "the number of buckets must be a whole number from 2 to 65536, not {buckets!r}.",
                hint="Use the rounded number exp(epsilon) + 1 of the largest level that you plan, such as 4.",
                buckets=buckets,
            )
        if len(self.values) >= mersenne.PRIME:
            raise ValuesError("local hashing takes fewer than 2**31 - 1 values.", values=len(self.values))
        self.alphabet = buckets
        self._bucket_bytes = whole_bytes(buckets)
        self.report_width = _SEED_BYTES + self._bucket_bytes

    @classmethod
    def planned_options(cls, options: Mapping[str, Any], epsilon: Epsilon | None) -> dict[str, Any]:
        """Return the best number of buckets for the last epsilon, where none was given."""
        if "buckets" in options:
            return dict(options)
        if epsilon is None:
            raise EncodingError("local hashing needs a number of buckets, or the last epsilon that is planned.")
        return {**options, "buckets": best_buckets(epsilon)}

    @classmethod
    def options_in(cls, params: bytes) -> dict[str, Any]:
        """Return the number of buckets, which goes first."""
        return {"buckets": int.from_bytes(params[:8], "little")}

    @classmethod
    def planned_support(cls, values: int, epsilon: Decimal) -> tuple[Support, int]:
        """Return how the best number of buckets would do."""
        buckets = best_buckets(epsilon)
        keep = retention(release_threshold(epsilon, buckets))
        return _support(keep, buckets), _SEED_BYTES + whole_bytes(buckets)

    @property
    def params(self) -> bytes:
        """The number of buckets, the name of the hash, and the digest of the ordered values."""
        return struct.pack("<Q", self.alphabet) + length_prefixed(mersenne.NAME.encode()) + self.digest

    @property
    def options(self) -> dict[str, Any]:
        """The number of buckets."""
        return {"buckets": self.alphabet}

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of the bucket."""
        return release_threshold(epsilon, self.alphabet)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the bucket of the truth under the object's seed."""
        return mersenne.buckets(permanent.words("seed"), self._points.take(truths.index.astype(np.intp)), self.alphabet)

    def pack(self, codes: Codes, seeds: Words | None = None) -> Packed:
        """Return the seed and the bucket of each report, lowest bytes first."""
        assert seeds is not None  # noqa: S101 (every report of this encoding has one)
        packed = np.empty((len(codes), self.report_width), dtype=np.uint8)
        packed[:, :_SEED_BYTES] = np.ascontiguousarray(seeds, "<u8").view(np.uint8).reshape(-1, _SEED_BYTES)
        packed[:, _SEED_BYTES:] = codes.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : self._bucket_bytes]
        return packed

    def unpack(self, packed: Packed) -> tuple[Codes, Words]:
        """Return the buckets and seeds of reports."""
        codes = np.zeros((len(packed), 8), dtype=np.uint8)
        codes[:, : self._bucket_bytes] = packed[:, _SEED_BYTES:]
        bucket = codes.view("<u8")
        if len(packed) and int(bucket.max()) >= self.alphabet:
            row = int(np.argmax(bucket >= self.alphabet)) + 1
            raise CountsError("a report names a bucket that is not one of {alphabet}.", alphabet=self.alphabet, row=row)
        seeds = np.ascontiguousarray(packed[:, :_SEED_BYTES]).view("<u8")[:, 0].astype(np.uint64)
        return bucket.astype(code_dtype(self.alphabet)), seeds

    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which values each report's seed hashes into its bucket."""
        assert seeds is not None  # noqa: S101
        return np.asarray(mersenne.buckets(seeds[:, None], self._points, self.alphabet) == codes[:, :1])

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how many reports support each value."""
        assert seeds is not None  # noqa: S101
        return mersenne.count_supports(seeds, codes[:, 0], self._points, self.alphabet)

    def support(self, keep: Fraction) -> Support:
        """Return the chances over all seeds: 1/g for another value, and the kept truth's own."""
        return _support(keep, self.alphabet)

    def cover(self, keep: Fraction) -> Cover:
        """Return the cover of a bucket under the seeds that tell two values apart: all but 1/g, and a little."""
        return Cover.of_one_symbol(keep, self.alphabet, 1 - Fraction(1, self.alphabet) - mersenne.UNEVEN)

    def is_report(self, packed: bytes) -> bool:
        """Tell whether the bucket is one."""
        return int.from_bytes(packed[_SEED_BYTES:], "little") < self.alphabet

    def kept_part(self, packed: bytes) -> bytes:
        """Return the seed."""
        return packed[:_SEED_BYTES]

    @cached_property
    def _points(self) -> Words:
        return mersenne.points(np.arange(len(self.values), dtype=np.uint64))


def _support(keep: Fraction, buckets: int) -> Support:
    return Support(noise=Fraction(1, buckets), gain=keep * (1 - Fraction(1, buckets)))
