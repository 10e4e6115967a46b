"""The application and what its parts share: the order of their lives, health, tokens, writes, the description."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, select, update
from starlette.requests import Request
from starlette.responses import Response
from tests.servers.collectors import STORES

from relaxdp import server_errors
from relaxdp.server_errors import StorageUnavailableError, WrongTokenError
from relaxdp.service import application as service_app
from relaxdp.service.application import build_application
from relaxdp.service.maintenance import prepare, renew_token
from relaxdp.service.operations import Operation, description
from relaxdp.service.resources import Resources
from relaxdp.service.schema import SCHEMA, TOKENS
from relaxdp.service.settings import Settings
from relaxdp.service.tokens import create_token, digest_for
from relaxdp.storage.address import SqliteAddress
from relaxdp.storage.database import Database


@pytest.fixture(params=STORES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = str(tmp_path / "service.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")()
    return Settings(database=url, request_log=False)


@contextlib.contextmanager
def working(settings: Settings) -> Iterator[Resources]:
    resources = Resources(settings)
    try:
        yield resources
    finally:
        resources.close()


class Noted:
    """A part that notes what happens to it."""

    def __init__(self, name: str, notes: list[str], *, fails: str = "") -> None:
        self._name, self._notes, self._fails = name, notes, fails

    def operations(self) -> list[Operation]:
        return []

    def parameters(self) -> dict[str, dict[str, Any]]:
        return {}

    async def start(self) -> None:
        self._note("start")

    async def stop(self) -> None:
        self._note("stop")

    async def check(self) -> None:
        self._note("check")

    def _note(self, what: str) -> None:
        self._notes.append(f"{self._name} {what}")
        if what == self._fails:
            raise StorageUnavailableError("a part cannot do its work.")


async def get(app: Any, path: str, peer: str = "127.0.0.1", forwarded: str = "") -> tuple[int, Any]:
    """Ask an application without a server."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"x-forwarded-for", forwarded.encode())]
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    scope["client"] = (peer, 1)
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(each.get("body", b"") for each in sent[1:]))


def live(settings: Settings, parts: list[Noted], monkeypatch: pytest.MonkeyPatch) -> tuple[int, Any]:
    """Live through a service's life with these parts, and return what it said of its health."""
    monkeypatch.setattr(service_app, "tune", lambda: None)  # this process has others to serve
    prepare(settings)
    app: Any = build_application(settings, lambda resources: parts)

    async def run() -> tuple[int, Any]:
        async with app._inner.router.lifespan_context(app._inner):
            return await get(app, "/healthz")

    return asyncio.run(run())


