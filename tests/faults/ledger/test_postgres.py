"""What can go wrong between a ledger and its PostgreSQL server: restarts, crashes, lost commits, missing rights."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from threading import Thread

import pytest
from tests.conftest import missing
from tests.faults.ledger.ledger_work import EVERYONE, FACTS, FORK, is_one_sentence, path
from tests.faults.proxy import failing_network
from tests.patience import PATIENCE, until
from tests.servers.ledgers import Place, PostgresPlace, place_of
from tests.servers.postgres import MissingServerError, OwnServer, Server

from relaxdp.draw.stream import PathId
from relaxdp.errors import (
    LedgerAccessError,
    LedgerDamagedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerUncertainError,
)
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.postgres import PostgresStore

pytestmark = pytest.mark.long


@pytest.fixture
def place(postgres_url: object, request: pytest.FixtureRequest) -> Place:
    found = place_of("postgres", request)
    with Ledger.open(found.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    return found


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A sentence is all that there is: no library prints its own view of it."""
    yield
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR", "CRITICAL")] == []


@pytest.fixture(scope="module")
def own_server() -> Iterator[OwnServer]:
    """A server that a test may stop."""
    try:
        server = OwnServer()
    except MissingServerError as problem:
        missing(str(problem))
    yield server
    server.close()


@pytest.fixture
def own(own_server: OwnServer) -> Iterator[PostgresPlace]:
    name = own_server.database()
    yield PostgresPlace(own_server.url(name))
    own_server.give_back(name)


# The server


