"""The ledger in a PostgreSQL database, which several machines and vaults can share."""

from __future__ import annotations

import math
import re
from hashlib import sha256
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict

from relaxdp.errors import LedgerError
from relaxdp.ledger.ledger import LOCKED, UNCERTAIN, EventStore, StoreProblem, TransactionKind, TransactionStep

# The name of the table holds the version of its columns. ALWAYS fires the trigger for replication roles as well.
_CREATE: tuple[LiteralString, ...] = (
    "CREATE TABLE relaxdp_ledger_v1 (vault text, number bigint, content text NOT NULL, digest text NOT NULL, "
    "PRIMARY KEY (vault, number))",
    "CREATE OR REPLACE FUNCTION relaxdp_ledger_reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
    "'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$",
    "CREATE TRIGGER relaxdp_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON relaxdp_ledger_v1 "
    "EXECUTE FUNCTION relaxdp_ledger_reject()",
    "ALTER TABLE relaxdp_ledger_v1 ENABLE ALWAYS TRIGGER relaxdp_ledger_append_only",
)

# For one transaction, whatever the server, the database or the user have as defaults: waiting ends, a process that
# vanished while it held the ledger loses it, and a commit is on disk (and on synchronous replicas) before it returns.
_SETTINGS = (
    "SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', '30s', true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' "
    "THEN 'remote_apply' ELSE 'on' END, true), current_setting('fsync'), current_setting('server_encoding')"
)


_AGAIN = "Run the command again."
_URL = "Check the URL of the ledger in vault.toml, and that the server runs."
_ADMIN = "Ask the administrator of the database."
_LOGIN = "Check the user and the password, for example in ~/.pgpass."
_RIGHTS = StoreProblem("cannot be read or written: this user lacks the rights to its table", _ADMIN)
_DOWN = StoreProblem("cannot be used now: its server starts or shuts down", _AGAIN)
_BUSY = StoreProblem("cannot be opened: its server has no connection or no memory left", _AGAIN)
_READ_ONLY = StoreProblem("cannot be written: its server is a replica, or read-only", _URL)
_REJECTED = StoreProblem("rejects this user: the name or the password is wrong or missing", _LOGIN)
_NO_DATABASE = StoreProblem("cannot be opened: there is no such database", _URL)
_STOPPED = StoreProblem("ended the transaction: it took too long, or was stopped", _AGAIN)
_LOST = StoreProblem("cannot be used: the connection was lost", _AGAIN)
_DAMAGED = StoreProblem("is damaged", "Restore the database from a backup.")
_NO_SYNC = StoreProblem("is not durable: its server does not write to its disk (fsync is off)", _ADMIN)
_NOT_UTF8 = StoreProblem(
    "cannot store every name: the character encoding of the database is not UTF8", "Use another database."
)

# By SQLSTATE: the whole code first, then its class.
_CODES = {
    "55P03": LOCKED,
    "40P01": LOCKED,
    "42501": _RIGHTS,
    "28": _REJECTED,
    "3D000": _NO_DATABASE,
    "3F000": StoreProblem("cannot be created: the schema of the search path does not exist", _ADMIN),
    "25006": _READ_ONLY,
    "25P03": _STOPPED,
    "25P04": _STOPPED,
    "57014": _STOPPED,
    "57P": _DOWN,
    "08": _LOST,
    "53100": StoreProblem("cannot be written: the disk of its server is full", _ADMIN),
    "53": _BUSY,
    "58": StoreProblem("cannot be read or written: the disk of its server is full or fails", _ADMIN),
    "42P01": StoreProblem("is missing: the database has no table of ledgers", _URL),
    "42703": _DAMAGED,
    "23": _DAMAGED,
    "XX": _DAMAGED,
}

# A failed connection has no code, so it is recognised by words, where the server uses English.
_WORDS = (
    (("password", "authentication failed", "pg_hba.conf", 'role ""'), _REJECTED),
    (("starting up", "shutting down", "recovery mode", "not yet accepting"), _DOWN),
    (("too many", "connection slots"), _BUSY),
    (("permission denied",), _RIGHTS),
    (('database "" does not exist',), _NO_DATABASE),
    (("session is read-only", "hot standby"), _READ_ONLY),
    (("timeout", "timed out"), StoreProblem("did not answer in time", _AGAIN)),
    (("certificate", "SSL"), StoreProblem("cannot be opened: the encrypted connection fails", _URL)),
    (("refused", "No such file", "resolve", "translate host"), StoreProblem("does not answer", _URL)),
)
_UNREACHABLE = StoreProblem("cannot be reached, or does not accept the connection", _URL)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")  # Names of hosts and users, which may contain any of these words.


