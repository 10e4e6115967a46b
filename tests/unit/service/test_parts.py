"""The parts of a service, one by one: addresses, limits, tokens, metrics, errors, log."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from tests.patience import PATIENCE
from tests.servers.collectors import STORES

from relaxdp import errors, server_errors
from relaxdp.collector.wire import Report
from relaxdp.errors import RelaxdpError
from relaxdp.server_errors import CampaignError, MalformedRequestError, ServiceError, StorageVersionError
from relaxdp.service.limits import MOST_CLIENTS, Buckets, behind_proxies, client_of, decode, decoder_of, networks_of
from relaxdp.service.observe import Metrics, RequestLog, code_of, problem_response, status_of
from relaxdp.service.schema import SCHEMA
from relaxdp.service.tokens import bears, create_token, digest_for
from relaxdp.service.wire import ID_PATTERN, EncodingRequest, resolved
from relaxdp.storage.address import PostgresAddress, SqliteAddress
from relaxdp.storage.database import Database, address_of


@pytest.fixture(params=STORES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = str(tmp_path / "service.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")()
    made = Database(url)
    made.prepare(SCHEMA)
    yield made
    made.close()


def test_addresses() -> None:
    plain = address_of("some/file.db")
    assert isinstance(plain, SqliteAddress)
    assert plain.path == Path("some/file.db").resolve()
    assert address_of("sqlite:////abs/file.db").name == "/abs/file.db"
    remote = address_of("postgresql://me:s3cret@db.example.org/reports")
    assert isinstance(remote, PostgresAddress)
    assert "s3cret" not in repr(remote) + remote.name
    for wrong in ("sqlite://", "sqlite:///", "mysql://x/y", "postgresql://me:p@ss/word@host/db"):
        with pytest.raises(ServiceError) as refused:
            address_of(wrong)
        assert "p@ss" not in refused.value.message
        assert refused.value.fields == {}


@pytest.mark.parametrize("version", [1, 99])
def test_a_database_is_made_once_and_one_of_another_version_is_rejected(database: Database, version: int) -> None:
    database.prepare(SCHEMA)
    with database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE service_version SET version_num = {version}")
    with pytest.raises(StorageVersionError, match="created by another version") as refused:
        database.prepare(SCHEMA)
    assert refused.value.fields["version"] == version


def test_a_database_that_is_none(tmp_path: Path) -> None:
    other = "something else entirely, and long enough to be read as a header" * 20
    (tmp_path / "file").write_text(other)
    with pytest.raises(ServiceError, match="is not a SQLite database") as refused:
        Database(str(tmp_path / "file")).prepare(SCHEMA)
    assert refused.value.fields == {"path": str(tmp_path / "file")}
    assert (tmp_path / "file").read_text() == other
    (tmp_path / "damaged").write_text(f"SQLite format 3\0{other}")
    with pytest.raises(server_errors.StorageUnavailableError, match="cannot be used now"):
        Database(str(tmp_path / "damaged")).prepare(SCHEMA)
    with pytest.raises(ServiceError) as refused:
        Database(str(tmp_path / "no" / "folder")).prepare(SCHEMA)
    assert refused.value.fields == {"path": str(tmp_path / "no" / "folder"), "why": "No such file or directory"}


def test_tokens_are_kept_as_digests(database: Database) -> None:
    with database.writing() as connection:
        token = create_token(connection, "operator")
        assert token is not None
        assert create_token(connection, "operator") is None
        digest = digest_for(connection, "operator")
        assert digest is not None
        assert token.encode() not in digest
        assert bears(f"Bearer {token}", digest)
        assert bears(f"bearer {token}", digest)
        for wrong in (None, "", token, f"Basic {token}", f"Bearer {token}x", "Bearer ", "Bearer \udc80"):
            assert not bears(wrong, digest)
        assert not bears("Bearer x", None)
        renewed = create_token(connection, "operator", replace=True)
        assert not bears(f"Bearer {token}", digest_for(connection, "operator"))
        assert bears(f"Bearer {renewed}", digest_for(connection, "operator"))


def whose(peer: str, *forwarded: str, trusted: tuple[str, ...] = ("127.0.0.1", "10.0.0.9/8", "2001:db8::/64")) -> str:
    """Return against whose limit a request counts that came from this peer, with these headers."""
    found = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        found.append(client_of(scope))

    headers = [(b"x-forwarded-for", each.encode("latin-1")) for each in forwarded]
    scope = {"type": "http", "client": (peer, 1), "headers": headers, "scheme": "http"}
    asyncio.run(behind_proxies(inner, trusted)(scope, None, None))  # type: ignore[arg-type]
    return found[0]


def test_only_trusted_proxies_are_believed() -> None:
    assert whose("127.0.0.1", "1.2.3.4", trusted=()) == "127.0.0.1"
    for stranger in ("192.0.2.1", "::ffff:192.0.2.1", "127.0.0.2"):
        assert whose(stranger, "1.2.3.4", "127.0.0.1") == stranger.removeprefix("::ffff:")
    assert whose("127.0.0.1", "1.2.3.4") == "1.2.3.4"
    assert whose("::ffff:127.0.0.1", "1.2.3.4") == "1.2.3.4"  # as a socket for both kinds of addresses names it
    assert whose("2001:db8::1", "2001:db8:0:1::7") == whose("2001:db8:0:1::8") == "2001:db8:0:1::/64"
    assert whose("127.0.0.1") == "127.0.0.1"


def test_of_many_forwarded_addresses_the_last_that_no_proxy_has_counts() -> None:
    for forwarded in (
        ["6.6.6.6, 1.2.3.4, 10.1.1.1"], ["6.6.6.6", "1.2.3.4"], ["6.6.6.6,1.2.3.4", "10.1.1.1 , 2001:db8::7"],
        ["1.2.3.4:567"], ["1.2.3.4:567, 10.1.1.1:80, [2001:db8::7]:443"], ["::ffff:1.2.3.4, ::ffff:10.1.1.1"],
        ["rubbish, 1.2.3.4"],
    ):  # fmt: skip
        assert whose("127.0.0.1", *forwarded) == "1.2.3.4", forwarded
    assert whose("127.0.0.1", "6.6.6.6, [2001:db8:0:1::7]:443") == "2001:db8:0:1::/64"
    assert whose("127.0.0.1", "10.2.2.2, 10.1.1.1") == "10.2.2.2"  # a proxy that asks for itself


@pytest.mark.parametrize(
    "rubbish", ["rubbish", "1.2.3.4.5", "[::1", "1.2.3.4:", "1.2.3.4:x", "unknown", "_hidden", "\xff", "*"]
)
def test_rubbish_from_a_proxy_is_nobody_in_particular(rubbish: str) -> None:
    """It is not looked past: whatever stands to the left of it may be the client's own."""
    assert whose("127.0.0.1", f"6.6.6.6, {rubbish}") == "unknown"