def test_a_server_that_is_restarted(own_server: OwnServer, own: PostgresPlace) -> None:
    with Ledger.open(own.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
        own_server.stop()
        for ask in (ledger.charge, ledger.quote):
            with pytest.raises(LedgerAccessError, match="no server answers there") as found:
                ask(EVERYONE, path("a"), FACTS, 1)
            is_one_sentence(found.value, own.name)
        own_server.start()
        assert ledger.charge(EVERYONE, path("a"), FACTS, 1).cost == Decimal("0.5")
        ledger.verify()


@pytest.mark.long
def test_a_server_that_crashes_right_after_a_charge(own_server: OwnServer, own: PostgresPlace) -> None:
    """On disk before the call returns, whatever the database says; and the test would notice if it were not."""
    own_server.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
    own_server.run("SELECT pg_reload_conf()")
    Ledger.open(own.where).close()
    name = own.parameters["dbname"]
    own_server.run(f"ALTER DATABASE {name} SET synchronous_commit = off")
    for level in ("0.1", "0.2", "0.3"):
        with Ledger.open(own.where) as ledger:
            ledger.charge(EVERYONE, path("a"), FACTS, level, budget=1)
        own_server.stop("crash")
        own_server.start()
        with Ledger.open(own.where) as ledger:
            ledger.verify()
            assert ledger.balance(EVERYONE).spent == Decimal(level)
    own.run("CREATE TABLE other (x int)")
    own_server.run("CHECKPOINT")
    own.run("INSERT INTO other VALUES (1)")
    own_server.stop("crash")
    own_server.start()
    assert own.run("SELECT * FROM other") == []


def test_a_server_process_that_is_killed(own_server: OwnServer, own: PostgresPlace) -> None:
    """kill -9 of one of its processes makes the whole server begin anew from its log."""
    store = PostgresStore(own.where, timeout=PATIENCE)
    with Ledger.open(own.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)

    def killed() -> None:
        with store.writing() as connection:
            connection.exec_driver_sql("UPDATE ledger_path SET largest = '0.6'")
            os.kill(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one(), signal.SIGKILL)
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(LedgerAccessError, match="the connection was lost") as found:
        killed()
    is_one_sentence(found.value, own.name)

    def answers() -> bool:
        with suppress(LedgerAccessError):
            Ledger.open(own.where, create=False).close()
            return True
        return False

    until(answers)
    with Ledger.open(own.where) as ledger:
        ledger.verify()
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")


def test_how_a_commit_is_made_durable(place: PostgresPlace, postgres: Server) -> None:
    name, ask = place.parameters["dbname"], "SHOW synchronous_commit"
    for given, used in [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]:
        postgres.run(f"ALTER DATABASE {name} SET synchronous_commit = {given}")
        with PostgresStore(place.where, timeout=PATIENCE).writing() as connection:
            assert connection.exec_driver_sql(ask).scalar() == used


def test_other_defaults_change_nothing(place: PostgresPlace, postgres: Server) -> None:
    """Under another isolation a writer that waited would not see what it waited for."""
    for setting in ("default_transaction_isolation = 'serializable'", "lock_timeout = 1", "client_encoding = 'LATIN1'"):
        postgres.run(f"ALTER DATABASE {place.parameters['dbname']} SET {setting}")
    with Ledger.open(place.where) as one, Ledger.open(place.where) as two:
        with place.hold():
            late = Thread(target=two.charge, args=(EVERYONE, path("b"), FACTS, "0.25"))
            late.start()
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            until(lambda: place.run(waits) == [(1,)])
        late.join()
        one.charge(Subject.population("日本"), path("ä"), FACTS, 1, budget=1)
        assert one.balance(EVERYONE).spent == Decimal("0.75")
        assert one.subjects()[-1].name == "日本"
        one.verify()


def test_a_server_that_does_not_sync(own_server: OwnServer, own: PostgresPlace) -> None:
    for value in ("off", "on"):
        own_server.run(f"ALTER SYSTEM SET fsync = {value}")
        own_server.run("SELECT pg_reload_conf()")
        until(lambda: own_server.run("SHOW fsync") == [(value,)])  # noqa: B023
        if value == "off":
            with pytest.raises(LedgerAccessError, match=r"would forget: .* \(fsync is off\)") as found:
                Ledger.open(own.where)
            is_one_sentence(found.value, own.name)
    Ledger.open(own.where).close()


def test_a_database_that_cannot_hold_every_name(postgres: Server) -> None:
    name = postgres.database("ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(LedgerAccessError, match="the encoding of the database is not UTF8"):
        Ledger.open(postgres.url(name))
    postgres.run(f"DROP DATABASE {name}")


# The connection


def test_a_connection_that_is_ended_in_the_middle(place: PostgresPlace) -> None:
    store = PostgresStore(place.where, timeout=PATIENCE)

    def interrupted() -> None:
        with store.writing() as connection:
            connection.exec_driver_sql("UPDATE ledger_path SET largest = '0.6'")
            server = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            place.run(f"SELECT pg_terminate_backend({server}, 10000)")
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(LedgerAccessError, match="is shutting down or starting|connection was lost") as found:
        interrupted()
    is_one_sentence(found.value, place.name)
    with Ledger.open(place.where) as ledger:
        ledger.verify()


def test_ended_while_it_commits(place: PostgresPlace) -> None:
    """A trigger makes the commit last, until the server is told to end it."""
    place.run(
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON ledger_event DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION linger()",
    )
    committing = "FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active' AND datname = current_database()"

    def end_it() -> None:
        until(lambda: place.run(f"SELECT pid {committing}"))
        place.run(f"SELECT pg_terminate_backend(pid) {committing}")

    with Ledger.open(place.where) as ledger:
        other = Thread(target=end_it)
        other.start()
        with pytest.raises(LedgerUncertainError, match="may be charged") as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        other.join()
        is_one_sentence(found.value, place.name)
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")
        ledger.verify()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_is_lost(place: PostgresPlace, postgres: Server, when: str) -> None:
    """Nobody can know how it ended. Running it again is right in both cases."""
    with failing_network(postgres, when) as port:
        there = place.where.replace(f":{postgres.port}/", f":{port}/")
        store = PostgresStore(f"{there}?sslmode=disable&gssencmode=disable", timeout=PATIENCE)
        with pytest.raises(LedgerUncertainError) as found:
            Ledger(store).charge(EVERYONE, path("a"), FACTS, 1)
        assert found.value.message.endswith(" may be charged. Running it again charges nothing twice.")
        is_one_sentence(found.value, place.name)
    place.settle()
    with Ledger.open(place.where) as ledger:
        ledger.verify()
        stands = ledger.balance(EVERYONE).spent == 1
        assert stands == (when == "after")
        assert ledger.charge(EVERYONE, path("a"), FACTS, 1).cost == (0 if stands else Decimal("0.5"))
        assert ledger.balance(EVERYONE).spent == 1


def test_a_failed_transaction_is_not_taken_for_a_commit(place: PostgresPlace) -> None:
    """PostgreSQL answers COMMIT with a rollback and no error where a statement failed and nobody looked."""

    def careless() -> None:
        with PostgresStore(place.where, timeout=PATIENCE).writing() as connection:
            connection.exec_driver_sql("UPDATE ledger_path SET largest = '0.6'")
            with suppress(Exception):
                connection.exec_driver_sql("SELECT 1 / 0")

    with pytest.raises(LedgerError, match="the transaction failed") as found:
        careless()
    is_one_sentence(found.value, place.name)


def test_a_holder_that_vanished_lets_go(place: PostgresPlace) -> None:
    """A stopped process keeps its connection; the server ends its transaction, so that others can go on."""
    with PostgresStore(place.where, timeout=PATIENCE).writing() as connection:
        idle = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
    assert idle == "30s"


def _create_forever(url: str) -> None:
    for number in range(40):
        Ledger.open(f"{url}?options=-csearch_path=s{number}").close()


@pytest.mark.long
def test_killed_while_a_ledger_is_created(postgres_url: object, request: pytest.FixtureRequest) -> None:
    """There is a whole ledger or none, and whoever comes next can go on."""
    place, chance, whole = place_of("postgres", request), random.Random(7), 0
    assert isinstance(place, PostgresPlace)
    place.run(*(f"CREATE SCHEMA s{number}" for number in range(40)))
    for _ in range(6):
        worker = FORK.Process(target=_create_forever, args=(place.where,))
        worker.start()
        tables = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'ledger_%'"
        before = place.run(tables)
        until(lambda: place.run(tables) != before)  # noqa: B023
        time.sleep(chance.uniform(0, 0.1))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        place.settle()
        counts = place.run(
            "SELECT schemaname, count(*) FROM pg_tables WHERE tablename LIKE 'ledger_%' GROUP BY schemaname"
        )
        assert {count for _, count in counts} == {4}
        for schema, _ in counts:
            Ledger.open(f"{place.where}?options=-csearch_path={schema}", create=False).verify()
        whole = len(counts)
    assert whole >= 6


# What the server may answer


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("53100", LedgerFullError, "the disk is full"),
        ("58030", LedgerFullError, "the disk fails"),
        ("53200", LedgerAccessError, "no memory left"),
        ("42501", LedgerAccessError, "the rights to its tables are missing"),
        ("25006", LedgerAccessError, "a replica, or read-only"),
        ("57014", LedgerAccessError, "it took too long"),
        ("40P01", LedgerLockedError, "is held by another process"),
        ("XX001", LedgerDamagedError, "is damaged"),
        ("42703", LedgerDamagedError, "other columns"),
        ("99999", LedgerError, "cannot be used"),
    ],
)
def test_one_sentence_for_each_answer(place: PostgresPlace, code: str, error: type[LedgerError], words: str) -> None:
    place.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'for you only' USING ERRCODE = '{code}'; END $$",
        "CREATE TRIGGER fail BEFORE INSERT ON ledger_event EXECUTE FUNCTION fail()",
    )
    with Ledger.open(place.where) as ledger:
        with pytest.raises(error, match=words) as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        assert type(found.value) is error
        is_one_sentence(found.value, place.name)
        assert "for you only" not in found.value.message
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")
        ledger.verify()


