"""Duties that one worker at a time does: whoever holds the lease, which runs out if its holder dies."""

from __future__ import annotations

from sqlalchemy import Connection, insert, or_, select, update

from relaxdp.service.schema import LEASES


def take_lease(connection: Connection, duty: str, holder: str, *, now: float, seconds: float) -> bool:
    """Take or renew a lease within a write transaction; False where another worker holds it."""
    free = or_(LEASES.c.holder == holder, LEASES.c.until < now)
    taken = connection.execute(
        update(LEASES).where(LEASES.c.duty == duty, free).values(holder=holder, until=now + seconds)
    )
    if taken.rowcount:
        return True
    if connection.execute(select(LEASES.c.holder).where(LEASES.c.duty == duty)).first() is not None:
        return False
    connection.execute(insert(LEASES).values(duty=duty, holder=holder, until=now + seconds))
    return True


def give_back(connection: Connection, duty: str, holder: str) -> None:
    """Let another worker have the duty at once."""
    connection.execute(update(LEASES).where(LEASES.c.duty == duty, LEASES.c.holder == holder).values(until=0.0))
