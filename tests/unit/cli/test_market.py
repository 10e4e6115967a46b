"""`relaxdp market`: sellers, buyers and the operator, at a market of canned answers."""

from __future__ import annotations

import io
import json
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE
from tests.servers.fake_collector import Reply
from tests.unit.market.fake import DATA, POOL, PURCHASE, SIGNER, FakeMarket, fake_market, signed
from tests.unit.market.words import TOKEN, ask, at_home, mistake, private, release

from relaxdp.device.address import Server
from relaxdp.device.client import Client
from relaxdp.errors import TableFileError
from relaxdp.market.client import MarketClient
from relaxdp.server_errors import ReceiptForgedError, RefusedByServerError, ServerAnswerError, UnreachableError


@pytest.fixture
def market() -> Iterator[FakeMarket]:
    with fake_market() as one:
        yield one


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(tmp_path, monkeypatch)


# Looking around.


def test_everybody_may_look(market: FakeMarket) -> None:
    shown = ask(market.url, "list", env={"RELAXDP_TOKEN": ""})
    for words in ("diagnoses", "Diagnoses of 2026", "2,000", "100", "± 0.028", "snacks"):
        assert words in shown
    assert "authorization" not in market.requests[0].headers
    assert json.loads(ask(market.url, "list", "--json"))["listings"][0]["id"] == "diagnoses"
    assert market.requests[1].headers["authorization"] == f"Bearer {TOKEN}"  # a seller also sees drafts
    levels = ask(market.url, "show", "diagnoses")
    for words in ("one of 3 values: flu, covid, none", "price: 0.1:10, 1:100", "± 0.31", "up to epsilon 1"):
        assert words in levels
    assert "costs no more than 0.1" in levels
    assert "0.5 costs no more and tells no less" in levels
    assert "description: One of three.\nsource: A clinic\nlicence: CC BY 4.0\n" in levels
    assert "not on sale yet" in levels
    pool = ask(market.url, "show", "snacks")
    assert "each" in pool
    assert "nobody sells it now" in pool
    assert "asks: Yesterday at noon?\nsuggests the limit: 0.5\n" in pool
    quote = ask(market.url, "show", "diagnoses", "--epsilon", "0.50")
    assert "epsilon 0.5 costs 50 credits; you own epsilon 0.1, so 40 credits would be due" in quote
    assert "± 0.0613" in quote


@pytest.mark.parametrize(
    ("role", "name", "route"),
    [("seller", "diagnoses", "listings"), ("operator", "snacks", "pools"), ("operator", "diagnoses", "pools")],
)
def test_who_closes_what(market: FakeMarket, role: str, name: str, route: str) -> None:
    market.answers["GET /me"] = {"name": "somebody", "role": role, "balance": 0}
    assert f"{name} is closed: nothing more is sold" in ask(market.url, "close", name)
    assert market.routes == ["GET /me", f"POST /{route}/{name}/close"]


def test_strange_answers_are_shown_and_not_obeyed(market: FakeMarket) -> None:
    market.answers["GET /listings/diagnoses"] = {**POOL, "id": "a\x1b[31m", "title": "[red]b[/red]\n[/x]"}
    shown = ask(market.url, "show", "diagnoses")
    assert "\x1b" not in shown
    assert "[red]b[/red] [/x]" in shown
    strange: list[Any] = [[], {"listings": 3}, {"listings": [4]}, {"listings": [{"id": "x"}]}]
    for answer in strange:
        market.answers["GET /listings"] = answer
        found = mistake(market.url, "list")
        assert isinstance(found, ServerAnswerError)
        assert found.message == "the server's answer is not what a market answers. Is the address right?"


