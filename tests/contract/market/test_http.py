"""The market's HTTP contract, on a real server, on both stores.

Every answer here is also held against the service's own description (`Remote` does that).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import text
from tests.patience import until
from tests.servers.collectors import STORES, running
from tests.servers.market_refusals import MISTAKES
from tests.servers.market_scene import POINTS, PRICES, Scene, set_the_scene
from tests.servers.markets import PARQUET, VALUES, Refused, Remote, described, dump, level_of, release_file
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import RelaxdpError
from relaxdp.market.receipts import check_data, signed_of, verify
from relaxdp.sampling.keys import add_length_prefix
from relaxdp.server_errors import ReceiptForgedError
from relaxdp.service import run
from relaxdp.service.settings import Settings
from relaxdp.storage.database import Database

ROLES = {"operator": "operator", "clinic": "seller", "institute": "buyer"}
PREFIX = "/v1/market"


@pytest.fixture(scope="module", params=STORES)
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Remote, Scene, Path]]:
    """A market behind HTTP, with everything in it that can go wrong."""
    folder = tmp_path_factory.mktemp("market")
    (folder / "tmp").mkdir()
    postgres, name = None, ""
    url, options = f"sqlite:///{folder}/service.db", list[str]()
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres")
        name = postgres.database()
        url, options = postgres.url(name), ["--market-key", str(folder / "market-key")]
    tempfile.gettempdir()  # ours stays where it is
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "tmp"))  # the server's, so that it can be seen what it leaves there
        with running(url, folder, *options) as server:
            database = Database(url)
            try:
                remote = Remote(server, database)
                yield remote, set_the_scene(remote, folder), folder
            finally:
                database.close()
    if postgres is not None:
        postgres.give_back(name)


@pytest.fixture
def remote(stage: tuple[Remote, Scene, Path]) -> Remote:
    return stage[0]


def market_operations(remote: Remote) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): operation
        for path, methods in remote.document["paths"].items()
        if path.startswith(PREFIX)
        for method, operation in methods.items()
    }


def fresh(remote: Remote, role: str, credits_: int = 0) -> str:
    """Make an account of a name that nobody has."""
    name = f"x{os.urandom(6).hex()}"
    remote.account(name, role)
    if credits_:
        remote.credit(name, credits_)
    return name


def listed(remote: Remote, folder: Path, epsilon: str = "1") -> tuple[str, str]:
    """A new listing with a delivery, and its seller."""
    seller = fresh(remote, "seller")
    made = remote.list_release(seller, None, PRICES)["listing"]["id"]
    remote.deliver(seller, made, release_file(folder, epsilon, release=f"of-{made}"))
    return made, seller


def test_every_mistake_changes_nothing(stage: tuple[Remote, Scene, Path]) -> None:
    remote, scene, _ = stage
    before, wrong = dump(remote.database), []
    tried = [mistake for mistake in MISTAKES if mistake.remote is not None]
    for mistake in tried:
        try:
            mistake.act(remote, scene)
        except Refused as refused:
            said = refused
        else:
            wrong.append(f"{mistake}: not refused")
            continue
        shown = f"{mistake}: {said}"
        if said.code != mistake.remote or re.fullmatch(r"[^\n]{10,300}[.]", said.sentence) is None:
            wrong.append(shown)
        if "SECRET" in said.sentence or any(token in said.sentence for token in remote.tokens.values()):
            wrong.append(f"{mistake}: shows a secret")
        after = dump(remote.database)
        if after != before:
            wrong.append(f"{mistake}: changed something")
            before = after
    assert wrong == []
    assert len(tried) > 250


def bodies(operation: Any) -> str | None:
    return next(iter(operation.get("requestBody", {}).get("content", [])), None)


def test_every_route_wants_its_role(remote: Remote) -> None:
    """Table-driven from the description: the wrong role is refused before the request is looked at, with 403."""
    before, refused = dump(remote.database), 0
    for (method, path), operation in market_operations(remote).items():
        address = re.sub(r"{\w+}", "1", path.removeprefix(PREFIX))
        wanted = next(iter(operation["security"][0])) if "security" in operation else None
        kind = bodies(operation)
        options: dict[str, Any] = {} if kind is None else {"content_type": kind}
        body = b"{}" if kind else None
        for token in ("Bearer nobody", "Bearer", "Basic x", f"Basic {remote.tokens['operator']}", "Bearer é"):
            answer = remote.ask(method, address, body, authorization=token, **options)
            if wanted is not None or operation["responses"].get("401"):
                assert (answer.status, answer.error) in ((401, "wrong_token"), (400, "malformed_request")), path
                assert answer.status == 401 or wanted is None
        if wanted is None:
            continue
        assert remote.ask(method, address, body, **options).status == 401
        for name, role in ROLES.items():
            allowed = wanted in (role, "account") and not (path.endswith("/refund") and role == "buyer")
            if allowed:
                continue
            answer = remote.ask(method, address, body, who=name, **options)
            assert (answer.status, answer.error) == (403, "wrong_role"), (name, path)
            refused += 1
    assert refused > 35
    assert dump(remote.database) == before


def test_bodies_that_are_none(remote: Remote) -> None:
    """Unknown fields, no JSON, another type, too much of it: on every route that takes a body."""
    people = {"seller": "clinic", "buyer": "institute", "operator": "operator", "account": "clinic", None: None}
    before, tried = dump(remote.database), 0
    for (method, path), operation in market_operations(remote).items():
        kind = bodies(operation)
        if kind is None:
            continue
        tried += 1
        who = people[next(iter(operation["security"][0])) if "security" in operation else None]
        address = re.sub(r"{\w+}", "1", path.removeprefix(PREFIX))
        other = remote.ask(method, address, b"{}", who=who, content_type="text/plain")
        assert (other.status, other.error) == (415, "wrong_media_type"), path
        if kind == PARQUET:
            assert remote.ask(method, address, b"{}", who=who, content_type="application/json").status == 415
            assert remote.ask(method, address, b"", who=who, content_type=PARQUET).error == "malformed_request"
            continue
        schema = operation["requestBody"]["content"][kind]["schema"]
        named = remote.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        body = {name: ["SECRET"] for name in named["properties"]}
        for content in (b"", b"{", b"[]", b"\xff", b"[" * 100_000, {**body, "SECRET": 1}, body):
            answer = remote.ask(method, address, content, who=who)
            assert (answer.status, answer.error) == (400, "malformed_request"), (path, answer)
            assert b"SECRET" not in answer.body
        large = remote.ask(method, address, b"x" * (2 << 20), who=who)
        assert (large.status, large.error) == (413, "body_too_large")
    assert tried >= 12
    for query in ("epsilon=1&epsilon=2", "epsilon=1&surprise=1", "", f"epsilon={'1' * 81}"):
        assert remote.ask("GET", f"/listings/diagnoses/quote?{query}").error == "malformed_request"
    for odd in ("NUL%00", "%2e%2e", "A", "x" * 300):
        assert remote.ask("GET", f"/listings/{odd}").error == "unknown_listing"
        assert remote.ask("POST", f"/accounts/{odd}/token", who="operator").error == "unknown_account"
        assert remote.ask("GET", f"/purchases/{odd}/receipt", who="institute").error == "unknown_purchase"
    for odd in ("-1", "1.0", "+1", "99999999999999999999", "%D9%A1"):
        assert remote.ask("GET", f"/purchases/{odd}/data", who="institute").error == "unknown_purchase"
    null = "a\0b"  # PostgreSQL would take it for a failure of its own
    titled, paid = {"title": null, "prices": PRICES}, {"account": "poor", "amount": 1, "reason": null}
    assert remote.ask("POST", "/listings", titled, who="clinic").error == "malformed_request"
    assert remote.ask("POST", "/credits", paid, who="operator").error == "malformed_request"
    assert dump(remote.database) == before


def test_a_trade_from_end_to_end(stage: tuple[Remote, Scene, Path], tmp_path: Path) -> None:
    """Everything that can be done is done once, on every route."""
    remote, _, folder = stage
    remote.seen.clear()
    about = remote.ask("GET", "").json
    for name, role in (("hospital", "seller"), ("school", "seller"), ("paper", "buyer"), ("radio", "buyer")):
        remote.account(name, role)
    assert remote.credit("paper", 500, "a first gift") == {"name": "paper", "role": "buyer", "balance": 500}
    remote.credit("radio", 500)
    draft = remote.list_release("hospital", "trade", PRICES, budget="1")
    assert (draft["listing"]["state"], draft["listing"]["levels"], draft["left"]) == ("draft", [], "1")
    path = release_file(folder, "1", release="trade-2026")
    made = remote.deliver("hospital", "trade", path)
    assert (made["listing"]["state"], made["listing"]["objects"], made["left"]) == ("open", 40, "0")
    assert remote.ask("GET", "").json == {**about, "listings": about["listings"] + 1}
    shown = remote.listing("trade")
    assert shown == made["listing"]
    assert shown in remote.ask("GET", "/listings").json["listings"]
    assert remote.quote("trade", "0.5") == {
        "listing": "trade", "epsilon": "0.5", **{"threshold": level_of("0.5")["threshold"]}, "price": 50, "due": 50,
        "owned": None, "objects": 40, "half_width": remote.quote("trade", "0.5")["half_width"],
    }  # fmt: skip
    first = remote.buy("paper", "trade", "0.5", 50)
    assert (first["price"], first["paid"], first["state"], first["authorised"]) == (50, 50, "owned", "1")
    assert remote.quote("trade", "1", "paper")["due"] == 50
    assert remote.quote("trade", "1", "paper")["owned"] == "0.5"
    assert remote.buy("paper", "trade", "0.50") == {**first, "new": False}
    content = remote.data("paper", first["number"])
    assert hashlib.sha256(content).hexdigest() == first["digest"]
    second = remote.buy("paper", "trade", "1", 50, upgrade=True)
    assert (second["paid"], second["previous"]) == (50, first["number"])
    assert remote.data("paper", first["number"]) == content  # what was upgraded can still be had
    assert [each["state"] for each in remote.purchases("paper")] == ["owned", "upgraded"]
    signed = remote.receipt("paper", second["number"])
    public = bytes.fromhex(about["public_key"])
    receipt = verify(signed_of(signed), public)
    bought = tmp_path / "bought.parquet"
    bought.write_bytes(remote.data("paper", second["number"]))
    check_data(receipt, bought)
    assert pa_parquet.read_table(bought).equals(pa_parquet.read_table(path))
    bought.write_bytes(content)
    with pytest.raises(ReceiptForgedError):
        check_data(receipt, bought)
    estimated = CliRunner().invoke(app, ["estimate", str(bought), "--json"])
    assert estimated.exit_code == 0, estimated.output
    assert json.loads(estimated.stdout)["n"] == 40
    (group,) = json.loads(estimated.stdout)["groups"]
    told = remote.ask("GET", f"/purchases/{first['number']}/told", who="paper").json
    names = ("value", "estimate", "low", "high")
    assert told["rows"] == [{name: row[name] for name in names} for row in group["estimates"]]
    assert (told["objects"], told["values"]) == (40, len(VALUES))
    stranger = remote.ask("GET", f"/purchases/{first['number']}/told", who="radio")
    assert (stranger.status, stranger.error) == (404, "unknown_purchase")
    assert remote.verify(signed) == remote.verify({key: signed[key] for key in ("receipt", "signature")}) == "owned"
    assert remote.verify(remote.receipt("paper", first["number"])) == "upgraded"
    radio = remote.buy("radio", "trade", "0.5")
    assert radio["digest"] == first["digest"]
    (sold,) = remote.sales("hospital")
    assert [(each["epsilon"], each["buyers"], each["from"]) for each in sold["sold"]] == [
        ("0.5", 2, [None, "1"]), ("1", 1, None),
    ]  # fmt: skip
    assert (sold["income"], sold["buyers"], sold["loss_buyers"], sold["loss_platform"]) == (150, 2, "1", "1")
    assert remote.budget("hospital", "trade", "2")["left"] == "1"
    assert remote.prices("hospital", "trade", {"points": [*POINTS, ["3", 500]]})["listing"]["prices"]["points"][-1] == [
        "3", 500,
    ]  # fmt: skip
    assert remote.close("hospital", "trade")["listing"]["state"] == "closed"
    refunded = remote.refund("operator", radio["number"], "wrong number")
    assert (refunded["state"], remote.balance("radio")) == ("refunded", 500)
    assert remote.ask("GET", f"/purchases/{radio['number']}/told", who="radio").error == "listing_state"
    pool = remote.pool(
        "shared", {"name": "categorical", "values": VALUES}, {"formula": "10*epsilon"}, levels=["0.5", "1"]
    )
    assert (pool["kind"], pool["seller"], pool["objects"], pool["authorised"]) == ("pool", None, 0, None)
    joined = remote.join("school", "shared", level_of("1"), "flu", 5)
    assert (joined["minimum"], joined["listing"]["authorised"], joined["loss_platform"]) == (5, "1", "1")
    shared = remote.buy("paper", "shared", "0.5")
    table = pa_parquet.read_table(io.BytesIO(remote.data("paper", shared["number"])))
    assert (table.num_rows, shared["objects"], shared["paid"]) == (1, 1, 5)
    assert described(remote.data("paper", shared["number"]))["columns"]["answer"]["epsilon"] == "0.5"
    assert remote.close_any("shared")["state"] == "closed"
    assert (remote.sales("school")[0]["income"], remote.balance("school")) == (5, 5)
    assert [entry["amount"] for entry in remote.statement("paper")] == [-5, -50, -50, 500]
    people = remote.ask("GET", "/accounts", who="operator").json["accounts"]
    found = {each["name"]: (each["role"], each["balance"]) for each in people}
    assert found["paper"] == ("buyer", 395)
    assert found["issue"] == ("issue", -sum(balance for name, (_, balance) in found.items() if name != "issue"))
    now = remote.books()
    assert (now["balanced"], now["credits"]) == (True, -found["issue"][1])
    assert remote.ask("GET", "/me", who="operator").json == {"name": "operator", "role": "operator", "balance": 0}
    renewed = remote.ask("POST", "/accounts/radio/token", who="operator").json
    old = remote.tokens["radio"]
    assert remote.ask("GET", "/me", authorization=f"Bearer {old}").status == 401
    remote.tokens["radio"] = renewed["token"]
    assert remote.balance("radio") == renewed["balance"] == 500
    succeeded = {(method, path) for method, path, status in remote.seen if status < 300}
    assert set(market_operations(remote)) - succeeded == set()


def test_the_operator_closes_a_release_and_its_path_is_free(remote: Remote, tmp_path: Path) -> None:
    """Where nothing of it was sold; where something was, the path stays taken."""
    buyer, other = fresh(remote, "buyer", 100), fresh(remote, "seller")
    for sold in (False, True):
        first, _ = listed(remote, tmp_path)
        second = remote.list_release(other, None, PRICES)["listing"]["id"]
        file = tmp_path / f"of-{first}-1.parquet"
        if sold:
            remote.buy(buyer, first, "0.5")
        else:
            with pytest.raises(Refused, match=f"as '{first}', and one path is sold in one place only"):
                remote.deliver(other, second, file)
        assert (remote.close_any(first)["state"], remote.listing(first)["state"]) == ("closed", "closed")
        if sold:
            with pytest.raises(Refused, match="one path is sold in one place only"):
                remote.deliver(other, second, file)
        else:
            assert remote.deliver(other, second, file)["listing"]["state"] == "open"
            assert remote.buy(buyer, second, "0.5")["new"]
        with pytest.raises(Refused, match="closed and sells nothing now"):
            remote.buy(buyer, first, "0.7")


def test_drafts_are_their_sellers(remote: Remote) -> None:
    def seen(who: str | None) -> set[str]:
        return {each["id"] for each in remote.ask("GET", "/listings", who=who).json["listings"]}

    for who in (None, "institute", "rival"):
        assert not {"draft", "short"} & seen(who)
        assert "closed" in seen(who)
        assert remote.ask("GET", "/listings/draft", who=who).error == "unknown_listing"
    for who in ("clinic", "operator"):
        assert {"draft", "short"} <= seen(who)
        assert remote.ask("GET", "/listings/draft", who=who).json["state"] == "draft"
    assert "copy" in seen("rival")
    assert remote.ask("GET", "/listings", authorization="Bearer nobody").error == "wrong_token"


def test_what_was_refunded_is_not_handed_out_again(stage: tuple[Remote, Scene, Path]) -> None:
    remote, scene, _ = stage
    refused = remote.ask("GET", f"/purchases/{scene.refunded}/data", who="insurer")
    assert (refused.status, refused.error) == (409, "listing_state")
    assert remote.receipt("insurer", scene.refunded)["receipt"]["number"] == scene.refunded
    assert remote.verify(remote.receipt("insurer", scene.refunded)) == "refunded"
    # The file of an upgraded purchase goes with the refund of the last one.
    remote.account("twice", "buyer")
    remote.credit("twice", 500)
    first = remote.buy("twice", "open-end", "0.2")
    second = remote.buy("twice", "open-end", "0.4", upgrade=True)
    remote.refund("clinic", second["number"])
    for number in (first["number"], second["number"]):
        assert remote.ask("GET", f"/purchases/{number}/data", who="twice").error == "listing_state"


def test_a_file_is_handed_out_whole_and_leaves_nothing(stage: tuple[Remote, Scene, Path]) -> None:
    """A part of a file has another digest than its receipt says, and an odd range is no reason to leave a copy."""
    remote, scene, folder = stage
    whole = remote.data("institute", scene.owned)
    for part in ("bytes=0-3", "bytes=x", "bytes=999999-", "bytes=0-1,4-5", "bytes=-5"):
        answer = remote.ask("GET", f"/purchases/{scene.owned}/data", who="institute", range=part)
        assert (answer.status, answer.body) == (200, whole)
    token = remote.tokens["institute"]
    head = remote.server.ask("HEAD", f"{PREFIX}/purchases/{scene.owned}/data", authorization=f"Bearer {token}")
    assert (head.status, head.body, int(head.headers["content-length"])) == (200, b"", len(whole))
    with socket.create_connection((remote.server.host, remote.server.port)) as plain:  # and who hangs up
        plain.sendall(f"GET {PREFIX}/purchases/{scene.owned}/data HTTP/1.1\r\nhost: x\r\n".encode())
        plain.sendall(f"authorization: Bearer {token}\r\n\r\n".encode())
    left = folder / "tmp"
    assert until(lambda: not list(left.glob(".relaxdp-files*"))), list(left.iterdir())


def everything_stored(database: Database) -> bytes:
    """Return every cell of every table of the database."""
    names = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if database.is_sqlite
        else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    )
    with database.reading() as connection:
        tables = list(connection.execute(text(names)).scalars())
        assert len(tables) > 10
        rows = [row for table in tables for row in connection.execute(text(f'SELECT * FROM "{table}"'))]
    return b"\n".join(
        bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode() for row in rows for cell in row
    )


def test_secrets_stay_secret(stage: tuple[Remote, Scene, Path]) -> None:
    """Tokens and the key are in no log, no metrics and no row; of tokens there are digests alone."""
    remote, scene, folder = stage
    with pytest.raises(Refused):
        remote.buy("institute", "diagnoses", "5")
    remote.ask("GET", f"/purchases/{scene.owned}/receipt", who="institute")
    (file,) = folder.glob("*market-key")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = bytes.fromhex(file.read_text("ascii").splitlines()[1])
    seed = rx.Key.load(file).derive(add_length_prefix(b"market receipt"))
    shown = remote.server.ask("GET", "/metrics", operator=True).body + (
        until(lambda: (log := remote.server.log.read_bytes()).count(b"\n") > 20 and log) or b""
    )
    stored = everything_stored(remote.database)
    digests = [hashlib.sha256(token.encode()).digest() for token in remote.tokens.values()]
    assert all(digest in stored for digest in digests)
    if remote.database.is_sqlite:
        own = {file, remote.server.token_file}
        stored += b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file() and each not in own)
    for place in (shown, stored):
        assert not [name for name, token in remote.tokens.items() if token.encode() in place]
        for each in (secret, seed):
            assert not [text for text in (each, each.hex().encode(), base64.b64encode(each)) if text in place]
    for word in (b"institute", b"diagnoses", b"Traceback", b"127.0.0.1"):
        assert word not in shown


def test_two_services_sell_one_level_once(stage: tuple[Remote, Scene, Path], tmp_path: Path) -> None:
    """Many at once, through two services on one database: all buyers get the same file, and each pays once."""
    remote, _, _ = stage
    first = remote.server
    listing, seller = listed(remote, tmp_path)
    buyers = [fresh(remote, "buyer", 100) for _ in range(3)]
    with running(first.url, first.folder, *first.options) as second, ThreadPoolExecutor(6) as threads:
        other = Remote(second, remote.database)
        other.tokens = remote.tokens
        found = list(threads.map(lambda at, buyer: at.buy(buyer, listing, "0.7"), [remote, other] * 3, buyers * 2))
    assert len({each["digest"] for each in found}) == 1
    assert sorted(each["new"] for each in found) == [False] * 3 + [True] * 3
    price = found[0]["price"]
    assert [remote.balance(buyer) for buyer in buyers] == [100 - price] * 3
    assert remote.balance(seller) == 3 * price
    assert remote.books()["balanced"]


def test_a_delivery_may_be_larger_than_other_bodies(remote: Remote, tmp_path: Path) -> None:
    """And a column of several is chosen by the query."""
    seller = fresh(remote, "seller")
    ids = sorted(os.urandom(64).hex() for _ in range(20_000))
    path = release_file(tmp_path, "1", columns=["one", "two"], release=f"wide-{seller}", ids=ids)
    assert path.stat().st_size > 1 << 20
    made = remote.list_release(seller, None, PRICES)["listing"]["id"]
    assert remote.deliver(seller, made, path, "two")["listing"]["objects"] == 20_000
    for query in ("column=one&column=two", "surprise=1", f"column={'x' * 1001}"):
        answer = remote.ask(
            "POST", f"/listings/{made}/deliveries?{query}", path.read_bytes(), who=seller, content_type=PARQUET
        )
        assert (answer.status, answer.error) == (400, "malformed_request")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `relaxdp serve` up to where it would begin to serve, and return what it says."""

    def build_only(build: Any, settings: Settings, listening: socket.socket) -> None:
        listening.close()
        build(settings)

    monkeypatch.setattr(run, "serve", build_only)

    def call(*words: str) -> str:
        shown = CliRunner().invoke(app, ["serve", "--port", "0", *words])
        if isinstance(shown.exception, RelaxdpError):
            return shown.exception.message
        assert shown.exit_code == 0, shown.output
        return ""

    return call


