"""Unary: one bit for each declared value. Symmetric (SUE, basic RAPPOR) and optimised (OUE)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from relaxdp.draw.stream import Words
from relaxdp.encodings.declared import DeclaredEncoding
from relaxdp.encodings.packed import BitEncoding
from relaxdp.encodings.protocol import Codes, Joint, Permanent, Truths
from relaxdp.encodings.registry import register
from relaxdp.law.epsilon import release_threshold, shared_threshold
from relaxdp.law.level import retention
from relaxdp.law.support import Cover, Support


class UnaryEncoding(DeclaredEncoding, BitEncoding):
    """A report is a row of bits, one for each declared value; each is blurred, relaxed and counted on its own."""

    alphabet = 2
    joint: Joint = "independent"

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values, in an order that is part of the path. They are public."""
        super().__init__(values)
        self.symbols = len(self.values)
        self.report_width = -(-self.symbols // 8)

    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return the bit of one value."""
        return np.where(truths.index == symbol, self._own_bits(truths, permanent), np.uint64(0))

    def symbol_truths(self, truths: Truths, permanent: Permanent) -> Codes:
        """Return all bits: at most that of the truth is set."""
        bits = np.zeros((len(truths), self.symbols), dtype=np.uint8)
        bits[np.arange(len(truths)), truths.index.astype(np.intp)] = self._own_bits(truths, permanent)
        return bits

    @staticmethod
    @abstractmethod
    def bit_support(keep: Fraction) -> Support:
        """Return the chances of a bit."""

    def support(self, keep: Fraction) -> Support:
        """Return the chances of a bit, which is how a report supports a value."""
        return self.bit_support(keep)

    def distance(self, keep: Fraction) -> Fraction:
        """Return the distance of the two bits in which two truths differ: all of it is in one of them set alone."""
        return self.bit_support(keep).gain

    def cover(self, keep: Fraction) -> Cover:
        """Return how often one of two bits is set alone, and how often none is. That both are tells nothing."""
        bit = self.bit_support(keep)
        return Cover(
            own=bit.hit * (1 - bit.noise), clone=(1 - bit.hit) * bit.noise, neither=(1 - bit.hit) * (1 - bit.noise)
        )

    def _own_bits(self, truths: Truths, permanent: Permanent) -> Words:
        """Return what the bit of each object's own truth is before noise."""
        return np.ones(len(truths), dtype=np.uint64)


@register
class SymmetricUnaryEncoding(UnaryEncoding):
    """Every bit is a randomized response at epsilon / 2, because two truths differ in two bits."""

    name = "unary-symmetric"
    meaning = "a bit for each answer, all alike"

    @classmethod
    def planned_support(cls, values: int, epsilon: Decimal) -> tuple[Support, int]:
        """Return how so many bits would do."""
        return cls.bit_support(retention(shared_threshold(epsilon, 2, parts=2))), -(-values // 8)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of each bit at half of epsilon."""
        return shared_threshold(epsilon, 2, parts=2)

    @staticmethod
    def bit_support(keep: Fraction) -> Support:
        """Return the chances of a bit."""
        return Support.of_one_symbol(keep, 2)


@register
class OptimisedUnaryEncoding(UnaryEncoding):
    """The bit of the truth is first ANDed with a fair coin that is kept for good; every bit is blurred at epsilon.

    With the coin a one is reported as a one half of the time whatever the noise, so that it gives away nothing that the
    zeros do not: the odds of a whole report are those of a single bit, and the zeros may be as clear as epsilon allows.

    Claim: epsilon is reached and not exceeded at every level and by all of them together;
    tests/exact/encodings/test_encodings.py.
    """

    name = "unary-optimised"
    meaning = "a bit for each answer, for many answers"

    @classmethod
    def planned_support(cls, values: int, epsilon: Decimal) -> tuple[Support, int]:
        """Return how so many bits would do."""
        return cls.bit_support(retention(release_threshold(epsilon, 2))), -(-values // 8)

    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of each bit at epsilon."""
        return release_threshold(epsilon, 2)

    @staticmethod
    def bit_support(keep: Fraction) -> Support:
        """Return the chances of a bit: 1/2 for the truth's, (1 - keep) / 2 for the others'."""
        return Support(noise=(1 - keep) / 2, gain=keep / 2)

    def _own_bits(self, truths: Truths, permanent: Permanent) -> Words:
        return np.asarray(permanent.words("coin", truths.index) & np.uint64(1), dtype=np.uint64)
