"""Tokens: made here, shown once, and kept only as a digest.

By hand and not JWTs: a renewed token ends the old one, and what is merely signed counts until its time is over.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select

from relaxdp.sampling.private_file import PrivateFileError, write_private_file
from relaxdp.server_errors import ServiceError
from relaxdp.service.schema import TOKENS
from relaxdp.storage.database import Database

OPERATOR = "operator"


def digest_of(token: str) -> bytes:
    """Return what is stored of a token. It has 256 random bits, so a plain hash does not give it away."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def create_token(connection: Connection, role: str, *, replace: bool = False) -> str | None:
    """Return a new token for a role, or None where it has one already and `replace` does not say otherwise."""
    known = connection.execute(select(TOKENS.c.digest).where(TOKENS.c.role == role)).scalar()
    if known is not None and not replace:
        return None
    token = secrets.token_urlsafe(32)
    connection.execute(delete(TOKENS).where(TOKENS.c.role == role))
    connection.execute(insert(TOKENS).values(role=role, digest=digest_of(token)))
    return token


def digest_for(connection: Connection, role: str) -> bytes | None:
    """Return the stored digest of a role's token."""
    found = connection.execute(select(TOKENS.c.digest).where(TOKENS.c.role == role)).scalar()
    return None if found is None else bytes(found)


def bears(header: str | None, digest: bytes | None) -> bool:
    """Tell whether an Authorization header bears the token with this digest, in a time that tells nothing of it."""
    scheme, _, token = (header or "").partition(" ")
    return scheme.lower() == "bearer" and digest is not None and compare_digest(digest_of(token.strip()), digest)


def make_operator_token(database: Database, token_file: Path | None, *, replace: bool) -> str | None:
    """Make the operator's token, where there is none or it is replaced.

    Its file is written before the commit: a token that nobody has seen is not stored.
    """
    written = False
    try:
        with database.writing() as connection:
            token = create_token(connection, OPERATOR, replace=replace)
            if token is not None and token_file is not None:
                _write(token_file, token)
                written = True
    except BaseException:
        if written and token_file is not None:  # it was not stored, so it opens nothing
            token_file.unlink(missing_ok=True)
        raise
    return token


def _write(path: Path, token: str) -> None:
    try:
        write_private_file(path, f"{token}\n".encode(), replace=False)
    except FileExistsError:
        raise ServiceError("{path!r} exists already.", path=str(path)) from None
    except PrivateFileError as problem:
        raise ServiceError("{path!r} {why}.", path=str(path), why=problem) from None
