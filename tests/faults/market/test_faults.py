"""A market whose processes are killed, at random instants and at chosen ones: goods and money change together.

The short campaign runs with the tests; `make faults` sets RELAXDP_FAULTS=500.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.faults.forking import Zygote
from tests.faults.market.log import everything
from tests.faults.market.mutants import mistakes
from tests.faults.market.scene import OTHER, THERE, Scene, buy, new_scene, refund
from tests.faults.market.work import Task
from tests.faults.market.world import OWN_CREDITS, POOL, SLOTS, open_account, open_accounts
from tests.patience import until
from tests.servers.ledgers import LONG_STORES

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("RELAXDP_FAULTS", "12"))
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    one = Zygote("tests.faults.market.work")
    yield one
    one.close()


@pytest.fixture(params=LONG_STORES)
def scene(request: pytest.FixtureRequest, tmp_path: Path, zygote: Zygote) -> Iterator[Scene]:
    with new_scene(request.param, request, tmp_path, zygote) as made:
        yield made


@pytest.fixture
def in_a_file(request: pytest.FixtureRequest, tmp_path: Path, zygote: Zygote) -> Iterator[Scene]:
    with new_scene("sqlite", request, tmp_path, zygote) as made:
        yield made


# At random instants


def test_sixteen_processes_are_killed_at_random_instants(scene: Scene) -> None:
    """They buy, upgrade, deliver and refund at once; one dies and another one goes on with its task, or all of them."""
    open_accounts(scene.market)
    scene.close()
    chance, killed, started = random.Random(7), 0, SLOTS
    workers = [scene.start(slot, seed=slot) for slot in range(SLOTS)]
    until(lambda: sum(attempt.end == "done" for attempt in everything(scene.folder)) >= SLOTS)
    while killed < KILLS:
        time.sleep(chance.uniform(0, 0.2))
        slots = [*range(SLOTS)] if chance.random() < 0.03 else [chance.randrange(SLOTS)]
        for slot in slots:
            os.kill(workers[slot], signal.SIGKILL)
        assert {scene.wait(workers[slot]) for slot in slots} == {KILLED}
        for slot in slots:
            workers[slot] = scene.start(slot, seed=started)
            started += 1
        killed += len(slots)
    (scene.folder / "stop").touch()
    assert [scene.wait(worker) for worker in workers] == [0] * SLOTS
    figures = scene.check()
    assert figures["buy cut off"] >= KILLS / 3, "too few were killed while they bought"
    assert figures["levels drawn"] >= 3
    print(f"\n{killed} kills; {dict(sorted(figures.items()))}")
    still_sells(scene)


def still_sells(scene: Scene) -> None:
    """After all that, the market goes on: a new level, one that is out, an upgrade, the pool, and a refund."""
    one, two = (open_account(scene.market, name) for name in ("one", "two"))
    first = scene.do(buy(one, "0.1234567"))["done"]
    assert first["new"]
    assert scene.do(buy(two, "0.1234567"))["done"]["digest"] == first["digest"]
    second = scene.do(buy(one, "0.2345678", upgrade=True))["done"]
    assert (second["previous"], second["paid"]) == (first["number"], second["price"] - first["price"])
    assert scene.do(buy(two, "0.2345678", POOL))["done"]["objects"] >= 4
    assert scene.do(refund(second["number"])) == {"done": {}}
    assert scene.market.account(one).balance == OWN_CREDITS
    scene.check()


# At chosen instants


def steps(scene: Scene) -> Iterator[Task]:
    """Return one thing after the other that changes the market, each in its own way."""
    buyer = open_account(scene.market, "somebody")
    scene.do(buy(buyer, "0.1"))
    yield buy(buyer, "0.25", upgrade=True)
    yield buy(buyer, "0.2", POOL)
    yield buy(buyer, "0.5", POOL, upgrade=True)
    yield refund(2)
    yield {"kind": "deliver", "epsilon": "0.6"}
    yield {"kind": "join", "member": "member-0", "epsilon": "0.9"}


def test_killed_before_each_statement(scene: Scene) -> None:
    """Whichever is the last: nothing has changed, until everything has. The short run leaves most statements out."""
    chance, deaths, stride = random.Random(3), 0, 1 if KILLS >= 100 else 16
    for task in steps(scene):
        before, statement = scene.content(), chance.randint(1, stride)
        while (status := scene.run(task, die=statement)) == KILLED and scene.content() == before:
            deaths, statement = deaths + 1, statement + stride
        after = scene.content()
        assert after != before
        if status == KILLED:  # while it looked at what it had sold, to write that down
            assert task["kind"] == "buy"
            assert not scene.do({**task, "again": True})["done"]["new"]
            assert scene.content() == after
        else:
            assert status == 0  # there are not so many statements
    figures = scene.check()
    assert figures["purchases"] == 4
    assert deaths >= 6
    print(f"\n{deaths} deaths")


def test_killed_right_before_and_right_after_a_commit(scene: Scene) -> None:
    """Whoever asks again after the commit gets what was bought, and pays once."""
    for task in steps(scene):
        before = scene.content()
        assert scene.run(task, die="before") == KILLED
        assert scene.content() == before
        assert scene.run(task, die="after") == KILLED
        after = scene.content()
        assert after != before
        answer = scene.do({**task, "again": True})
        assert task["kind"] != "buy" or not answer["done"]["new"]
        assert scene.content() == after
    assert scene.check()["bought before the kill, told after it"] == 3


# Full disks


def is_unavailable(scene: Scene, answer: Task, slot: int) -> None:
    """It is one sentence. The check, which takes that for a mistake, shall not see it."""
    assert answer["refused"] == "StorageUnavailableError", answer
    assert answer["message"].endswith("What was not acknowledged may be sent again.")
    assert "\n" not in answer["message"]
    (scene.folder / f"log-{slot}").unlink()


def test_no_room_for_another_page(in_a_file: Scene) -> None:
    """Nothing has changed; when there is room again, it goes on."""
    scene = in_a_file
    # A level or two may still fit into what is left of a page, and nobody buys less than they own.
    levels = ("0.1", "0.2", "0.25", "0.3", "0.4")
    sales = {epsilon: open_account(scene.market, f"buyer-{place}") for place, epsilon in enumerate(levels)}
    with contextlib.closing(sqlite3.connect(scene.place.where)) as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()

    @event.listens_for(scene.other._database.engine, "connect")
    def limit(connection: Any, record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    log, told = scene.folder / f"log-{OTHER}", b""
    for epsilon, buyer in sales.items():
        before = scene.content()
        answer = scene.do_otherwise(buy(buyer, epsilon))
        if "done" not in answer:
            break
        told = log.read_bytes()
    is_unavailable(scene, answer, OTHER)
    log.write_bytes(told)
    assert scene.content() == before
    assert scene.do(buy(buyer, epsilon))["done"]["new"]
    scene.check()


@pytest.mark.parametrize("limit", [1000, 6000])
def test_a_write_that_the_system_refuses(in_a_file: Scene, limit: int) -> None:
    """Files may not grow: the level on its way to the market, or the database's own log."""
    scene = in_a_file
    for task in steps(scene):
        before = scene.content()
        assert scene.run(task, limit=limit) == 0, task
        is_unavailable(scene, everything(scene.folder)[-1].told, THERE)
        assert scene.content() == before
        assert "done" in scene.do(task)
    scene.check()


