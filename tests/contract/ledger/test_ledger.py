"""Every ledger, in a file or in PostgreSQL: a verified chain, compare-and-swap, races and kills."""

from __future__ import annotations

import hmac
import os
import pickle
import random
import signal
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.contract.ledger.ledger_places import (
    FORK,
    KEY,
    TIME,
    VAULT,
    LedgerPlace,
    charge,
    created,
    make_place,
    request_of,
    spend,
    spend_at_once,
    spend_forever,
)
from tests.patience import PATIENCE, until

from relaxdp.errors import (
    BudgetExceededError,
    LedgerBusyError,
    LedgerError,
)
from relaxdp.ledger.account import Account, make_budget_raise_event, make_release_event
from relaxdp.ledger.events import CopyAdopted, Event
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.sqlite_store import SqliteStore
from relaxdp.sampling.keys import Key


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> LedgerPlace:
    return make_place(request.param, request)


def open_ledger(place: LedgerPlace, **changes: Any) -> Ledger:
    return Ledger(changes.get("store", place.store()), changes.get("key", KEY), changes.get("vault", VAULT))


@pytest.fixture
def ledger(place: LedgerPlace) -> Ledger:
    """A ledger of four events."""
    made = open_ledger(place)
    made.create(created())
    made.append_event(charge)
    made.append_event(lambda account: charge(account, levels={"diagnosis": 1}))
    made.append_event(lambda account: make_budget_raise_event(account, Decimal(3), "board", TIME))
    return made


def test_what_is_written_is_read(place: LedgerPlace, ledger: Ledger) -> None:
    account = ledger.read_account()
    assert (account.number, account.spent, account.budget, account.vault) == (4, Decimal(1), Decimal(3), VAULT)
    fresh = open_ledger(place)
    assert fresh.read_account() == account
    assert [event.number for event in fresh.read_events()] == [1, 2, 3, 4]
    assert [type(event).__name__ for event in fresh.read_events()] == [
        "VaultCreated",
        "ReleaseCharged",
        "ReleaseCharged",
        "BudgetRaised",
    ]
    assert fresh.get_digest(4) == account.digest
    assert [fresh.get_digest(number) is None for number in (0, 1, 3, 5)] == [True, False, False, True]
    assert open_ledger(place).get_digest(4) == account.digest


def test_digests_are_what_the_specification_says(place: LedgerPlace, ledger: Ledger) -> None:
    secret, before = KEY.derive(b"\6\0\0\0ledger"), VAULT
    for number, content, digest in place.run("SELECT number, content, digest FROM event ORDER BY number"):
        assert digest == hmac.new(secret, before.encode() + content.encode(), "sha256").hexdigest()
        assert digest == ledger.get_digest(number)
        before = digest


def test_nothing_is_created_by_opening(place: LedgerPlace) -> None:
    for use in (Ledger.read_account, Ledger.read_events, lambda ledger: ledger.append_event(charge)):
        with pytest.raises(LedgerError, match="is missing"):
            use(open_ledger(place))


def test_a_ledger_is_created_once(place: LedgerPlace, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="already"):
        open_ledger(place).create(created())
    assert ledger.read_account().number == 4


def test_a_first_event_of_another_vault_leaves_nothing(place: LedgerPlace) -> None:
    with pytest.raises(ValueError, match="creates another vault"):
        open_ledger(place, vault="ff").create(created())
    with pytest.raises(LedgerError, match="is missing"):
        open_ledger(place).read_account()


def test_an_event_that_cannot_be_read_again_is_not_written(place: LedgerPlace, ledger: Ledger) -> None:
    """It could never be removed, and the ledger could never be read again."""
    wrong: Any = {"accepted_new_rows": "yes"}
    with pytest.raises(ValueError, match="not an event"):
        ledger.append_event(lambda account: replace(charge(account, levels={"diagnosis": 2}), **wrong))
    assert open_ledger(place).read_account().number == 4


def test_an_event_that_is_not_made_writes_nothing(place: LedgerPlace, ledger: Ledger) -> None:
    before = ledger.read_account()
    assert ledger.append_event(lambda account: None) == before

    def fail(account: Account) -> Event:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.append_event(fail)
    with pytest.raises(BudgetExceededError):
        ledger.append_event(lambda account: charge(account, levels={"diagnosis": 4}))
    with pytest.raises(ValueError, match="it has another number"):
        ledger.append_event(lambda account: CopyAdopted(9, TIME, "x", "y"))
    assert open_ledger(place).read_account() == ledger.read_account() == before


