"""The market over HTTP: every route with every role, malformed bodies, and answers as they are described."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import text
from tests.servers.collectors import STORES, Answer
from tests.servers.markets import ROWS, Market, ask_for_listing, make_market_fixture, make_vault

from relaxdp.market.client import PARQUET
from relaxdp.market.routes import make_operations

market = make_market_fixture(STORES, "--upload-limit", "100000", "--body-limit", "20000")
PREFIX = "/v1/market"
ROUTES = sorted((each.method, each.path) for each in make_operations(None))  # type: ignore[arg-type]
ROLES = {
    ("GET", ""): "everyone",
    ("GET", "/me"): "operator, seller, buyer",
    ("POST", "/tokens"): "operator",
    ("GET", "/listings"): "everyone",
    ("GET", "/listings/{id}"): "everyone",
    ("POST", "/listings"): "seller",
    ("POST", "/listings/{id}/levels"): "seller",
    ("GET", "/sales"): "seller",
    ("POST", "/pools"): "operator",
    ("POST", "/pools/{id}/reports"): "seller",
    ("POST", "/listings/{id}/orders"): "buyer",
    ("GET", "/orders"): "operator, seller, buyer",
    ("POST", "/orders/{id}/approve"): "operator, seller",
    ("POST", "/orders/{id}/withdraw"): "operator, seller, buyer",
    ("POST", "/receipts"): "buyer",
    ("GET", "/orders/{id}/receipt"): "buyer",
    ("GET", "/orders/{id}/file"): "buyer",
}
POOL = {
    "id": "pool", "title": "T", "currency": "EUR", "prices": {"1": "1"},
    "encoding": {"name": "categorical", "values": ["no", "yes"]},
}  # fmt: skip


class Checked:
    """Asks a server, and holds each answer, also of a rejection, against the description of the service."""

    def __init__(self, market: Market) -> None:
        self.server = market.server
        self.document = self.server.ask("GET", "/openapi.json").json
        self.tokens = {
            "operator": self.server.token, **{role: self._make_token(market, role) for role in ("seller", "buyer")}
        }  # fmt: skip

    @staticmethod
    def _make_token(market: Market, role: str) -> str:
        name = market.make_name(role)
        return market.operator.create_token(name, role)

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str) -> Answer:
        sent: dict[str, Any] = dict(headers)
        if token is not None:
            sent["authorization"] = f"Bearer {self.tokens.get(token, token)}"
        answer = self.server.ask(method, path, body, **sent)
        place = path.partition("?")[0]
        template = next(each for each in self.document["paths"] if re.fullmatch(re.sub(r"{\w+}", "[^/]+", each), place))
        described = self.document["paths"][template][method.lower()]["responses"][str(answer.status)]
        content = described["content"][answer.headers["content-type"].partition(";")[0]]
        if answer.status >= 400:
            assert set(answer.json) == {"error", "message", "fields", "sentence", "hint", "consequence"}
            assert answer.error in described["description"].split(", "), (method, path, answer)
            assert re.fullmatch(r"[^\n]{10,400}[.]", answer.json["message"])
            assert not [each for each in self.tokens.values() if each in answer.json["message"]]
        else:
            assert answer.headers["cache-control"] == "no-store"
        if "schema" in content and answer.headers["content-type"] != PARQUET:
            whole = {**content["schema"], "components": self.document["components"]}
            jsonschema_rs.Draft202012Validator(whole).validate(answer.json)
        return answer


@pytest.fixture(scope="module")
def http(market: Market) -> Checked:
    return Checked(market)


@pytest.fixture(scope="module")
def listing(market: Market, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(market.publish(make_vault(tmp_path_factory.mktemp("vault")), limits="limit").listing["id"])


@pytest.fixture
def unchanged(market: Market, listing: str) -> Iterator[None]:
    """What is rejected changes nothing."""
    before = count_rows(market)
    yield
    assert count_rows(market) == before


def count_rows(market: Market) -> list[int]:
    tables = ("member", "listing", "level", "file", "order", "pool_report")
    with market.open_database() as database, database.reading() as connection:
        return [connection.execute(text(f"SELECT count(*) FROM market_{each}")).scalar_one() for each in tables]


def fill(path: str) -> str:
    return re.sub(r"{\w+}", "nothing", path)


def get_operation(http: Checked, method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = http.document["paths"][path][method.lower()]
    return found


def test_every_route_is_described_and_has_its_roles(http: Checked) -> None:
    paths = {path: methods for path, methods in http.document["paths"].items() if path.startswith(PREFIX)}
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == set(ROUTES) == {(method, f"{PREFIX}{path}") for method, path in ROLES}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_wants_its_role(http: Checked, method: str, path: str) -> None:
    """An unknown token is rejected everywhere, a missing one and another role before the request is looked at."""
    body, roles = get_operation(http, method, path).get("requestBody"), ROLES[method, path.removeprefix(PREFIX)]
    options: dict[str, Any] = {} if body is None else {"content_type": next(iter(body["content"]))}
    content = None if body is None else b"{}"
    if path != PREFIX:  # which asks for no token, and looks at none
        for scheme in ("Bearer nobody", "Bearer", f"Basic {http.tokens['operator']}", "Bearer é"):
            answer = http.ask(method, fill(path), content, authorization=scheme, **options)
            assert (answer.status, answer.error) == (401, "wrong_token")
    assert (http.ask(method, fill(path), content, **options).status == 401) == (roles != "everyone")
    for role in ("operator", "seller", "buyer") if roles != "everyone" else ():
        answer = http.ask(method, fill(path), content, token=role, **options)
        assert (answer.status == 403) == (role not in roles), (role, answer)
        if answer.status == 403:
            assert answer.error == "wrong_role"


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(("method", "path"), [each for each in ROUTES if each[0] == "POST"])
def test_bodies_that_are_none(http: Checked, method: str, path: str) -> None:
    """No JSON, another type, an unknown field, a name in capitals, too much of it. No cell is shown."""
    operation = get_operation(http, method, path)
    if "requestBody" not in operation:
        return
    ((kind, content),) = operation["requestBody"]["content"].items()
    role = next(iter(operation["security"][0]))
    priced = f"{fill(path)}?price=1" if kind == PARQUET else fill(path)
    other = http.ask(method, priced, b"{}", token=role, content_type="text/plain")
    assert (other.status, other.error) == (415, "wrong_media_type")
    if kind == PARQUET:
        assert http.ask(method, priced, b"", token=role, content_type=PARQUET).error == "malformed_request"
        large = http.ask(method, priced, b"x" * 100_001, token=role, content_type=PARQUET)
        assert (large.status, large.error) == (413, "body_too_large")
        for query in ("", "?price=1&price=1", "?price=1&surprise=1", f"?price={'1' * 21}"):
            answer = http.ask(method, fill(path) + query, b"x", token=role, content_type=PARQUET)
            assert (answer.status, answer.error) == (400, "malformed_request")
        for file in (b"SECRET", b"PAR1" + b"SECRET" * 100 + b"PAR1"):
            answer = http.ask(method, priced, file, token=role, content_type=PARQUET)
            assert (answer.status, answer.error) == (422, "level_file")
            assert "SECRET" not in answer.json["message"]
        return
    named = http.document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
    odd = {name: ["SECRET"] for name in named["properties"]}
    for body in (b"", b"{", b"[]", b"\xff", b"[" * 10_000, {**odd, "SECRET": 1}, odd, {}, {"id": "NO", "name": "NO"}):
        answer = http.ask(method, fill(path), body, token=role)
        assert (answer.status, answer.error) == (400, "malformed_request"), (body, answer)
        assert "SECRET" not in answer.json["message"]
    large = http.ask(method, fill(path), b"x" * 20_001, token=role)
    assert (large.status, large.error) == (413, "body_too_large")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", ["NUL%00", "%2e%2e", "A", "x" * 300, "nothing"])
@pytest.mark.parametrize(
    ("method", "path"), [each for each in ROUTES if "{id}" in each[1] and "/levels" not in each[1]]
)
def test_unknown_names(http: Checked, method: str, path: str, name: str) -> None:
    """There is nothing under an unknown name. (A file is checked before its listing is looked for.)"""
    bodies = {"orders": {"epsilon": "1"}, "reports": {"reports": {"1": "no"}}}
    role = {"everyone": None}.get(roles := ROLES[method, path.removeprefix(PREFIX)], roles.rpartition(", ")[2])
    answer = http.ask(method, path.replace("{id}", name), bodies.get(path.rpartition("/")[2]), token=role)
    assert (answer.status, answer.error) == (404, "unknown_order" if "/orders/{id}" in path else "unknown_listing")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "change",
    [
        {"column": "a\0b"}, {"id_column": "a\0b"}, {"title": "a\0b"}, {"about": "a\0b"}, {"title": ""},
        {"title": "x" * 201}, {"currency": "Eur"}, {"currency": "EUR\n"}, {"prices": {}}, {"approval": "never"},
        {"prices": {str(n): "1" for n in range(1, 102)}}, {"prices": {"1": 1}}, {"id": "a/b"}, {"seller": "x"},
        {"column": ""}, {"prices": {"1" * 81: "1"}},
    ],
    ids=str,
)  # fmt: skip
def test_fields_of_a_listing(http: Checked, tmp_path: Path, change: dict[str, Any]) -> None:
    """PostgreSQL keeps no null character: it is rejected as the request that it is."""
    answer = http.ask(
        "POST", f"{PREFIX}/listings", {"id": "new", **ask_for_listing(make_vault(tmp_path)), **change}, token="seller"
    )
    assert (answer.status, answer.error) == (400, "malformed_request"), answer


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"epsilon": "0"}, "metadata"), ({"version": 2}, "metadata"), ({"values": ["a"]}, "level_file"),
        ({"release": "a\0b"}, "level_file"), ({"encoding": "SECRET"}, "level_file"), ({"values": None}, "level_file"),
        ({"key_fingerprint": 7}, "level_file"), ({"values": [["SECRET"]]}, "level_file"),
    ],
    ids=str,
)  # fmt: skip
def test_descriptions_of_a_listing(http: Checked, tmp_path: Path, change: dict[str, Any], error: str) -> None:
    asked = {"id": "new", **ask_for_listing(make_vault(tmp_path))}
    answer = http.ask(
        "POST", f"{PREFIX}/listings", {**asked, "description": asked["description"] | change}, token="seller"
    )
    assert (answer.status // 100, answer.error) == (4, error)
    assert answer.json["message"].endswith("Nothing was listed.")
    assert "SECRET" not in answer.json["message"]


def test_a_trade_over_http(http: Checked, listing: str, tmp_path: Path) -> None:
    """Every route that answers with something does so as described; a download may be asked for by its head."""
    about = http.ask("GET", PREFIX).json
    assert len(bytes.fromhex(about["public_key"])) == 32
    assert http.ask("GET", f"{PREFIX}/me", token="buyer").json["role"] == "buyer"
    made = http.ask("POST", f"{PREFIX}/listings/{listing}/orders", {"epsilon": "0.5"}, token="buyer")
    assert (made.status, made.json["state"]) == (201, "approved")
    assert http.ask("POST", f"{PREFIX}/listings/{listing}/orders", {"epsilon": "0.5"}, token="buyer").status == 200
    order = f"{PREFIX}/orders/{made.json['id']}"
    whole = http.ask("GET", f"{order}/file", token="buyer")
    assert whole.headers["content-length"] == str(len(whole.body))
    assert whole.headers["content-disposition"] == f'attachment; filename="{listing}-0.5.parquet"'
    (tmp_path / "x.parquet").write_bytes(whole.body)
    assert pa_parquet.read_table(tmp_path / "x.parquet").num_rows == made.json["is_new"] * ROWS
    head = http.server.ask("HEAD", f"{order}/file", authorization=f"Bearer {http.tokens['buyer']}")
    names = ("content-length", "content-type", "content-disposition", "cache-control")
    assert (head.status, head.body) == (200, b"")
    assert [head.headers[name] for name in names] == [whole.headers[name] for name in names]
    receipt = http.ask("GET", f"{order}/receipt", token="buyer").json
    assert http.ask("POST", f"{PREFIX}/receipts", receipt, token="buyer").json["id"] == made.json["id"]
    for path in ("listings", f"listings/{listing}", "orders"):
        assert made.json["listing"] in http.ask("GET", f"{PREFIX}/{path}", token="buyer").body.decode()
    assert http.ask("GET", f"{PREFIX}/sales", token="seller").json == {"columns": [], "vaults": []}
    pool = http.ask("POST", f"{PREFIX}/pools", POOL, token="operator")
    assert (pool.status, pool.json["levels"][0]["rows"], pool.json["levels"][0]["margin"]) == (201, 0, None)
    joined = http.ask("POST", f"{PREFIX}/pools/pool/reports", {"reports": {"1": "no"}}, token="seller")
    assert joined.json["levels"][0]["rows"] == 1


def test_a_listing_names_no_member_and_no_token(http: Checked, market: Market, listing: str) -> None:
    """Everyone sees who sells and what; buyers, members of pools, tokens and the signing key are hidden."""
    http.ask("POST", f"{PREFIX}/pools", {**POOL, "id": "secretive"}, token="operator")
    member, buyer = market.add("seller"), market.add("buyer")
    member.join_pool("secretive", {"1": "no"})
    buyer.order(listing, "1")
    names = [each.member()["name"] for each in (member, buyer)]
    with market.open_database() as database, database.reading() as connection:
        key = bytes(connection.execute(text("SELECT signing_key FROM market_setup")).scalar_one())
        rows = [str(each) for each in connection.execute(text('SELECT "row" FROM market_pool_report')).scalars()]
    answers = [http.ask("GET", f"{PREFIX}/{path}", token="seller") for path in ("listings", "listings/secretive")]
    shown = json.dumps([each.json for each in answers]) + http.ask("GET", PREFIX).body.decode()
    for secret in (*names, *market.tokens.values(), *http.tokens.values(), key.hex(), *rows):
        assert secret not in shown
    assert "Traceback" not in market.server.log.read_text("utf-8")
