"""What PostgreSQL and the way to it can answer, as sentences. Its own texts would show statements and addresses."""

from __future__ import annotations

import re

from psycopg import Error, OperationalError

from relaxdp.errors import (
    LedgerAccessError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
)

Sentence = tuple[type[LedgerError], str]

LOCKED: Sentence = (
    LedgerLockedError,
    "is held by another process, and did not become free within {timeout:g} seconds",
)
_RIGHTS: Sentence = (LedgerAccessError, "may not be read or written by this user: the rights to its tables are missing")
_DOWN: Sentence = (LedgerAccessError, "cannot be used now: its server is shutting down or starting")
_BUSY: Sentence = (LedgerAccessError, "cannot be opened: its server has no connection or no memory left")
_READ_ONLY: Sentence = (LedgerAccessError, "may not be written: this server is a replica, or read-only")
_REFUSED: Sentence = (LedgerAccessError, "refuses this user: the name or the password is wrong, or missing")
_NO_DATABASE: Sentence = (LedgerAccessError, "cannot be opened: there is no such database")
_STOPPED: Sentence = (LedgerAccessError, "ended the transaction: it took too long, or somebody stopped it")
_NOBODY: Sentence = (LedgerAccessError, "cannot be reached: no server answers there")
_LOST: Sentence = (LedgerAccessError, "cannot be used: the connection was lost")

# By the code of the answer: the whole of it first, then its class.
_CODES: dict[str, Sentence] = {
    "55P03": LOCKED,
    "40P01": LOCKED,
    "42501": _RIGHTS,
    "28": _REFUSED,
    "3D000": _NO_DATABASE,
    "3F000": (LedgerAccessError, "cannot be created: the schema of the search path does not exist"),
    "25006": _READ_ONLY,
    "25P03": _STOPPED,
    "25P04": _STOPPED,
    "57014": _STOPPED,
    "57P": _DOWN,
    "08": _LOST,
    "53100": (LedgerFullError, "cannot be written: the disk is full"),
    "53": _BUSY,
    "58": (LedgerFullError, "cannot be read or written: the disk fails, or has no room for it"),
    "42P07": (LedgerDamagedError, "has tables of the ledger's names, but is no ledger"),
    "42P01": (LedgerAccessError, "cannot be used: its tables are gone"),
    "42703": (LedgerDamagedError, "is damaged: its tables have other columns"),
    "54000": (LedgerAccessError, "cannot hold names as long as these, taken together"),
    "23": (LedgerDamagedError, "is damaged, or somebody else writes to it who does not hold it"),
    "XX": (LedgerDamagedError, "is damaged"),
}

# A connection that fails has no code, so it is told by its words, where the server speaks English.
_WORDS: tuple[tuple[tuple[str, ...], Sentence], ...] = (
    (("password", "authentication failed", "pg_hba.conf", 'role ""'), _REFUSED),
    (("starting up", "shutting down", "recovery mode", "not yet accepting"), _DOWN),
    (("too many", "connection slots"), _BUSY),
    (("permission denied",), _RIGHTS),
    (('database "" does not exist',), _NO_DATABASE),
    (("session is read-only", "hot standby"), _READ_ONLY),
    (("definition of service",), (LedgerAccessError, "cannot be opened: its service is not in the service file")),
    ((' value: ""', "bad value"), (LedgerAccessError, "cannot be opened: a parameter of its URL has no valid value")),
    (("timeout", "timed out"), (LedgerAccessError, "did not answer in time")),
    (("certificate", "SSL"), (LedgerAccessError, "cannot be opened: no encrypted connection can be made")),
    (("refused", "No such file", "resolve", "translate host"), _NOBODY),
)
_UNREACHABLE: Sentence = (LedgerAccessError, "cannot be reached, or does not accept the connection")
_NAMES = re.compile(r"\"[^\"]*\"|'[^']*'")  # of hosts and users, which may be any words


def sentence(problem: BaseException, *, connecting: bool) -> Sentence:
    """Return the kind of an error and what it says; `{timeout}` in it stands for the seconds that were waited."""
    code = getattr(problem, "sqlstate", None) or ""
    for known in (code, code[:3], code[:2]):
        if known in _CODES:
            return _CODES[known]
    if connecting:
        text = _NAMES.sub('""', str(problem))
        found = (said for words, said in _WORDS if any(word in text for word in words))
        return next(found, _UNREACHABLE)
    return _LOST if is_lost(problem) else (LedgerError, "cannot be used")


def is_lost(problem: BaseException) -> bool:
    """Return whether the server may have gone on without us, so that nobody knows how it ended."""
    code = problem.sqlstate if isinstance(problem, Error) else None
    if code is None:
        return isinstance(problem, OperationalError)
    return code.startswith(("08", "57P", "25P0"))