# The chain


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE event SET content = replace(content, '1200', '1201') WHERE number = 3", "event 3 does not match"),
        ("UPDATE event SET content = replace(content, '1200', '1201') WHERE number = 2", "event 2 does not match"),
        ("UPDATE event SET content = '' WHERE number = 4", "event 4 does not match"),
        ("UPDATE event SET digest = 'é' WHERE number = 4", "event 4 does not match"),
        ("UPDATE event SET digest = upper(digest) WHERE number = 4", "event 4 does not match"),
        ("UPDATE event SET content = replace(content, '\"2\"', '\"9\"') WHERE number = 1", "event 1 does not match"),
        ("DELETE FROM event WHERE number = 1", "event 1 is missing"),
        ("DELETE FROM event WHERE number = 3", "event 3 is missing"),
        ("DELETE FROM event", "it has no events"),
        ("UPDATE event SET number = 5 WHERE number = 4", "event 4 is missing"),
        ("UPDATE event SET number = 0 WHERE number = 1", "event 1 is missing"),
    ],
)
def test_tampering_is_noticed(place: LedgerPlace, ledger: Ledger, statement: str, words: str) -> None:
    place.tamper(statement)
    for look in (Ledger.read_account, Ledger.read_events, lambda each: each.append_event(charge)):
        with pytest.raises(LedgerError, match=f"^The ledger of vault '{VAULT}' is damaged: {words}") as found:
            look(open_ledger(place))
        assert found.value.hint.endswith("from a backup of the vault." if "event 1 does" not in words else "a backup.")
        assert found.value.sentence.endswith(".")


def test_events_that_changed_places(place: LedgerPlace, ledger: Ledger) -> None:
    place.tamper(*(f"UPDATE event SET number = {new} WHERE number = {old}" for old, new in [(2, 9), (3, 2), (9, 3)]))
    with pytest.raises(LedgerError, match="event 2 does not match"):
        open_ledger(place).read_account()


def test_a_ledger_that_was_cut_is_noticed_by_who_has_seen_the_end(place: LedgerPlace, ledger: Ledger) -> None:
    """A reader who has not needs the stamp: the rest is a whole chain."""
    place.tamper("DELETE FROM event WHERE number = 4")
    for look in (Ledger.read_account, Ledger.read_events, lambda each: each.append_event(charge)):
        with pytest.raises(LedgerError, match="went back to an earlier state"):
            look(ledger)
    other = open_ledger(place)
    other.append_event(lambda account: make_budget_raise_event(account, Decimal(4), "another history", TIME))
    for look in (Ledger.read_account, lambda each: each.append_event(charge)):
        with pytest.raises(LedgerError, match="another history"):
            look(ledger)


def test_another_key_is_named(place: LedgerPlace, ledger: Ledger) -> None:
    other = Key.from_bytes(b"x" * 32)
    with pytest.raises(LedgerError) as found:
        open_ledger(place, key=other).read_account()
    assert f"event 1 does not match its digest under the key {other.fingerprint}." in found.value.sentence
    assert "If that is not the key of the vault, use the right one." in found.value.hint


def test_a_chain_whose_events_cannot_have_happened(place: LedgerPlace, ledger: Ledger) -> None:
    """Someone with the key wrote them: the digests are right, and the amounts are not."""
    account = ledger.read_account()
    content = charge(account).to_json()
    assert '"cost":"0"' in content
    for wrong in (content.replace('"cost":"0"', '"cost":"1"'), content.replace('"number":5', '"number":6'), "{}"):
        row = (5, wrong, ledger._compute_digest(account, wrong))
        with pytest.raises(LedgerError, match="event 5 is invalid: (a column|it )"):
            ledger._verify_events([row], ledger._verified)


def test_events_are_append_only(place: LedgerPlace, ledger: Ledger) -> None:
    for statement in ("UPDATE event SET digest = ''", "DELETE FROM event"):
        with pytest.raises(Exception, match="append-only"):
            place.run(statement)
    with pytest.raises(LedgerError), place.store().begin_transaction("write") as rows:
        rows.add_event(4, "{}", "")


