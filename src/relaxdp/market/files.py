"""Files in the database, in parts, under the digest of their bytes: goods and money change in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, insert, select

from relaxdp.market.schema import FILES

PART_BYTES = 4 << 20


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits, as `sha256sum` shows it."""
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


def keep_file(connection: Connection, path: Path, digest: str) -> None:
    """Keep a file under its digest; where it is there already, nothing is written."""
    if connection.execute(select(FILES.c.part).where(FILES.c.digest == digest).limit(1)).first() is not None:
        return
    with path.open("rb") as file:
        place = 0
        while part := file.read(PART_BYTES):
            connection.execute(insert(FILES).values(digest=digest, part=place, content=part))
            place += 1


def parts_of(connection: Connection, digest: str) -> Iterator[bytes]:
    """Return the bytes of a kept file, a part at a time."""
    place = 0
    while True:
        query = select(FILES.c.content).where(FILES.c.digest == digest, FILES.c.part == place)
        found = connection.execute(query).scalar()
        if found is None:
            return
        yield bytes(found)
        place += 1


def write_file(connection: Connection, digest: str, path: Path) -> Path:
    """Write a kept file to a place on disk, and return that."""
    with path.open("wb") as file:
        for part in parts_of(connection, digest):
            file.write(part)
    return path
