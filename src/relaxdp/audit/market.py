"""A market as its buyers see it who put all purchases together; as it is, and with mistakes on purpose.

The draws are the market's own (`neighbours`, `draw_level`), under a key of its own, from what a seller delivers on the
keyed path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Literal

import numpy as np
import pyarrow as pa

from relaxdp.audit.sources import PATH, EncodedSource, Truths, batch_key, released
from relaxdp.audit.views import Transcripts
from relaxdp.draw.key import Key
from relaxdp.encodings.declared import DeclaredEncoding
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.law.level import Level
from relaxdp.market.goods import Goods, draw_level
from relaxdp.market.levels import Neighbours, check_delivery, neighbours
from relaxdp.publication.description import ColumnDescription

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


def pooled_levels(events: Sequence[Event]) -> list[Decimal]:
    """Return the level of every sale, in ascending order: those of the columns of a pooled transcript."""
    return sorted(as_epsilon(epsilon) for kind, epsilon in events if kind == "sell")


class PooledSource(EncodedSource):
    """All reports that were sold of each object, in ascending order of levels; whatever was only delivered is not."""

    def __init__(self, encoding: DeclaredEncoding, events: Sequence[Event] = FIVE_BUYERS) -> None:
        super().__init__(encoding, pooled_levels(events))
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
        reports = self.encoding.column(*released(self.encoding, truths, seller, level.epsilon))
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
