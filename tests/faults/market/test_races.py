"""Two at once in a market, stopped at the worst instant: between the draw of a level and its sale, and within it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.faults.market.mutants import mistakes
from tests.faults.market.network import forgetful_network
from tests.faults.market.scene import Scene, buy, new_scene, refund
from tests.faults.market.work import Task, Worker
from tests.faults.market.world import LISTING, OWN_CREDITS, POOL, open_account, open_market, url_of
from tests.patience import until
from tests.servers.ledgers import STORES, SqlitePlace
from tests.servers.postgres import Server

from relaxdp.market import listings, sales
from relaxdp.market.levels import Neighbours
from relaxdp.market.listings import KeptLevel
from relaxdp.server_errors import StorageUnavailableError

pytestmark = pytest.mark.long

NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with new_scene(request.param, request, tmp_path_factory.mktemp("market")) as made:
        yield made


@pytest.fixture
def scene(shared: Scene) -> Iterator[Scene]:
    """One market for all tests: whatever happens in it, everything must be as it should be afterwards."""
    yield shared
    shared.check()


@pytest.fixture(params=STORES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A market in which a mistake will be made."""
    with new_scene(request.param, request, tmp_path) as made:
        yield made


def somebody(scene: Scene) -> str:
    return open_account(scene.market, f"buyer-{next(NUMBERS)}")


def balance(scene: Scene, name: str) -> int:
    return scene.market.account(name).balance


class After:
    """Lets something happen right after a function was called: one thing after each of the first calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *acts: Callable[[], Any]) -> None:
        self.answers: list[Any] = []
        self.calls, self._acts, self._real = 0, acts, getattr(module, name)
        monkeypatch.setattr(module, name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        result = self._real(*arguments, **options)
        self.calls += 1
        acts, self._acts = self._acts, ()  # whoever acts now is not interrupted in turn
        if acts:
            self.answers.append(acts[0]())
        self._acts = acts[1:]
        return result


def level_of(scene: Scene, epsilon: str) -> KeptLevel:
    with scene.market.reading() as connection:
        levels = listings.levels_of(connection, listings.find(connection, LISTING)).values()
    return next(kept for kept in levels if str(kept.level) == epsilon)


def drawn_from(scene: Scene, epsilon: str) -> Neighbours:
    between = level_of(scene, epsilon).between
    assert between is not None
    return between


# Between the draw and the sale


def test_a_nearer_level_is_sold_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn is thrown away, and drawn again between the new neighbours."""
    one, two = somebody(scene), somebody(scene)
    raced = After(monkeypatch, sales, "prepare", partial(scene.do_otherwise, buy(two, "0.21")))
    assert scene.do(buy(one, "0.2"))["done"]["new"]
    assert raced.answers[0]["done"]["new"]
    assert raced.calls == 3
    assert drawn_from(scene, "0.2").upper == level_of(scene, "0.21").level


def test_nearer_levels_are_sold_again_and_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes to an end: the fourth draw is made while nobody else can sell."""
    one, others = somebody(scene), [somebody(scene) for _ in range(3)]
    orders = [buy(other, epsilon) for other, epsilon in zip(others, ("0.33", "0.32", "0.31"), strict=True)]
    raced = After(monkeypatch, sales, "prepare", *(partial(scene.do_otherwise, order) for order in orders))
    assert scene.do(buy(one, "0.3"))["done"]["new"]
    assert all(answer["done"]["new"] for answer in raced.answers)
    assert raced.calls == 7
    assert drawn_from(scene, "0.3").upper == level_of(scene, "0.31").level


def test_the_same_level_is_sold_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """One level is one file."""
    one, two = somebody(scene), somebody(scene)
    raced = After(monkeypatch, sales, "prepare", partial(scene.do_otherwise, buy(two, "0.15")))
    mine = scene.do(buy(one, "0.15"))["done"]
    assert mine["digest"] == raced.answers[0]["done"]["digest"]
    assert mine["number"] != raced.answers[0]["done"]["number"]


def test_the_same_buyer_asks_twice_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """One purchase, paid once: both are told of the same one."""
    one = somebody(scene)
    raced = After(monkeypatch, sales, "prepare", partial(scene.do_otherwise, buy(one, "0.17")))
    mine, other = scene.do(buy(one, "0.17"))["done"], raced.answers[0]["done"]
    assert (mine["number"], mine["new"], other["new"]) == (other["number"], False, True)
    assert balance(scene, one) == OWN_CREDITS - mine["price"]


def test_what_is_upgraded_is_refunded_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to be upgraded, and the draw that was made for it is nobody's."""
    one = somebody(scene)
    first = scene.do(buy(one, "0.18"))["done"]
    raced = After(monkeypatch, sales, "prepare", partial(scene.do_otherwise, refund(first["number"])))
    assert scene.do(buy(one, "0.19", upgrade=True))["refused"] == "NotOwnedError"
    assert raced.answers == [{"done": {}}]
    assert balance(scene, one) == OWN_CREDITS


