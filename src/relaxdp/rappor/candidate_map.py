"""Candidate maps: which bits each candidate word sets in each cohort, checked against the parameters."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.bloom import BloomShape
from relaxdp.rappor.parameters import MAX_CANDIDATES, _rows

_REMAKE_MAP = "Make the map again: `relaxdp rappor map --params params.csv`."
_WRITE_PARAMS = "Write the parameters with `relaxdp rappor params`."
_FEWER = "Remove candidates that are unlikely."


Bits = NDArray[np.int64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class CandidateMap:
    """Words and their bits, as an array of shape (words, cohorts, hashes). Candidates are public."""

    shape: BloomShape
    words: Sequence[str]
    bits: Bits

    def __post_init__(self) -> None:
        wanted = (len(self.words), self.shape.cohorts, self.shape.hashes)
        if self.bits.shape != wanted:
            raise RapporError(
                "The map was made for other parameters. It does not have h bits in every cohort for each word.",
                hint=_REMAKE_MAP,
            )
        if not self.words:
            raise RapporError(
                "The map has no candidates. Only candidates can be found.",
                hint="Make a map from a file with one word per line.",
            )
        seen: set[str] = set()
        for word in self.words:
            if word in seen:
                raise RapporError("The candidate {word!r} is listed twice.", hint="Remove one of the two.", word=word)
            seen.add(word)

    @classmethod
    def from_words(cls, words: Sequence[str], shape: BloomShape) -> CandidateMap:
        """Return the map of words that devices hash with the parameters `shape`.

        >>> found = CandidateMap.from_words(["hello", "world"], BloomShape(bits=128, hashes=2, cohorts=64))
        >>> found.bits[0, 5].tolist()
        [96, 14]
        """
        if shape.is_boolean:
            raise RapporError(
                "The reports have one bit (k = 1), which is a boolean. It is decoded without a map.",
                hint="Leave out the map.",
            )
        if len(words) > MAX_CANDIDATES:
            raise RapporError(
                "There are {words:,} candidates. The maximum is {most:,}.",
                hint=_FEWER,
                words=len(words),
                most=MAX_CANDIDATES,
            )
        cohorts = range(shape.cohorts)
        bits = [[shape.compute_bits(word, cohort) for cohort in cohorts] for word in words]
        return cls(shape, list(words), np.array(bits, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes))

    @cached_property
    def is_hashed(self) -> bool:
        """Whether the bits are those that the parameters' own hash gives to the words."""
        everywhere = np.arange(self.shape.cohorts)
        theirs = CandidateMap.from_words(self.words, self.shape).design(everywhere)
        return bool((self.design(everywhere) != theirs).nnz == 0)  # in whatever order a map names the bits of a cohort

    def check(self) -> None:
        """Reject a map whose words hash to other bits: it would find words that no device has."""
        if not self.is_hashed:
            raise RapporError(
                "The map was made for other parameters than {shape}, or by another hash function.",
                hint=_REMAKE_MAP,
                shape=self.shape,
            )

    def design(self, cohorts: NDArray[np.intp]) -> Any:
        """Return the sparse matrix of zeros and ones of (cohort, bit) by word, for some of the cohorts."""
        rows = np.arange(len(cohorts))[None, :, None] * self.shape.bits + self.bits[:, cohorts]
        rows = rows.reshape(len(self.words), -1)
        columns = np.repeat(np.arange(len(self.words)), rows.shape[1])
        size = (len(cohorts) * self.shape.bits, len(self.words))
        matrix = scipy.sparse.csc_matrix((np.ones(rows.size), (rows.ravel(), columns)), shape=size)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0  # two hashes that meet in one bit set it once
        return matrix


