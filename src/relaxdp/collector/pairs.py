"""Pairs of a device's reports, counted in the transaction that stores them: by these made-up reports are noticed.

A device with reports at three levels has two pairs, each report with the next lower one. What is kept of all pairs of
two levels is as large as counts are; no row says which device a pair is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection

from relaxdp.collector.counts import difference, pack, total, unpack
from relaxdp.service.codecs import Codec, Counted, Integers
from relaxdp.storage.database import SqlStatement


class Place(NamedTuple):
    """Where pairs are counted: their levels, and whether it is those of devices that went on to a level above.

    Those are counted twice, there and among all: what is left of all is each device once, with its newest report. What
    their older reports support is not counted there: nobody asks for it.
    """

    older: int
    newer: int
    moved: bool


NONE = -1
Kept = dict[Place, Integers]
Both = tuple[bytes, bytes]

_READ = SqlStatement.shared("SELECT older, newer, moved, counts FROM collector_pair WHERE campaign = ?")
_READ_ONE = SqlStatement.shared(
    "SELECT counts FROM collector_pair WHERE campaign = ? AND older = ? AND newer = ? AND moved = ?"
)
_WRITE = SqlStatement.shared(
    "INSERT INTO collector_pair (campaign, older, newer, moved, counts) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (campaign, older, newer, moved) DO UPDATE SET counts = excluded.counts"
)


def places_of(levels: Iterable[int]) -> set[Place]:
    """Return where a device with reports at these levels counts."""
    ascending = sorted(levels)
    found = {Place(older, newer, False) for older, newer in pairwise(ascending)}
    return found | {Place(older, newer, True) for older, newer in pairwise(ascending[:-1])}


class Changes:
    """What a group of reports changes in counts and pairs.

    Nearly all reports are a device's first, or stand above all that it has sent. These are kept in groups, so that each
    report is counted once and serves both the counts of its level and the pairs.
    """

    def __init__(self) -> None:
        self._first: dict[int, list[bytes]] = {}
        self._late: dict[int, list[bytes]] = {}
        self._withdrawn: list[Mapping[int, bytes]] = []
        self._moves: dict[tuple[int, int, int], tuple[list[bytes], list[bytes], list[bytes]]] = {}
        self._plus: dict[Place, list[Both]] = {}
        self._minus: dict[Place, list[Both]] = {}

    def stored(self, own: Mapping[int, bytes], level: int, report: bytes) -> None:
        """Note that a device, whose reports so far are `own`, has one more."""
        if not own:
            self._first.setdefault(level, []).append(report)
            return
        below, highest = NONE, max(own)
        if level > highest:
            if len(own) > 1:
                below = sorted(own)[-2]
            lowest, older, newer = self._moves.setdefault((below, highest, level), ([], [], []))
            if below != NONE:
                lowest.append(own[below])
            older.append(own[highest])
            newer.append(report)
            return
        self._late.setdefault(level, []).append(report)
        before, after, reports = places_of(own), places_of((*own, level)), {**own, level: report}
        for changes, places in ((self._plus, after - before), (self._minus, before - after)):
            for place in places:
                changes.setdefault(place, []).append((reports[place.older], reports[place.newer]))

    def withdrawn(self, own: Mapping[int, bytes]) -> None:
        """Note that a device takes its reports back."""
        self._withdrawn.append(own)
        for place in places_of(own):
            self._minus.setdefault(place, []).append((own[place.older], own[place.newer]))

    def counted(self, codec: Codec) -> tuple[dict[int, Counted], dict[int, Counted], Kept]:
        """Return by how much the counts of devices at each level, of those that moved on, and of pairs change."""
        levels: dict[int, Counted] = {level: codec.count(first) for level, first in self._first.items()}
        moved: dict[int, Counted] = {level: codec.count(late) for level, late in self._late.items()}
        kept: Kept = {}
        for (below, highest, level), (lowest, older, newer) in self._moves.items():
            gone, come = codec.count(older), codec.count(newer)
            levels[level] = total(levels.get(level, {}), come)
            levels[highest] = difference(levels.get(highest, {}), gone)
            moved[highest] = total(moved.get(highest, {}), gone)
            _add(kept, Place(highest, level, False), codec.count_packed_report_pairs(older, newer, come, gone))
            if below != NONE:
                _add(kept, Place(below, highest, True), codec.count_packed_report_pairs(lowest, older, gone))
        for own in self._withdrawn:
            for level, report in own.items():
                changed = levels if level == max(own) else moved
                changed[level] = difference(changed.get(level, {}), codec.count([report]))
        for sign, changes in ((1, self._plus), (-1, self._minus)):
            for place, pairs in changes.items():
                lower, upper = zip(*pairs, strict=True)
                olds = None if place.moved else codec.count(lower)
                _add(kept, place, sign * codec.count_packed_report_pairs(lower, upper, codec.count(upper), olds))
        return levels, moved, kept


def _add(kept: Kept, place: Place, numbers: Integers) -> None:
    kept[place] = kept[place] + numbers if place in kept else numbers


def add(connection: Connection, campaign: int, changes: Kept) -> None:
    """Add to the counts of pairs; the caller holds the campaign, so nobody else does at the same time."""
    for place in sorted(changes):
        where = (campaign, place.older, place.newer, int(place.moved))
        found = _READ_ONE.run(connection, where).fetchone()
        known = changes[place] if found is None else unpack(found[0]) + changes[place]
        _WRITE.run(connection, (*where, pack(known)))


def read(connection: Connection, campaign: int) -> Kept:
    """Return the counts of all pairs: a few rows, however many reports there are."""
    rows = _READ.run(connection, (campaign,)).fetchall()
    return {Place(older, newer, bool(moved)): unpack(packed) for older, newer, moved, packed in rows}
