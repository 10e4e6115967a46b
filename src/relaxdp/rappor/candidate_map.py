"""Candidate maps: which bits each candidate word sets in each cohort, in memory and as CSV files."""

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
from relaxdp.rappor.parameters import MAX_CANDIDATES, read_csv_rows

REMAKE_MAP = "Make the map again: `relaxdp rappor map words.txt --params params.csv > map.csv`."
_FEWER_CANDIDATES = "Remove words that are unlikely from the list of candidates."

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class CandidateMap:
    """Words and their bits, as an array of shape (words, cohorts, hashes). Candidates are public."""

    shape: BloomShape
    words: Sequence[str]
    bits: Integers

    def __post_init__(self) -> None:
        expected = (len(self.words), self.shape.cohorts, self.shape.hashes)
        if self.bits.shape != expected:
            raise RapporError(
                "The candidate map was made for other parameters. Its array of bits has the shape {found}, and "
                "{shape} needs {expected} (words, cohorts, hashes).",
                hint="Make the map with CandidateMap.from_words(words, shape).",
                found=self.bits.shape,
                expected=expected,
                shape=self.shape,
            )
        if not self.words:
            raise RapporError(
                "The candidate map has no words. Only words of the map can be found in reports.",
                hint="Add candidate words to the file from which the map is made, one per line.",
            )
        _require_distinct(self.words)

    @classmethod
    def from_words(cls, words: Sequence[str], shape: BloomShape) -> CandidateMap:
        """Return the map of words that devices hash with the parameters `shape`.

        >>> found = CandidateMap.from_words(["hello", "world"], BloomShape(bits=128, hashes=2, cohorts=64))
        >>> found.bits[0, 5].tolist()
        [96, 14]
        """
        require_word_shape(shape)
        if len(words) > MAX_CANDIDATES:
            raise RapporError(
                "There are {words:,} candidate words. The maximum is {maximum:,}.",
                hint=_FEWER_CANDIDATES,
                words=len(words),
                maximum=MAX_CANDIDATES,
            )
        cohorts = range(shape.cohorts)
        bits = [[shape.compute_bits(word, cohort) for cohort in cohorts] for word in words]
        return cls(shape, list(words), np.array(bits, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes))

    @cached_property
    def has_expected_bits(self) -> bool:
        """Whether the bits are those to which the hash function of the parameters maps the words."""
        cohorts = np.arange(self.shape.cohorts)
        expected = CandidateMap.from_words(self.words, self.shape).make_design_matrix(cohorts)
        # The order of the bits of a cohort does not matter, so the matrices are compared.
        return bool((self.make_design_matrix(cohorts) != expected).nnz == 0)

    def make_design_matrix(self, cohorts: NDArray[np.intp]) -> Any:
        """Return a sparse matrix of zeros and ones: which (cohort, bit) each word sets, for some of the cohorts."""
        rows = np.arange(len(cohorts))[None, :, None] * self.shape.bits + self.bits[:, cohorts]
        rows = rows.reshape(len(self.words), -1)
        columns = np.repeat(np.arange(len(self.words)), rows.shape[1])
        size = (len(cohorts) * self.shape.bits, len(self.words))
        matrix = scipy.sparse.csc_matrix((np.ones(rows.size), (rows.ravel(), columns)), shape=size)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0  # Two hashes with the same bit set it once.
        return matrix


def require_word_shape(shape: BloomShape) -> None:
    """Reject parameters of one bit, which encode a boolean instead of words."""
    if shape.is_boolean:
        raise RapporError(
            "The parameters have one bit (k = 1), so reports are booleans. Booleans are decoded without a "
            "candidate map.",
            hint="Leave out the map, or choose k = 2 or more to report words.",
        )


def _require_distinct(words: Iterable[str]) -> None:
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise RapporError(
                "The candidate word {word!r} is listed twice.",
                hint="Remove one of the two from the list of candidates.",
                word=word,
            )
        seen.add(word)


