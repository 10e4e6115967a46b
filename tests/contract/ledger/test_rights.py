"""The roles, rights and backups of the page on the ledger work as they are written there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from tests.conftest import missing
from tests.faults.ledger.ledger_work import EVERYONE, FACTS, is_one_sentence, path
from tests.patience import PATIENCE
from tests.servers.ledgers import Place, PostgresPlace, place_of
from tests.servers.postgres import OwnServer, Server, programs
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.errors import LedgerAccessError
from relaxdp.ledger.ledger import Ledger

PAGE = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text("utf-8")
ROLES = ("owner", "writer", "reader")


@pytest.fixture
def places(postgres: Server) -> Iterator[dict[str, PostgresPlace]]:
    """The database and the roles of the page, under names that nobody else has."""
    mark = f"ledger_{os.getpid()}"
    blocks = [
        block.replace("ledger_o", f"{mark}_o") for block in re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
    ]
    blocks = [re.sub(r"ledger_(writer|reader)", rf"{mark}_\1", block) for block in blocks]
    administrator, owner = [block.replace("DATABASE ledger ", f"DATABASE {mark} ") for block in blocks]
    for statement in administrator.strip().split(";\n"):
        postgres.run(statement)
    for role in ROLES:
        postgres.run(f"ALTER ROLE {mark}_{role} PASSWORD 'x'")
    found = {}
    for role in ROLES:
        found[role] = PostgresPlace(f"postgresql://{mark}_{role}:x@{postgres.host}:{postgres.port}/{mark}")
    Ledger.open(found["owner"].where).close()
    found["owner"].run(owner)
    yield found
    postgres.run(f"DROP DATABASE {mark} WITH (FORCE)")
    for role in ROLES:
        postgres.run(f"DROP ROLE {mark}_{role}")


def test_rights(places: dict[str, PostgresPlace]) -> None:
    writer, reader = places["writer"], places["reader"]
    with Ledger.open(writer.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
        ledger.raise_budget(EVERYONE, 2, reason="by hand")
        ledger.charge(EVERYONE, path("a"), FACTS, 2)
        ledger.verify()
    for statement in (
        "UPDATE ledger_event SET cost = '0'",
        "DELETE FROM ledger_path",
        "TRUNCATE ledger_event",
        "ALTER TABLE ledger_event DISABLE TRIGGER ALL",
        "DROP TABLE ledger_event",
        "CREATE TABLE public.mine (x int)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.run(statement)
    with Ledger.open(reader.where) as ledger:
        ledger.verify()
        assert ledger.balance(EVERYONE).left == 0
        with pytest.raises(LedgerAccessError, match="the rights to its tables are missing") as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 2)
        is_one_sentence(found.value, reader.name)


def test_a_user_who_may_not_create_a_ledger(places: dict[str, PostgresPlace]) -> None:
    places["owner"].run("DROP TABLE ledger_version, ledger_event, ledger_path, ledger_subject")
    with pytest.raises(LedgerAccessError, match="the rights to its tables are missing") as found:
        Ledger.open(places["writer"].where)
    is_one_sentence(found.value, places["writer"].name)


def test_a_backup_that_is_restored(postgres: Server, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if not isinstance(postgres, OwnServer):
        missing("the server is somebody else's, and its version may not be that of pg_dump")
    folder = programs()
    if not (folder / "pg_dump").exists():
        missing("this server came without pg_dump")
    old, new = place_of("postgres", request), place_of("postgres", request)
    with Ledger.open(old.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    dump = str(tmp_path / "dump")
    for command in (
        ["pg_dump", "-Fc", "-f", dump, old.where],
        ["pg_restore", "--clean", "--if-exists", "-d", new.where, dump],
    ):
        subprocess.run([str(folder / command[0]), *command[1:]], check=True, timeout=PATIENCE)
    with Ledger.open(new.where, create=False) as ledger:
        ledger.verify()
        assert ledger.charge(EVERYONE, path("a"), FACTS, 1).cost == Decimal("0.5")
    with pytest.raises(psycopg.IntegrityError, match="is append-only"):
        new.run("DELETE FROM ledger_event")


# The command line


@pytest.fixture
def place(postgres_url: object, request: pytest.FixtureRequest) -> Place:
    found = place_of("postgres", request)
    with Ledger.open(found.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    return found


def test_budget_commands(place: Place) -> None:
    where = ["--ledger", place.where]
    assert '"left": "0.5"' in CliRunner().invoke(app, ["budget", "show", "--json", *where]).output
    raised = CliRunner().invoke(app, ["budget", "raise", "3", "--reason", "consent form", *where]).output
    assert raised == "the budget is now 3, 2.5 of it left\n"
    assert "(consent form)" in CliRunner().invoke(app, ["budget", "history", *where]).output


def test_budget_commands_without_a_ledger(postgres: Server, request: pytest.FixtureRequest) -> None:
    place = place_of("postgres", request)
    for where, words in [
        (place.where, "does not exist: the database holds none"),
        (place.where.replace(":s3cret", ":wrong"), "the name or the password is wrong"),
        (place.where.replace("/relaxdp", "/absent"), "there is no such database"),
    ]:
        for command in (["show"], ["raise", "3", "--reason", "x"], ["history"]):
            found = CliRunner().invoke(app, ["budget", *command, "--ledger", where]).exception
            assert isinstance(found, LedgerAccessError)
            assert words in found.message
            assert postgres.password not in found.message
            assert "wrong%2F" not in found.message
