"""Where trials come from: any function of truths, or a mechanism of this package that can be repeated from a seed."""

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
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bridged_columns import FreshPermanent
from relaxdp.mechanisms.keyed_reports import release_codes, release_reports
from relaxdp.mechanisms.report_arrays import Codes
from relaxdp.sampling.bridge import fresh_bridges
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.randomized_response import NOISE, TRUTH

Truths = NDArray[Any]
Function = Callable[[Truths], Any]
PATH = PathId("audit", "truth")
"""What is released in an audit."""


class Source(ABC):
    """A source of transcripts of true values. Its randomness may depend on the number of a batch only."""

    @abstractmethod
    def draw(self, truths: Truths, seed: int, batch: int) -> Any:
        """Return one row for each true value: everything that is released."""


class FunctionSource(Source):
    """A function of true values with its own randomness."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def draw(self, truths: Truths, seed: int, batch: int) -> Any:
        """Call the function."""
        return self._function(truths)


class MechanismSource(Source):
    """Transcripts of a mechanism at several levels: the codes of all symbols of all reports, side by side.

    Where a report carries a public seed, the transcript contains the declared values that it supports.
    """

    def __init__(self, encoding: Mechanism, epsilons: Sequence[Epsilon]) -> None:
        self.encoding = encoding
        self.epsilons: list[Decimal] = [as_epsilon(epsilon) for epsilon in epsilons]

    @property
    def width(self) -> int:
        """How many columns one level takes."""
        return len(self.encoding.labels) if self.encoding.seeded else self.encoding.symbols

    def retentions(self) -> list[Fraction]:
        """Return the retention of each level."""
        return [self.encoding.level(epsilon).retention for epsilon in self.epsilons]

    def empty(self, trials: int) -> Transcripts:
        """Return a matrix for the transcripts whose columns are contiguous: both sides write and read columns."""
        codes = np.uint8 if self.encoding.alphabet <= 256 else np.uint32
        return np.empty((self.width * len(self.epsilons), trials), dtype=codes).T

    def show(self, target: Transcripts, level: int, codes: Codes, seeds: Any) -> None:
        """Write what one report shows into its columns."""
        shown = self.encoding.supports(codes, seeds) if self.encoding.seeded else codes
        target[:, level * self.width : (level + 1) * self.width] = shown


class PathSource(MechanismSource):
    """The keyed path: a fresh key for each batch, an individual for each trial."""

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Release every level in turn, as a table would be."""
        transcripts = self.empty(len(truths))
        for level, epsilon in enumerate(self.epsilons):
            codes, seeds = draw_release(self.encoding, truths, batch_key(seed, batch), epsilon)
            self.show(transcripts, level, codes, seeds)
        return transcripts


class AlgorithmSource(MechanismSource):
    """Algorithm 1: fresh randomness at each step, and the last report kept."""

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Take every step from the last report."""
        entropy = batch_entropy(seed, batch)
        truth, seeds = self.truth_codes(truths, entropy)
        transcripts, last = self.empty(len(truths)), None
        for level, (old, new) in enumerate(pairwise([NOISE, *self.retentions()])):
            last = self.step(truth, last, old, new, entropy)
            self.show(transcripts, level, last.reshape(-1, self.encoding.symbols), seeds)
        return transcripts

    def step(self, truth: Codes, last: Codes | None, old: Fraction, new: Fraction, entropy: SeededEntropy) -> Codes:
        """Return the next report of all symbols."""
        return fresh_bridges(
            self.encoding.alphabet, old, new, TRUTH, lower_reports=last, upper_reports=truth, entropy=entropy
        )

    def truth_codes(self, truths: Truths, entropy: SeededEntropy) -> tuple[Codes, Any]:
        """Return all symbols of all true values in a row, and the public seeds."""
        permanent = FreshPermanent(entropy, len(truths))
        encoded = self.encoding.truths(truths)
        codes = self.encoding.symbol_truths(encoded, permanent)
        return np.ascontiguousarray(codes).reshape(-1), self.encoding.seeds(permanent)


def draw_release(encoding: Mechanism, truths: Truths, key: Key, epsilon: Decimal) -> tuple[Codes, Any]:
    """Return codes and seeds of one level of a release, in which each true value belongs to another individual."""
    where: Any = {"key": key, "level": encoding.level(epsilon), "path": PATH}
    ids = np.arange(len(truths))
    if encoding.seeded:
        return encoding.read(release_reports(encoding, truths, ids, **where))
    return release_codes(encoding, truths, ids, **where), None


def batch_key(seed: int, batch: int, which: int = 0) -> Key:
    """Return a key that belongs to one batch of one seed."""
    return Key.from_bytes(sha256(f"relaxdp audit key {which} {seed} {batch}".encode()).digest())


def batch_entropy(seed: int, batch: int) -> SeededEntropy:
    """Return randomness that belongs to one batch of one seed."""
    return SeededEntropy(seed << 64 | batch)
