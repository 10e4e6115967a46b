"""What lies in the market's database: one writer at a time, running numbers, levels as text, and files in parts.

Files lie there under the digest of their bytes, so that goods and money change in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256

from sqlalchemy import Connection, Table, func, insert, select

from relaxdp.law.level import Level
from relaxdp.market.schema import FILES

_MARKET = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxmkt')})"


def hold(connection: Connection) -> None:
    """Be the only one who changes the market until the transaction ends.

    Money, goods and levels change together, and sales are rare beside reports: so there is one lock and no order of
    locks to get wrong. SQLite's writers wait for one another anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_MARKET)


def next_number(connection: Connection, table: Table, column: str = "number") -> int:
    """Return the next running number of a table; whoever asks holds the market."""
    return int(connection.execute(select(func.coalesce(func.max(table.c[column]), 0))).scalar_one()) + 1


def level_text(level: Level) -> str:
    """Return the threshold of a level as it is kept.

    >>> from relaxdp.encodings.declared import CategoricalEncoding
    >>> level_text(CategoricalEncoding(["no", "yes"]).level("1e-18"))
    '00000000000000000009'
    """
    return f"{level.threshold:020d}"


def level_columns(level: Level) -> dict[str, str]:
    """Return a level as it is kept: two texts, which `Listing.level` reads back."""
    return {**level.to_json(), "threshold": level_text(level)}


def time_text(seconds: float) -> str:
    """Return a time in UTC.

    >>> time_text(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


PART_BYTES = 256 << 10  # so much of it is in memory for each buyer who downloads


def keep_file(connection: Connection, content: bytes) -> str:
    """Keep a file, and return its digest as `sha256sum` shows it; where it is there already, nothing is written."""
    digest = sha256(content).hexdigest()
    if connection.execute(select(FILES.c.part).where(FILES.c.digest == digest).limit(1)).first() is None:
        for place, start in enumerate(range(0, len(content), PART_BYTES)):
            part = content[start : start + PART_BYTES]
            connection.execute(insert(FILES).values(digest=digest, part=place, content=part))
    return digest


def part_of(connection: Connection, digest: str, place: int) -> bytes | None:
    """Return one part of a kept file; None after the last one."""
    query = select(FILES.c.content).where(FILES.c.digest == digest, FILES.c.part == place)
    found = connection.execute(query).scalar()
    return None if found is None else bytes(found)


def parts_of(connection: Connection, digest: str) -> Iterator[bytes]:
    """Return the bytes of a kept file, a part at a time."""
    place = 0
    while part := part_of(connection, digest, place):
        yield part
        place += 1


def length_of(connection: Connection, digest: str) -> int:
    """Return how many bytes a kept file has."""
    query = select(func.coalesce(func.sum(func.length(FILES.c.content)), 0)).where(FILES.c.digest == digest)
    return int(connection.execute(query).scalar_one())


def read_file(connection: Connection, digest: str) -> bytes:
    """Return a kept file, whole."""
    return b"".join(parts_of(connection, digest))