@pytest.mark.parametrize(
    ("words", "route", "shown"),
    [
        (["sales"], "GET /sales", ["balance: 120 credits", "0.5 to 3 buyers", "1 of 2", "loss against the platform"]),
        (["owned"], "GET /purchases", ["balance: 60 credits", "17", "diagnoses", "owned"]),
        (["statement"], "GET /statement", ["clinic (seller): 120 credits", "-40", "sale of diagnoses"]),
        (["accounts"], "GET /accounts", ["issue", "-120", "clinic"]),
        (["credit", "clinic", "120", "--reason", "start"], "POST /credits", ["clinic (seller): 120 credits"]),
        (["refund", "17", "--reason", "late"], "POST /purchases/17/refund", ["17 is refunded", "still counts as sold"]),
        (["books"], "GET /books", ["the books balance: 3 transactions, 120 credits in circulation"]),
        (["budget", "diagnoses", "3"], "POST /listings/diagnoses/budget", ["1 left of 2", "levels: 0.1, 0.5, 1, 3"]),
        (["account", "clinic", "--role", "seller"], "POST /accounts", ["token: fresh-token", "shown this once"]),
        (["account", "clinic", "--renew"], "POST /accounts/clinic/token", ["token: second-token"]),
        (["pool", "--title", "T", "--values", "a,b", "--formula", "2*epsilon"], "POST /pools", ["relaxdp market join"]),
        (["pool", "--title", "T", "--range", "0", "9", "--prices", "1:2"], "POST /pools", ["for each object"]),
    ],
)
def test_commands(market: FakeMarket, words: list[str], route: str, shown: list[str]) -> None:
    found = ask(market.url, *words)
    assert market.routes[0] == route
    assert market.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    for part in shown:
        assert part in found
    json.loads(ask(market.url, *words, "--json"))


NUMBERS = ("pool", "--title", "T", "--range", "0", "9", "--formula", "1")


def test_what_is_sent(market: FakeMarket) -> None:
    Path("values").write_text("a\nb\n")
    for words, body in {
        ("credit", "clinic", "5", "--reason", "r"): {"account": "clinic", "amount": 5, "reason": "r"},
        ("budget", "diagnoses", "3.0"): {"budget": "3"},
        ("refund", "17", "--reason", "late"): {"reason": "late"},
        ("buy", "diagnoses", "--epsilon", "0.50", "--most", "9"): {"epsilon": "0.5", "most": 9},
        ("pool", "--title", "T", "--values-file", "values", "--prices", "0.10:1, 1:2", "--id", "p"): {
            "id": "p",
            "title": "T",
            "encoding": {"name": "categorical", "options": {}, "values": ["a", "b"]},
            "prices": {"points": [["0.1", 1], ["1", 2]]},
            "levels": None,
            "details": None,
            "question": None,
            "suggested": None,
        },
        (*NUMBERS, "--levels", "0.50, 1", "--question", "Q?", "--suggested", "1.0", "--source", "S"): {
            "id": None,
            "title": "T",
            "encoding": {"name": "numeric", "options": {}, "range": [0.0, 9.0]},
            "prices": {"formula": "1"},
            "levels": ["0.5", "1"],
            "details": {"source": "S"},
            "question": "Q?",
            "suggested": "1",
        },
    }.items():
        ask(market.url, *words)
        assert market.requests[-1].json == body


