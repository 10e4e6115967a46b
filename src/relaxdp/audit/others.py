"""Other ways of this package to let reports out: a market, one object at a time, noisy samples.

The market is seen by buyers who put all purchases together; as it is, and with mistakes on purpose. The draws are its
own (`neighbours`, `draw_level`), under a key of its own, from what a seller delivers on the keyed path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from relaxdp.audit.guessing import Transcripts
from relaxdp.audit.sources import (
    PATH,
    FunctionSource,
    MechanismSource,
    Source,
    Truths,
    batch_entropy,
    batch_key,
    draw_release,
)
from relaxdp.hazmat import relax_once
from relaxdp.market.goods import Goods, draw_level
from relaxdp.market.levels import Neighbours, check_delivery, neighbours
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bridged_columns import fresh_column, keyed_column
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.declared import DeclaredMechanism
from relaxdp.mechanisms.relaxation import Relaxation
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import Epsilon, as_epsilon
from relaxdp.theory.level import Level
from relaxdp.theory.response import NOISE


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
        described = ColumnDescription.of(
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