def test_sales_need_no_place_for_files(in_a_file: Scene) -> None:
    """The system's folder for temporary files is gone, or full: what is sold is drawn and kept without it."""
    scene, buyer = in_a_file, open_account(in_a_file.market, "somebody")
    for task in (buy(buyer, "0.25"), buy(buyer, "0.2", POOL), {"kind": "deliver", "epsilon": "0.6"}):
        assert scene.run(task, temporary="absent") == 0, task
        assert "refused" not in everything(scene.folder)[-1].told
    scene.check()


# Mistakes


def trade(scene: Scene) -> None:
    """Buy, upgrade, share and refund, in one process."""
    one, two = (open_account(scene.market, name) for name in ("one", "two"))
    for task in (
        buy(one, "0.2"), buy(one, "0.3", upgrade=True), buy(two, "0.2"), buy(two, "0.35", upgrade=True), refund(2),
        buy(one, "0.25"), buy(one, "0.5", POOL), buy(two, "0.7", upgrade=True),
    ):  # fmt: skip
        scene.do(task)


def test_trade_without_mistakes(in_a_file: Scene) -> None:
    trade(in_a_file)
    assert in_a_file.check()["purchases"] == 6


@pytest.mark.parametrize(
    ("mistake", "found"),
    [
        ("a line is not written", "does not add up to 0"),
        ("a balance is not changed", "is not the sum of its lines"),
        ("nobody pays", "was not paid once"),
        ("an upgrade costs the whole price", "cost something else than it should"),
        ("a level is not kept", "a level was sold that is not kept"),
        ("what is authorised is forgotten", "more was sold than was authorised"),
        ("a refund forgets what was upgraded", "a chain is torn"),
        ("a refund is of goods alone", "a refund is not what was paid"),
        ("a sale is not written down", "somebody was told of a sale before the journal"),
    ],
)
def test_the_check_finds_mistakes(in_a_file: Scene, mistake: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in mistakes(mistake):
        monkeypatch.setattr(*each)
    with contextlib.suppress(AssertionError):  # the market may stumble over its mistake, but only after it made it
        trade(in_a_file)
    with pytest.raises(AssertionError, match=found):
        in_a_file.check()


def test_a_kill_between_goods_and_money_is_found(in_a_file: Scene) -> None:
    """Two commits instead of one work well, until somebody dies in between."""
    scene, buyer = in_a_file, open_account(in_a_file.market, "somebody")
    mistake = {"mistake": "goods first and money later"}
    assert scene.run(buy(buyer, "0.2"), **mistake) == 0
    scene.check()
    assert scene.run(buy(buyer, "0.3", upgrade=True), **mistake, die="after") == KILLED
    with pytest.raises(AssertionError, match="was not paid once"):
        scene.check()
