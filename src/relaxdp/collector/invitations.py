"""Invitations: shown once, kept as digests, used once; nothing says which device used one."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from hashlib import sha256

from sqlalchemy import Connection, func, insert, select, update

from relaxdp.collector.schema import INVITATIONS


def digest_of(invitation: str) -> bytes:
    """Return what is kept of an invitation."""
    return sha256(invitation.encode("utf-8", "surrogatepass")).digest()


def invite(connection: Connection, campaign: int, number: int, *, also: Iterable[int] = ()) -> list[str]:
    """Return so many new invitations; each of them serves once in the other campaigns of a survey as well."""
    made = [secrets.token_urlsafe(16) for _ in range(number)]
    rows = [
        {"campaign": place, "digest": digest_of(each), "used": False} for place in (campaign, *also) for each in made
    ]
    connection.execute(insert(INVITATIONS), rows)
    return made


def unused(connection: Connection, campaign: int, digests: Collection[bytes]) -> set[bytes]:
    """Return which of these are known and were not used."""
    if not digests:
        return set()
    table = INVITATIONS.c
    query = select(table.digest).where(table.campaign == campaign, table.digest.in_(digests), ~table.used)
    return {bytes(digest) for digest in connection.execute(query).scalars()}


def use(connection: Connection, campaign: int, digests: Collection[bytes]) -> None:
    """Mark invitations as used."""
    if digests:
        table = INVITATIONS.c
        chosen = update(INVITATIONS).where(table.campaign == campaign, table.digest.in_(digests))
        connection.execute(chosen.values(used=True))


def numbers(connection: Connection, campaign: int) -> tuple[int, int]:
    """Return how many invitations there are, and how many of them were used."""
    table = INVITATIONS.c
    query = select(table.used, func.count()).where(table.campaign == campaign).group_by(table.used)
    found = {bool(used): int(number) for used, number in connection.execute(query)}
    return sum(found.values()), found.get(True, 0)
