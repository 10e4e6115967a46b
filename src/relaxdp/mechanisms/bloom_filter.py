"""Bloom filters with cohorts, bit for bit those of Google's RAPPOR, and the levels of their bits.

All three say the same. Every rounding goes to the private side: epsilon down, noise up.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from hashlib import md5, sha512

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import EpsilonError, RapporError
from relaxdp.sampling.canonical_encoding import prefix_length
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon, shared_threshold
from relaxdp.theory.level import log_up, odds, retention
from relaxdp.theory.randomized_response import Support

MAX_HASHES = 16
MAX_BITS = 1 << 16
MAX_COHORTS = 1 << 16
ALL_COHORTS = (1 << 32) - 1
"""Stands where a cohort's number would, for what belongs to no single cohort: the draw of the cohort, the ledger."""
_MAX_BYTE_BITS = 256


@dataclass(frozen=True, slots=True)
class BloomShape:
    """How many bits, hashes and cohorts a Bloom filter has: k, h and m of RAPPOR. All three are public.

    One bit is a boolean: it is the answer itself, false or true, and nothing is hashed.

    >>> BloomShape(bits=128, hashes=2, cohorts=64).compute_bits("hello", cohort=5)
    (96, 14)
    """

    bits: int
    hashes: int
    cohorts: int

    def __post_init__(self) -> None:
        _check("bits", "k", self.bits, MAX_BITS)
        _check("hashes", "h", self.hashes, MAX_HASHES)
        _check("cohorts", "m", self.cohorts, MAX_COHORTS)
        if self.bits == 1 and self.hashes != 1:
            raise RapporError(
                "One bit (k = 1) has one hash function (h = 1), not {hashes}.",
                hint="Set h to 1, or k to 2 or more.",
                hashes=self.hashes,
            )

    @property
    def is_boolean(self) -> bool:
        """Whether a report is one bit that is the answer itself."""
        return self.bits == 1

    @property
    def hash_name(self) -> str:
        """How words are hashed: it follows from k alone, so that devices, maps and servers cannot disagree.

        Up to 256 bits it is Google's: MD5, one byte of the digest for each hash. A byte cannot reach more bits than
        that, so beyond it is SHA-512, four bytes for each hash.
        """
        if self.is_boolean:
            return "boolean"
        return "md5-bytes" if self.bits <= _MAX_BYTE_BITS else "sha512-words"

    @property
    def differing(self) -> int:
        """In how many bits two words can differ at most: 2 h, or all of them where there are fewer.

        The guarantee of a whole report is that many times the guarantee of a bit.
        """
        return min(2 * self.hashes, self.bits)

    def compute_bits(self, word: str | bytes, cohort: int) -> tuple[int, ...]:
        """Return the bits that a word sets: one for each hash, perhaps the same bit twice.

        Claim: as Google's client computes them; vectors made with hashlib by hand in
        tests/unit/rappor/test_bloom.py.
        """
        self.check_cohort(cohort)
        data = word.encode("utf-8") if isinstance(word, str) else word
        if self.is_boolean:
            return (0,) if data == b"true" else ()
        message = struct.pack(">I", cohort) + data
        if self.bits <= _MAX_BYTE_BITS:
            digest = md5(message, usedforsecurity=False).digest()
            return tuple(byte % self.bits for byte in digest[: self.hashes])
        words = struct.unpack(">16I", sha512(message).digest())
        return tuple(number % self.bits for number in words[: self.hashes])

    def chances(self) -> NDArray[np.float64]:
        """Return the probability that an unknown word sets each of the bits."""
        if self.is_boolean:
            return np.full(1, 0.5)
        reach = _MAX_BYTE_BITS if self.bits <= _MAX_BYTE_BITS else self.bits  # with 2^32 the rest does not show
        each = np.bincount(np.arange(reach) % self.bits, minlength=self.bits) / reach
        return np.asarray(1 - (1 - each) ** self.hashes)

    def params(self, cohort: int = ALL_COHORTS) -> bytes:
        """Return the bytes that the stream binds into the key: another cohort or another hash is another path."""
        numbers = struct.pack("<IIII", self.bits, self.hashes, self.cohorts, cohort)
        return numbers + prefix_length(self.hash_name.encode("ascii"))

    def check_cohort(self, cohort: int) -> None:
        """Reject a cohort that does not exist."""
        if not 0 <= cohort < self.cohorts:
            raise RapporError(
                "The cohort must be a whole number from 0 to {last}, not {cohort}.",
                hint="Pass the parameters with which the reports were made.",
                last=self.cohorts - 1,
                cohort=cohort,
                cohorts=self.cohorts,
            )

    def __str__(self) -> str:
        return f"k = {self.bits}, h = {self.hashes}, m = {self.cohorts}"


