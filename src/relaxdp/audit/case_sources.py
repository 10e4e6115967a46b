"""Other ways of this package to let reports out: a market, one object at a time, noisy samples.

The market is seen by buyers who put all purchases together; as it is, and with mistakes on purpose. The draws are its
own (`neighbours`, `draw_level`), under a key of its own, from what a seller delivers on the keyed path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from relaxdp.audit.guessing_rules import Transcripts
from relaxdp.audit.transcript_sources import (
    PATH,
    AlgorithmSource,
    FunctionSource,
    MechanismSource,
    Source,
    Truths,
    batch_entropy,
    batch_key,
    draw_release,
)
from relaxdp.hazmat import SeededEntropy, relax_once
from relaxdp.market.goods import Goods, draw_level
from relaxdp.market.levels import Neighbours, check_delivery, neighbours
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bridged_columns import fresh_column, keyed_column
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.declared import DeclaredMechanism
from relaxdp.mechanisms.relaxation import Relaxation
from relaxdp.mechanisms.report_arrays import Codes
from relaxdp.sampling.keyed_path import ArrayPath
from relaxdp.sampling.keyed_stream import CHUNK, Ids, PathId, path_key
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import ONE, Epsilon, as_epsilon
from relaxdp.theory.level import Level
from relaxdp.theory.randomized_response import NOISE


class SaleSource(MechanismSource):
    """Three levels, of which the middle one is drawn last, from the other two and without the true value."""

    def __init__(self, encoding: Mechanism, epsilons: tuple[Epsilon, Epsilon, Epsilon], *, keyed: bool) -> None:
        super().__init__(encoding, epsilons)
        self._keyed = keyed

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Deliver the lowest and the highest level, then sell the one in between."""
        key, (low, _, high) = batch_key(seed, batch), self.epsilons
        lowest, highest = (draw_release(self.encoding, truths, key, epsilon) for epsilon in (low, high))
        levels = self.retentions()
        columns: Any = {"lower": self.encoding.column(*lowest), "upper": self.encoding.column(*highest)}
        if self._keyed:
            name, ids = self.encoding.path_name(PATH), np.arange(len(truths))
            sold = keyed_column(self.encoding, *levels, **columns, ids=ids, key=batch_key(seed, batch, 1), name=name)
        else:
            sold = fresh_column(self.encoding, *levels, **columns, entropy=batch_entropy(seed, batch))
        transcripts = self.empty(len(truths))
        for level, (codes, seeds) in enumerate((lowest, self.encoding.read(sold), highest)):
            self.show(transcripts, level, codes, seeds)
        return transcripts


class OneAtATime(FunctionSource):
    """The public classes, with the operating system's randomness: a key and a chain for each trial."""

    def __init__(self, values: int, epsilons: list[Epsilon], *, keyed: bool) -> None:
        answers = Categorical(range(values))

        def path(truth: int, place: int, key: Key) -> list[int]:
            way = answers.path(truth, key=key, id=place, name="audit", column="truth")
            return [way.at(epsilon) for epsilon in epsilons]

        def chain(truth: int, place: int, key: Key) -> list[int]:
            steps = Relaxation(answers, truth)
            return [steps.relax(epsilon=epsilon) for epsilon in epsilons]

        def draw(truths: Truths) -> Transcripts:
            key, one = Key.generate(), path if keyed else chain
            return np.array([one(truth, place, key) for place, truth in enumerate(truths.tolist())], dtype=np.uint8)

        super().__init__(draw)


class NoisySampleSource(Source):
    """The paper's baseline: samples of one permanent response."""

    def __init__(self, permanent: Fraction, sample: Fraction, samples: int) -> None:
        self._permanent, self._sample, self._samples = permanent, sample, samples

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Return all samples."""
        entropy = batch_entropy(seed, batch)
        kept = relax_once(2, NOISE, self._permanent, truth=truths.astype(np.uint8), last=None, entropy=entropy)
        samples = [
            relax_once(2, NOISE, self._sample, truth=kept, last=None, entropy=entropy) for _ in range(self._samples)
        ]
        return np.stack(samples).T


Event = tuple[Literal["deliver", "sell"], Epsilon]

FIVE_BUYERS: tuple[Event, ...] = (
    ("deliver", "0.5"),
    ("sell", "0.3"),
    ("sell", "0.1"),
    ("deliver", "1"),
    ("sell", "0.7"),
    ("sell", "0.4"),  # the first buyer upgrades
    ("sell", "0.6"),
    ("sell", "0.7"),  # to a second buyer: the report that was kept
    ("sell", "0.5"),  # the second buyer upgrades to what was delivered
)
"""Nine events in which five buyers buy levels and upgrades, from below and from above. The best of them has 0.7."""


def list_pooled_levels(events: Sequence[Event]) -> list[Decimal]:
    """Return the level of every sale, in ascending order: those of the columns of a pooled transcript."""
    return sorted(as_epsilon(epsilon) for kind, epsilon in events if kind == "sell")


class PooledSource(MechanismSource):
    """All reports that were sold of each individual, in ascending order of levels."""

    def __init__(self, encoding: DeclaredMechanism, events: Sequence[Event] = FIVE_BUYERS) -> None:
        super().__init__(encoding, list_pooled_levels(events))
        self._values = encoding.values
        self.events = [(kind, as_epsilon(epsilon)) for kind, epsilon in events]

    def draw(self, truths: Truths, seed: int, batch: int) -> Transcripts:
        """Deliver and sell, one event after the other."""
        seller, market = batch_key(seed, batch), batch_key(seed, batch, 1)
        out: dict[Level, Goods] = {}
        delivered: list[Level] = []
        bought: list[Goods] = []
        for kind, epsilon in self.events:
            level = self.encoding.level(epsilon)
            if kind == "deliver":
                check_delivery(level, delivered)
                delivered.append(level)
                out[level] = self._delivery(truths, seller, level)
                continue
            between = self.between(level, out, delivered)
            if between is not None:
                lower = None if between.lower is None else out[between.lower]
                out[level] = draw_level(market, "listing", level, lower=lower, upper=out[between.upper])
            bought.append(out[level])
        transcripts = self.empty(len(truths))
        for place, goods in enumerate(sorted(bought, key=lambda goods: goods.level)):
            self.show(transcripts, place, *self.encoding.read(goods.reports))
        return transcripts

    def between(self, level: Level, out: Collection[Level], delivered: Sequence[Level]) -> Neighbours | None:
        """Return what a level is drawn from; None where it is out."""
        return neighbours(level, out)

    def _delivery(self, truths: Truths, seller: Key, level: Level) -> Goods:
        described = ColumnDescription.from_level(
            self.encoding, level, path=PATH, id_type="integer", key_fingerprint=seller.fingerprint
        )
        reports = self.encoding.column(*draw_release(self.encoding, truths, seller, level.epsilon))
        return Goods("object", described, self.encoding, level, pa.array(np.arange(len(truths))), reports)


class DrawnAgainSource(PooledSource):
    """Keeps no level that it sold: the next buyer's is drawn again, from the neighbours that there are then."""

    def between(self, level: Level, out: Collection[Level], delivered: Sequence[Level]) -> Neighbours | None:
        """Forget the level itself, unless it was delivered."""
        return neighbours(level, [other for other in out if other != level or other in delivered])


class BlurredSource(PooledSource):
    """Draws every level from the last delivery alone, past what was sold."""

    def between(self, level: Level, out: Collection[Level], delivered: Sequence[Level]) -> Neighbours | None:
        """Return no lower neighbour, and the last delivery as the upper one."""
        return None if neighbours(level, out) is None else Neighbours(None, delivered[-1])


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
