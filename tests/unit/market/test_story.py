"""`relaxdp market` at a real market: released, listed, bought, upgraded, relaxed, pooled, refunded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from tests.servers.collectors import Running, running
from tests.unit.market.fake import VALUES, answers
from tests.unit.market.words import ask, at_home, mistake, private, release
from typer.testing import CliRunner

from relaxdp import Key
from relaxdp.cli.main import app
from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.receipts import read_signed
from relaxdp.server_errors import RefusedByServerError


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(tmp_path, monkeypatch)


class Trader:
    """The operator, or somebody with an account, at the command line of a real market."""

    def __init__(self, server: Running, token_file: Path) -> None:
        self.url, self.token_file = server.base, token_file

    def says(self, *words: str) -> str:
        return ask(self.url, *words, "--token-file", str(self.token_file))

    def json(self, *words: str) -> Any:
        return json.loads(self.says(*words, "--json"))

    def cannot(self, *words: str) -> str:
        return mistake(self.url, *words, "--token-file", str(self.token_file)).message


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Running]:
    with running(f"sqlite:///{tmp_path}/service.db", tmp_path / "server") as server:
        yield server


@pytest.fixture
def people(real: Running, tmp_path: Path) -> Callable[[str, str], Trader]:
    """Return somebody with an account of this role, made by the operator."""
    operator = Trader(real, real.token_file)

    def made(name: str, role: str) -> Trader:
        file = tmp_path / f"{name}.token"
        assert operator.json("account", name, "--role", role, "--token-out", str(file))["balance"] == 0
        if role == "buyer":
            operator.says("credit", name, "500", "--reason", "to begin with")
        return Trader(real, file)

    return made


def test_a_release_is_sold_relaxed_and_sold_again(
    real: Running, people: Callable[[str, str], Trader], tmp_path: Path
) -> None:
    clinic, institute, paper = people("clinic", "seller"), people("institute", "buyer"), people("paper", "buyer")
    first, second = release(tmp_path / "one.parquet", "1"), release(tmp_path / "two.parquet", "2")
    prices = ["--prices", "0.1:10,0.5:40,1:100"]
    clinic.says("list", str(first), "--title", "Diagnoses", "--id", "diagnoses", *prices, "--budget", "2")
    assert "Diagnoses" in ask(real.base, "list", env={"RELAXDP_TOKEN": ""})
    assert "up to epsilon 1" in ask(real.base, "show", "diagnoses", env={"RELAXDP_TOKEN": ""})
    assert "costs 40 credits" in institute.says("show", "diagnoses", "--epsilon", "0.5")

    assert "more than the 39 that you" in institute.cannot("buy", "diagnoses", "--epsilon", "0.5", "--most", "39")
    shown = institute.says("buy", "diagnoses", "--epsilon", "0.5", "half.parquet")
    assert "for 40 credits (purchase 1)" in shown
    assert CliRunner().invoke(app, ["estimate", "half.parquet"]).exit_code == 0
    again = institute.json("buy", "diagnoses", "--epsilon", "0.5", "again.parquet")
    assert (again["number"], again["new"]) == (1, False)
    paper.says("buy", "diagnoses", "--epsilon", "0.5", "theirs.parquet")
    files = {Path(name).read_bytes() for name in ("half.parquet", "again.parquet", "theirs.parquet")}
    assert len(files) == 1  # a level is drawn once
    described = json.loads(pa_parquet.read_schema("half.parquet").metadata[b"relaxdp"])["columns"]["diagnosis"]
    assert described["epsilon"] == "0.5"

    assert "an upgrade to 1 costs the difference" in institute.cannot("buy", "diagnoses", "--epsilon", "1")
    higher = institute.json("upgrade", "diagnoses", "--epsilon", "1", "whole.parquet")
    assert (higher["paid"], higher["previous"]) == (60, 1)
    sold, delivered = (pa_parquet.read_table(name) for name in ("whole.parquet", first))
    assert sold.equals(delivered)  # the delivered level itself
    assert "more than the seller has authorised, which is 1" in institute.cannot(
        "upgrade", "diagnoses", "--epsilon", "2"
    )
    assert "must lie above every delivered level" in clinic.cannot("deliver", "diagnoses", str(first))
    extended = "0.1:10,0.5:40,1:100,2:400"
    shown = clinic.says("deliver", "diagnoses", str(second), "--prices", extended)
    assert "2 is the largest epsilon on sale" in shown
    assert "privacy loss: 1 against buyers, 2 against the platform; 0 left of 2" in shown
    assert institute.json("upgrade", "diagnoses", "--epsilon", "2")["paid"] == 300

    sales = clinic.json("sales")
    assert (sales["listings"][0]["income"], sales["balance"]) == (440, 440)
    assert "balance: 440 credits" in clinic.says("sales")
    owned = institute.json("owned")
    assert {each["number"]: each["state"] for each in owned["purchases"]}[higher["number"]] == "upgraded"
    assert owned["balance"] == 100
    assert "balance: 100 credits" in institute.says("owned")
    assert [each["amount"] for each in institute.json("statement")["entries"]] == [-300, -60, -40, 500]
    clinic.says("refund", "2", "--reason", "a mistake")
    assert paper.json("owned")["balance"] == 500
    assert clinic.json("sales")["listings"][0]["loss_buyers"] == "2"
    operator = Trader(real, real.token_file)
    assert operator.json("books") == {"balanced": True, "transactions": 7, "credits": 1000}
    assert "institute" in operator.says("accounts")
    clinic.says("close", "diagnoses")
    assert "closed" in paper.cannot("buy", "diagnoses", "--epsilon", "0.5")


@pytest.mark.long
def test_receipts_of_a_real_market(real: Running, people: Callable[[str, str], Trader], tmp_path: Path) -> None:
    hospital, office = people("hospital", "seller"), people("office", "buyer")
    file = release(tmp_path / "one.parquet", "1")
    hospital.says("list", str(file), "--title", "Stays", "--id", "stays", "--formula", "10 + 90*epsilon")
    number = office.json("buy", "stays", "--epsilon", "0.3", "stays.parquet")["number"]
    check = ["receipt", "--check", "stays.parquet.receipt.json", "--data", "stays.parquet"]
    assert "the file is the one that was bought" in ask(real.base, *check)
    key = json.loads(real.ask("GET", "/v1/market").body)["public_key"]
    ask("", *check, "--public-key", key)
    office.says("receipt", str(number), "--out", "copy.json")
    assert Path("copy.json").read_bytes() == Path("stays.parquet.receipt.json").read_bytes()
    market = MarketClient(Server.parse(real.base), office.token_file.read_text().strip())
    good = market.receipt(number)
    assert market.verify(good) == {"valid": True, "state": "owned"}
    forged = json.loads(Path("copy.json").read_text())
    forged["receipt"]["paid"] = 1
    Path("forged.json").write_text(json.dumps(forged))
    sentence = "this receipt was not signed by the market, or it was changed after it was signed."
    assert mistake(real.base, "receipt", "--check", "forged.json").message == sentence
    with pytest.raises(RefusedByServerError) as refused:
        market.verify(read_signed(Path("forged.json").read_text()))
    assert refused.value.message == sentence
    assert (refused.value.fields["status"], refused.value.fields["error"]) == (422, "receipt_forged")
    assert "no purchase" in people("other", "buyer").cannot("receipt", str(number))


@pytest.mark.long
def test_a_draft_goes_on(real: Running, people: Callable[[str, str], Trader], tmp_path: Path) -> None:
    archive = people("archive", "seller")
    file = release(tmp_path / "one.parquet", "1")
    words = ["list", str(file), "--title", "Files", "--id", "files"]
    assert "the prices do not reach it. Nothing was sent." in archive.cannot(*words, "--prices", "0.1:10,0.5:40")
    assert "more than the budget 0.5" in archive.cannot(*words, "--formula", "1", "--budget", "0.5")
    assert archive.json("sales")["listings"] == []
    archive.says(*words, "--prices", "0.1:10,1:41")
    assert json.loads(ask(real.base, "show", "files", "--json", env={"RELAXDP_TOKEN": ""}))["authorised"] == "1"
    assert "there is a listing 'files' already" in archive.cannot(*words, "--formula", "1")
    others = ["list", str(file), "--title", "Files", "--id", "others", "--formula", "1", "--budget", "1"]
    refused = archive.cannot(*others)
    assert "one path is sold in one place only" in refused
    assert "The listing 'others' remains a draft: `relaxdp market deliver others" in refused
    assert "others" not in ask(real.base, "list", env={"RELAXDP_TOKEN": ""})
    (tmp_path / "elsewhere").mkdir()
    another = release(tmp_path / "elsewhere" / "another.parquet", "1")  # under a key of its own
    archive.says("deliver", "others", str(another))
    assert archive.json("budget", "others", "3.5")["budget"] == "3.5"
    assert "1" in archive.cannot("budget", "others", "1")


@pytest.mark.long
def test_single_sellers_join_a_pool(real: Running, people: Callable[[str, str], Trader], tmp_path: Path) -> None:
    operator, buyer = Trader(real, real.token_file), people("reader", "buyer")
    pool = ["pool", "--title", "What did you have?", "--id", "had", "--values", ",".join(VALUES)]
    operator.says(*pool, "--prices", "0.1:1,1:10,3:40")
    members = {name: people(name, "seller") for name in ("ada", "bo", "cy")}
    for name, answer, limit in (("ada", "flu", "1"), ("bo", "none", "0.5"), ("cy", "covid", "1")):
        Key.generate().save(tmp_path / f"{name}.key")
        private(tmp_path / f"{name}.answer", answer)
        words = ["join", "had", "--key", f"{name}.key", "--answer-file", f"{name}.answer"]
        shown = members[name].says(*words, "--epsilon", limit, "--minimum", "2")
        assert f"joined had at epsilon {limit}" in shown
    few = buyer.json("buy", "had", "--epsilon", "1", "few.parquet")
    assert (few["objects"], few["paid"]) == (2, 20)
    assert pa_parquet.read_table("few.parquet").num_rows == 2
    words = ["join", "had", "--key", "bo.key", "--answer-file", "bo.answer", "--epsilon"]
    assert "must lie above every delivered level" in members["bo"].cannot(*words, "0.1")
    assert members["bo"].json(*words, "2")["loss_platform"] == "2"
    assert members["bo"].json("sales")["listings"][0]["minimum"] == 0
    more = buyer.json("upgrade", "had", "--epsilon", "2", "more.parquet")
    assert more["objects"] == 1
    assert "the nearest is 3. Nothing was sent." in members["bo"].cannot(*words, "4")
    assert members["ada"].json("statement")["entries"][0]["amount"] == 10


def test_everybody_keeps_to_their_role(real: Running, people: Callable[[str, str], Trader], tmp_path: Path) -> None:
    seller, buyer = people("one-who-sells", "seller"), people("one-who-buys", "buyer")
    assert "this needs the role buyer" in seller.cannot("owned")
    assert "this needs the role seller" in buyer.cannot("sales")
    assert "operator" in buyer.cannot("accounts")
    assert "operator" in seller.cannot("credit", "one-who-sells", "5", "--reason", "please")
    assert "there is no listing" in buyer.cannot("buy", "nothing", "--epsilon", "1")
    operator = Trader(real, real.token_file)
    assert "already" in operator.cannot("account", "one-who-buys", "--role", "buyer")
    old = buyer.token_file.read_text()
    operator.says("account", "one-who-buys", "--renew", "--token-out", "renewed")
    buyer.token_file = Path("renewed")
    assert buyer.json("owned")["balance"] == 500
    buyer.token_file = private(tmp_path / "old", old)
    assert "token" in buyer.cannot("owned")


def test_the_client_knows_every_route_of_the_market(real: Running) -> None:
    """The canned answers that the client is tested with are for the routes that there are, all of them."""
    served = {
        f"{method.upper()} {re.sub(r'{.*?}', '*', path)}"
        for path, methods in real.ask("GET", "/openapi.json").json["paths"].items()
        for method in methods
        if path.startswith("/v1/market")
    }
    named = re.compile("(?<=/)(diagnoses|snacks|clinic|17)(?=/|$)")
    known = (route.partition("?")[0].partition(" ") for route in answers())
    assert served == {f"{method} /v1/market{named.sub('*', path)}" for method, _, path in known}
