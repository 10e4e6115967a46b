"""Sources of the transcripts that an audit attacks: any function of true values, or a mechanism of this package.

The randomness of this package's mechanisms follows from a seed, so that an audit can be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.guessing_rules import Transcripts
from relaxdp.hazmat import SeededEntropy, relax_once
from relaxdp.mechanisms.base import Mechanism, draw_seeds
from relaxdp.mechanisms.bridged_columns import DrawnOnceRandomness
from relaxdp.mechanisms.keyed_reports import release_codes, release_reports
from relaxdp.mechanisms.report_arrays import Codes, read_report_column
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.randomized_response import NOISE

TrueValues = NDArray[Any]
MechanismFunction = Callable[[TrueValues], Any]
PATH = PathId("audit", "truth")
"""The release and the attribute of every audit."""


class TranscriptSource(ABC):
    """A source of transcripts of true values. Its randomness may depend on the number of a batch only."""

    @abstractmethod
    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Any:
        """Return one row for each true value: everything that is released."""


class MechanismSource(TranscriptSource):
    """A source of transcripts of a mechanism at several levels: the codes of all symbols of all reports.

    Where a report carries a public seed, the transcript contains the declared values that it supports.
    """

    def __init__(self, mechanism: Mechanism, epsilons: Sequence[Epsilon]) -> None:
        self.mechanism = mechanism
        self.epsilons: list[Decimal] = [as_epsilon(epsilon) for epsilon in epsilons]

    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Transcripts:
        is_seeded, n_levels = self.mechanism.seeded, len(self.epsilons)
        width = len(self.mechanism.labels) if is_seeded else self.mechanism.symbols
        dtype = np.uint8 if self.mechanism.alphabet <= 256 else np.uint32
        # Columns are contiguous, because they are written and read one by one.
        transcripts = np.empty((width * n_levels, len(true_values)), dtype=dtype).T
        parts = zip(np.hsplit(transcripts, n_levels), self.draw_levels(true_values, seed, batch), strict=True)
        for columns, (codes, seeds) in parts:
            columns[:] = self.mechanism.find_supported_labels(codes, seeds) if is_seeded else codes
        return transcripts

    @abstractmethod
    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        """Yield the codes and the public seeds of the reports of each level."""

    def compute_retentions(self) -> list[Fraction]:
        """Return the retention of each level."""
        return [self.mechanism.level(epsilon).retention for epsilon in self.epsilons]


class KeyedPathSource(MechanismSource):
    """A source of reports of the keyed path: a fresh key for each batch, an individual for each trial."""

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        for epsilon in self.epsilons:
            yield draw_release_codes(self.mechanism, true_values, derive_batch_key(seed, batch), epsilon)


class RelaxationSource(MechanismSource):
    """A source of reports of Algorithm 1: fresh randomness at each step, which starts from the last report."""

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        entropy = make_batch_entropy(seed, batch)
        truth, seeds = self.encode_true_values(true_values, entropy)
        last = None
        for old, new in pairwise([NOISE, *self.compute_retentions()]):
            last = relax_once(self.mechanism.alphabet, old, new, truths=truth, last_reports=last, entropy=entropy)
            yield last.reshape(-1, self.mechanism.symbols), seeds

    def encode_true_values(self, true_values: TrueValues, entropy: SeededEntropy) -> tuple[Codes, Any]:
        """Encode all true values as symbols, one after the other, and return these with the public seeds."""
        permanent = DrawnOnceRandomness(entropy, len(true_values))
        encoded = self.mechanism.read_true_values(true_values)
        codes = self.mechanism.compute_true_symbols(encoded, permanent)
        return np.ascontiguousarray(codes).reshape(-1), draw_seeds(self.mechanism, permanent)


def draw_release_codes(mechanism: Mechanism, true_values: TrueValues, key: Key, epsilon: Decimal) -> tuple[Codes, Any]:
    """Return codes and seeds of one level of a release, in which each true value belongs to another individual."""
    options: Any = {"key": key, "level": mechanism.level(epsilon), "path": PATH}
    ids = np.arange(len(true_values))
    if mechanism.seeded:
        return read_report_column(mechanism, release_reports(mechanism, true_values, ids, **options))
    return release_codes(mechanism, true_values, ids, **options), None


def derive_batch_key(seed: int, batch: int, key_number: int = 0) -> Key:
    """Return the key of a batch; another number gives another key."""
    return Key.from_bytes(sha256(f"relaxdp audit key {key_number} {seed} {batch}".encode()).digest())


def make_batch_entropy(seed: int, batch: int) -> SeededEntropy:
    """Return the randomness of a batch."""
    return SeededEntropy(seed << 64 | batch)
