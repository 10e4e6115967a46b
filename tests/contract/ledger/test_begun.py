"""A ledger in a file is begun by the first thing that is written, and one that was begun is missed when it is gone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from threading import Thread

import pytest
from tests.faults.ledger.ledger_work import EVERYONE, FACTS, is_one_sentence, path
from tests.refusals import refused

from relaxdp.errors import BudgetExceededError, BudgetMissingError, LedgerAccessError, LedgerError, UnknownSubjectError
from relaxdp.ledger import sqlite
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.marks import mark_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "key.ledger"


def begin(place: Path) -> None:
    with Ledger.open(place) as ledger:
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)


def test_nothing_is_written_before_the_first_charge(place: Path) -> None:
    with Ledger.open(place) as ledger:
        assert (ledger.history(), ledger.subjects()) == ([], [])
        ledger.verify()
        with pytest.raises(UnknownSubjectError):
            ledger.balance(EVERYONE)
        assert ledger.quote(EVERYONE, path("a"), FACTS, 1, budget=1).cost == 1
        for ask in (ledger.quote, ledger.charge):
            with pytest.raises(BudgetMissingError, match="there is no ledger ") as missing:
                ask(EVERYONE, path("a"), FACTS, 1)
            assert repr(str(place)) in missing.value.message
            with pytest.raises(BudgetExceededError):
                ask(EVERYONE, path("a"), FACTS, 2, budget=1)
        assert list(place.parent.iterdir()) == []
        ledger.charge(EVERYONE, path("a"), FACTS, 1, budget=1)
        assert sorted(file.name for file in place.parent.iterdir()) == ["key.ledger", "key.ledger.begun"]
        assert [file.stat().st_mode & 0o777 for file in place.parent.iterdir()] == [0o600] * 2
        ledger.verify()
        assert len(ledger.history()) == 3
    with refused(LedgerAccessError, what="was closed"):
        ledger.history()
    unused = Ledger.open(place.with_name("unused"))
    unused.close()
    with refused(LedgerAccessError, what="was closed"):
        unused.history()


def test_one_that_others_began_meanwhile_is_seen(place: Path) -> None:
    early, late = Ledger.open(place), Ledger.open(place)
    assert early.history() == late.history() == []
    begin(place)
    assert len(early.history()) == 3
    late.charge(EVERYONE, path("a"), FACTS, 1)  # what it began with is not begun again
    assert len(early.history()) == 4
    early.verify()


@pytest.mark.parametrize("create", [True, False])
def test_one_that_is_begun_while_it_is_opened_is_not_taken_for_lost(
    place: Path, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    """Its mark is there then, and a moment ago the file was not."""

    def others_are_faster(ledger: Path) -> Path:
        monkeypatch.undo()
        begin(place)
        return mark_of(ledger)

    monkeypatch.setattr(sqlite, "mark_of", others_are_faster)
    with Ledger.open(place, create=create) as ledger:
        assert ledger.charge(EVERYONE, path("a"), FACTS, 1).spent_after == 1


def test_one_that_others_began_meanwhile_is_looked_at(place: Path) -> None:
    early, late = Ledger.open(place), Ledger.open(place)
    place.write_bytes(b"no ledger")
    for ask in (early.history, lambda: late.charge(EVERYONE, path("a"), FACTS, 1, budget=1)):
        with pytest.raises(LedgerError, match="damaged") as found:
            ask()
        is_one_sentence(found.value, str(place))


def test_threads_begin_one_ledger(place: Path) -> None:
    with Ledger.open(place) as ledger:
        charges: list[int] = []

        def work(number: int) -> None:
            ledger.charge(EVERYONE, path(number), FACTS, "0.1", budget=1)
            charges.append(number)

        threads = [Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(charges) == list(range(6))
        ledger.verify()
        assert str(ledger.balance(EVERYONE).spent) == "0.6"


@pytest.mark.parametrize("create", [True, False])
def test_a_ledger_that_is_gone_is_missed(place: Path, create: bool) -> None:
    begin(place)
    place.rename(place.with_name("elsewhere"))
    before = sorted(place.parent.iterdir())
    with pytest.raises(LedgerAccessError, match=r"is gone: one was begun here \('key.ledger.begun' says so\)") as found:
        Ledger.open(place, create=create)
    is_one_sentence(found.value, str(place))
    assert "a new one would forget what was spent" in found.value.message
    assert sorted(place.parent.iterdir()) == before
    place.with_name("elsewhere").rename(place)  # it was restored
    with Ledger.open(place) as ledger:
        assert ledger.charge(EVERYONE, path("a"), FACTS, 1).spent_after == 1


def test_one_that_is_lost_between_opening_and_writing_is_missed(place: Path) -> None:
    with Ledger.open(place) as ledger:
        begin(place)
        place.unlink()
        with pytest.raises(LedgerAccessError, match="is gone: one was begun here"):
            ledger.charge(EVERYONE, path("a"), FACTS, 1, budget=1)
    assert not place.exists()


def test_who_removes_the_mark_begins_anew(place: Path) -> None:
    begin(place)
    place.unlink()
    place.with_name("key.ledger.begun").unlink()
    begin(place)


def test_a_ledger_that_came_without_its_mark_gets_one(place: Path) -> None:
    """One that was copied here, or begun by an earlier version."""
    begin(place)
    mark = place.with_name("key.ledger.begun")
    text = mark.read_text("utf-8")
    assert "key.ledger" in text
    assert "docs/ledger.md" in text
    mark.unlink()
    with Ledger.open(place, create=False) as ledger:
        ledger.balance(EVERYONE)  # who only looks leaves nothing
        assert not mark.exists()
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5")
    assert mark.read_text("utf-8") == text


@pytest.fixture
def no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has no room for the mark."""
    opened = os.open

    def full(name: object, *rest: int, **more: object) -> int:
        if str(name).endswith(".begun"):
            raise OSError(28, "No space left on device")
        return opened(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", full)


MARKLESS = "cannot be used: its mark 'key.ledger.begun' cannot be written: No space left on device"


def test_no_charge_where_the_mark_cannot_be_written(place: Path, request: pytest.FixtureRequest) -> None:
    begin(place)
    place.with_name("key.ledger.begun").unlink()
    request.getfixturevalue("no_mark")
    with Ledger.open(place) as ledger:
        with pytest.raises(LedgerAccessError, match=MARKLESS) as found:
            ledger.charge(EVERYONE, path("a"), FACTS, 1)
        is_one_sentence(found.value, str(place))
        assert str(ledger.balance(EVERYONE).spent) == "0.5"


def test_a_first_charge_without_a_mark_stands_and_is_not_made_twice(
    place: Path, no_mark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like that of a run that was killed then: its release did not happen, and costs nothing when it does."""
    with Ledger.open(place) as ledger, pytest.raises(LedgerAccessError, match=MARKLESS):
        ledger.charge(EVERYONE, path("a"), FACTS, "0.5", budget=1)
    monkeypatch.undo()
    with Ledger.open(place) as ledger:
        assert ledger.charge(EVERYONE, path("a"), FACTS, "0.5").cost == 0
    assert sorted(file.name for file in place.parent.iterdir()) == ["key.ledger", "key.ledger.begun"]


def test_nothing_is_left_of_a_first_charge_that_fails(place: Path) -> None:
    with Ledger.open(place) as ledger, contextlib.suppress(ZeroDivisionError), ledger._store.writing():
        raise ZeroDivisionError
    assert list(place.parent.iterdir()) == []