def _check(what: str, letter: str, number: int, most: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise RapporError(
            "The number of {parameter} ({letter}) must be a whole number from 1 to {most:,}, not {number}.",
            hint="Choose {letter} in this range.",
            letter=letter,
            most=most,
            number=number,
            parameter=what,
        )


DIGITS = 12
"""How many significant digits a converted level has."""
_PRECISION = MAX_DIGITS
_DOWN = Context(prec=_PRECISION, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def bit_epsilon(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the epsilon of one bit of a report that has `epsilon` as a whole.

    >>> bit_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "4.4")
    Decimal('1.1')
    """
    return as_epsilon(_DOWN.divide(as_epsilon(epsilon), Decimal(shape.differing)))


def whole_epsilon(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the epsilon of a whole report whose bits have `epsilon` each.

    >>> whole_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "1.1")
    Decimal('4.4')
    """
    return as_epsilon(_DOWN.multiply(as_epsilon(epsilon), Decimal(shape.differing)))


def bloom_threshold(shape: BloomShape, epsilon: Epsilon) -> int:
    """Return the threshold of every bit at which a whole report is epsilon-private, rounded down.

    Two words differ in at most 2 h bits, and a bit at epsilon / (2 h) cannot tell more than that.

    Claim: reached and not exceeded; tests/exact/rappor/test_bloom.py.
    """
    return shared_threshold(epsilon, 2, parts=shape.differing)


def compute_noise(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return RAPPOR's f of a level, 1 - tanh(eps_bit / 2), rounded up in its twelfth digit.

    >>> compute_noise(BloomShape(bits=128, hashes=2, cohorts=64), "4.394449154672")
    Decimal('0.500000000001')
    """
    noise = 1 - retention(bloom_threshold(shape, epsilon))
    return Context(prec=DIGITS, rounding=ROUND_CEILING).divide(Decimal(noise.numerator), Decimal(noise.denominator))


def compute_epsilon(shape: BloomShape, noise: Decimal | Fraction | str) -> Decimal:
    """Return the level whose noise is at least RAPPOR's f: 2 h ln((2 - f) / f), rounded down in its twelfth digit.

    >>> compute_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "0.5")
    Decimal('4.39444915467')
    """
    ratio = _ratio(noise)
    logarithm = _DOWN.ln(_DOWN.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    below = _DOWN.multiply(_DOWN.next_minus(_DOWN.next_minus(logarithm)), Decimal(shape.differing))
    return as_epsilon(Context(prec=DIGITS, rounding=ROUND_FLOOR).plus(below))


def compute_guarantee(shape: BloomShape, noise: Decimal | Fraction | str) -> Decimal:
    """Return what a permanent response with noise f guarantees: 2 h ln((2 - f) / f), rounded up.

    >>> round(compute_guarantee(BloomShape(bits=128, hashes=2, cohorts=64), "0.5"), 4)
    Decimal('4.3944')
    """
    return log_up(_ratio(noise) ** shape.differing)


def realised_guarantee(shape: BloomShape, threshold: int) -> Decimal:
    """Return what a whole report at a threshold really guarantees, rounded up."""
    return log_up(odds(retention(threshold), 2) ** shape.differing)


def bit_support(threshold: int) -> Support:
    """Return with which probability a bit of a report is 1, given its truth."""
    return Support.from_one_symbol(retention(threshold), 2)


def _ratio(noise: Decimal | Fraction | str) -> Fraction:
    """Return the odds (2 - f) / f of one bit."""
    exact = Fraction(noise)
    if not 0 < exact <= 1:
        raise RapporError(
            "The permanent noise f must be greater than 0 and at most 1, not {noise}.",
            hint="Choose f in this range, such as 0.5.",
            noise=noise,
        )
    if exact == 1:
        raise EpsilonError(
            "A permanent noise of f = 1 has no epsilon. Every report would be pure noise.",
            hint="Choose an f below 1, such as 0.5.",
        )
    return (2 - exact) / exact