def test_a_copy_is_a_ledger(place: LedgerPlace, ledger: Ledger, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert ledger.copy_to(target) == ledger.read_account()
    assert target.stat().st_mode & 0o777 == 0o600
    copy = Ledger(SqliteStore(target), KEY, VAULT)
    assert copy.read_events() == ledger.read_events()
    copy.append_event(charge)
    with pytest.raises(LedgerError, match="exists already"):
        ledger.copy_to(target)


def test_a_ledger_is_not_pickled(ledger: Ledger) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(ledger)


# Several at once


def test_compare_and_swap(place: LedgerPlace, ledger: Ledger) -> None:
    """Two plan the same release; the second is told, and can plan again."""
    other = open_ledger(place)
    one, two = (request_of(each.read_account(), levels={"diagnosis": 2}) for each in (ledger, other))
    ledger.append_event(lambda account: make_release_event(account, *one))
    with pytest.raises(LedgerBusyError):
        other.append_event(lambda account: make_release_event(account, *two))
    assert spend(other, "patients", "2.2") is False
    again = request_of(other.read_account(), levels={"diagnosis": 2})
    assert other.append_event(lambda account: make_release_event(account, *again)).spent == 2
    assert ledger.append_event(lambda account: None) == other.read_account()


def test_processes_that_spend_the_last_of_a_budget(place: LedgerPlace) -> None:
    """Eight workers want 0.1 for one name together, and 0.3 each for their own: 2.5 of 2."""
    ledger = open_ledger(place)
    ledger.create(created())
    start, results = FORK.Event(), FORK.Queue()
    workers = [FORK.Process(target=spend_at_once, args=(ledger, number, start, results)) for number in range(8)]
    for worker in workers:
        worker.start()
    start.set()
    granted = sum(results.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    account, events = ledger.read_account(), ledger.read_events()
    assert account.spent == account.budget == 2
    assert granted == account.number - 1 == len({event.to_json() for event in events}) - 1
    paid = [event for event in events if "for 0.05" in event.describe()]
    assert len(paid) == len({event.describe().partition("(")[0] for event in paid}) == 20


def test_threads_share_a_ledger(place: LedgerPlace) -> None:
    ledger = open_ledger(place)
    ledger.create(created())
    threads = [Thread(target=spend, args=(ledger, str(number), "0.1")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.read_account().spent == Decimal("1.6")


def test_held_longer_than_the_timeout(place: LedgerPlace, ledger: Ledger) -> None:
    hasty = open_ledger(place, store=place.store(timeout=0.2))
    with place.hold():
        assert hasty.read_account() == ledger.read_account()
        with pytest.raises(LedgerBusyError, match=r"did not become free within 0.2 seconds\.") as found:
            hasty.append_event(charge)
        assert "SELECT" not in str(found.value)
    assert hasty.append_event(charge).number == 5


def _killed(work: Any) -> None:
    worker = FORK.Process(target=work)
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL


def test_killed_before_and_after_the_commit(place: LedgerPlace, ledger: Ledger) -> None:
    def before(account: Account) -> Event:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def after() -> None:
        ledger.append_event(charge)
        os.kill(os.getpid(), signal.SIGKILL)

    _killed(lambda: ledger.append_event(before))
    place.settle()
    assert open_ledger(place).read_account().number == 4
    _killed(after)
    place.settle()
    assert open_ledger(place).read_account().number == 5
    assert ledger.append_event(charge).number == 6


def test_killed_at_random_instants(place: LedgerPlace, tmp_path: Path) -> None:
    """Never less than what was acknowledged, never half of a charge, and at most one more per killed worker."""
    chance, log, ledger = random.Random(7), tmp_path / "log", open_ledger(place)
    ledger.create(created(10**6))
    for kill in range(8):
        size = log.stat().st_size if log.exists() else 0
        workers = [FORK.Process(target=spend_forever, args=(ledger, number, str(log))) for number in range(2)]
        for worker in workers:
            worker.start()
        if kill % 2:
            until(lambda: log.exists() and log.stat().st_size > size)  # noqa: B023
        time.sleep(chance.uniform(0, 0.1))
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()
        place.settle()
        acknowledged = {str(number): Decimal(0) for number in range(2)}
        for line in log.read_text().splitlines() if log.exists() else []:
            name, written = line.split()
            acknowledged[name] = max(acknowledged[name], Decimal(written))
        releases = open_ledger(place).read_account().releases
        for name, level in acknowledged.items():
            states = [state.largest for state in releases[name].columns.values()] if name in releases else [level]
            assert len(set(states)) == 1
            # Each kill may leave one charge that was recorded and not acknowledged; the next worker starts from it.
            assert level <= states[0] <= level + Decimal("0.001") * (kill + 1)
    assert log.stat().st_size
