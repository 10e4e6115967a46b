"""Mistakes on purpose. An auditor that does not see them would prove nothing by finding nothing elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from relaxdp.audit.guessing import Transcripts
from relaxdp.audit.sources import (
    AlgorithmSource,
    MechanismSource,
    Source,
    Truths,
    batch_entropy,
    batch_key,
    draw_release,
)
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.packed import Codes
from relaxdp.sampling.path import ArrayPath
from relaxdp.sampling.stream import CHUNK, Ids, PathId, path_key
from relaxdp.theory.epsilon import ONE, Epsilon, as_epsilon
from relaxdp.theory.response import NOISE

HISTORIES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Truths before and after a change: what the sources below take, by number."""


class IndependentSource(AlgorithmSource):
    """Reports that forget the last one: every level is drawn afresh."""

    def step(self, truth: Codes, last: Codes | None, old: Fraction, new: Fraction, entropy: SeededEntropy) -> Codes:
        """Draw as if nothing had been released before."""
        return super().step(truth, None, NOISE, new, entropy)


class RedrawnSource(AlgorithmSource):
    """Kept randomness that is not kept: coins, roundings and offsets are drawn again at each level."""

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Take every step from the last report, towards another symbol of the same true value."""
        entropy = batch_entropy(seed, batch)
        transcripts, last = self.empty(len(truths)), None
        for level, (old, new) in enumerate(pairwise([NOISE, *self.retentions()])):
            truth, seeds = self.truth_codes(truths, entropy)
            last = self.step(truth, last, old, new, entropy)
            self.show(transcripts, level, last.reshape(-1, self.encoding.symbols), seeds)
        return transcripts


class SecondKeySource(MechanismSource):
    """A release that is made once more, at each level under another key."""

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Release every level on a separate path."""
        transcripts = self.empty(len(truths))
        for level, epsilon in enumerate(self.epsilons):
            self.show(transcripts, level, *draw_release(self.encoding, truths, batch_key(seed, batch, level), epsilon))
        return transcripts


class RaisedThreshold(Categorical):
    """A categorical mechanism whose thresholds are too high by a fraction."""

    def __init__(self, values: Sequence[int], excess: Fraction) -> None:
        super().__init__(values)
        self._excess = excess

    def threshold(self, epsilon: Decimal) -> int:
        """Return too high a threshold."""
        return min(int(super().threshold(epsilon) * (1 + self._excess)), ONE - 1)


class ChangedTruthSource(Source):
    """Two releases of one bit, between which the true value may change. Inputs are numbers of HISTORIES.

    Right: the second release is a new name, another path whose cost is added (`new_name`). Wrong: the release goes on
    under its old name. Worse: the stream does not depend on the true value (`forgets_truth`), so the same noise
    covers both values, and a report that changed shows both of them.
    """

    def __init__(self, epsilons: tuple[Epsilon, Epsilon], *, new_name: bool, forgets_truth: bool = False) -> None:
        self._epsilons = [as_epsilon(epsilon) for epsilon in epsilons]
        self._new_name, self._forgets_truth = new_name, forgets_truth
        self._encoding = Categorical(range(2))

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Return the report of the first true value and that of the second."""
        history = np.array(HISTORIES, dtype=np.uint64).take(truths, axis=0)
        transcripts = np.empty((2, len(truths)), dtype=np.uint8)
        for place, epsilon in enumerate(self._epsilons):
            name = self._encoding.path_name(PathId(f"audit {place + 1}" if self._new_name else "audit", "truth"))
            path = ArrayPath(path_key(batch_key(seed, batch), name), 2, self._encoding.level(epsilon).threshold)
            for start in range(0, len(truths), CHUNK):
                part = slice(start, min(start + CHUNK, len(truths)))
                truth = history[part, place]
                ((_, blocks),) = Ids.from_integers(np.arange(part.start, part.stop)).groups()
                index = np.zeros_like(truth) if self._forgets_truth else truth
                path.draw(transcripts[place, part], slice(None), path.cipher.absorb(blocks), truth, index)
            path.finish()
        return transcripts.T
