"""Where a ledger in PostgreSQL is looked for, what is said when it is not there, and that no password is ever shown."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from tests.faults.ledger.ledger_work import EVERYONE, FACTS, path
from tests.patience import PATIENCE
from tests.refusals import refused
from tests.servers.ledgers import PostgresPlace, place_of
from tests.servers.postgres import Server

from relaxdp.errors import LedgerAccessError, LedgerError
from relaxdp.ledger.ledger import Ledger
from relaxdp.storage.address import PostgresAddress, postgres_address

SECRET = "hush"


def address_of(url: str, *, timeout: float) -> PostgresAddress:
    found = postgres_address(url, timeout=timeout)
    assert found is not None
    return found


@pytest.fixture
def place(postgres_url: object, request: pytest.FixtureRequest) -> PostgresPlace:
    found = place_of("postgres", request)
    assert isinstance(found, PostgresPlace)
    return found


def shows_no_password(problem: BaseException, *secrets: str) -> None:
    """Not in what people read, not in what programs read, not in what led to it, nor in what was logged."""
    assert problem.__cause__ is None
    assert problem.__context__ is None
    fields = problem.fields if isinstance(problem, LedgerError) else {}
    shown = [str(problem), repr(problem), repr(problem.args), repr(fields), *traceback.format_exception(problem)[:1]]
    # The lines of a traceback are those of the code; a test's own lines would show what it was called with.
    shown += [line for line in traceback.format_exception(problem) if "tests/" not in line]
    for secret in secrets:
        assert all(secret not in each for each in shown)


# URLs


def test_where_a_url_leads() -> None:
    """What is remembered of it: another port or schema is another ledger, another user is not; no secrets."""
    places = {
        url: address_of(f"postgresql://{url}", timeout=1).place
        for url in (
            "me:hush@host:5433/books", "you@host:5433/books?sslpassword=hush", "host/books",
            "host/books?options=-csearch_path=mine", "host/books?options=-cmy.secret=hush", "?service=books",
        )
    }  # fmt: skip
    assert list(places.values())[:4] == [
        "postgresql:///books?host=host&port=5433", "postgresql:///books?host=host&port=5433",
        "postgresql:///books?host=host", "postgresql:///books?host=host&options=-csearch_path%3Dmine",
    ]  # fmt: skip
    assert len(set(places.values())) == 5
    assert SECRET not in "".join(places.values())
    assert address_of(places["host/books?options=-csearch_path=mine"], timeout=1).name == "postgresql://host/books"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:hush@db.example.org:5433/books", "postgresql://me@db.example.org/books"),
        ("postgres://me@db.example.org/books", "postgresql://me@db.example.org/books"),
        ("postgresql+psycopg://me:h%40%2Fush@[::1]/books?sslmode=require", "postgresql://me@::1/books"),
        ("postgresql:///books?password=hush&user=me", "postgresql://me@/books"),
        ("postgresql://%2Frun%2Fpostgresql/books", "postgresql:///books?host=/run/postgresql"),
        ("postgresql://one:1,two:2/books", "postgresql://one,two/books"),
        ("postgresql://?service=books&sslpassword=hush", "postgresql:///?service=books"),
        ("postgresql://me:a?hush=b@host/books", "postgresql://me@host/books"),
    ],
)
def test_the_name_of_a_url(url: str, name: str) -> None:
    address = address_of(url, timeout=30)
    assert address.name == name
    assert SECRET not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:p@hush@host/books",
        "postgresql://me:p/hush@host/books",
        "postgresql://me:hush/books",
        "postgresql://me:hush%zz@host/books",
        "postgresql://me:pass@host/books?hush=1",
        "postgresql://me:pass@host/books?options",
        "postgresql://me:pass@host:hush/books",
        "postgresql://[hush/books",
        "postgresql://me:hush%ff@host/books",
    ],
)
def test_a_url_that_cannot_be_understood_is_not_shown(url: str) -> None:
    with refused(LedgerAccessError, says="everything but letters and digits is encoded, like %40 for @") as found:
        Ledger.open(url)
    shows_no_password(found.value, SECRET)


@pytest.mark.parametrize("text", ["host=db password=hush", "postgresql:me:hush@db", "postgres:hush@db/books"])
def test_an_address_is_no_file_name(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new and empty ledger under that name would lie there for everybody to read."""
    monkeypatch.chdir(tmp_path)
    with refused(LedgerAccessError, says="the ledger's URL cannot be understood") as found:
        Ledger.open(text)
    shows_no_password(found.value, SECRET)
    assert not list(tmp_path.iterdir())