def read_map(path: Path, shape: BloomShape) -> CandidateMap:
    """Read a candidate map: a word, then its bits in all cohorts, each cohort * k + bit + 1.

    Each cohort has h bits. Where two hashes are equal, some of Google's tools write one bit for both, and leave a
    field at the end of the row empty. So the cohort of a bit follows from its number, not from its position.
    """
    words: dict[str, int] = {}
    rows, entries, widest = [], shape.cohorts * shape.hashes, (0, 0)
    for line, (word, *fields) in _rows(path, "map"):
        where = f"Line {line:,} of {str(path)!r}: "
        width = len(fields) if any(fields[entries:]) else min(len(fields), entries)
        if width > entries:
            raise _make_bits_error(where, width, shape)
        widest = max(widest, (width, -line))
        rows.append(_map_row([field for field in fields if field.strip()], shape, where))
        if word in words:
            raise RapporError(
                "{where}the candidate {word!r} is listed twice.",
                hint="Remove one of the two lines.",
                where=where,
                word=word,
            )
        words[word] = line
        if len(words) > MAX_CANDIDATES:
            raise RapporError(
                "The map {path!r} has more than {most:,} candidates, the maximum.",
                hint=_FEWER,
                path=str(path),
                most=MAX_CANDIDATES,
            )
    if words and widest[0] < entries:
        raise _make_bits_error(f"Line {-widest[1]:,} of {str(path)!r}: ", widest[0], shape)
    bits = np.array(rows, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes)
    return CandidateMap(shape, list(words), bits)


def _make_bits_error(where: str, found: int, shape: BloomShape) -> RapporError:
    return RapporError(
        "{where}the word has {found:,} bits, and the parameters ({shape}) need {wanted:,}. The "
        "map was made for other parameters.",
        hint=_REMAKE_MAP,
        where=where,
        found=found,
        shape=shape,
        wanted=shape.cohorts * shape.hashes,
    )


def _map_row(fields: Sequence[str], shape: BloomShape, where: str) -> Integers:
    """Return the bits of one word as (cohorts, hashes); where hashes met, their bit stands for each of them."""
    try:
        numbers = np.array(fields, dtype=np.int64) - 1
    except (ValueError, OverflowError):
        raise RapporError("{where}a bit is not a whole number.", hint=_REMAKE_MAP, where=where) from None
    if ((numbers < 0) | (numbers >= shape.cohorts * shape.bits)).any():
        raise RapporError(
            "{where}a bit is outside of all cohorts. The map was made for other parameters than {shape}.",
            hint=_REMAKE_MAP,
            where=where,
            shape=shape,
        )
    cohorts = numbers // shape.bits
    found = np.bincount(cohorts, minlength=shape.cohorts)
    wrong = np.flatnonzero((found < 1) | (found > shape.hashes))
    if len(wrong):
        cohort = int(wrong[0])
        raise RapporError(
            "{where}the word has {found:,} bits in cohort {cohort}, instead of 1 to {hashes}. The "
            "map was made for other parameters than {shape}.",
            hint=_REMAKE_MAP,
            where=where,
            found=found[cohort],
            cohort=cohort,
            hashes=shape.hashes,
            shape=shape,
        )
    ordered = numbers[np.argsort(cohorts, kind="stable")] % shape.bits
    starts = np.cumsum(found) - found
    return np.asarray(ordered[starts[:, None] + np.minimum(np.arange(shape.hashes), found[:, None] - 1)])


def map_rows(words: Iterable[str], shape: BloomShape) -> Iterator[str]:
    """Return the rows of a candidate map, one at a time: it may be larger than memory."""
    if shape.is_boolean:
        raise RapporError(
            "The parameters have one bit (k = 1), which is a boolean. It is decoded without a map.",
            hint="Leave out the map, or choose k = 2 or more for words.",
        )
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise RapporError("The candidate {word!r} is listed twice.", hint="Remove one of the two.", word=word)
        seen.add(word)
        bits = [
            cohort * shape.bits + bit + 1 for cohort in range(shape.cohorts) for bit in shape.compute_bits(word, cohort)
        ]
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([word, *bits])
        yield line.getvalue()
