"""How a service is run: everything that a person may choose, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What a service needs to know. The database's URL may hold a password, so a `repr` does not show it."""

    database: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    rate: float = 100.0
    """Requests a second of one client; 0 for no limit."""
    burst: float = 1000.0
    body_limit: int = 1 << 20
    upload_limit: int = 256 << 20
    """How large the file of a level may be that a seller publishes."""
    trusted_proxies: tuple[str, ...] = ()
    request_log: bool = True
    certificate: Path | None = None
    certificate_key: Path | None = None
    shutdown_seconds: int = 20
    """How long requests may take to finish when the service stops."""
    embed: tuple[str, ...] = ()
    """Sites that may show the survey in a frame."""