def test_an_empty_header_is_the_proxys_own() -> None:
    for empty in ("", " ", "6.6.6.6,", ",", "[]:1"):
        assert whose("127.0.0.1", empty) == "127.0.0.1"


@pytest.mark.parametrize("wrong", ["everybody", "*", "", "127.0.0.1,10.0.0.1", "10.0.0.0/33", "unix:"])
def test_a_proxy_is_an_address_or_a_network(wrong: str) -> None:
    with pytest.raises(ServiceError, match="as an address or a network"):
        networks_of(["127.0.0.1", wrong])


def test_buckets_refill_and_are_bounded() -> None:
    buckets = Buckets(rate=10, burst=5)
    assert [buckets.take("a", 0.0) for _ in range(6)] == [True] * 5 + [False]
    assert [buckets.take("a", 0.3) for _ in range(4)] == [True] * 3 + [False]
    for number in range(MOST_CLIENTS + 10):
        buckets.take(str(number), 1.0)
    assert len(buckets._known) == MOST_CLIENTS
    assert [buckets.take(str(MOST_CLIENTS + 9), 1.0) for _ in range(5)] == [True] * 4 + [False]  # a newcomer is known
    assert all(Buckets(rate=0, burst=1).take("a", 0.0) for _ in range(100))


def test_every_commit_is_synced_and_what_is_deleted_is_overwritten(database: Database) -> None:
    with database.writing() as connection:
        if database.is_sqlite:
            asked = [f"PRAGMA {name}" for name in ("synchronous", "fullfsync", "secure_delete")]
        else:
            asked = ["SHOW synchronous_commit"]
        told = [connection.exec_driver_sql(question).scalar() for question in asked]
    assert told == ([2, 1, 1] if database.is_sqlite else ["on"])  # 2 is FULL


