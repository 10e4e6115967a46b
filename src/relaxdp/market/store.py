"""What all of the market's rows have in common: one writer at a time, running numbers, and levels as text."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, Table, func, select

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


def level_text(threshold: int) -> str:
    """Return a threshold as it is kept.

    >>> level_text(17)
    '00000000000000000017'
    """
    return f"{threshold:020d}"


def end_text(threshold: int | None) -> str | None:
    """Return a level that another one was drawn from as it is kept; None where there is none."""
    return None if threshold is None else level_text(threshold)


def end_of(kept: str | None) -> int | None:
    """Return the level that `end_text` wrote."""
    return None if kept is None else int(kept)


def time_text(seconds: float) -> str:
    """Return a time in UTC.

    >>> time_text(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
