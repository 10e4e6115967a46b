"""Transcript sources of the audit's cases: pooled levels, the bridge, single individuals, noisy samples, and mistakes.

The faulty sources are mistakes on purpose: an auditor that does not find them would prove nothing by finding nothing
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from relaxdp.audit.guessing_rules import Transcripts
from relaxdp.audit.transcript_sources import (
    MechanismFunction,
    MechanismSource,
    RelaxationSource,
    TranscriptSource,
    TrueValues,
    derive_batch_key,
    draw_release_codes,
    make_batch_entropy,
)
from relaxdp.hazmat import relax_once
from relaxdp.mechanisms.base import Mechanism, make_path_key_info
from relaxdp.mechanisms.bridged_columns import draw_bridged_column
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.relaxation import Relaxation
from relaxdp.mechanisms.report_arrays import Codes, make_report_column, read_report_column
from relaxdp.sampling.keyed_path import replace_symbols_by_reports
from relaxdp.sampling.keyed_stream import CHUNK, Ids, MacInputs, PathId, derive_path_key
from relaxdp.sampling.keys import Key
from relaxdp.theory.epsilon import ONE, Epsilon, as_epsilon
from relaxdp.theory.randomized_response import NOISE


class BridgedLevelSource(MechanismSource):
    """Three levels, of which the middle one is drawn last, from the other two and without the true value."""

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        key, (low, _, high) = derive_batch_key(seed, batch), self.epsilons
        lowest, highest = (draw_release_codes(self.mechanism, true_values, key, epsilon) for epsilon in (low, high))
        middle = draw_bridged_column(
            self.mechanism,
            *self.compute_retentions(),
            lower_reports=make_report_column(self.mechanism, *lowest),
            upper_reports=make_report_column(self.mechanism, *highest),
            entropy=make_batch_entropy(seed, batch),
        )
        yield from (lowest, read_report_column(self.mechanism, middle), highest)


def make_individual_function(epsilons: Sequence[Epsilon], *, keyed: bool) -> MechanismFunction:
    """Return a function that uses the public classes for one individual at a time, with the system's randomness."""
    mechanism = Categorical(range(2))

    def draw(true_values: TrueValues) -> Transcripts:
        key, transcripts = Key.generate(), []
        for index, truth in enumerate(true_values.tolist()):
            if keyed:
                path = mechanism.path(truth, key=key, id=index, name="audit", column="truth")
                transcripts.append([path.at(epsilon) for epsilon in epsilons])
            else:
                relaxation = Relaxation(mechanism, truth)
                transcripts.append([relaxation.relax(epsilon=epsilon) for epsilon in epsilons])
        return np.array(transcripts, dtype=np.uint8)

    return draw


class NoisySampleSource(TranscriptSource):
    """Samples of one permanent response: the paper's baseline."""

    def __init__(self, permanent: Fraction, sample: Fraction, samples: int) -> None:
        self._permanent, self._sample, self._samples = permanent, sample, samples

    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Transcripts:
        entropy = make_batch_entropy(seed, batch)
        kept = relax_once(
            2, NOISE, self._permanent, truths=true_values.astype(np.uint8), last_reports=None, entropy=entropy
        )
        samples = [
            relax_once(2, NOISE, self._sample, truths=kept, last_reports=None, entropy=entropy)
            for _ in range(self._samples)
        ]
        return np.stack(samples).T


FIVE_BUYERS = ("0.3", "0.1", "0.7", "0.4", "0.6", "0.7", "0.5")
"""The levels of a listing that five buyers order, in this order: some upgrade, and the best of them has 0.7."""


class PooledLevelsSource(MechanismSource):
    """The reports of levels that buyers order, as they pool them: drawn in that order, from the lowest to the highest.

    An individual with a limit carries no report above it.
    """

    def __init__(self, mechanism: Mechanism, ordered: Sequence[Epsilon], limit: Epsilon | None = None) -> None:
        levels = [as_epsilon(epsilon) for epsilon in ordered]
        self._ordered = levels if limit is None else [min(level, as_epsilon(limit)) for level in levels]
        super().__init__(mechanism, sorted(self._ordered))

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        key = derive_batch_key(seed, batch)
        drawn = {level: draw_release_codes(self.mechanism, true_values, key, level) for level in self._ordered}
        yield from (drawn[level] for level in self.epsilons)


