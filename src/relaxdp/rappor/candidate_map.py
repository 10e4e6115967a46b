"""Candidate maps: which bits each candidate word sets in each cohort, in memory and as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.bloom import BloomShape
from relaxdp.rappor.parameters import MAX_CANDIDATES, read_csv_rows


class CandidateMap:
    """Candidate words, which are public, and their bits: an array of shape (words, cohorts, hashes).

    >>> CandidateMap(["hello", "world"], BloomShape(bits=128, hashes=2, cohorts=64)).bits[0, 5].tolist()
    [96, 14]
    """

    def __init__(self, words: Iterable[str], shape: BloomShape) -> None:
        self.words, self.shape = _require_candidates(words, shape), shape
        bits = [[shape.compute_bits(word, cohort) for cohort in range(shape.cohorts)] for word in self.words]
        self.bits = np.array(bits, dtype=np.int64)

    def make_design_matrix(self, cohorts: NDArray[np.intp]) -> Any:
        """Return the design matrix for some cohorts: which (cohort, bit) each word sets, as sparse zeros and ones."""
        rows = np.arange(len(cohorts))[None, :, None] * self.shape.bits + self.bits[:, cohorts]
        rows = rows.reshape(len(self.words), -1)
        columns = np.repeat(np.arange(len(self.words)), rows.shape[1])
        size = (len(cohorts) * self.shape.bits, len(self.words))
        matrix = scipy.sparse.csc_matrix((np.ones(rows.size), (rows.ravel(), columns)), shape=size)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0  # Two hashes with the same bit set it once.
        return matrix


def _require_candidates(words: Iterable[str], shape: BloomShape) -> list[str]:
    """Return candidate words as a list, or reject words that reports with these parameters cannot contain."""
    if shape.is_boolean:
        raise RapporError(
            "The parameters have one bit (k = 1), so reports are booleans, which need no candidate map.",
            hint="Leave out the map, or choose k = 2 or more to report words.",
        )
    words, seen = list(words), set()
    if not 1 <= len(words) <= MAX_CANDIDATES:
        raise RapporError(
            "There are {words:,} candidate words. Expected 1 to {maximum:,}.",
            hint="List the words that are likely, one per line.",
            words=len(words),
            maximum=MAX_CANDIDATES,
        )
    for word in words:
        if word in seen:
            raise RapporError(
                "The candidate word {word!r} is listed twice.",
                hint="Remove one of the two from the list of candidates.",
                word=word,
            )
        seen.add(word)
    return words


def read_candidate_map(path: Path, shape: BloomShape) -> CandidateMap:
    """Read a candidate map, or reject one whose bits are not those of the words with these parameters.

    Where two hashes are equal, some of Google's tools write one bit for both, and leave a field at the end of the row
    empty. So the order and the number of the fields do not matter.
    """
    words = []
    for line, (word, *fields) in read_csv_rows(path, "candidate map"):
        if {field.strip() for field in fields} - {""} != {str(number) for number in _list_map_numbers(word, shape)}:
            raise RapporError(
                "Line {line:,} of {path!r}: the numbers after {word!r} are not the bits of this word with {shape}. The "
                "candidate map was made for other parameters, or by another hash function.",
                hint="Make the map again: `relaxdp rappor map words.txt --params params.csv > map.csv`.",
                line=line,
                path=str(path),
                word=word,
                shape=shape,
            )
        words.append(word)
    return CandidateMap(words, shape)


def format_map_rows(words: Iterable[str], shape: BloomShape) -> Iterator[str]:
    """Yield the CSV rows of a candidate map, one at a time: it may be larger than memory."""
    for word in _require_candidates(words, shape):
        row = StringIO()
        csv.writer(row, lineterminator="\n").writerow([word, *_list_map_numbers(word, shape)])
        yield row.getvalue()


def _list_map_numbers(word: str, shape: BloomShape) -> list[int]:
    """Return the numbers of a word's bits in a candidate map, as in Google's: cohort * k + bit + 1."""
    return [
        cohort * shape.bits + bit + 1 for cohort in range(shape.cohorts) for bit in shape.compute_bits(word, cohort)
    ]