@pytest.mark.parametrize("store", STORES)
def test_the_key_is_made_once_and_never_again(
    store: str, request: pytest.FixtureRequest, tmp_path: Path, start: Any
) -> None:
    """A lost key is refused, and so is another one: levels drawn with it would be second draws of what was sold."""
    url = str(tmp_path / "service.db")
    file, words = tmp_path / "service.db.market-key", ["--db", url]
    if store == "postgres":
        url = request.getfixturevalue("postgres_url")()
        file = tmp_path / "chosen"
        words = ["--db", url, "--market-key", str(file)]
    assert start(*words) == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_bytes()
    assert start(*words) == ""
    assert file.read_bytes() == kept
    file.rename(tmp_path / "lost")
    said = start(*words)
    assert "Nothing was started." in said
    assert rx.Key.load(tmp_path / "lost").fingerprint in said
    assert not file.exists()
    rx.Key.from_bytes(bytes(32)).save(file)
    said = start(*words)
    assert "was opened with the key" in said
    assert "Nothing was started." in said
    file.unlink()
    (tmp_path / "lost").rename(file)
    assert start(*words) == ""


def test_without_a_key_postgres_has_no_market(postgres_url: Any, tmp_path: Path) -> None:
    """Every route of the market says so, to whoever asks; the collector goes on."""
    with running(postgres_url(), tmp_path) as server:
        remote = Remote(server, None)  # type: ignore[arg-type]
        asked = 0
        for (method, path), operation in market_operations(remote).items():
            address = re.sub(r"{\w+}", "1", path.removeprefix(PREFIX))
            kind = bodies(operation)
            options: dict[str, Any] = {} if kind is None else {"content_type": kind}
            for who in (None, "operator"):
                answer = remote.ask(method, address, b"{}" if kind else None, who=who, **options)
                assert (answer.status, answer.error) == (503, "market_closed"), path
                assert answer.json["message"].startswith("the market is closed: the service was started without a key")
                asked += 1
        assert asked >= 50
        assert server.create()["state"] == "open"
        assert server.ask("GET", "/healthz").status == 200