# Sentences.


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["list", "f.parquet", "--title", "T"], "say what it costs"),
        (["list", "f.parquet", "--prices", "1:2"], "needs a --title"),
        (["list", "--title", "T"], "--title goes with a FILE"),
        (["list", "--licence", "L"], "--licence goes with a FILE"),
        (["list", "f.parquet", "--title", "T", "--prices", "1:2", "--formula", "1"], "not as both"),
        (["list", "f.parquet", "--title", "T", "--prices", "1:2"], "There is no file 'f.parquet'"),
        *((["deliver", "x", "f.parquet", "--prices", prices], "prices are points such as")
          for prices in ("", "1", "1:", ":1", "1:2.5", "1:-2", "0:1", "x:1", "1:2,", "1:²")),
        (["buy", "a/../b", "--epsilon", "1"], "the name of a listing has 1 to 64"),
        (["buy", "a", "--epsilon", "-1"], "Epsilon must be greater than 0"),
        (["buy", "a", "--epsilon", "1", "no/such/out.parquet"], "does not exist. Nothing was bought."),
        (["buy", "a", "--epsilon", "1", "out.csv"], "ends in .parquet. Nothing was bought."),
        (["buy", "a", "--epsilon", "1", "taken.parquet"], "move the existing file away. Nothing was bought."),
        (["upgrade", "a", "--epsilon", "1", "half.parquet"], "move the existing file away. Nothing was bought."),
        (["download", "3", "taken.parquet"], "move the existing file away. Nothing was asked for."),
        (["receipt"], "say which receipt"),
        (["receipt", "3", "--check", "f"], "say which receipt"),
        (["receipt", "3", "--data", "f"], "--data and --public-key go with --check"),
        (["receipt", "--check", "nothing"], "cannot be read: No such file"),
        (["receipt", "--check", "receipt.json", "--out", "x"], "--out goes with the NUMBER"),
        (["receipt", "--check", "receipt.json", "--public-key", "ab"], "64 hexadecimal digits"),
        (["account", "clinic"], "a new account needs a --role"),
        (["account", "clinic", "--renew", "--role", "buyer"], "renewed without one"),
        (["account", "clinic", "--role", "buyer", "--token-out", "taken.parquet"], "exists already. Nothing was done."),
        (["pool", "--title", "T", "--prices", "1:2"], "one of --values, --values-file and --range"),
        (["join", "snacks", "--key", "nothing", "--epsilon", "1", "--answer-file", "answer"], "There is no key file"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence_and_nothing_is_sent(market: FakeMarket, words: list[str], sentence: str) -> None:
    Path("taken.parquet").touch()
    Path("half.parquet.receipt.json").touch()
    Path("receipt.json").write_text(json.dumps(signed()))
    assert sentence in mistake(market.url, *words).message
    assert market.requests == []


def test_exit_status(market: FakeMarket) -> None:
    """The same through the real program: an error, status 2, no traceback."""
    market.refuse("POST /listings/diagnoses/buy", 409, "credits_error", "too few credits. Nothing was sold.")
    words = ["market", "buy", "diagnoses", "--epsilon", "1", "--server", market.url]
    done = subprocess.run([sys.executable, "-m", "relaxdp", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "Error: too few credits. Nothing was sold.\n")


def test_the_markets_sentences_come_out_as_they_are(market: FakeMarket) -> None:
    long = "x" * 400 + ". Nothing was sold."
    for status, code, sentence in [
        (401, "wrong_token_error", "this token is not known. Nothing was done."),
        (409, "credits_error", long),
        (409, "market", "what stands in {braces} is no field. Nothing was sold."),
        (503, "market_closed", "the market is closed: it has no key."),
    ]:
        market.refuse("POST /listings/diagnoses/buy", status, code, sentence)
        found = mistake(market.url, "buy", "diagnoses", "--epsilon", "1")
        assert isinstance(found, RefusedByServerError)
        assert found.message == sentence
        assert found.fields == {"host": "127.0.0.1", "said": sentence, "status": status, "error": code}
    market.answers["POST /listings/diagnoses/buy"] = Reply(400, b"<html>")
    assert "refused (status 400)" in mistake(market.url, "buy", "diagnoses", "--epsilon", "1").message


def test_tokens(market: FakeMarket, tmp_path: Path) -> None:
    needed = mistake(market.url, "owned", env={"RELAXDP_TOKEN": ""})
    assert needed.message == "a token is needed: set RELAXDP_TOKEN, or name a file with --token-file."
    assert "that is no token:" in mistake(market.url, "owned", env={"RELAXDP_TOKEN": "two words"}).message
    open_to_all = tmp_path / "open"
    open_to_all.write_text("x")
    open_to_all.chmod(0o644)
    assert "can be read by others" in mistake(market.url, "owned", "--token-file", str(open_to_all)).message
    assert market.requests == []
    ask(market.url, "owned", "--token-file", str(private(tmp_path / "mine", "from-a-file\n")))
    assert market.requests[0].headers["authorization"] == "Bearer from-a-file"
    assert TOKEN not in repr(MarketClient(Server.parse(market.url), TOKEN))


def test_what_may_be_asked_again_is_and_nothing_else(market: FakeMarket) -> None:
    for words in (["buy", "diagnoses", "--epsilon", "1"], ["upgrade", "diagnoses", "--epsilon", "1"]):
        market.requests.clear()
        market.failures = [b"", Reply(503, {})]
        ask(market.url, *words)
        assert len(market.requests) == 3
        assert len({each.body for each in market.requests}) == 1
    for words in (
        ["account", "clinic", "--role", "buyer"],
        ["account", "clinic", "--renew"],
        ["credit", "clinic", "5", "--reason", "r"],
        ["refund", "17", "--reason", "r"],
        ["budget", "diagnoses", "3"],
    ):
        market.requests.clear()
        market.failures = [b""]
        found = mistake(market.url, *words)
        assert isinstance(found, UnreachableError)
        assert found.message.endswith("Whether it was done is not known: look before you ask again.")
        assert len(market.requests) == 1
    gone = mistake("http://127.0.0.1:1", "credit", "clinic", "5", "--reason", "r")
    assert "cannot be reached" in gone.message
    assert "not known" not in gone.message  # nobody was there, so nothing was done


# Selling.


def test_a_release_is_put_up_for_sale(market: FakeMarket, tmp_path: Path) -> None:
    file = release(tmp_path / "a.parquet", "1")
    words = ["list", str(file), "--title", "T", "--prices", "0.1:10,1:100", "--budget", "2", "--id", "d"]
    shown = ask(market.url, *words, "--collected", "in May", "--method", "by post")
    assert "levels: 0.1, 0.5, 1, 3" in shown
    assert "diagnoses (open): 1 is the largest epsilon on sale, 2,000 objects" in shown
    created, delivered = market.requests
    prices = {"points": [["0.1", 10], ["1", 100]]}
    told = {"collected": "in May", "method": "by post"}
    assert created.json == {
        "id": "d", "title": "T", "prices": prices, "levels": None, "budget": "2", "details": told
    }  # fmt: skip
    assert delivered.path == "/v1/market/listings/diagnoses/deliveries?column=diagnosis"
    assert delivered.headers["content-type"] == "application/vnd.apache.parquet"
    assert delivered.headers["content-length"] == str(file.stat().st_size)
    assert delivered.body == file.read_bytes()


def test_a_refused_delivery_leaves_a_draft_and_says_how_to_go_on(market: FakeMarket, tmp_path: Path) -> None:
    file = release(tmp_path / "a b.parquet", "1")
    route = "POST /listings/diagnoses/deliveries?column=diagnosis"
    market.refuse(route, 422, "delivery_error", "the ids do not ascend. Nothing was delivered.")
    words = ["list", str(file), "--title", "T", "--formula", "10 + 90*epsilon"]
    assert mistake(market.url, *words).message == (
        "the ids do not ascend. Nothing was delivered. The listing 'diagnoses' remains a draft: "
        f"`relaxdp market deliver diagnoses '{file}'` continues it."
    )
    market.answers[route] = Reply(raw=b"")
    assert "if it is still a draft, `relaxdp market deliver" in mistake(market.url, *words).message


def test_prices_are_extended_before_a_delivery(market: FakeMarket, tmp_path: Path) -> None:
    file = release(tmp_path / "a.parquet", "1")
    ask(market.url, "deliver", "diagnoses", str(file), "--prices", "0.1:10,2:300", "--levels", "1.5,2.0")
    assert market.routes[0] == "POST /listings/diagnoses/prices"
    assert market.requests[0].json == {"prices": {"points": [["0.1", 10], ["2", 300]]}, "levels": ["1.5", "2"]}
    alone = mistake(market.url, "deliver", "diagnoses", str(file), "--levels", "1.5")
    assert alone.message.startswith("--levels goes with the prices that reach them")
    market.refuse("POST /listings/diagnoses/deliveries?column=diagnosis", 422, "delivery_error", "No.")
    found = mistake(market.url, "deliver", "diagnoses", str(file), "--prices", "0.1:10,2:300")
    assert found.message == "No. The prices were extended."


def test_truths_never_leave(market: FakeMarket, tmp_path: Path) -> None:
    release(tmp_path / "a.parquet", "1")
    for command in (
        ["list", "patients.parquet", "--title", "T", "--formula", "1"],
        ["deliver", "x", "patients.parquet"],
    ):
        found = mistake(market.url, *command)
        assert "has no metadata about its reports: relaxdp did not release it" in found.message
        assert found.message.endswith("Nothing was sent.")
    assert market.requests == []


@pytest.mark.filterwarnings("ignore::relaxdp.errors.DeterminedColumnWarning")  # the ward is the diagnosis
def test_only_what_is_sold_leaves(market: FakeMarket, tmp_path: Path) -> None:
    """A kept column is the truth itself; it stays, and so does any other column of the file."""
    file = release(tmp_path / "a.parquet", "1", "--passthrough", "ward")
    assert pa_parquet.read_schema(file).names == ["patient", "diagnosis", "ward"]
    ask(market.url, "deliver", "diagnoses", str(file))
    sent = pa_parquet.read_table(io.BytesIO(market.requests[0].body))
    assert sent.schema.names == ["patient", "diagnosis"]
    assert sent.equals(pa_parquet.read_table(file).select(["patient", "diagnosis"]))
    described = json.loads(sent.schema.metadata[b"relaxdp"])
    assert list(described["columns"]) == ["diagnosis"]
    csv = release(tmp_path / "a.csv", "1")
    assert "as one Parquet file" in mistake(market.url, "deliver", "diagnoses", str(csv)).message
    found = mistake(market.url, "deliver", "diagnoses", str(file), "--column", "diagnose")
    assert "Did you mean 'diagnosis'?" in found.message
    assert len(market.requests) == 1


def test_a_market_that_does_not_read_on_is_heard(market: FakeMarket, tmp_path: Path) -> None:
    """A refusal in the middle of a long delivery is a sentence, not a broken pipe."""
    large = tmp_path / "large.parquet"
    large.write_bytes(bytes(20 << 20))
    reply = Reply(413, {"error": "body_too_large", "message": "too large. Nothing was stored.", "fields": {}}).data()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as link:
                link.recv(100)
                link.sendall(reply)
                link.shutdown(socket.SHUT_RD)
                time.sleep(0.5)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = MarketClient(Server.parse(f"http://127.0.0.1:{listening.getsockname()[1]}"), TOKEN, Client(attempts=1))
        moved: list[int] = []
        with pytest.raises((RefusedByServerError, UnreachableError)) as refused:
            client.deliver("x", large, moved=moved.append)
        thread.join(PATIENCE)
    assert refused.value.message == "too large. Nothing was stored."
    assert sum(moved) < 20 << 20


# Buying.


def test_buying_with_a_file(market: FakeMarket, tmp_path: Path) -> None:
    shown = ask(market.url, "buy", "diagnoses", "--epsilon", "0.5", "out.parquet")
    assert "bought diagnoses at epsilon 0.5 for 40 credits (purchase 17)" in shown
    assert "it tells of 2,000 objects; estimates are right to within ± 0.0613" in shown
    assert "next: relaxdp estimate out.parquet" in shown
    assert Path("out.parquet").read_bytes() == DATA
    assert json.loads(Path("out.parquet.receipt.json").read_text()) == signed()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.parquet", "out.parquet.receipt.json"]
    again = json.loads(ask(market.url, "upgrade", "diagnoses", "--epsilon", "0.5", "two.parquet", "--json"))
    assert (again["file"], again["paid"]) == ("two.parquet", 30)
    market.answers["POST /listings/diagnoses/buy"] = {**PURCHASE, "new": False}
    assert "yours already (purchase 17); nothing was charged" in ask(market.url, "buy", "diagnoses", "--epsilon", "0.5")
    ask(market.url, "download", "17", "three.parquet")
    assert Path("three.parquet").read_bytes() == DATA


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (DATA[:-5] + b"x" + DATA[-4:], "not the one that its receipt is about"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\n\r\n" + DATA[:-1]), "not the one that its receipt is about"),
        (Reply(raw=f"HTTP/1.1 200 OK\r\nContent-Length: {len(DATA)}\r\n\r\n".encode() + DATA[:-1]), "broke off"),
        (Reply(404, {"error": "unknown_purchase", "message": "no such purchase.", "fields": {}}), "no such purchase."),
    ],
)
def test_a_file_that_is_not_what_was_bought_does_not_appear(
    market: FakeMarket, tmp_path: Path, data: Any, sentence: str
) -> None:
    market.answers["GET /purchases/17/data"] = data
    found = mistake(market.url, "buy", "diagnoses", "--epsilon", "0.5", "out.parquet")
    assert sentence in found.message
    assert found.message.endswith("Purchase 17 is made and yours: `relaxdp market download 17 out.parquet` fetches it.")
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_breaks_off_is_asked_for_again(market: FakeMarket) -> None:
    cut = f"HTTP/1.1 200 OK\r\nContent-Length: {len(DATA)}\r\n\r\n".encode() + DATA[:100_000]
    client = MarketClient(Server.parse(market.url), TOKEN, Client(attempts=3, sleep=lambda _: None))
    client.receipt(17)
    broken = iter([Reply(raw=cut), Reply(raw=cut)])
    usual = market._reply
    market._server.instead = lambda request: (
        next(broken, None) or usual(request) if request.path.endswith("/data") else usual(request)
    )
    client.download(17, Path("out.parquet"))
    assert Path("out.parquet").read_bytes() == DATA
    assert [route for route in market.routes if route.endswith("data")] == ["GET /purchases/17/data"] * 3


def test_a_full_disk_is_not_taken_for_a_bad_network(market: FakeMarket, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(TableFileError, match="cannot be written: File too large. Nothing was written."):
            MarketClient(Server.parse(market.url), TOKEN).download(17, tmp_path / "out.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert market.routes.count("GET /purchases/17/data") == 1
    assert list(tmp_path.iterdir()) == []


# Receipts.


def test_receipts_are_checked(market: FakeMarket, tmp_path: Path) -> None:
    shown = ask(market.url, "receipt", "17", "--out", "r.json")
    assert f"the signature is that of the market {SIGNER.fingerprint}" in shown
    assert json.loads(Path("r.json").read_text()) == signed()
    Path("out.parquet").write_bytes(DATA)
    market.requests.clear()
    offline = ["receipt", "--check", "r.json", "--data", "out.parquet", "--public-key", SIGNER.public_key.hex()]
    assert "the file is the one that was bought" in ask("", *offline)
    assert market.requests == []
    ask(market.url, "receipt", "--check", "r.json")
    assert market.routes == ["GET "]
    assert "authorization" not in market.requests[0].headers
    Path("out.parquet").write_bytes(DATA + b"x")
    assert mistake("", *offline).message == "this is not the file that the receipt names."
    assert "give the market's --public-key or its --server" in mistake("", "receipt", "--check", "r.json").message


@pytest.mark.parametrize("field", ["paid", "objects", "number", "buyer", "digest", "previous", "market", "retention"])
def test_forged_receipts(market: FakeMarket, field: str) -> None:
    content = signed()
    old = content["receipt"][field]
    content["receipt"][field] = 3 if old is None else old + 1 if isinstance(old, int) else old[:-1] + "0"
    assert content != signed()
    Path("r.json").write_text(json.dumps(content))
    for words in (["receipt", "--check", "r.json"], ["receipt", "--check", "r.json", "--public-key", "ab" * 32]):
        assert isinstance(mistake(market.url, *words), ReceiptForgedError)
    market.answers["GET /purchases/17/receipt"] = content
    assert isinstance(mistake(market.url, "receipt", "17", "--out", "new.json"), ReceiptForgedError)
    assert isinstance(mistake(market.url, "download", "17", "out.parquet"), ReceiptForgedError)
    assert sorted(each.name for each in Path().iterdir()) == ["r.json"]


def test_a_receipt_of_another_purchase_is_not_taken(market: FakeMarket) -> None:
    market.answers["GET /purchases/17/receipt"] = signed(number=18)
    assert "of another purchase" in mistake(market.url, "receipt", "17").message


# Tokens of others.


def test_a_token_goes_to_a_private_file(market: FakeMarket, tmp_path: Path) -> None:
    shown = ask(market.url, "account", "clinic", "--role", "seller", "--token-out", "token")
    assert "fresh-token" not in shown
    assert Path("token").read_text() == "fresh-token\n"
    assert Path("token").stat().st_mode & 0o777 == 0o600
    assert "token" not in json.loads(ask(market.url, "account", "b", "--role", "buyer", "--token-out", "b", "--json"))
    market.refuse("POST /accounts", 409, "account_exists", "there is an account 'clinic' already.")
    mistake(market.url, "account", "clinic", "--role", "seller", "--token-out", "other")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "token"]
