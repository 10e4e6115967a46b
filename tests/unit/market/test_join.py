"""`relaxdp market join`: a single seller's answer stays where it is, and stays what it is."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.servers.fake_collector import Reply
from tests.unit.market.fake import POOL, VALUES, FakeMarket, fake_market
from tests.unit.market.words import ask, at_home, mistake, private

from relaxdp import Categorical, Key
from relaxdp.server_errors import AnswerChangedError, OfferError, UnknownLevelError, ValuesChangedError


@pytest.fixture
def market() -> Iterator[FakeMarket]:
    with fake_market() as one:
        yield one


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(tmp_path, monkeypatch)


def prepared(tmp_path: Path, answer: str = "covid") -> list[str]:
    """The words of a command that joins the pool, with a key and an answer in a file."""
    key = tmp_path / "mine.key"
    if not key.exists():
        Key.generate().save(key)
    private(tmp_path / "answer", f"{answer}\n")
    return ["join", "snacks", "--key", str(key), "--answer-file", str(tmp_path / "answer")]


def test_only_the_report_leaves(market: FakeMarket, tmp_path: Path) -> None:
    words = prepared(tmp_path)
    key = Key.load(tmp_path / "mine.key")
    path = Categorical(VALUES).path("covid", key=key, id="snacks", name="snacks", column="answer")
    secret = (tmp_path / "mine.key").read_text().splitlines()[1]
    for epsilon in ("0.1", "0.5", "3", "0.5"):
        shown = ask(market.url, *words, "--epsilon", epsilon, "--minimum", "4")
        sent = market.requests[-1]
        threshold = str(Categorical(VALUES).threshold(Decimal(epsilon)))
        level = {"epsilon": epsilon, "threshold": threshold}
        assert sent.json == {"level": level, "report": path.at(epsilon), "minimum": 4}
        assert f"all that was sent of your answer: {path.at(epsilon)}" in shown
    assert not any(secret.encode() in each.raw for each in market.requests)
    memory = tmp_path / "mine.key.pools"
    assert memory.stat().st_mode & 0o777 == 0o600
    assert "covid" not in memory.read_text()
    assert secret not in memory.read_text()


def test_an_answer_stays_what_it_was(market: FakeMarket, tmp_path: Path) -> None:
    ask(market.url, *prepared(tmp_path), "--epsilon", "0.1")
    market.requests.clear()
    changed = mistake(market.url, *prepared(tmp_path, "flu"), "--epsilon", "1")
    assert isinstance(changed, AnswerChangedError)
    assert "flu" not in changed.message
    market.answers["GET /listings/snacks"] = {**POOL, "encoding": {"name": "categorical", "values": VALUES[::-1]}}
    assert isinstance(mistake(market.url, *prepared(tmp_path), "--epsilon", "1"), ValuesChangedError)
    (tmp_path / "mine.key.pools").write_text("{")
    assert "is damaged" in mistake(market.url, *prepared(tmp_path), "--epsilon", "1").message
    assert "POST /listings/snacks/reports" not in market.routes


def test_the_answer_is_remembered_before_it_leaves(market: FakeMarket, tmp_path: Path) -> None:
    market.failures = []
    market.answers["POST /listings/snacks/reports"] = Reply(raw=b"")
    found = mistake(market.url, *prepared(tmp_path), "--epsilon", "0.1")
    assert found.message.endswith("use the same key and the same answer.")
    assert isinstance(mistake(market.url, *prepared(tmp_path, "flu"), "--epsilon", "0.1"), AnswerChangedError)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "release"}, "is no pool"),
        ({"id": "others"}, "is no pool"),
        ({"state": "closed"}, "is closed"),
        ({"encoding": {"name": "bloom", "options": {"bits": 8, "hashes": 1, "cohorts": 1}}}, "cannot be used"),
        ({"encoding": {"name": "categorical", "values": ["a"]}}, "cannot be used"),
        ({"encoding": None}, "cannot be used"),
        ({"levels": None}, "levels cannot be read"),
        ({"levels": []}, "levels cannot be read"),
        ({"levels": [{"epsilon": "1"}] * 2}, "levels cannot be read"),
        ({"levels": [{"epsilon": "much"}]}, "levels cannot be read"),
        ({"levels": ["1"]}, "levels cannot be read"),
    ],
)
def test_pools_that_are_none(market: FakeMarket, tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    market.answers["GET /listings/snacks"] = {**POOL, **change}
    found = mistake(market.url, *prepared(tmp_path), "--epsilon", "1")
    assert isinstance(found, OfferError)
    assert sentence in found.message
    assert "POST" not in " ".join(market.routes)


def test_a_limit_is_a_level_of_the_pool(market: FakeMarket, tmp_path: Path) -> None:
    """A report at another one would be refused after it had left."""
    found = mistake(market.url, *prepared(tmp_path), "--epsilon", "0.7")
    assert isinstance(found, UnknownLevelError)
    assert found.message == "epsilon 0.7 is none of the levels on sale: the nearest are 0.5 and 1. Nothing was sent."
    shown = ask(market.url, *prepared(tmp_path), "--epsilon", "0.50000000000000000000001")  # the same threshold
    assert market.requests[-1].json["level"]["epsilon"] == "0.5"
    assert "joined snacks at epsilon 0.5" in shown


def test_answers_that_are_none(market: FakeMarket, tmp_path: Path) -> None:
    found = mistake(market.url, *prepared(tmp_path, "measles"), "--epsilon", "1")
    assert (
        found.message
        == "the answer is not one of the 3 values that can be chosen. Nothing was kept, and nothing was sent."
    )
    market.answers["GET /listings/snacks"] = {**POOL, "encoding": {"name": "numeric", "range": [0, 10]}}
    for answer in ("eleven", "11", "nan", ""):
        assert "not a number from 0 to 10" in mistake(market.url, *prepared(tmp_path, answer), "--epsilon", "1").message
    assert not (tmp_path / "mine.key.pools").exists()
    ask(market.url, *prepared(tmp_path, " 3.5"), "--epsilon", "1")
    assert market.requests[-1].json["report"] in (0, 10)
    market.answers["GET /listings/snacks"] = {**POOL, "encoding": {"name": "categorical", "values": ["a", " b", "b"]}}
    assert "not one of the 3" in mistake(market.url, *prepared(tmp_path, "b"), "--epsilon", "1").message
    market.answers["GET /me"] = {"name": "b", "role": "buyer", "balance": 0}
    assert "this one is of a buyer" in mistake(market.url, *prepared(tmp_path), "--epsilon", "1").message
    (tmp_path / "answer").chmod(0o644)
    market.answers["GET /me"] = {"name": "b", "role": "seller", "balance": 0}
    words = ["join", "snacks", "--key", str(tmp_path / "mine.key"), "--epsilon", "1", "--answer-file"]
    assert "can be read by others" in mistake(market.url, *words, str(tmp_path / "answer")).message
    assert "there is no answer file" in mistake(market.url, *words, str(tmp_path / "other")).message