def test_the_credits_are_spent_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    one = open_account(scene.market, "poor", 60)
    raced = After(monkeypatch, sales, "prepare", partial(scene.do_otherwise, buy(one, "0.6", POOL)))
    assert scene.do(buy(one, "0.37"))["refused"] == "CreditsError"
    assert balance(scene, one) == 60 - raced.answers[0]["done"]["paid"] == 40


def test_a_higher_level_is_delivered_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below stays as it was, and is sold as it was drawn."""
    one = somebody(scene)
    raced = After(monkeypatch, sales, "prepare", partial(scene.do_otherwise, {"kind": "deliver", "epsilon": "0.6"}))
    assert scene.do(buy(one, "0.39"))["done"]["new"]
    assert (raced.answers, raced.calls) == ([{"done": {}}], 1)


# Within the sale


def test_whoever_sells_holds_the_market(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else waits, until the level is kept and paid; the draw made meanwhile is then not the right one."""
    one, two = somebody(scene), somebody(scene)
    answers: list[Task] = []
    late = Thread(target=lambda: answers.append(scene.do_otherwise(buy(two, "0.052"))))

    def begin() -> None:
        late.start()
        until(lambda: prepared.calls == 2 and waits(scene))
        time.sleep(0.1)
        assert not answers

    prepared = After(monkeypatch, sales, "prepare")
    After(monkeypatch, listings, "keep_level", begin)
    assert scene.do(buy(one, "0.05"))["done"]["new"]
    late.join()
    assert answers[0]["done"]["new"]
    assert prepared.calls == 3
    assert drawn_from(scene, "0.052").lower == level_of(scene, "0.05").level


def waits(scene: Scene) -> bool:
    """Say whether somebody waits for the market; SQLite does not tell."""
    query = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
    )
    return isinstance(scene.place, SqlitePlace) or scene.place.run(query) == [(1,)]


# Mistakes


def test_a_stale_draw_is_found(own: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in mistakes("a stale draw is kept"):
        monkeypatch.setattr(*each)
    one, two = somebody(own), somebody(own)
    After(monkeypatch, sales, "prepare", partial(own.do_otherwise, buy(two, "0.21")))
    assert own.do(buy(one, "0.2"))["done"]["new"]
    with pytest.raises(AssertionError, match="a level is not what its neighbours make of it"):
        own.check()


@pytest.mark.parametrize("own", ["postgres"], indirect=True)
def test_a_market_that_nobody_holds_is_found(own: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's writers wait for one another by themselves; those of PostgreSQL would sell past each other."""
    for each in mistakes("nobody holds the market"):
        monkeypatch.setattr(*each)
    one, two = somebody(own), somebody(own)
    raced = After(monkeypatch, listings, "keep_level", partial(own.do_otherwise, buy(two, "0.21")))
    assert own.do(buy(one, "0.2"))["done"]["new"]
    assert raced.answers[0]["done"]["new"]
    with pytest.raises(AssertionError, match="a level was not drawn from its nearest neighbours"):
        own.check()


# The answer to a commit


def test_a_commit_whose_answer_is_lost(
    postgres: Server, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever bought is told that it may be sent again; then it is theirs already, and not charged again."""
    with new_scene("postgres", request, tmp_path) as scene, forgetful_network(postgres) as (port, armed):
        there = url_of(scene.place).replace(f":{postgres.port}/", f":{port}/")
        far = open_market(f"{there}?sslmode=disable&gssencmode=disable", tmp_path)
        one = somebody(scene)
        After(monkeypatch, sales, "sell", armed.set)
        with pytest.raises(StorageUnavailableError, match="What was not acknowledged may be sent again") as found:
            far.buy(one, LISTING, "0.2")
        assert found.value.fields["lost"]
        bought, new = far.buy(one, LISTING, "0.2")
        assert not new
        assert scene.market.account(one).balance == OWN_CREDITS - bought.price
        far._database.close()
        Worker(scene.market, tmp_path, 1).do(buy(one, "0.2"))
        assert scene.check()["purchases"] == 1