def test_what_a_url_may_say(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    address = address_of(place.where, timeout=0.5).parameters
    assert (address["connect_timeout"], address["target_session_attrs"]) == (2, "read-write")
    assert address["password"] == place.parameters["password"]
    ours = address_of(
        f"{place.where}?connect_timeout=7&options=-csearch_path=a%20-cwork_mem=1MB", timeout=0.5
    ).parameters
    assert (ours["connect_timeout"], ours["options"]) == ("7", "-csearch_path=a -cwork_mem=1MB")
    for url in ("postgres", "postgresql+psycopg"):
        Ledger.open(place.where.replace("postgresql", url, 1)).close()
    # The password from the environment or from a file, where `ps` does not show it.
    bare = place.where.replace(place.where.partition("://")[2].partition("@")[0], str(place.parameters["user"]))
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    with pytest.raises(LedgerAccessError, match="the name or the password is wrong, or missing"):
        Ledger.open(bare)
    monkeypatch.setenv("PGPASSWORD", str(place.parameters["password"]))
    Ledger.open(bare, create=False).close()


def test_a_service_file(place: PostgresPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{key}={value}" for key, value in place.parameters.items()]
    (tmp_path / "services").write_text("\n".join(["[books]", *lines]))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    with Ledger.open("postgresql://?service=books") as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, 1, budget=1)
    with pytest.raises(LedgerAccessError, match="its service is not in the service file") as found:
        Ledger.open("postgresql://?service=cooks")
    shows_no_password(found.value, str(place.parameters["password"]))


def test_a_schema_of_its_own(place: PostgresPlace) -> None:
    place.run("CREATE SCHEMA books", "CREATE TABLE bookmarks (x int)")
    there = f"{place.where}?options=-csearch_path=books"
    with Ledger.open(there) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, 1, budget=1)
        ledger.verify()
    assert place.run("SELECT count(*) FROM books.ledger_event") == [(3,)]
    with Ledger.open(place.where) as other:  # beside other tables, and beside another ledger
        assert other.history() == []
    with Ledger.open(there, create=False) as ledger:
        assert len(ledger.history()) == 3
    with pytest.raises(LedgerAccessError, match="the schema of the search path does not exist"):
        Ledger.open(f"{place.where}?options=-csearch_path=cooks")


# Servers that are not there, or do not want us


