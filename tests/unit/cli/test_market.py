"""`relaxdp market`: the story of a seller, two buyers, the operator and members of a pool, and their mistakes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import printed, status_and_words
from tests.servers.collectors import running
from tests.servers.markets import Market, make_table

import relaxdp as rx
from relaxdp.errors import TableFileError
from relaxdp.market.client import MarketClient
from relaxdp.sampling.private_file import write_private_file
from relaxdp.server_errors import AnswerChangedError, ReceiptError, RefusedByServerError, UnreachableError

LEVELS = ("--levels", "0.1=10,0.5=60,1=160", "--currency", "EUR")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    folder = tmp_path_factory.mktemp("market")
    with running(f"sqlite:///{folder}/service.db", folder) as server:
        yield Market(server)


class Place:
    """A folder in which people type commands: a vault, tokens in private files, and the names of this test."""

    def __init__(self, market: Market, folder: Path) -> None:
        self.market, self.folder, self.state = market, folder, os.environ["XDG_STATE_HOME"]
        self.names = {role: market.make_name(role) for role in ("seller", "buyer", "other", "late", "member")}
        self.listing = market.make_name("patients")
        (folder / "operator.token").write_text(market.server.token, "utf-8")
        (folder / "operator.token").chmod(0o600)
        for role, kind in (("seller", "seller"), ("member", "seller"), ("buyer", "buyer"), ("other", "buyer")):
            self.run("operator", "token", self.names[role], "--role", kind, "--output", f"{role}.token")
        pa_parquet.write_table(make_table(range(3000)), "table.parquet")
        printed("init", "study.vault", "--budget", "3")
        printed("release", "table.parquet", "first.parquet", "--id", "id", "--column", "diagnosis=flu,covid,none",
                "--epsilon", "0.5", "--name", self.listing, "--passthrough", "limit")  # fmt: skip

    def words(self, role: str, *words: str) -> list[str]:
        return ["market", *words, "--server", self.market.server.base, "--token-file", f"{role}.token"]

    def run(self, role: str, *words: str) -> str:
        return printed(*self.words(role, *words))

    def json(self, role: str, *words: str) -> Any:
        return json.loads(self.run(role, *words, "--json"))


@pytest.fixture
def place(served: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELAXDP_TOKEN", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return Place(served, tmp_path)


def test_the_story_of_a_listing(place: Place) -> None:
    """Publish with limits, order, approve, download, verify offline, upgrade, and look at the sales."""
    shown = place.run("seller", "publish", place.listing, *LEVELS, "--limits", "limit", "--about", "Source: a clinic.")
    assert "Published epsilon 0.1, 0.5, 1. Cost 0.5, 2 remaining in study.vault." in shown
    assert "Source: a clinic." in shown
    again = place.run("seller", "publish", place.listing, "--levels", "0.1=10", *LEVELS[2:], "--limits", "limit")
    assert "All levels were published before. Cost 0, 2 remaining in study.vault." in again
    everyone = printed("market", "list", "--server", place.market.server.base)
    assert place.listing in everyone
    key = everyone.rpartition("public key of the receipts: ")[2].strip()

    shown = place.run("buyer", "order", place.listing, "--epsilon", "0.50")
    assert "is requested" in shown
    (order,) = place.json("seller", "orders")["orders"]
    assert order["id"] in place.run("seller", "orders")
    assert "approved" in place.run("seller", "approve", order["id"])
    shown = place.run("buyer", "download", order["id"], "half.parquet")
    assert "Downloaded 3,000 rows to half.parquet. The receipt is half.parquet.receipt.json." in shown
    assert "next: relaxdp estimate half.parquet" in shown
    assert json.loads(printed("estimate", "half.parquet", "--json"))["n"] == 3000

    offline = ["market", "verify", "half.parquet", "--public-key", key]
    assert f"to {place.names['buyer']}, for 60 EUR (order {order['id']})" in printed(*offline)
    assert json.loads(printed(*offline, "--json"))["valid"] is True
    assert "these 3,000 rows" in printed("market", "verify", "half.parquet", "--server", place.market.server.base)
    assert "The market has this order again." in place.run("buyer", "verify", "half.parquet", "--restore")

    shown = place.run("buyer", "list", place.listing)
    for words in ("you pay", "100 EUR", "yours", "not accurate enough for most uses", "No level is recommended"):
        assert words in shown
    upgrade = place.json("buyer", "upgrade", place.listing, "--epsilon", "1")
    assert (upgrade["due"], upgrade["previous"]) == ("100", order["id"])
    assert "withdrawn" in place.run("buyer", "withdraw", upgrade["id"])
    again = place.json("buyer", "upgrade", place.listing, "--epsilon", "1")["id"]
    place.run("seller", "approve", again)
    place.run("other", "order", place.listing, "--epsilon", "0.1")
    shown = place.run("seller", "sales")
    assert "privacy loss 1 towards all buyers together, 1 towards the market" in shown
    (column,) = place.json("seller", "sales")["columns"]
    assert (column["open_requests"], column["largest_sold"]) == (1, "1")


def test_a_token_is_shown_once_or_kept_in_a_private_file(place: Place) -> None:
    assert stat.S_IMODE(Path("seller.token").stat().st_mode) == 0o600
    old = Path("seller.token").read_text("ascii").strip()
    shown = place.run("operator", "token", place.names["late"], "--role", "seller")
    assert MarketClient(place.market.operator.server, shown.split()[-1]).member()["name"] == place.names["late"]
    place.run("operator", "token", place.names["seller"], "--role", "seller", "--renew", "--output", "new.token")
    assert Path("new.token").read_text("ascii").strip() != old
    assert status_and_words(*place.words("seller", "sales"))[1].startswith("The token is unknown.")
    assert "You have no listings." in place.run("new", "sales")
    for words, problem in (
        ([place.names["seller"], "--role", "seller"], "is a seller"),
        ([place.names["seller"], "--role", "buyer", "--renew"], "is a seller"),
        (["nothing-here", "--role", "buyer", "--renew"], "does not exist"),
        (["operator", "--role", "seller"], "is reserved"),
    ):
        status, shown = status_and_words(*place.words("operator", "token", *words))
        assert (status, problem in shown, shown.endswith("No token was made.")) == (2, True, True), shown
    taken = status_and_words(*place.words("operator", "token", "x", "--role", "buyer", "--output", "new.token"))
    assert "Choose another --output. No token was made." in taken[1]


def test_a_pool_and_its_members(place: Place) -> None:
    pool = place.market.make_name("pool")
    terms = ["--currency", "EUR", "--title", "Do you work at night?"]
    shown = place.run("operator", "pool", pool, "--levels", "0.5=10,1=15", "--values", "no,yes", *terms)
    assert "Do you work at night?" in shown
    rx.Key.generate().save("ann.key")
    write_private_file(Path("answer"), b"yes\n", replace=True)
    joining = ["join", pool, "--key", "ann.key", "--answer-file", "answer"]
    shown = place.run("member", *joining, "--limit", "0.5")
    assert f"Joined {pool} with the limit 0.5. Use the same key and answer to raise it." in shown
    assert place.json("member", *joining, "--limit", "1.0")["levels"][1]["rows_by_level"] == {"1": 1}
    write_private_file(Path("answer"), b"no\n", replace=True)
    with pytest.raises(AnswerChangedError) as found:
        place.run("member", *joining, "--limit", "1")
    assert found.value.message.endswith("Use the same answer. A changed answer would be visible. Nothing was sent.")
    order = place.json("buyer", "order", pool, "--epsilon", "1")
    assert order["state"] == "approved"
    place.run("buyer", "download", order["id"], "pool.parquet")
    for words, problem in (
        (["pool", "p", "--levels", "1=1", *terms], "needs --values or --range"),
        (["pool", "p", "--levels", "1=1", *terms, "--range", "0-9"], "is not two numbers"),
        (["pool", "p", "--levels", "1", *terms, "--values", "a,b"], "has no price"),
        ([*joining, "--limit", "0.7"], "is not a pool with the level 0.7"),
        (["join", pool, "--key", "ann.key", "--limit", "1", "--answer-file", "nothing"], "There is no answer file"),
        (["join", pool, "--key", "ann.key", "--limit", "1", "--answer-file", "table.parquet"], "chmod 600"),
    ):
        assert problem in status_and_words(*place.words("member", *words))[1], words


MISTAKES: list[tuple[str, list[str], str, str]] = [
    ("seller", ["publish", "L", "--levels", "0.1", "--currency", "EUR"], "has no price", "--levels 0.1=10,0.5=60"),
    ("seller", ["publish", "L", "--levels", "1=1,1.0=2", "--currency", "EUR"], "there twice", "each level once"),
    ("seller", ["publish", "L", "--levels", "x=1", "--currency", "EUR"], "must be a number", "such as 0.5"),
    ("seller", ["publish", "L", "--levels", "5=1", "--currency", "EUR"], "budget", ""),
    ("seller", ["publish", "M", *LEVELS], "no release", ""),
    ("seller", ["publish", "L", *LEVELS, "--column", "age"], "no column 'age'", "--column diagnosis"),
    ("seller", ["publish", "L", *LEVELS, "--limits", "age"], "no pass-through column", "--passthrough age"),
    ("seller", ["publish", "L", "--levels", "1=160,2=10", "--currency", "EUR"], "less than the price", "prices grow"),
    ("seller", ["publish", "L", "--levels", "1=160", "--currency", "Euro"], "", ""),
    ("seller", ["publish", "L", *LEVELS, "--listing", "a b"], "not the name of a listing", "market list"),
    ("buyer", ["publish", "L", *LEVELS], "needs the role seller", "--token-file"),
    ("buyer", ["list", "nothing"], "no listing 'nothing'", "relaxdp market list"),
    ("buyer", ["order", "nothing", "--epsilon", "1"], "no listing 'nothing'", "relaxdp market list"),
    ("buyer", ["order", "a/../b", "--epsilon", "1"], "not the name of a listing", ""),
    ("buyer", ["order", "L", "--epsilon", "-1"], "Epsilon must be greater than 0", ""),
    ("seller", ["order", "L", "--epsilon", "1"], "needs the role buyer", "--token-file"),
    ("seller", ["approve", "0000000000"], "You have no order", "relaxdp market orders"),
    ("buyer", ["download", "0000000000", "x.parquet"], "You have no order", "relaxdp market orders"),
    ("buyer", ["download", "0000000000", "x.csv"], "does not end in .parquet", "patients.parquet"),
    ("buyer", ["verify", "first.parquet"], "first.parquet.receipt.json' cannot be read", "--receipt FILE"),
    ("buyer", ["verify", "x.parquet", "--receipt", "table.parquet"], "not a signed receipt", "market download"),
    ("buyer", ["verify", "x.parquet", "--receipt", "table.parquet", "--public-key", "ab"], "not a signed receipt", ""),
]


@pytest.fixture(scope="module")
def shop(served: Market, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One place for all mistakes, which change nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("shop"))
        yield Place(served, Path.cwd())


@pytest.mark.parametrize(("role", "words", "problem", "hint"), MISTAKES, ids=lambda each: None)
def test_mistakes_are_one_sentence_and_a_hint(
    shop: Place, monkeypatch: pytest.MonkeyPatch, role: str, words: list[str], problem: str, hint: str
) -> None:
    monkeypatch.chdir(shop.folder)
    monkeypatch.setenv("XDG_STATE_HOME", shop.state)
    before = {path: path.stat().st_mtime_ns for path in shop.folder.rglob("*.parquet*")}
    words = [shop.listing if word == "L" else word for word in words]
    status, shown = status_and_words(*shop.words(role, *words))
    assert status == 2
    assert problem in shown
    assert hint in shown
    consequences = [part for part in shown.split(". ") if part.startswith("Nothing was")]
    assert len(consequences) == (words[0] != "list"), shown
    assert {path: path.stat().st_mtime_ns for path in shop.folder.rglob("*.parquet*")} == before
    assert shop.listing not in json.dumps(shop.market.operator.listings())


def test_a_program_shows_an_error_a_hint_and_the_consequence(shop: Place) -> None:
    words = shop.words("buyer", "order", "nothing", "--epsilon", "1")
    done = subprocess.run(
        [sys.executable, "-m", "relaxdp", *words], capture_output=True, text=True, check=False, cwd=shop.folder
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith("Error: There is no listing 'nothing'.")
    assert done.stderr.splitlines()[-1] == "Nothing was ordered."


def test_files_that_changed_are_not_verified(place: Place) -> None:
    place.run("seller", "publish", place.listing, *LEVELS, "--approval", "automatic")
    first, other = (place.json(role, "order", place.listing, "--epsilon", "1")["id"] for role in ("buyer", "other"))
    place.run("buyer", "download", first, "one.parquet")
    place.run("other", "download", other, "two.parquet")
    key = place.market.operator.public_key().hex()
    check = ["market", "verify", "two.parquet", "--public-key", key]
    printed(*check, "--receipt", "one.parquet.receipt.json")  # the same rows: a receipt is about rows
    assert "--server" in status_and_words("market", "verify", "two.parquet")[1]
    assert "64 hexadecimal digits" in status_and_words(*check[:-1], key[:-2])[1]
    with pytest.raises(ReceiptError):
        printed(*check[:-1], "00" * 32)
    with pytest.raises(RefusedByServerError) as stolen:
        place.run("other", "verify", "one.parquet", "--restore")
    assert "belongs to another buyer" in stolen.value.message
    receipt = Path("two.parquet.receipt.json")
    receipt.write_text(receipt.read_text("utf-8").replace('"160"', '"161"'), "utf-8")
    with pytest.raises(ReceiptError):
        printed(*check)
    table = pa_parquet.read_table("one.parquet")
    pa_parquet.write_table(table.slice(1), "one.parquet")
    with pytest.raises(ReceiptError) as found:
        printed("market", "verify", "one.parquet", "--public-key", key)
    assert found.value.message.endswith("Nothing was verified.")
    for output in ("two.parquet", "new/one.parquet"):
        with pytest.raises(TableFileError, match="Nothing was downloaded"):
            place.run("buyer", "download", first, output)


def test_nothing_is_known_of_a_market_that_is_away(place: Place) -> None:
    words = ["market", "token", "x", "--role", "buyer", "--token-file", "operator.token"]
    with pytest.raises(UnreachableError, match="No token was made."):
        printed(*words, "--server", "http://127.0.0.1:1")
    needed = status_and_words("market", "orders", "--server", place.market.server.base)
    assert (needed[0], "a token is needed" in needed[1]) == (2, True)
    Path("open").write_text("x")
    Path("open").chmod(0o644)
    opened = status_and_words("market", "orders", "--server", place.market.server.base, "--token-file", "open")
    assert "can be read by others" in opened[1]