def test_parts_live_in_order(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    assert live(settings, [Noted("a", notes), Noted("b", notes)], monkeypatch) == (200, {"status": "ok"})
    assert notes == ["a start", "b start", "a check", "b check", "b stop", "a stop"]


def test_a_part_that_cannot_work(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    status, answer = live(settings, [Noted("a", notes, fails="check"), Noted("b", notes)], monkeypatch)
    assert (status, answer["error"]) == (503, "storage_unavailable")
    notes.clear()
    with pytest.raises(StorageUnavailableError):
        live(settings, [Noted("a", notes), Noted("b", notes, fails="start"), Noted("c", notes)], monkeypatch)
    assert notes == ["a start", "b start", "a stop"]
    notes.clear()
    with pytest.raises(StorageUnavailableError):
        live(settings, [Noted("a", notes), Noted("b", notes, fails="stop")], monkeypatch)
    assert notes[-2:] == ["b stop", "a stop"]


def test_a_limit_counts_whom_a_trusted_proxy_names(settings: Settings) -> None:
    prepare(settings)
    limited = replace(settings, rate=1e-9, burst=1.0, trusted_proxies=("10.0.0.0/8",))
    app = build_application(limited, lambda resources: [])

    def status(peer: str, forwarded: str) -> int:
        return asyncio.run(get(app, "/openapi.json", peer, forwarded))[0]

    asked = [("10.1.1.1", "1.1.1.1"), ("10.1.1.2", "2.2.2.2"), ("10.1.1.2", "1.1.1.1"), ("2.2.2.2", "3.3.3.3")]
    assert [status(*each) for each in asked] == [200, 200, 429, 429]


def bearing(token: str | None) -> Request:
    header = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return Request({"type": "http", "headers": header})


def test_a_renewed_token_counts_after_seconds(settings: Settings) -> None:
    """The old token ends by itself, also if nobody ever comes with the new one."""
    old = prepare(settings)

    async def run(resources: Resources) -> None:
        assert await resources.is_operator(bearing(old))
        for wrong in (None, "", "wrong"):
            assert not await resources.is_operator(bearing(wrong))
            with pytest.raises(WrongTokenError):
                await resources.check_operator(bearing(wrong))
        new = renew_token(settings.database)
        assert await resources.is_operator(bearing(old))
        assert resources._reload_at <= time.monotonic() + 5
        resources._reload_at -= 5  # as if five seconds had passed
        assert not await resources.is_operator(bearing(old))
        assert await resources.is_operator(bearing(new))
        await resources.check_operator(bearing(new))

    with working(settings) as resources:
        asyncio.run(run(resources))


def test_no_token_where_there_is_no_service(settings: Settings) -> None:
    with pytest.raises(server_errors.ServiceError, match="No token was made"):
        renew_token(settings.database)
    database = Database(settings.database)
    try:
        if isinstance(database.address, SqliteAddress):
            assert not database.address.path.exists()
        else:
            with database.reading() as connection:
                assert SCHEMA.read_version(connection) is None
    finally:
        database.close()


async def write(resources: Resources, work: Callable[[Connection], Any]) -> Any:
    """Write in one transaction, as the parts of a service do."""

    def run() -> Any:
        with resources.database.writing() as connection:
            return work(connection)

    return await resources.perform(run)


def test_a_write_is_whole_or_nothing(settings: Settings) -> None:
    prepare(settings)

    def half(connection: Connection) -> None:
        create_token(connection, "half")
        raise server_errors.MalformedRequestError("not this one.")

    async def run(resources: Resources) -> None:
        token = await write(resources, lambda connection: create_token(connection, "whole"))
        assert token is not None
        assert await resources.read(lambda connection: digest_for(connection, "whole")) is not None
        with pytest.raises(server_errors.MalformedRequestError):
            await write(resources, half)
        assert await resources.read(lambda connection: digest_for(connection, "half")) is None
        with pytest.raises(StorageUnavailableError) as refused:
            await write(
                resources, lambda connection: connection.exec_driver_sql("INSERT INTO nowhere VALUES ('SECRET')")
            )
        assert "SECRET" not in refused.value.message
        assert await resources.compute(lambda: 7) == 7

    with working(settings) as resources:
        asyncio.run(run(resources))


def test_who_reads_does_not_wait_for_who_writes(settings: Settings) -> None:
    prepare(settings)

    def count(connection: Connection) -> int:
        return len(connection.execute(select(TOKENS.c.role)).all())

    def touch(connection: Connection) -> None:
        connection.execute(update(TOKENS).values(role=TOKENS.c.role))

    async def run(resources: Resources) -> None:
        with resources.database.writing() as connection:
            touch(connection)
            writes = [asyncio.ensure_future(write(resources, touch)) for _ in range(9)]
            await asyncio.sleep(0.1)
            async with asyncio.timeout(10):
                assert [await resources.read(count) for _ in range(9)] == [1] * 9
            assert not any(each.done() for each in writes)
        await asyncio.gather(*writes)

    with working(settings) as resources:
        asyncio.run(run(resources))


class Level(msgspec.Struct):
    """A struct of a name that another part has too."""

    one: int


def other_level() -> Any:
    made: Any = msgspec.defstruct("Level", [("other", str)], module="another.part")
    return made


def handler(name: str) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def answer(request: Request) -> Response:
        return Response()

    answer.__name__ = name
    return answer


def test_the_description_of_several_parts() -> None:
    """Each part has its own meaning of a name, its own tokens, and files beside JSON."""
    other = other_level()
    first = [
        Operation("POST", "/a/{id}", handler("a"), "A.", Level, Level, security="operator", also=(200,), status=201),
        Operation("GET", "/a/{id}", handler("b"), "B.", answer=Level, also=(304,)),
    ]
    second = [
        Operation("POST", "/b/{id}", handler("c"), "C.", body_media_type="x/y", answer=other, security="seller"),
        Operation("GET", "/c", handler("d"), "D.", security="buyer"),
        Operation("GET", "/d", handler("e"), "E.", security="account"),
    ]
    document = json.loads(
        description([(first, {"id": {"type": "string"}}), (second, {"id": {"type": "integer"}})], title="t")
    )
    paths = document["paths"]
    assert paths["/a/{id}"]["post"]["parameters"][0]["schema"] == {"type": "string"}
    assert paths["/b/{id}"]["post"]["parameters"][0]["schema"] == {"type": "integer"}
    assert paths["/b/{id}"]["post"]["requestBody"]["content"] == {
        "x/y": {"schema": {"type": "string", "format": "binary"}}
    }
    assert {"400", "401", "403", "408", "413", "415"} <= set(paths["/b/{id}"]["post"]["responses"])
    assert paths["/b/{id}"]["post"]["responses"]["403"]["description"] == "wrong_role"
    assert paths["/c"]["get"]["security"] == [{"buyer": []}]
    assert {"401", "403"} <= set(paths["/c"]["get"]["responses"])
    assert "403" not in {**paths["/d"]["get"]["responses"], **paths["/a/{id}"]["post"]["responses"]}
    assert "security" not in paths["/a/{id}"]["get"]
    assert set(document["components"]["securitySchemes"]) == {"operator", "seller", "buyer", "account"}
    created = paths["/a/{id}"]["post"]["responses"]
    assert created["200"]["content"] == created["201"]["content"]
    assert "content" not in paths["/a/{id}"]["get"]["responses"]["304"]

    def fields(operation: Any) -> set[str]:
        reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        return set(document["components"]["schemas"][reference.rpartition("/")[2]]["properties"])

    assert fields(paths["/a/{id}"]["get"]) == {"one"}
    assert fields(paths["/b/{id}"]["post"]) == {"other"}
