"""Counts per level, kept in the transaction that stores a report: an estimate reads these and no report.

A device's highest report and the reports of devices that have moved on to a higher level are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import Connection

from relaxdp.service.codecs import Counted, Integers
from relaxdp.storage.database import SqlStatement

_WORD = "<i8"


_READ = SqlStatement.shared("SELECT part, counts FROM collector_count WHERE campaign = ? AND level = ? AND moved = ?")
_READ_ONE = SqlStatement.shared(
    "SELECT part, counts FROM collector_count WHERE campaign = ? AND level = ? AND moved = ? AND part = ?"
)
_WRITE = SqlStatement.shared(
    "INSERT INTO collector_count (campaign, level, moved, part, counts) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (campaign, level, moved, part) DO UPDATE SET counts = excluded.counts"
)


def add(connection: Connection, campaign: int, changes: Mapping[int, Counted], *, moved: bool = False) -> None:
    """Add to the counts of levels; the caller holds the campaign, so nobody else does at the same time."""
    for level, parts in changes.items():
        if len(parts) == 1:
            found = _READ_ONE.run(connection, (campaign, level, int(moved), *parts)).fetchall()
        else:
            found = _READ.run(connection, (campaign, level, int(moved))).fetchall()
        known = {part: unpack(packed) for part, packed in found}
        rows = [
            (campaign, level, int(moved), part, pack(known[part] + change if part in known else change))
            for part, change in parts.items()
        ]
        if len(rows) == 1:
            _WRITE.run(connection, rows[0])
        elif rows:
            _WRITE.run_many(connection, rows)


def read_level(connection: Connection, campaign: int, level: int, *, moved: bool = False) -> Counted:
    """Return the counts of a level, of all its parts: of devices at that level, or of those that moved on from it."""
    return {part: unpack(packed) for part, packed in _READ.run(connection, (campaign, level, int(moved))).fetchall()}


def difference(plus: Counted, minus: Counted) -> Counted:
    """Return what came minus what went."""
    found = dict(plus)
    for part, counts in minus.items():
        found[part] = found[part] - counts if part in found else -counts
    return found


def total(one: Counted, other: Counted) -> Counted:
    """Return the sum."""
    found = dict(one)
    for part, counts in other.items():
        found[part] = found[part] + counts if part in found else counts
    return found


def pack(counts: Integers | Sequence[int]) -> bytes:
    """Return counts as bytes."""
    return np.asarray(counts).astype(_WORD).tobytes()


def unpack(packed: bytes) -> Integers:
    """Return counts that were packed."""
    return np.frombuffer(packed, dtype=_WORD).astype(np.int64)
