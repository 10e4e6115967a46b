"""Sources of the transcripts that an audit attacks: any function of true values, or a mechanism of this package.

The randomness of this package's mechanisms follows from a seed, so that an audit can be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.guessing_rules import Transcripts
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.base import Mechanism, draw_seeds
from relaxdp.mechanisms.bridged_columns import FreshRandomness
from relaxdp.mechanisms.keyed_reports import release_codes, release_reports
from relaxdp.mechanisms.report_arrays import Codes, read_report_column
from relaxdp.sampling.bridge import draw_fresh_bridges
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.randomized_response import NOISE, TRUTH

TrueValues = NDArray[Any]
MechanismFunction = Callable[[TrueValues], Any]
PATH = PathId("audit", "truth")
"""The release and the attribute of every audit."""


class TranscriptSource(ABC):
    """A source of transcripts of true values. Its randomness may depend on the number of a batch only."""

    @abstractmethod
    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Any:
        """Return one row for each true value: everything that is released."""


class FunctionSource(TranscriptSource):
    """A function of true values with its own randomness."""

    def __init__(self, function: MechanismFunction) -> None:
        self._function = function

    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Any:
        """Draw one row of reports for each true value."""
        return self._function(true_values)


class MechanismSource(TranscriptSource):
    """Transcripts of a mechanism at several levels: the codes of all symbols of all reports, side by side.

    Where a report carries a public seed, the transcript contains the declared values that it supports.
    """

    def __init__(self, mechanism: Mechanism, epsilons: Sequence[Epsilon]) -> None:
        self.mechanism = mechanism
        self.epsilons: list[Decimal] = [as_epsilon(epsilon) for epsilon in epsilons]

    @property
    def columns_per_level(self) -> int:
        """How many columns of a transcript one level has."""
        return len(self.mechanism.labels) if self.mechanism.seeded else self.mechanism.symbols

    def compute_retentions(self) -> list[Fraction]:
        """Return the retention of each level."""
        return [self.mechanism.level(epsilon).retention for epsilon in self.epsilons]

    def make_empty_transcripts(self, trials: int) -> Transcripts:
        """Return a matrix for transcripts. Its columns are contiguous, because they are written and read one by one."""
        codes = np.uint8 if self.mechanism.alphabet <= 256 else np.uint32
        return np.empty((self.columns_per_level * len(self.epsilons), trials), dtype=codes).T

    def write_level(self, transcripts: Transcripts, level_index: int, codes: Codes, seeds: Any) -> None:
        """Write the reports of one level into its columns of the transcripts."""
        shown = self.mechanism.find_supported_labels(codes, seeds) if self.mechanism.seeded else codes
        start = level_index * self.columns_per_level
        transcripts[:, start : start + self.columns_per_level] = shown


class KeyedPathSource(MechanismSource):
    """Reports of the keyed path: a fresh key for each batch, an individual for each trial."""

    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Transcripts:
        """Draw one row of reports for each true value."""
        transcripts = self.make_empty_transcripts(len(true_values))
        for level, epsilon in enumerate(self.epsilons):
            codes, seeds = draw_release_codes(self.mechanism, true_values, derive_batch_key(seed, batch), epsilon)
            self.write_level(transcripts, level, codes, seeds)
        return transcripts


class RelaxationSource(MechanismSource):
    """Reports of Algorithm 1: fresh randomness at each step, which starts from the last report."""

    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Transcripts:
        """Draw one row of reports for each true value."""
        entropy = make_batch_entropy(seed, batch)
        true_codes, seeds = self.encode_true_values(true_values, entropy)
        transcripts, last = self.make_empty_transcripts(len(true_values)), None
        for level, (old, new) in enumerate(pairwise([NOISE, *self.compute_retentions()])):
            last = self.draw_next_reports(true_codes, last, old, new, entropy)
            self.write_level(transcripts, level, last.reshape(-1, self.mechanism.symbols), seeds)
        return transcripts

    def draw_next_reports(
        self, true_codes: Codes, last: Codes | None, old: Fraction, new: Fraction, entropy: SeededEntropy
    ) -> Codes:
        """Return the next report of every symbol."""
        return draw_fresh_bridges(
            self.mechanism.alphabet, old, new, TRUTH, lower_reports=last, upper_reports=true_codes, entropy=entropy
        )

    def encode_true_values(self, true_values: TrueValues, entropy: SeededEntropy) -> tuple[Codes, Any]:
        """Return the symbols of all true values, one after the other, and the public seeds."""
        permanent = FreshRandomness(entropy, len(true_values))
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


def derive_batch_key(seed: int, batch: int, number: int = 0) -> Key:
    """Return the key of a batch; another number gives another key."""
    return Key.from_bytes(sha256(f"relaxdp audit key {number} {seed} {batch}".encode()).digest())


def make_batch_entropy(seed: int, batch: int) -> SeededEntropy:
    """Return the randomness of a batch."""
    return SeededEntropy(seed << 64 | batch)