class PostgresStore(EventStore):
    """A store of events in PostgreSQL: the rows of one vault in a table of ledgers."""

    select = "SELECT number, content, digest FROM relaxdp_ledger_v1 WHERE vault = %s AND number >= %s ORDER BY number"
    insert = "INSERT INTO relaxdp_ledger_v1 (vault, number, content, digest) VALUES (%s, %s, %s, %s)"
    database_error = psycopg.Error

    def __init__(self, url: str, vault_id: str, *, timeout: float = 30.0) -> None:
        self._parameters, self.vault = _parse_url(url, timeout), (vault_id,)
        super().__init__(_format_address(self._parameters), timeout)

    def _connect(self) -> psycopg.Connection[Any]:
        # Nothing is prepared: poolers between here and the server share connections.
        return psycopg.connect(**self._parameters, prepare_threshold=None)

    def _begin(self, connection: psycopg.Connection[Any], kind: TransactionKind) -> None:
        # A writer must see what was committed while it waited, a reader one state and nothing later.
        level = psycopg.IsolationLevel
        connection.isolation_level = level.REPEATABLE_READ if kind == "read" else level.READ_COMMITTED
        connection.read_only = kind == "read"
        wait = min(2**31 - 1, max(1, round(self._timeout * 1000)))
        *_, syncs, encoding = connection.execute(_SETTINGS, (str(wait),)).fetchall()[0]
        if syncs != "on":
            raise self._make_error(_NO_SYNC)
        if encoding != "UTF8":
            raise self._make_error(_NOT_UTF8)
        if kind == "write":
            _wait_for_lock(connection, f"relaxdp ledger {self.vault[0]}")
        elif kind == "create":
            _wait_for_lock(connection, "relaxdp ledger")  # Vaults that are created together wait for each other.
            if connection.execute("SELECT to_regclass('relaxdp_ledger_v1')").fetchall() == [(None,)]:
                for statement in _CREATE:
                    connection.execute(statement)

    def _explain_error(self, error: psycopg.Error, step: TransactionStep) -> StoreProblem:
        if step == "commit" and _is_connection_lost(error):
            return UNCERTAIN
        code = error.sqlstate or ""
        for known in (code, code[:3], code[:2]):
            if known in _CODES:
                return _CODES[known]
        if step == "connect":
            text = _QUOTED.sub('""', str(error))
            return next((each for words, each in _WORDS if any(word in text for word in words)), _UNREACHABLE)
        return _LOST if _is_connection_lost(error) else StoreProblem("cannot be used", _AGAIN)


def _wait_for_lock(connection: psycopg.Connection[Any], lock_name: str) -> None:
    """Wait for a lock that ends with the transaction. Two vaults with one hash only wait for each other."""
    number = int.from_bytes(sha256(lock_name.encode()).digest()[:8], signed=True)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))


def _is_connection_lost(error: psycopg.Error) -> bool:
    """Return whether the connection was lost. The server may have gone on, so a commit is uncertain."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError)
    return error.sqlstate.startswith(("08", "57P", "25P0"))


def _parse_url(url: str, timeout: float) -> dict[str, Any]:
    """Return the parameters of a connection. Everything else comes from libpq: PGPASSWORD, ~/.pgpass, a service."""
    # libpq wants the second '=' of a parameter (options=-csearch_path=books) encoded, and people write it plainly.
    pairs = (pair.partition("=") for pair in url.partition("://")[2].split("&"))
    encoded = "&".join(name + mark + value.replace("=", "%3D") for name, mark, value in pairs)
    found: dict[str, Any] | None = None
    try:
        found = dict(conninfo_to_dict(f"postgresql://{encoded}"))
    except (psycopg.Error, UnicodeError):
        found = None
    # A password with a plain @, : or / ends up in one of these, and would be shown in messages.
    host, port, database = (str((found or {}).get(key) or "") for key in ("host", "port", "dbname"))
    is_wrong = "@" in host[1:] or "@" in database or not all(each.isdecimal() for each in port.split(",") if each)
    if found is None or is_wrong:
        raise LedgerError(
            "The URL of the ledger cannot be parsed.",
            hint="Write it like postgresql://user@host/database. In a password, percent-encode everything "
            "but letters and digits, such as %40 for @.",
        )
    found.setdefault("connect_timeout", max(2, math.ceil(timeout)))
    found.setdefault("tcp_user_timeout", max(2000, math.ceil(timeout * 1000)))  # A silent network ends the wait, too.
    found.setdefault("keepalives_idle", 30)
    found.setdefault("target_session_attrs", "read-write")
    return {**found, "client_encoding": "utf8"}


def _format_address(parameters: dict[str, Any]) -> str:
    user = f"{parameters['user']}@" if parameters.get("user") else ""
    host, port = parameters.get("host") or "", parameters.get("port") or ""
    extra = f"?service={parameters['service']}" if parameters.get("service") else ""
    if host.startswith("/"):  # The folder of the server's socket.
        host, extra = "", extra or f"?host={host}"
    return f"postgresql://{user}{host}{f':{port}' if port else ''}/{parameters.get('dbname') or ''}{extra}"
