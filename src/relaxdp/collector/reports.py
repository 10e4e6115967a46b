"""Stored reports: found and inserted many at once, in one statement each, whichever database it is.

On SQLite a batch travels as one string of bytes that the statement cuts into rows: the interpreter's lock is then
given back once for a whole batch, and not once for each row, so that requests are served meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select

from relaxdp.collector.schema import REPORTS, WITHDRAWN
from relaxdp.storage.database import SqlStatement

DEVICE_BYTES = 16
"""Of a pseudonym, and of its digest, by which a device is found here."""
Known = dict[bytes, dict[int, bytes]]
"""Of each device that has any: its reports by level."""

_FIND = SqlStatement(
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2) "
    "SELECT r.device_digest, r.level, r.report FROM n CROSS JOIN collector_report r "
    "WHERE r.campaign = ?3 AND r.device_digest = substr(?1, i * 16 + 1, 16)",
    "SELECT device_digest, level, report FROM collector_report "
    "WHERE campaign = %s AND device_digest = ANY(%s::bytea[])",
)
_STORE = SqlStatement(
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2) "
    "INSERT INTO collector_report (campaign, device_digest, level, report) "
    "SELECT ?3, substr(?1, i * ?5 + 1, 16), ?4, substr(?1, i * ?5 + 17, ?5 - 16) FROM n",
    "INSERT INTO collector_report (campaign, level, device_digest, report) "
    "SELECT %s, %s, device, report FROM unnest(%s::bytea[], %s::bytea[]) AS row(device, report)",
)


def find(connection: Connection, campaign: int, devices: Sequence[bytes]) -> Known:
    """Return all reports of some devices; a device that withdrew has one at the level WITHDRAWN."""
    if connection.dialect.name == "sqlite":
        rows = _FIND.run(connection, (b"".join(devices), len(devices), campaign)).fetchall()
    else:
        rows = _FIND.run(connection, (campaign, list(devices))).fetchall()
    known: Known = {}
    for device, level, report in rows:
        known.setdefault(device, {})[level] = report
    return known


def store(connection: Connection, campaign: int, level: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
    """Insert reports (device, report) of one level, all of the same width."""
    if connection.dialect.name == "sqlite":
        width = DEVICE_BYTES + len(rows[0][1])
        packed = b"".join([part for row in rows for part in row])
        _STORE.run(connection, (packed, len(rows), campaign, level, width))
    else:
        devices, reports = zip(*rows, strict=True)
        _STORE.run(connection, (campaign, level, list(devices), list(reports)))


def remove(connection: Connection, campaign: int, device: bytes) -> None:
    """Remove all reports of a device, and remember that it withdrew."""
    connection.execute(delete(REPORTS).where(REPORTS.c.campaign == campaign, REPORTS.c.device_digest == device))
    connection.execute(insert(REPORTS).values(campaign=campaign, device_digest=device, level=WITHDRAWN, report=b""))


def remove_some(connection: Connection, campaign: int, most: int) -> int:
    """Remove up to so many reports of a campaign, and return how many it were."""
    chosen = select(REPORTS.c.device_digest).where(REPORTS.c.campaign == campaign).limit(most).distinct()
    devices = [bytes(device) for device in connection.execute(chosen).scalars()]
    if not devices:
        return 0
    found = REPORTS.c.device_digest.in_(bindparam("devices", expanding=True))
    done = connection.execute(delete(REPORTS).where(REPORTS.c.campaign == campaign, found), {"devices": devices})
    return done.rowcount


def pages(connection: Connection, campaign: int, level: int, size: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """Return the reports of one level in the order of the devices' digests, a page at a time."""
    last = b""
    while True:
        query = (
            select(REPORTS.c.device_digest, REPORTS.c.report)
            .where(REPORTS.c.campaign == campaign, REPORTS.c.level == level, REPORTS.c.device_digest > last)
            .order_by(REPORTS.c.device_digest)
            .limit(size)
        )
        rows = [(bytes(device), bytes(report)) for device, report in connection.execute(query)]
        if rows:
            yield rows
        if len(rows) < size:
            return
        last = rows[-1][0]
