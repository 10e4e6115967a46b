"""What can go wrong between a ledger and its PostgreSQL server: lost commits, ended connections, missing rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from threading import Thread
from typing import Any

import psycopg
import pytest
from tests.contract.ledger.ledger_places import KEY, TIME, VAULT, DatabasePlace, charge, created
from tests.faults.proxy import failing_network
from tests.patience import PATIENCE, until
from tests.servers.postgres import Server

from relaxdp.errors import LedgerError, LedgerUncertainError
from relaxdp.ledger import postgres_store as module
from relaxdp.ledger.events import VaultCreated
from relaxdp.ledger.ledger import Ledger, open_store
from relaxdp.ledger.postgres_store import PostgresStore

SETTLED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
def place(postgres_url: Callable[[], str]) -> DatabasePlace:
    """A ledger of two events."""
    made = DatabasePlace(postgres_url())
    open_ledger(made.url).create(created())
    open_ledger(made.url).append_event(charge)
    return made


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No library logs its own version of a problem."""
    yield
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR", "CRITICAL")] == []


def open_ledger(url: str, vault: str = VAULT, timeout: float = PATIENCE) -> Ledger:
    return Ledger(PostgresStore(url, vault, timeout=timeout), KEY, vault)


def assert_one_sentence(problem: LedgerError, server: Server) -> None:
    assert problem.sentence.startswith("The ledger 'postgresql://")
    assert problem.sentence.endswith(".")
    assert problem.hint
    assert problem.__context__ is None
    for secret in ("\n", "SELECT", "relaxdp_ledger", server.password, "s3cret"):
        assert secret not in problem.message + str(problem.fields)


def test_vaults_share_a_database(place: DatabasePlace) -> None:
    other = open_ledger(place.url, "ff")
    with pytest.raises(LedgerError, match="it has no events"):
        other.read_account()
    other.create(VaultCreated(1, TIME, Decimal(1), "", "ff", KEY.fingerprint))
    other.append_event(charge)
    assert (other.read_account().number, open_ledger(place.url).read_account().number) == (2, 2)
    with place.hold():
        other.append_event(charge)  # writers of other vaults do not wait