def read_candidate_map(path: Path, shape: BloomShape) -> CandidateMap:
    """Read a candidate map: a word, then its bits in all cohorts, each cohort * k + bit + 1.

    Each cohort has h bits. Where two hashes are equal, some of Google's tools write one bit for both, and leave a
    field at the end of the row empty. So the cohort of a bit follows from its number, not from its position.
    """
    words: dict[str, int] = {}
    rows, expected_width, widest = [], shape.cohorts * shape.hashes, (0, 0)
    for line, (word, *fields) in read_csv_rows(path, "candidate map"):
        location = f"Line {line:,} of {str(path)!r}: "
        width = len(fields) if any(fields[expected_width:]) else min(len(fields), expected_width)
        if width > expected_width:
            raise _make_bit_count_error(location, width, shape)
        widest = max(widest, (width, -line))
        rows.append(_parse_map_row([field for field in fields if field.strip()], shape, location))
        if word in words:
            raise RapporError(
                "{location}the candidate word {word!r} is listed twice.",
                hint="Remove one of the two lines.",
                location=location,
                word=word,
            )
        words[word] = line
        if len(words) > MAX_CANDIDATES:
            raise RapporError(
                "The candidate map {path!r} has more than {maximum:,} words, the maximum.",
                hint=_FEWER_CANDIDATES,
                path=str(path),
                maximum=MAX_CANDIDATES,
            )
    if words and widest[0] < expected_width:
        raise _make_bit_count_error(f"Line {-widest[1]:,} of {str(path)!r}: ", widest[0], shape)
    bits = np.array(rows, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes)
    return CandidateMap(shape, list(words), bits)


def _make_bit_count_error(location: str, n_bits: int, shape: BloomShape) -> RapporError:
    return RapporError(
        "{location}the word has {found:,} bits, and the parameters ({shape}) need {expected:,}. The candidate map was "
        "made for other parameters.",
        hint=REMAKE_MAP,
        location=location,
        found=n_bits,
        shape=shape,
        expected=shape.cohorts * shape.hashes,
    )


def _parse_map_row(fields: Sequence[str], shape: BloomShape, location: str) -> Integers:
    """Return the bits of one word as (cohorts, hashes); the bit of two equal hashes is repeated."""
    try:
        numbers = np.array(fields, dtype=np.int64) - 1
    except (ValueError, OverflowError):
        raise RapporError(
            "{location}a bit is not a whole number. Each field after the word must be cohort * k + bit + 1.",
            hint=REMAKE_MAP,
            location=location,
        ) from None
    if ((numbers < 0) | (numbers >= shape.cohorts * shape.bits)).any():
        raise RapporError(
            "{location}a bit is outside of all cohorts. The candidate map was made for other parameters than {shape}.",
            hint=REMAKE_MAP,
            location=location,
            shape=shape,
        )
    cohorts = numbers // shape.bits
    found = np.bincount(cohorts, minlength=shape.cohorts)
    wrong = np.flatnonzero((found < 1) | (found > shape.hashes))
    if len(wrong):
        cohort = int(wrong[0])
        raise RapporError(
            "{location}the word has {found:,} bits in cohort {cohort}, instead of 1 to {hashes}. The candidate map was "
            "made for other parameters than {shape}.",
            hint=REMAKE_MAP,
            location=location,
            found=found[cohort],
            cohort=cohort,
            hashes=shape.hashes,
            shape=shape,
        )
    ordered = numbers[np.argsort(cohorts, kind="stable")] % shape.bits
    starts = np.cumsum(found) - found
    return np.asarray(ordered[starts[:, None] + np.minimum(np.arange(shape.hashes), found[:, None] - 1)])


def format_map_rows(words: Iterable[str], shape: BloomShape) -> Iterator[str]:
    """Yield the CSV rows of a candidate map, one at a time: it may be larger than memory."""
    require_word_shape(shape)
    words = list(words)
    _require_distinct(words)
    for word in words:
        bits = [
            cohort * shape.bits + bit + 1 for cohort in range(shape.cohorts) for bit in shape.compute_bits(word, cohort)
        ]
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([word, *bits])
        yield line.getvalue()