HISTORIES = ((0, 0), (0, 1), (1, 0), (1, 1))
"""True values before and after a change: the sources below take their numbers."""


class IndependentReportsSource(RelaxationSource):
    """Faulty reports that ignore the last one: every level is drawn independently."""

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        entropy = make_batch_entropy(seed, batch)
        truth, seeds = self.encode_true_values(true_values, entropy)
        for new in self.compute_retentions():
            codes = relax_once(self.mechanism.alphabet, NOISE, new, truths=truth, last_reports=None, entropy=entropy)
            yield codes.reshape(-1, self.mechanism.symbols), seeds


class RedrawnPermanentSource(RelaxationSource):
    """Faulty reports whose kept randomness (coins, roundings, offsets) is drawn again at each level."""

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        entropy, last = make_batch_entropy(seed, batch), None
        for old, new in pairwise([NOISE, *self.compute_retentions()]):
            truth, seeds = self.encode_true_values(true_values, entropy)
            last = relax_once(self.mechanism.alphabet, old, new, truths=truth, last_reports=last, entropy=entropy)
            yield last.reshape(-1, self.mechanism.symbols), seeds


class SecondKeySource(MechanismSource):
    """A faulty release that is repeated: every level is released under another key."""

    def draw_levels(self, true_values: TrueValues, seed: int, batch: int) -> Iterator[tuple[Codes, Any]]:
        for number, epsilon in enumerate(self.epsilons):
            yield draw_release_codes(self.mechanism, true_values, derive_batch_key(seed, batch, number), epsilon)


class RaisedThresholdCategorical(Categorical):
    """A faulty categorical mechanism: its thresholds are too high by a fraction."""

    def __init__(self, values: Sequence[int], excess: Fraction) -> None:
        super().__init__(values)
        self._excess = excess

    def threshold(self, epsilon: Decimal) -> int:
        return min(int(super().threshold(epsilon) * (1 + self._excess)), ONE - 1)


class ChangedValueSource(TranscriptSource):
    """Two releases of one bit, between which the true value may change. Inputs are numbers of HISTORIES.

    Correct: the second release has a new name, so it is another path and its cost is added (`new_name`). Faulty: the
    release goes on under its old name. Worse: the stream does not depend on the true value (`ignores_true_value`), so
    the same noise covers both values, and a report that changed reveals both of them.
    """

    def __init__(self, epsilons: tuple[Epsilon, Epsilon], *, new_name: bool, ignores_true_value: bool = False) -> None:
        self._epsilons = [as_epsilon(epsilon) for epsilon in epsilons]
        self._new_name, self._ignores_true_value = new_name, ignores_true_value
        self._mechanism = Categorical(range(2))

    def draw(self, true_values: TrueValues, seed: int, batch: int) -> Transcripts:
        history = np.array(HISTORIES, dtype=np.uint64).take(true_values, axis=0)
        transcripts = np.empty((2, len(true_values)), dtype=np.uint8)
        for place, epsilon in enumerate(self._epsilons):
            path = PathId(f"audit {place + 1}" if self._new_name else "audit", "truth")
            derived = derive_path_key(derive_batch_key(seed, batch), make_path_key_info(self._mechanism, path))
            threshold = self._mechanism.level(epsilon).threshold
            for start in range(0, len(true_values), CHUNK):
                part = slice(start, min(start + CHUNK, len(true_values)))
                truth, reports = history[part, place], history[part, place, None].astype(np.uint8)
                index = np.zeros_like(truth) if self._ignores_true_value else truth
                ids = MacInputs(Ids.from_integers(np.arange(part.start, part.stop)))
                replace_symbols_by_reports(derived, 2, threshold, ids, index, reports)
                transcripts[place, part] = reports[:, 0]
        return transcripts.T
