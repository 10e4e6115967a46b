"""Statements on the hot path, as the database's own driver takes them: an expression language costs more than they."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement in the words of both databases."""

    sqlite: str
    postgres: str

    @classmethod
    def shared(cls, text: str) -> Statement:
        """Return a statement that both understand, but for the mark of a parameter.

        >>> Statement.shared("SELECT ?").postgres
        'SELECT %s'
        """
        return cls(text, text.replace("?", "%s"))

    def run(self, connection: Connection, parameters: Sequence[Any]) -> Any:
        """Run it within the transaction of a connection, and return the driver's cursor."""
        driver: Any = connection.connection.driver_connection
        return driver.execute(self.sqlite if connection.dialect.name == "sqlite" else self.postgres, parameters)

    def run_many(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Run it once for each row."""
        driver: Any = connection.connection.driver_connection
        if connection.dialect.name == "sqlite":
            driver.executemany(self.sqlite, rows)
            return
        with driver.cursor() as cursor:
            cursor.executemany(self.postgres, rows)
