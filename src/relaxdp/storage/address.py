"""Where something is kept: a SQLite file, or a PostgreSQL database by its URL, which may hold a password."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
"""The schemes of its URLs."""


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file."""

    path: Path

    @property
    def name(self) -> str:
        """How it is called in messages."""
        return str(self.path)


_SCHEMA = re.compile(r"-c ?search_path=[\w,]+")


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """What a connection needs, and how the database is called in messages."""

    name: str
    place: str
    """Like the name, but with port and options: another port or schema is another place, another user is not."""
    parameters: dict[str, Any] = field(repr=False)


def postgres_address(url: str, *, timeout: float) -> PostgresAddress | None:
    """Return the address that a URL names; None where it cannot be understood, so that nothing of it is shown.

    What the URL leaves out comes from libpq's own places: PGPASSWORD and its sisters, `.pgpass`, a service file.
    """
    import psycopg  # noqa: PLC0415 (files do not need it)
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    rest = url.partition("://")[2]
    # libpq wants a second `=` of a parameter (`options=-csearch_path=books`) in its encoded form; nobody writes it so.
    parts = [first + mark + value.replace("=", "%3D") for first, mark, value in map(_cut, rest.split("&"))]
    try:
        found: dict[str, Any] = dict(conninfo_to_dict(f"postgresql://{'&'.join(parts)}"))
    except (psycopg.Error, UnicodeError):
        found = {"host": "@@"}
    host, port, database = (str(found.get(key) or "") for key in ("host", "port", "dbname"))
    # A password whose @, : or / was not encoded ends up in one of these, and from there in messages.
    if "@" in host[1:] or "@" in database or not all(each.isdecimal() for each in port.split(",") if each):
        return None
    found.setdefault("connect_timeout", max(2, math.ceil(timeout)))
    # A network that falls silent ends the wait as well, and of several servers it is the one that is written to.
    found.setdefault("tcp_user_timeout", max(2000, math.ceil(timeout * 1000)))
    found.setdefault("keepalives_idle", 30)
    found.setdefault("target_session_attrs", "read-write")
    return PostgresAddress(_name(found), _place(found), {**found, "client_encoding": "utf8"})


def _cut(pair: str) -> tuple[str, str, str]:
    return pair.partition("=")


def _place(found: dict[str, Any]) -> str:
    known = {name: str(found[name]) for name in ("host", "port", "service", "options") if found.get(name)}
    options = known.get("options", "")
    if options and not _SCHEMA.fullmatch(options):  # whatever else is set there may be secret
        known["options"] = sha256(options.encode()).hexdigest()[:16]
    return f"postgresql:///{quote(str(found.get('dbname') or ''))}?{urlencode(known)}".rstrip("?")


def _name(found: dict[str, Any]) -> str:
    """Return the URL without what is secret, and without what nobody needs in order to recognise it."""
    user = f"{found['user']}@" if found.get("user") else ""
    host = found.get("host") or ""
    service = f"?service={found['service']}" if found.get("service") else ""
    if host.startswith("/"):  # a folder with the server's socket
        host, service = "", service or f"?host={host}"
    return f"postgresql://{user}{host}/{found.get('dbname') or ''}{service}"