def test_every_route_is_described(remote: Remote) -> None:
    """The routes of the contract, no more and no fewer, each with what it may refuse."""
    wanted = """
        GET  GET /listings GET /listings/{id} GET /listings/{id}/quote POST /receipts/verify POST /accounts
        GET /accounts POST /accounts/{name}/token POST /credits POST /pools POST /pools/{id}/close GET /books
        GET /me GET /statement
        POST /listings POST /listings/{id}/deliveries POST /listings/{id}/prices POST /listings/{id}/budget
        POST /listings/{id}/close POST /listings/{id}/reports GET /sales POST /listings/{id}/buy
        POST /listings/{id}/upgrade GET /purchases GET /purchases/{number}/receipt GET /purchases/{number}/data
        GET /purchases/{number}/told POST /purchases/{number}/refund
    """
    routes = re.findall(r"(GET|POST)[ ]+(/[^ \n]*)?", wanted)
    found = market_operations(remote)
    assert {(method, f"{PREFIX}{path}") for method, path in routes} == set(found)
    for operation in found.values():
        assert "market_closed" in operation["responses"]["503"]["description"]
    reports = base64.b64encode(b"x")  # a report of bytes travels as text
    assert remote.ask("POST", "/listings/snacks/reports", {"level": level_of("1"), "report": reports.decode()},
                      who="bob").error == "report_outside_encoding"  # fmt: skip
