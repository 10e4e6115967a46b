"""A ledger that somebody changed behind its back is refused or shown, never spent from, on every store."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.faults.ledger.ledger_work import EVERYONE, FACTS, is_one_sentence, path
from tests.servers.ledgers import STORES, Place, place_of

from relaxdp.errors import LedgerDamagedError, LedgerVersionError
from relaxdp.ledger.account import add_up, from_text
from relaxdp.ledger.events import BegunAnew, BudgetSet, Event, LevelReleased, PathOpened
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.store import SCHEMA


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    found = place_of(request.param, request)
    with Ledger.open(found.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_subject SET budget = '99'",
        "UPDATE ledger_subject SET budget = 'much'",
        "UPDATE ledger_path SET largest = '0.1'",
        "UPDATE ledger_path SET largest = 'NaN'",
        "UPDATE ledger_path SET release = ''",
        "UPDATE ledger_path SET key_fingerprint = '9'",
        "INSERT INTO ledger_event (number, time, event, subject_kind, subject_name, reason) "
        "VALUES (4, 'x', 'y', 'z', '', '')",
        "INSERT INTO ledger_subject VALUES ('population', 'nobody', '1')",
    ],
)
def test_accounts_that_are_not_what_happened(place: Place, statement: str) -> None:
    place.run(statement)
    with Ledger.open(place.where) as ledger, pytest.raises(LedgerDamagedError, match="is damaged: ") as found:
        ledger.verify()
    is_one_sentence(found.value, place.name)


@pytest.mark.parametrize("number", [1, 4, 5])
def test_an_event_that_is_gone(place: Place, number: int) -> None:
    """Even one whose loss leaves accounts that add up: a level that was read again, at no cost."""
    with Ledger.open(place.where) as ledger:
        for _ in range(2):
            ledger.charge(EVERYONE, path("a"), FACTS, "0.5")
        ledger.charge(EVERYONE, path("a"), FACTS, 1)
        ledger.verify()
        place.tamper(f"DELETE FROM ledger_event WHERE number = {number}")
        with pytest.raises(LedgerDamagedError, match="is damaged: an event is missing") as found:
            ledger.verify()
    is_one_sentence(found.value, place.name)


def begin_and_fail(ledger: Ledger) -> None:
    with ledger._store.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO ledger_event (number, time, event, subject_kind, subject_name, reason) "
            "VALUES (4, 'x', 'y', 'z', '', '')"
        )
        raise ZeroDivisionError


def test_events_are_numbered_without_gaps(place: Place) -> None:
    with Ledger.open(place.where) as ledger:
        with pytest.raises(ZeroDivisionError):
            begin_and_fail(ledger)
        ledger.charge(EVERYONE, path("b"), FACTS, "0.25")
    assert [number for (number,) in place.run("SELECT number FROM ledger_event ORDER BY number")] == [1, 2, 3, 4, 5]


def test_events_that_cannot_have_happened() -> None:
    """Whoever adds them up notices: nothing is spent without a budget, beyond it, at another cost, or from no path."""
    time, identity = datetime(2026, 7, 1, tzinfo=UTC), path("a")
    budget = BudgetSet(EVERYONE, time, Decimal(1), "by hand")
    opened = PathOpened(EVERYONE, time, identity, FACTS)

    def level(epsilon: str, cost: str) -> LevelReleased:
        return LevelReleased(EVERYONE, time, identity, Decimal(epsilon), Decimal(cost), None)

    good: list[Event] = [budget, opened, level("0.5", "0.5"), level("1", "0.5"), level("0.5", "0")]
    assert add_up(good)[EVERYONE].spent == 1
    assert add_up([*good, BegunAnew(EVERYONE, time, "f", "a new hospital")]) == add_up(good)
    cases: list[tuple[list[Event], str]] = [
        ([opened], "spent more than the budget"),
        ([budget, opened, level("1.1", "1.1")], "spent more than the budget"),
        ([budget, level("1", "1")], "from a path that was never opened"),
        ([budget, opened, level("0.5", "0.25")], "another cost than it had"),
        ([budget, opened, level("0.5", "0.5"), level("0.5", "0.5")], "another cost than it had"),
    ]
    for wrong, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            add_up(wrong)


@pytest.mark.parametrize("text", ["", "NaN", "Infinity", "-1", "1e3", "1_0", "1.", ".5", " 1", "1\n", "١"])
def test_an_amount_that_no_ledger_wrote(text: str) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        from_text(text)


@pytest.mark.parametrize("version", [1, 99])
def test_another_version_of_the_schema(place: Place, version: int) -> None:
    opened = Ledger.open(place.where)
    place.run(f"UPDATE {SCHEMA.table} SET version_num = {version}")
    with pytest.raises(
        LedgerVersionError, match=f"has schema version {version}, .* created by another version"
    ) as found:
        Ledger.open(place.where)
    is_one_sentence(found.value, place.name)
    if place.name.startswith("postgresql"):  # one that was open already is not written to either
        with pytest.raises(LedgerVersionError):
            opened.charge(EVERYONE, path("a"), FACTS, 1)


def test_a_ledger_that_went_back_is_noticed(place: Place) -> None:
    with Ledger.open(place.where) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, 1)
        place.tamper("DELETE FROM ledger_event WHERE number = 4", "UPDATE ledger_path SET largest = '0.5'")
        for ask in (ledger.charge, ledger.quote):
            with pytest.raises(LedgerDamagedError, match="went back to an earlier state") as found:
                ask(EVERYONE, path("a"), FACTS, 1)
            is_one_sentence(found.value, place.name)
    with Ledger.open(place.where) as ledger:  # another process cannot know
        assert ledger.balance(EVERYONE).spent == Decimal("0.5")