def test_vaults_that_are_created_at_once(postgres_url: Callable[[], str]) -> None:
    url, problems = postgres_url(), []

    def create(vault: str) -> None:
        try:
            open_ledger(url, vault).create(VaultCreated(1, TIME, Decimal(1), "", vault, KEY.fingerprint))
        except LedgerError as problem:
            problems.append(problem)

    threads = [Thread(target=create, args=(f"{number % 6}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(problem).partition("already contains")[1] for problem in problems] == ["already contains"] * 2
    assert [open_ledger(url, str(number)).read_account().number for number in range(6)] == [1] * 6


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_is_lost(place: DatabasePlace, postgres: Server, when: str) -> None:
    """Nothing is known about how it ended, and running it again is right in both cases."""
    with failing_network(postgres, when) as port:
        there = place.url.replace(f":{postgres.port}/", f":{port}/")
        ledger = open_ledger(f"{there}?sslmode=disable&gssencmode=disable")
        with pytest.raises(LedgerUncertainError, match="may be recorded") as found:
            ledger.append_event(lambda account: charge(account, levels={"diagnosis": 1}))
        assert found.value.message.endswith("Nothing is charged twice.")
        assert_one_sentence(found.value, postgres)
    place.settle()
    ledger = open_ledger(place.url)
    assert ledger.read_account().number == (3 if when == "after" else 2)
    assert ledger.append_event(lambda account: charge(account, levels={"diagnosis": 1})).spent == 1


def test_ended_while_it_commits(place: DatabasePlace, postgres: Server) -> None:
    place.run(
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION linger()",
    )
    committing = "FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active' AND datname = current_database()"

    def end_it() -> None:
        until(lambda: place.run(f"SELECT pid {committing}"))
        place.run(f"SELECT pg_terminate_backend(pid) {committing}")

    other = Thread(target=end_it)
    other.start()
    with pytest.raises(LedgerUncertainError) as found:
        open_ledger(place.url).append_event(charge)
    other.join()
    assert_one_sentence(found.value, postgres)
    assert open_ledger(place.url).read_account().number == 2


def test_a_connection_that_is_ended_in_the_middle(place: DatabasePlace, postgres: Server) -> None:
    def end(account: Any) -> Any:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
        place.run(f"SELECT pg_terminate_backend(pid, 10000) {others}")
        return charge(account)

    with pytest.raises(LedgerError, match="starts or shuts down|connection was lost") as found:
        open_ledger(place.url).append_event(end)
    assert_one_sentence(found.value, postgres)
    assert open_ledger(place.url).read_account().number == 2


def test_other_defaults_change_nothing(place: DatabasePlace, postgres: Server) -> None:
    """Under another isolation, a writer that waited would not see what it waited for."""
    [(name,)] = place.run("SELECT current_database()")
    for setting in (
        "default_transaction_isolation = 'serializable'", "lock_timeout = 1", "client_encoding = 'LATIN1'",
        "synchronous_commit = off", "default_transaction_read_only = off",
    ):  # fmt: skip
        postgres.run(f"ALTER DATABASE {name} SET {setting}")
    first, second = open_ledger(place.url), open_ledger(place.url)
    assert second.read_account().number == 2

    def meanwhile(account: Any) -> Any:
        late.start()
        until(lambda: place.run(SETTLED) == [(1,)])
        return charge(account, "日本", levels={"ä": "0.25"})

    late = Thread(target=second.append_event, args=(charge,))
    first.append_event(meanwhile)
    late.join()
    assert [event.number for event in first.read_events()] == [1, 2, 3, 4]
    assert "日本" in first.read_account().releases
    with PostgresStore(place.url, VAULT).begin_transaction("write") as rows:
        found = [
            rows._connection.execute(f"SHOW {name}".encode()).fetchall()[0][0]
            for name in ("synchronous_commit", "idle_in_transaction_session_timeout")
        ]
    assert found == ["on", "30s"]


def test_a_server_that_is_not_fit(place: DatabasePlace, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTINGS", module._SETTINGS.replace("current_setting('fsync')", "'off'"))
    with pytest.raises(LedgerError, match="is not durable") as found:
        open_ledger(place.url).read_account()
    assert_one_sentence(found.value, postgres)
    name = postgres.database("ENCODING 'LATIN1' LOCALE 'C'")
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="is not UTF8"):
        open_ledger(postgres.url(name)).create(created())
    postgres.run(f"DROP DATABASE {name}")


def test_a_user_without_rights(place: DatabasePlace, postgres: Server) -> None:
    [(name,)] = place.run("SELECT current_database()")
    postgres.run("DROP ROLE IF EXISTS relaxdp_reader")
    postgres.run("CREATE ROLE relaxdp_reader LOGIN PASSWORD 's3cret'")
    url = f"postgresql://relaxdp_reader:s3cret@{postgres.host}:{postgres.port}/{name}"
    try:
        for use in (Ledger.read_account, lambda ledger: ledger.append_event(charge)):
            with pytest.raises(LedgerError, match="lacks the rights") as found:
                use(open_ledger(url))
            assert_one_sentence(found.value, postgres)
        place.run("GRANT SELECT ON event TO relaxdp_reader")
        assert open_ledger(url).read_account().number == 2
        with pytest.raises(LedgerError, match="lacks the rights"):
            open_ledger(url).append_event(charge)
    finally:
        place.run("DROP OWNED BY relaxdp_reader")
        postgres.run("DROP ROLE relaxdp_reader")


def test_servers_that_cannot_be_used(postgres: Server) -> None:
    here = f"{postgres.host}:{postgres.port}"
    for url, words in [
        (f"postgresql://{postgres.user}:s3cret@{here}/postgres", "the name or the password is wrong"),
        (f"{postgres.url('absent')}", "there is no such database"),
        ("postgresql://u:s3cret@127.0.0.1:1/d", "does not answer"),
        ("postgresql://u:s3cret@/d?host=/absent", "does not answer"),
        (f"{postgres.url('postgres')}?options=-csearch_path=absent", "is missing"),
    ]:
        with pytest.raises(LedgerError, match=words) as found:
            open_ledger(url).read_account()
        assert_one_sentence(found.value, postgres)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("postgresql://u:s3cret@h:5433/d?sslmode=require", "postgresql://u@h:5433/d"),
        ("postgres://h/d?password=s3cret", "postgresql://h/d"),
        ("postgresql:///d?host=/run/pg&user=u", "postgresql://u@/d?host=/run/pg"),
        ("postgresql://?service=books", "postgresql:///?service=books"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, address: str) -> None:
    store = open_store(url, VAULT)
    assert store.address == Ledger(store, KEY, VAULT).address == address


@pytest.mark.parametrize(
    "url", ["postgresql://u:s3@cret@h/d", "postgresql://u:s3/cret@h/d", "postgresql://u:s3cret@h:x/d"]
)
def test_a_url_that_cannot_be_parsed_is_not_shown(url: str) -> None:
    with pytest.raises(LedgerError, match="cannot be parsed") as found:
        open_store(url, VAULT)
    assert "cret" not in repr(found.value) + str(found.value.fields)
    assert found.value.__context__ is None


def test_every_code_has_a_sentence() -> None:
    store = PostgresStore("postgresql://u@h/d", VAULT)
    for code, words in [("53100", "disk of its server is full"), ("53300", "no connection"), ("25006", "read-only"),
                        ("57014", "took too long"), ("XX001", "is damaged"), ("22000", "cannot be used")]:  # fmt: skip
        problem = psycopg.errors.lookup(code)("SELECT") if code[:2] != "22" else psycopg.DataError("SELECT")
        assert words in store._make_error(store._explain_error(problem, "use")).sentence
