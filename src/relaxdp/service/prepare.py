"""Before the workers start: the schema, and the operator's token at the first start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from relaxdp.errors import ServiceError
from relaxdp.service.clients import networks_of
from relaxdp.service.database import Database
from relaxdp.service.settings import Settings
from relaxdp.service.tokens import create_token

OPERATOR = "operator"


def prepare(
    settings: Settings, token_file: Path | None = None, *, opened: Callable[[Settings], object] | None = None
) -> str | None:
    """Return the operator's token where it is new and no file was named for it.

    What else has to be `opened` before the workers start comes first: a token that nobody gets to see is not made.
    """
    networks_of(settings.trusted_proxies)
    for path in (settings.certificate, settings.certificate_key):
        if path is not None and not path.is_file():
            raise ServiceError(f"there is no file {str(path)!r}. Nothing was started.", path=str(path))
    database = Database(settings.database)
    try:
        database.prepare()
        if opened is not None:
            opened(settings)
        with database.writing() as connection:
            token = create_token(connection, OPERATOR)
            if token is not None and token_file is not None:
                _write(token_file, token)  # before the commit: a token that nobody has seen is not stored
                return None
    finally:
        database.close()
    return token


def renew_token(url: str) -> str:
    """Replace the operator's token and return the new one."""
    database = Database(url)
    try:
        database.prepare()
        with database.writing() as connection:
            return str(create_token(connection, OPERATOR, replace=True))
    finally:
        database.close()


def _write(path: Path, token: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{token}\n")
    except FileExistsError:
        raise ServiceError(f"{str(path)!r} exists already. Nothing was started.", path=str(path)) from None
    except OSError as problem:
        raise ServiceError(f"{str(path)!r} cannot be written: {problem.strerror}. Nothing was started.") from None
