"""Which reports a new level is drawn from: its two nearest neighbours among all levels that are out.

Levels are thresholds. A level is out when it was delivered by the seller, or drawn and kept for a buyer. All reports of
an object are one path only if each new one is drawn between its nearest neighbours, one at a time, and kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from relaxdp.errors import DeliveryError, NotAuthorisedError


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The levels between which a new one is drawn: a bridge, or a blur of the upper one where there is no lower."""

    lower: int | None
    upper: int


def neighbours(wanted: int, out: Iterable[int]) -> Neighbours | None:
    """Return what a level is drawn from; None where it is out already, and is handed out as it is.

    Blurring from the last delivery past a level that was sold, or drawing a kept level again, would give buyers who
    pool what they have more than the best of them bought.

    Claim: in every order of deliveries and sales the joint law of all levels is that of one path;
    tests/exact/test_market.py.

    >>> neighbours(5, [2, 9, 7])
    Neighbours(lower=2, upper=7)
    >>> neighbours(1, [2, 9, 7])
    Neighbours(lower=None, upper=2)
    """
    levels = sorted(out)
    place = bisect_left(levels, wanted)
    if place == len(levels):
        raise NotAuthorisedError("this level is above every level that was delivered. Nothing was sold.")
    if levels[place] == wanted:
        return None
    return Neighbours(levels[place - 1] if place else None, levels[place])


def check_delivery(level: int, delivered: Iterable[int]) -> None:
    """Refuse a delivery that does not lie above every delivered level.

    Below the last delivery everything is the market's to draw: a report that comes from the seller afterwards would be
    drawn without regard to what was sold in between.
    """
    if any(level <= other for other in delivered):
        raise DeliveryError(
            "a delivery must lie above every delivered level: lower levels are drawn from those. Nothing was delivered."
        )
