"""Files in the database, in parts, under the digest of their bytes: goods and money change in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path

from sqlalchemy import Connection, func, insert, select

from relaxdp.market.schema import FILES

PART_BYTES = 256 << 10  # so much of it is in memory for each buyer who downloads


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits, as `sha256sum` shows it."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def keep_file(connection: Connection, path: Path, digest: str) -> None:
    """Keep a file under its digest; where it is there already, nothing is written."""
    if connection.execute(select(FILES.c.part).where(FILES.c.digest == digest).limit(1)).first() is not None:
        return
    with path.open("rb") as file:
        place = 0
        while part := file.read(PART_BYTES):
            connection.execute(insert(FILES).values(digest=digest, part=place, content=part))
            place += 1


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


def write_file(connection: Connection, digest: str, path: Path) -> Path:
    """Write a kept file to a place on disk, and return that."""
    with path.open("wb") as file:
        file.writelines(parts_of(connection, digest))
    return path
