"""Counts per level, kept in the transaction that stores a report: an estimate reads these and no report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from relaxdp.collector.codecs import Counted, Integers
from relaxdp.collector.schema import COUNTS

_WORD = "<i8"


def add(connection: Connection, campaign: int, changes: Mapping[int, Counted]) -> None:
    """Add to the counts of levels; the caller holds the campaign, so nobody else does at the same time."""
    for level, parts in changes.items():
        known = read_level(connection, campaign, level, list(parts))
        rows = [
            {"campaign": campaign, "level": level, "part": part, "counts": pack(known.get(part, 0) + change)}
            for part, change in parts.items()
            if change.any()
        ]
        if rows:
            made = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(COUNTS)
            keys = [COUNTS.c.campaign, COUNTS.c.level, COUNTS.c.part]
            made = made.on_conflict_do_update(index_elements=keys, set_={"counts": made.excluded.counts})
            connection.execute(made, rows)


def read_level(connection: Connection, campaign: int, level: int, parts: list[int] | None = None) -> Counted:
    """Return the counts of a level: of all its parts, or of some."""
    query = select(COUNTS.c.part, COUNTS.c.counts).where(COUNTS.c.campaign == campaign, COUNTS.c.level == level)
    if parts is not None:
        query = query.where(COUNTS.c.part.in_(parts))
    return {part: unpack(counts) for part, counts in connection.execute(query)}


def forget(connection: Connection, campaign: int) -> None:
    """Remove all counts of a campaign."""
    connection.execute(delete(COUNTS).where(COUNTS.c.campaign == campaign))


def difference(plus: Counted, minus: Counted) -> Counted:
    """Return what came minus what went."""
    found = dict(plus)
    for part, counts in minus.items():
        found[part] = found[part] - counts if part in found else -counts
    return found


def pack(counts: Integers) -> bytes:
    """Return counts as bytes."""
    return np.asarray(counts).astype(_WORD).tobytes()


def unpack(packed: bytes) -> Integers:
    """Return counts that were packed."""
    return np.frombuffer(packed, dtype=_WORD).astype(np.int64)
