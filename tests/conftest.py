"""Shared by all tests: what to do where a real part (node, a browser, a server) is missing."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
import typer.testing
from hypothesis import settings

if TYPE_CHECKING:
    from tests.servers.postgres import Server


# No example has to be quick: what else runs on a machine must not fail a test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what meets a PostgreSQL server, so that it can be run with another one: `-m postgres`."""
    for item in items:
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        asks = "postgres" in getattr(item, "fixturenames", ())
        if asks or any(isinstance(each, str) and each == "postgres" for each in given):
            item.add_marker("postgres")


@pytest.fixture(scope="session", autouse=True)
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what would be remembered in the user's state folder, which no test and no process of one has."""
    folder = tmp_path_factory.mktemp("states")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "shared"))
        yield folder


@pytest.fixture(autouse=True, scope="module")
def states_of_a_file(states: Path) -> Iterator[None]:
    """What the fixtures of a whole file remember is its own, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(states / secrets.token_hex(8)))
        yield


@pytest.fixture(autouse=True)
def state(states: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of one test, not there before it is needed: keys of tests are the same again and again."""
    folder = states / secrets.token_hex(8)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture(scope="session", autouse=True)
def commands_are_made_once() -> Iterator[None]:
    """A call in a test would make all commands anew, from their annotations, which takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def interruptible_person() -> Iterator[None]:
    """Take Ctrl-C as Python does, also where whoever runs the tests ignores it: in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def require(program: str) -> str:
    """Return where a program is. Where CI demands everything its absence is a failure, elsewhere a visible skip."""
    found = shutil.which(program)
    if found is None:
        missing(f"{program} is not installed")
    return found


def missing(message: str) -> NoReturn:
    """Fail or skip, because a real part is not there."""
    if os.environ.get("RELAXDP_REQUIRE_ALL"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def node() -> str:
    """The JavaScript runtime."""
    return require("node")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, for all tests of a process."""
    from tests.servers.postgres import MissingServerError, a_server  # noqa: PLC0415

    with ExitStack() as stack:
        try:
            server = stack.enter_context(a_server())
        except MissingServerError as problem:
            missing(str(problem))
        yield server


@pytest.fixture
def postgres_url(postgres: Server, request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Return the URL of an empty database, of another one each time that it is called."""
    assert request.node.get_closest_marker("postgres"), "name this fixture in the test, so that the test can be chosen"
    made: list[str] = []

    def make() -> str:
        made.append(postgres.database())
        return postgres.url(made[-1])

    yield make
    for name in made:
        postgres.give_back(name)
