"""Bloom filters with cohorts, bit for bit those of Google's RAPPOR: which bits a word sets in which cohort."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import md5, sha512

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.canonical import length_prefixed
from relaxdp.errors import RapporError

MOST_HASHES = 16
MOST_BITS = 1 << 16
MOST_COHORTS = 1 << 16
ALL_COHORTS = (1 << 32) - 1
"""Stands where a cohort's number would, for what belongs to no single cohort: the draw of the cohort, the ledger."""
WORDS_OF_A_BOOLEAN = ("false", "true")
_MOST_BYTE_BITS = 256


@dataclass(frozen=True, slots=True)
class BloomShape:
    """How many bits, hashes and cohorts a Bloom filter has: k, h and m of RAPPOR. All three are public.

    One bit is a boolean: it is the answer itself, false or true, and nothing is hashed.

    >>> BloomShape(bits=128, hashes=2, cohorts=64).bits_of("hello", cohort=5)
    (96, 14)
    """

    bits: int
    hashes: int
    cohorts: int

    def __post_init__(self) -> None:
        _check("bits", "k", self.bits, MOST_BITS)
        _check("hashes", "h", self.hashes, MOST_HASHES)
        _check("cohorts", "m", self.cohorts, MOST_COHORTS)
        if self.bits == 1 and self.hashes != 1:
            raise RapporError("one bit is a boolean and has one hash (h = 1), not {hashes}.", hashes=self.hashes)

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
        return "md5-bytes" if self.bits <= _MOST_BYTE_BITS else "sha512-words"

    @property
    def differing(self) -> int:
        """In how many bits two words can differ at most: 2 h, or all of them where there are fewer.

        The guarantee of a whole report is that many times the guarantee of a bit.
        """
        return min(2 * self.hashes, self.bits)

    def bits_of(self, word: str | bytes, cohort: int) -> tuple[int, ...]:
        """Return the bits that a word sets: one for each hash, perhaps the same bit twice.

        Claim: as Google's client computes them; vectors made with hashlib by hand in tests/unit/test_bloom.py.
        """
        self.check_cohort(cohort)
        data = word.encode("utf-8") if isinstance(word, str) else word
        if self.is_boolean:
            return (0,) if data == b"true" else ()
        message = struct.pack(">I", cohort) + data
        if self.bits <= _MOST_BYTE_BITS:
            digest = md5(message, usedforsecurity=False).digest()
            return tuple(byte % self.bits for byte in digest[: self.hashes])
        words = struct.unpack(">16I", sha512(message).digest())
        return tuple(number % self.bits for number in words[: self.hashes])

    def chances(self) -> NDArray[np.float64]:
        """Return with which probability a word that nobody knows sets each of the bits."""
        if self.is_boolean:
            return np.full(1, 0.5)
        reach = _MOST_BYTE_BITS if self.bits <= _MOST_BYTE_BITS else self.bits  # with 2^32 the rest does not show
        each = np.bincount(np.arange(reach) % self.bits, minlength=self.bits) / reach
        return np.asarray(1 - (1 - each) ** self.hashes)

    def params(self, cohort: int = ALL_COHORTS) -> bytes:
        """Return the bytes that the stream binds into the key: another cohort or another hash is another path."""
        numbers = struct.pack("<IIII", self.bits, self.hashes, self.cohorts, cohort)
        return numbers + length_prefixed(self.hash_name.encode("ascii"))

    def check_cohort(self, cohort: int) -> None:
        """Refuse a cohort that there is not."""
        if not 0 <= cohort < self.cohorts:
            raise RapporError(
                "cohorts go from 0 to {last}, and {cohort} is none of them.",
                last=self.cohorts - 1,
                cohort=cohort,
                cohorts=self.cohorts,
            )

    def __str__(self) -> str:
        return f"k = {self.bits}, h = {self.hashes}, m = {self.cohorts}"


def _check(what: str, letter: str, number: int, most: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise RapporError(
            "the number of {parameter} ({letter}) must be a whole number from 1 to {most:,}, not {number}.",
            letter=letter,
            most=most,
            number=number,
            parameter=what,
        )