@contextlib.contextmanager
def answering(content: bytes | None) -> Iterator[int]:
    """Return the port of a server that gives everybody the same answer; None is silence."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = [True]
        listener.settimeout(0.1)

        def serve() -> None:
            clients = []
            while running:
                with contextlib.suppress(TimeoutError, OSError):
                    client, _ = listener.accept()
                    clients.append(client)
                    client.recv(1000)
                    if content is not None:
                        client.sendall(content)
                        client.close()
            for client in clients:
                client.close()

        thread = Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            running.clear()
            thread.join()


def fatal(code: str, text: str) -> bytes:
    fields = b"".join(mark + value.encode() + b"\0" for mark, value in [(b"S", "FATAL"), (b"C", code), (b"M", text)])
    return b"E" + (len(fields) + 5).to_bytes(4, "big") + fields + b"\0"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "did not answer in time"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "cannot be reached, or does not accept the connection"),
        (fatal("57P03", "the database system is starting up"), "its server is shutting down or starting"),
        (fatal("57P03", "the database system is shutting down"), "its server is shutting down or starting"),
        (fatal("53300", "sorry, too many clients already"), "its server has no connection or no memory left"),
        (fatal("42501", 'permission denied for database "books"'), "the rights to its tables are missing"),
        (fatal("28000", 'no pg_hba.conf entry for host "1.2.3.4"'), "the name or the password is wrong, or missing"),
        (fatal("3D000", "die Datenbank gibt es nicht"), "cannot be reached, or does not accept the connection"),
    ],
)
def test_servers_that_do_not_want_us(answer: bytes | None, words: str) -> None:
    with answering(answer) as port:
        url = f"postgresql://me:hush@127.0.0.1:{port}/books?sslmode=disable&gssencmode=disable"
        with pytest.raises(LedgerAccessError, match=words) as found:
            Ledger.open(url, timeout=0.5)
    assert found.value.message.startswith("the ledger 'postgresql://me@127.0.0.1/books' ")
    shows_no_password(found.value, SECRET)


def test_no_server_and_no_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for host in (f"127.0.0.1:{port}", "%2Fnowhere", "password.service.invalid"):
        with pytest.raises(LedgerAccessError, match="cannot be reached: no server answers there") as found:
            Ledger.open(f"postgresql://me:hush@{host}/books", timeout=2)
        shows_no_password(found.value, SECRET)
    with (
        answering(b"N") as port,
        pytest.raises(LedgerAccessError, match="no encrypted connection can be made") as found,
    ):
        Ledger.open(f"postgresql://me:hush@127.0.0.1:{port}/books?sslmode=require&gssencmode=disable", timeout=2)
    shows_no_password(found.value, SECRET)


def test_what_a_real_server_refuses(
    place: PostgresPlace, postgres: Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    user, database, password = (str(place.parameters[key]) for key in ("user", "dbname", "password"))
    given = place.where.partition("://")[2].partition("@")[0]
    cases = [
        (place.where.replace(given, f"{user}:hush"), "the name or the password is wrong, or missing"),
        (place.where.replace(given, "nobody:hush"), "the name or the password is wrong, or missing"),
        (place.where.replace(f"/{database}", "/absent"), "there is no such database"),
        (f"{place.where}?sslmode=hush", "a parameter of its URL has no valid value"),
        (f"{place.where}?connect_timeout=hush", "a parameter of its URL has no valid value"),
    ]
    for url, words in cases:
        with pytest.raises(LedgerAccessError, match=words) as found:
            Ledger.open(url)
        shows_no_password(found.value, SECRET, password)
    postgres.run(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(LedgerAccessError, match="a replica, or read-only") as found:
        Ledger.open(place.where)
    shows_no_password(found.value, password)
    assert SECRET not in caplog.text
    assert password not in caplog.text
    assert not any(capfd.readouterr())


def test_nothing_that_is_kept_shows_the_password(place: PostgresPlace) -> None:
    with Ledger.open(place.where) as ledger:
        for thing in (ledger, ledger._store, vars(ledger._store)):
            assert str(place.parameters["password"]) not in repr(thing)


def test_without_psycopg() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from relaxdp.ledger.ledger import Ledger\n"
        "try: Ledger.open('postgresql://me:hush@host/books')\n"
        "except Exception as problem: print(type(problem).__name__, problem)\n"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    sentence = "a ledger in PostgreSQL needs psycopg: pip install 'relaxdp[postgres]'."
    assert shown.stdout == f"LedgerAccessError {sentence}\n"


def test_files_do_not_wait_for_psycopg(tmp_path: Path) -> None:
    script = (
        "import sys; from relaxdp.ledger.ledger import Ledger; Ledger.open('x.db'); print('psycopg' in sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE, cwd=tmp_path,
        env={**os.environ},
    )  # fmt: skip
    assert shown.stdout == "False\n"
