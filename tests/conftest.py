"""Shared by all tests: what to do where a real part (node, a browser, a server) is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from tests.servers.postgres import Server


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
def postgres_url(postgres: Server) -> Iterator[Callable[[], str]]:
    """Return the URL of an empty database, of another one each time that it is called."""
    made: list[str] = []

    def make() -> str:
        made.append(postgres.database())
        return postgres.url(made[-1])

    yield make
    for name in made:
        postgres.give_back(name)
