"""Candidate maps: which bits each candidate word sets in each cohort, checked against the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.lazy import scipy
from relaxdp.rappor.filter import BloomShape

MOST_CANDIDATES = 100_000
Bits = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class CandidateMap:
    """Words and their bits, as an array of shape (words, cohorts, hashes). Candidates are public."""

    shape: BloomShape
    words: Sequence[str]
    bits: Bits

    def __post_init__(self) -> None:
        wanted = (len(self.words), self.shape.cohorts, self.shape.hashes)
        if self.bits.shape != wanted:
            raise RapporError("the map does not have h bits in every cohort for each word: it is for other parameters.")
        if not self.words:
            raise RapporError("the map has no candidates: there is nothing to look for.")
        seen: set[str] = set()
        for word in self.words:
            if word in seen:
                raise RapporError("the candidate {word!r} is listed twice.", word=word)
            seen.add(word)

    @classmethod
    def of_words(cls, words: Sequence[str], shape: BloomShape) -> CandidateMap:
        """Return the map of words that devices hash as `shape` says.

        >>> found = CandidateMap.of_words(["hello", "world"], BloomShape(bits=128, hashes=2, cohorts=64))
        >>> found.bits[0, 5].tolist()
        [96, 14]
        """
        if shape.is_boolean:
            raise RapporError("one bit is a boolean: it is decoded without a map.")
        if len(words) > MOST_CANDIDATES:
            raise RapporError(
                "there are {words:,} candidates, and at most {most:,} are looked for.",
                words=len(words),
                most=MOST_CANDIDATES,
            )
        cohorts = range(shape.cohorts)
        bits = [[shape.bits_of(word, cohort) for cohort in cohorts] for word in words]
        return cls(shape, list(words), np.array(bits, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes))

    @cached_property
    def is_hashed(self) -> bool:
        """Whether the bits are those that the parameters' own hash gives to the words."""
        everywhere = np.arange(self.shape.cohorts)
        theirs = CandidateMap.of_words(self.words, self.shape).design(everywhere)
        return bool((self.design(everywhere) != theirs).nnz == 0)  # in whatever order a map names the bits of a cohort

    def check(self) -> None:
        """Refuse a map whose words would be hashed to other bits: it would find words that nobody has."""
        if not self.is_hashed:
            raise RapporError(
                "the map is for other parameters than {shape}, or its words were hashed in another way.",
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