def test_a_writer_who_does_not_hold_it_is_noticed(place: PostgresPlace) -> None:
    store = PostgresStore(place.where, timeout=PATIENCE)

    def pushed_aside() -> None:
        event = "INSERT INTO ledger_event (number, time, event, subject_kind, subject_name, reason)"
        with store.writing() as connection:
            place.run(f"{event} VALUES (4, 'x', 'y', 'z', '', '')")
            connection.exec_driver_sql(f"{event} VALUES (4, 'x', 'y', 'z', '', '')")

    with pytest.raises(LedgerDamagedError, match="somebody else writes to it"):
        pushed_aside()


def test_names_that_are_too_long_together(place: PostgresPlace) -> None:
    letters = random.Random(1)
    names = ["".join(chr(letters.randrange(0x4E00, 0x9000)) for _ in range(500)) for _ in range(3)]
    with Ledger.open(place.where) as ledger:
        with pytest.raises(LedgerAccessError, match="cannot hold names as long as these") as found:
            ledger.charge(Subject.population(names[0]), PathId(names[1], names[2]), FACTS, 1, budget=1)
        is_one_sentence(found.value, place.name)
        ledger.charge(Subject.population("x" * 500), PathId("y" * 500, "z" * 500), FACTS, 1, budget=1)
        ledger.verify()


def test_tables_that_are_gone(place: PostgresPlace) -> None:
    with Ledger.open(place.where) as ledger:
        place.run("DROP TABLE ledger_version, ledger_event, ledger_path, ledger_subject")
        for ask in (ledger.charge, ledger.quote):
            with pytest.raises(LedgerAccessError, match="its tables are gone") as found:
                ask(EVERYONE, path("a"), FACTS, 1)
            is_one_sentence(found.value, place.name)
    with pytest.raises(LedgerAccessError, match="does not exist: the database holds none"):
        Ledger.open(place.where, create=False)


def test_tables_of_others_that_bear_the_names(postgres_url: object, request: pytest.FixtureRequest) -> None:
    for statement in ("CREATE TABLE ledger_path (x int)", "CREATE TABLE ledger_version (version_num text)"):
        place = place_of("postgres", request)
        place.run(statement, "CREATE TABLE ledger_event (x int)")
        with pytest.raises(LedgerDamagedError, match="tables of the ledger's names, but is no ledger") as found:
            Ledger.open(place.where)
        is_one_sentence(found.value, place.name)
        assert len(place.run("SELECT * FROM pg_tables WHERE tablename LIKE 'ledger_%'")) == 2


def test_a_version_that_is_gone(place: PostgresPlace) -> None:
    """Nobody would hold anything then."""
    with Ledger.open(place.where) as ledger:
        place.tamper("DELETE FROM ledger_version")
        with pytest.raises(LedgerDamagedError, match="its version is missing"):
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
    with pytest.raises(LedgerDamagedError, match="but is no ledger"):
        Ledger.open(place.where)