def test_the_client_that_was_quiet_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Buckets.take.__globals__, "MOST_CLIENTS", 2)
    buckets = Buckets(rate=1, burst=1)
    assert [buckets.take(client, 0.0) for client in "abac"] == [True, True, False, True]
    assert [buckets.take(client, 0.0) for client in "acb"] == [False, False, True]


def test_metrics_share_no_number() -> None:
    texts = []
    for amount in (1, 2):
        made = Metrics()
        made.counter("reports_total", "Reports.", ("outcome",)).labels('a"b\n').inc(amount)
        made.histogram("seconds", "Seconds.", ("route",)).labels("/x").observe(0.002)
        made.gauge("waiting", "Waiting.", lambda: amount)  # noqa: B023
        texts.append(made.text().decode())
        assert f"# HELP waiting Waiting.\n# TYPE waiting gauge\nwaiting {amount}.0\n" in texts[-1]
    assert '# TYPE reports_total counter\nreports_total{outcome="a\\"b\\n"} 2.0\n' in texts[1]
    assert 'seconds_bucket{le="0.001",route="/x"} 0.0\nseconds_bucket{le="0.0025",route="/x"} 1.0\n' in texts[1]
    assert "created" not in texts[1]
    assert "python" not in texts[1]


def test_every_error_has_a_status_and_a_code() -> None:
    kinds = [each for _, each in inspect.getmembers(server_errors, inspect.isclass) if issubclass(each, ServiceError)]
    assert len(kinds) > 15
    for kind in kinds:
        closed = kind is server_errors.StorageUnavailableError
        assert status_of(kind) == 503 if closed else 400 <= status_of(kind) < 500
        assert code_of(kind).isidentifier()
    assert status_of(errors.EpsilonError) == 422
    answer = problem_response(RelaxdpError("a sentence.", number=1, path=Path("x")))
    assert msgspec.json.decode(answer.body) == {
        "error": "relaxdp", "message": "a sentence. Nothing was done.", "fields": {"number": 1, "path": "x"},
        "sentence": "a sentence.", "hint": "",
        "consequence": "Nothing was done.",
    }  # fmt: skip


def test_what_cannot_be_read_is_not_shown() -> None:
    decoder = decoder_of(Report)
    for body in (
        b'{"device": "SECRET"}', b'{"SECRET": 1}', b"SECRET", b'{"device": 1, "level": "SECRET"}', b'"\xff"',
        b'{"device":"' + b"0" * 32 + b'","level":{"epsilon":"1","threshold":"1","SECRET":1},"report":1}',
    ):  # fmt: skip
        with pytest.raises(MalformedRequestError) as refused:
            decode(body, decoder)
        assert "SECRET" not in refused.value.message
        assert refused.value.message.startswith("the request cannot be understood: ")
        assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (ID_PATTERN, "a name has small letters, digits and hyphens, at most 64 at $[0]"),
        ("^[^\\u0000]*$", "a text has a letter that is not allowed at $[0]"),
    ],
)
def test_a_pattern_is_told_in_words(pattern: str, sentence: str) -> None:
    decoder = decoder_of(list[Annotated[str, msgspec.Meta(pattern=pattern)]])
    with pytest.raises(MalformedRequestError) as refused:
        decode(b'["A\\u0000"]', decoder)
    assert refused.value.fields == {"why": sentence}


def test_a_name_does_not_end_in_a_line_feed() -> None:
    """It would be created, and no address would lead to it."""
    decoder = decoder_of(list[Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]])
    assert decode(b'["a-1"]', decoder) == ["a-1"]
    with pytest.raises(MalformedRequestError):
        decode(b'["a-1\\n"]', decoder)


def test_the_request_log_can_be_silent_and_keeps_no_line_back() -> None:
    file = io.StringIO()

    async def serve() -> None:
        silent = RequestLog(enabled=False, file=file)
        silent.add("GET", "/", 200, 0.1)
        silent.flush()
        assert file.getvalue() == ""
        log = RequestLog(file=file)
        for _ in range(3):  # the last line of a busy second is written though nobody asks for anything after it
            log.add("GET", "/v1/campaigns/{id}", 200, 0.0012)
        while file.getvalue().count(" GET /v1/campaigns/{id} 200 1.2ms\n") < 3:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(serve(), PATIENCE))


def test_no_device_is_asked_for_what_tables_have() -> None:
    with pytest.raises(CampaignError, match="is for tables"):
        resolved(EncodingRequest("numeric-missing", range=(0, 1)), "1")
