"""The contract of a ledger: one suite, run against every store."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.servers.ledgers import LONG_STORES, STORES, place_of

from relaxdp import LocalHash
from relaxdp.draw.stream import PathId
from relaxdp.errors import (
    BudgetError,
    BudgetExceededError,
    BudgetMissingError,
    DateError,
    EpsilonError,
    IdTypeError,
    LedgerAccessError,
    LedgerChangedError,
    LevelError,
    NothingChangedError,
    PathChangedError,
    PathNameError,
    SamplerChangedError,
    SubjectError,
    TableChangedError,
    UnknownSubjectError,
    ValuesChangedError,
    WrongKeyError,
)
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.entries import Entry, PathFacts, Sampler, Subject
from relaxdp.ledger.events import BudgetRaised, BudgetSet, LevelReleased, PathOpened
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.rules import Charge, differs

HOSPITAL = Subject.population("hospital")
DIAGNOSIS = PathId("survey-2026", "diagnosis")
AGE = PathId("survey-2026", "age")
FACTS = PathFacts(
    encoding="categorical", params="ab" * 32, key_fingerprint="1234", id_type="text", table_fingerprint="aa"
)
ZERO = Decimal(0)
NOON = datetime(2026, 7, 1, 12, 0, 0, 250_000, tzinfo=UTC)

Opener = Callable[..., Ledger]
LONG_ON_POSTGRES = pytest.mark.parametrize("opener", LONG_STORES, indirect=True)


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest) -> Opener:
    """Open one and the same ledger, again and again."""
    where = place_of(request.param, request).where
    return lambda **options: Ledger.open(where, **{"clock": lambda: NOON, **options})


@pytest.fixture
def ledger(opener: Opener) -> Ledger:
    return opener()


def spent(ledger: Ledger, subject: Subject = HOSPITAL) -> Decimal:
    return ledger.balance(subject).spent


def entry(path: PathId, facts: PathFacts, epsilon: Any, **options: Any) -> Entry:
    return Entry(path, facts, as_epsilon(epsilon), **options)


def forced(ledger: Ledger, path: PathId, facts: PathFacts, epsilon: Any, **options: Any) -> Charge:
    """Force a new epoch: it is drawn, and charged, under the path that the quote names."""
    quoted = ledger.quote(HOSPITAL, path, facts, epsilon, force=True)
    charged = ledger.charge(HOSPITAL, quoted.path, facts, epsilon, force=True, **options)
    assert charged == quoted
    return charged


# What a release costs


def test_a_path_costs_the_largest_epsilon_read_from_it(ledger: Ledger) -> None:
    first = ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 0.1, budget=2)
    assert (first.cost, first.path.epoch, first.previous, first.is_new_path) == (Decimal("0.1"), 1, None, True)
    assert (first.spent_before, first.spent_after, first.budget) == (ZERO, Decimal("0.1"), Decimal(2))
    second = ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 0.5)
    assert (second.cost, second.previous, second.is_new_path) == (Decimal("0.4"), Decimal("0.1"), False)
    assert spent(ledger) == Decimal("0.5")
    assert isinstance(first_event := ledger.history()[0], BudgetSet)
    assert first_event.reason == "the first release"


def test_the_same_level_again_is_free_and_recorded(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "0.5", budget="0.5")
    charge = ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "0.50")
    assert (charge.cost, charge.previous, charge.spent_after) == (ZERO, Decimal("0.5"), Decimal("0.5"))
    last = ledger.history()[-1]
    assert isinstance(last, LevelReleased)
    assert last.kind == "re-issued"
    assert "re-issued 'diagnosis' of release 'survey-2026' at 0.5 for 0" in str(last)


def test_a_lower_level_is_refused_unless_it_is_asked_for_again(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "1.5", budget=2)
    with refused(LevelError, path="'diagnosis' of release 'survey-2026'", previous="1.5", epsilon="1") as found:
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1)
    assert found.value.remedy == "again"
    charge = ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, again=True)
    assert (charge.cost, charge.previous) == (ZERO, Decimal("1.5"))
    assert ledger.balance(HOSPITAL).paths[0].largest == Decimal("1.5")
    assert ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 2, again=True).cost == Decimal("0.5")
    ledger.verify()


def test_paths_of_a_subject_add_up_and_subjects_do_not(ledger: Ledger) -> None:
    other = PathId("survey-2027", "diagnosis")
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=3)
    ledger.charge(HOSPITAL, AGE, FACTS, "0.5")
    ledger.charge(HOSPITAL, other, FACTS, "0.25")
    device = Subject.object("hospital")  # another kind of subject, of the same name
    ledger.charge(device, DIAGNOSIS, FACTS, 1, budget=1)
    balance = ledger.balance(HOSPITAL)
    assert (balance.budget, balance.spent, balance.left) == (Decimal(3), Decimal("1.75"), Decimal("1.25"))
    assert [(state.path, state.largest) for state in balance.paths] == [
        (AGE, Decimal("0.5")),
        (DIAGNOSIS, 1),
        (other, Decimal("0.25")),
    ]
    assert ledger.balance(device).left == 0
    assert ledger.subjects() == [device, HOSPITAL]


def test_the_budget_is_never_exceeded(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "1.75", budget="2.0")
    before = ledger.history()
    with pytest.raises(BudgetExceededError) as found:
        ledger.charge(HOSPITAL, AGE, FACTS, "0.5")
    assert found.value.sentence == "budget exceeded: 0.25 left of 2, this release needs 0.5."
    assert found.value.fields == {
        "subject": "population 'hospital'", "left": "0.25", "budget": "2", "needed": "0.5",
        "enough": "2.25",
    }  # fmt: skip
    assert found.value.code == "budget_exceeded_error"
    assert ledger.history() == before
    assert ledger.charge(HOSPITAL, AGE, FACTS, "0.25").spent_after == 2


def test_nothing_of_a_refused_first_release_stays(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceededError):
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 3, budget=2)
    assert ledger.history() == []
    assert ledger.subjects() == []
    with refused(UnknownSubjectError, subject="population 'hospital'"):
        ledger.balance(HOSPITAL)


# Budgets


def test_the_first_release_needs_a_budget(ledger: Ledger) -> None:
    """Where nothing ever happened, the ledger may be a lost one: that comes before the advice to begin it."""
    for ask in (ledger.quote, ledger.charge):
        with pytest.raises(BudgetMissingError, match=r"^(there is no ledger|the ledger '.*' is empty\. If)") as found:
            ask(HOSPITAL, DIAGNOSIS, FACTS, 1)
        assert found.value.sentence.endswith(
            ". If this key has released before, restore it (docs/ledger.md); else begin it with a budget."
        )
        assert found.value.remedy == "budget"
    ledger.set_budget(Subject.object("device-17"), 1, reason="by hand")
    with refused(BudgetMissingError, subject="population 'hospital'", remedy="budget", says="has no budget yet"):
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1)
    ledger.set_budget(HOSPITAL, 1, reason="the ethics board")
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1)
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget="1.0")  # the same budget again changes nothing
    with refused(BudgetError, budget="1", asked="3"):
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 2, budget=3)


def test_a_budget_may_only_be_raised(ledger: Ledger) -> None:
    with refused(BudgetError, stands="there is none yet"):
        ledger.raise_budget(HOSPITAL, 1, reason="by hand")
    ledger.set_budget(HOSPITAL, "0.5", reason="by hand")
    with refused(BudgetError, budget="0.5", says="already; it may only be raised"):
        ledger.set_budget(HOSPITAL, 9, reason="by hand")
    for lower in ("0.5", "0.4"):
        with refused(BudgetError, stands="it is 0.5"):
            ledger.raise_budget(HOSPITAL, lower, reason="by hand")
    ledger.raise_budget(HOSPITAL, 1, reason="2026-08-01 has come")
    ledger.raise_budget(HOSPITAL, 2, reason="sale 17")
    assert ledger.balance(HOSPITAL).budget == 2
    assert [event.reason for event in ledger.history(HOSPITAL)] == ["by hand", "2026-08-01 has come", "sale 17"]
    ledger.verify()


@pytest.mark.parametrize("budget", [0, -1, "nan", "inf", float("inf"), True, "much", None, 1 << 300])
@LONG_ON_POSTGRES
def test_no_unlimited_budget(ledger: Ledger, budget: Any) -> None:
    with refused(BudgetError, says="a budget must be a positive number"):
        ledger.set_budget(HOSPITAL, budget, reason="by hand")


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", None, "x" * 501, "\ud800"])
@LONG_ON_POSTGRES
def test_a_reason_is_needed(ledger: Ledger, reason: Any) -> None:
    with refused(BudgetError, most=500):
        ledger.set_budget(HOSPITAL, 1, reason=reason)


# What may not change


@pytest.mark.parametrize(
    ("change", "error", "fields", "remedy"),
    [
        (
            {"key_fingerprint": "5678"},
            WrongKeyError,
            {"what": "the key", "recorded": "1234", "given": "5678"},
            "force",
        ),
        (
            {"key_fingerprint": "5678", "table_fingerprint": "bb"},
            WrongKeyError,
            {"recorded": "1234", "given": "5678"},
            "force",
        ),
        (
            {"params": "cd" * 32},
            ValuesChangedError,
            {"what": "the list of values (or their order)"},
            "same_values force",
        ),
        ({"encoding": "unary"}, ValuesChangedError, {"recorded": "categorical", "given": "unary"}, "force"),
        ({"id_type": "integer"}, IdTypeError, {"recorded": "text", "given": "integer"}, "id force"),
        (
            {"table_fingerprint": "bb"},
            TableChangedError,
            {"what": "the table (its ids or their truths)"},
            "id force_or_date",
        ),
        (
            {"table_fingerprint": "bb", "growing": True},
            TableChangedError,
            {"what": "the table (its ids or their truths)"},
            "id force_or_date",
        ),
    ],
)
@pytest.mark.parametrize("epsilon", ["0.25", "0.5", "1"])
@LONG_ON_POSTGRES
def test_what_differs_is_refused(
    ledger: Ledger,
    change: dict[str, Any],
    error: type[PathChangedError],
    fields: dict[str, str],
    remedy: str,
    epsilon: str,
) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "0.5", budget=9)
    before = ledger.history()
    changed = replace(FACTS, **change)
    for ask in (ledger.quote, ledger.charge):
        with refused(error, path=str(DIAGNOSIS), largest="0.5", remedy=remedy, **fields) as found:
            ask(HOSPITAL, DIAGNOSIS, changed, epsilon, again=True)
        assert not [digest for digest in ("abab", "cdcd", "aa", "bb") if digest in found.value.message]
    assert ledger.history() == before
    # Another path is not concerned.
    ledger.charge(HOSPITAL, AGE, changed, epsilon)


def test_forcing_opens_a_new_path_that_costs_in_addition(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=3)
    changed = replace(FACTS, table_fingerprint="bb")
    second = forced(ledger, DIAGNOSIS, changed, "0.5", reason="two rows were wrong")
    assert (second.cost, second.path.epoch, second.previous, second.is_new_path) == (Decimal("0.5"), 2, None, True)
    assert second.spent_after == Decimal("1.5")
    # The path goes on from the new epoch, and from there only.
    with pytest.raises(LedgerChangedError):
        ledger.charge(HOSPITAL, DIAGNOSIS, changed, 1)
    assert ledger.charge(HOSPITAL, second.path, changed, 1).cost == Decimal("0.5")
    with pytest.raises(TableChangedError):
        ledger.charge(HOSPITAL, second.path, FACTS, 1)
    third = forced(ledger, DIAGNOSIS, FACTS, 1)
    assert (third.path.epoch, third.cost, third.spent_after) == (3, Decimal(1), Decimal(3))
    with refused(BudgetExceededError, left="0", budget="3", needed="0.1"):
        ledger.charge(HOSPITAL, DIAGNOSIS, changed, "0.1", force=True)
    assert [state.path.epoch for state in ledger.balance(HOSPITAL).paths] == [1, 2, 3]
    assert "epoch 2, forced (two rows were wrong)" in str(ledger.history()[3])
    ledger.verify()


def test_forcing_without_a_difference_is_refused(ledger: Ledger) -> None:
    for budget in (2, None):
        with refused(NothingChangedError):
            ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, force=True, budget=2)
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=budget)


def test_a_table_that_grows_is_declared_when_its_path_is_opened(ledger: Ledger) -> None:
    growing = replace(FACTS, growing=True)
    ledger.charge(HOSPITAL, DIAGNOSIS, growing, 1, budget=2)
    ledger.charge(HOSPITAL, DIAGNOSIS, replace(growing, table_fingerprint="bb"), 1)
    with refused(PathChangedError, says="is continued as one only"):
        ledger.charge(HOSPITAL, DIAGNOSIS, replace(FACTS, table_fingerprint="cc"), 2)
    assert ledger.charge(HOSPITAL, DIAGNOSIS, replace(growing, table_fingerprint="cc"), 2).path.epoch == 1
    assert ledger.balance(HOSPITAL).paths[0].facts == replace(growing, table_fingerprint="cc")
    with pytest.raises(WrongKeyError):
        ledger.charge(HOSPITAL, DIAGNOSIS, replace(growing, key_fingerprint="5678"), 2)
    ledger.verify()


def test_a_table_that_did_not_grow_does_not_begin_to(ledger: Ledger) -> None:
    """Nobody has tags of the rows that were released before."""
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=2)
    with refused(PathChangedError, what="whether rows may join"):
        ledger.charge(HOSPITAL, DIAGNOSIS, replace(FACTS, growing=True), 2)


def test_rows_that_changed_in_a_growing_table_are_refused_unless_forced(ledger: Ledger) -> None:
    """Only the caller can tell, by tags that the ledger does not have."""
    growing = replace(FACTS, growing=True)
    asked: list[Entry] = [entry(DIAGNOSIS, growing, 1), entry(AGE, growing, 1)]
    ledger.charge_all(HOSPITAL, asked, budget=9)
    for ask in (ledger.quote_all, ledger.charge_all):
        with refused(TableChangedError, what="the table (its ids or their truths)"):
            ask(HOSPITAL, [asked[0], replace(asked[1], changed=True)])
    moved = [asked[0], replace(asked[1], path=replace(AGE, epoch=2), changed=True)]
    assert [charge.path.epoch for charge in ledger.charge_all(HOSPITAL, moved, force=True)] == [1, 2]
    assert differs(ledger.balance(HOSPITAL).paths[0], asked[1]) is None


def test_a_fingerprint_that_comes_later_counts_from_then_on(ledger: Ledger) -> None:
    unseen = replace(FACTS, table_fingerprint=None)
    ledger.charge(HOSPITAL, DIAGNOSIS, unseen, 1, budget=2)
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1)
    ledger.charge(HOSPITAL, DIAGNOSIS, unseen, 1)
    with pytest.raises(TableChangedError):
        ledger.charge(HOSPITAL, DIAGNOSIS, replace(FACTS, table_fingerprint="bb"), 1)
    ledger.verify()


# Several at once, and dry runs


def test_several_columns_are_charged_together_or_not_at_all(ledger: Ledger) -> None:
    both: list[Entry] = [entry(DIAGNOSIS, FACTS, 1), entry(AGE, FACTS, "0.5")]
    with refused(BudgetExceededError, left="1.4", budget="1.4", needed="1.5"):
        ledger.charge_all(HOSPITAL, both, budget="1.4")
    assert ledger.history() == []
    charges = ledger.charge_all(HOSPITAL, both, budget="1.5")
    assert [(charge.cost, charge.spent_before, charge.spent_after) for charge in charges] == [
        (Decimal(1), ZERO, Decimal(1)),
        (Decimal("0.5"), Decimal(1), Decimal("1.5")),
    ]
    assert len(ledger.history()) == 5


def test_a_refusal_of_several_columns_adds_up_what_they_need(ledger: Ledger) -> None:
    """What the first columns cost is not gone when the last one does not fit any more."""
    region, changed = PathId("survey-2026", "region"), replace(FACTS, table_fingerprint="bb")
    tiny = "0" * 57 + "1"
    ledger.charge(HOSPITAL, AGE, FACTS, 1, budget=2)
    before = ledger.history()
    asks: list[tuple[str, str, list[Entry], dict[str, Any]]] = [
        ("1", "1.5", [entry(AGE, FACTS, "1.25"), entry(region, FACTS, "1.25")], {}),
        ("1", "1.5", [entry(region, FACTS, "1.25"), entry(AGE, FACTS, "1.25")], {}),
        ("1", "1.1", [entry(AGE, FACTS, "0.5"), entry(region, FACTS, "1.1")], {"again": True}),
        ("1", "1.3", [entry(AGE, changed, "1.2"), entry(region, FACTS, "0.1")], {"force": True}),
        ("1", f"1.{tiny}", [entry(AGE, FACTS, f"1.{tiny}"), entry(region, FACTS, 1)], {}),
    ]
    for left, needed, requests, options in asks:
        for ask in (ledger.quote_all, ledger.charge_all):
            with pytest.raises(BudgetExceededError) as found:
                ask(HOSPITAL, requests, **options)
            assert found.value.sentence == f"budget exceeded: {left} left of 2, this release needs {needed}."
            assert (found.value.fields["left"], found.value.fields["needed"]) == (left, needed)
    assert ledger.history() == before
    fits: list[Entry] = [entry(AGE, FACTS, "1.25"), entry(region, FACTS, "0.75")]
    assert [charge.spent_after for charge in ledger.charge_all(HOSPITAL, fits)] == [Decimal("1.25"), Decimal(2)]
    ledger.verify()


def test_a_column_that_may_not_be_released_is_named_before_the_budget(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, AGE, FACTS, 1, budget=2)
    with pytest.raises(WrongKeyError):
        ledger.charge_all(HOSPITAL, [entry(DIAGNOSIS, FACTS, 5), entry(AGE, replace(FACTS, key_fingerprint="5678"), 5)])


@pytest.mark.parametrize(
    ("encoding", "what", "remedy"),
    [
        ("numeric", "the range of the numbers (or whether they are clipped)", "same_range force"),
        ("bloom", "the shape of the reports", "same_shape force"),
        ("local-hash", "the list of values, their order or the number of buckets", "same_values force"),
        ("unary-optimised", "the list of values (or their order)", "same_values force"),
    ],
)
@LONG_ON_POSTGRES
def test_other_parameters_are_named_in_words(ledger: Ledger, encoding: str, what: str, remedy: str) -> None:
    facts = replace(FACTS, encoding=encoding)
    ledger.charge(HOSPITAL, DIAGNOSIS, facts, 1, budget=2)
    with refused(ValuesChangedError, what=what, remedy=remedy) as found:
        ledger.charge(HOSPITAL, DIAGNOSIS, replace(facts, params="cd" * 32), 1)
    assert "cdcd" not in found.value.message
    assert (found.value.fields["recorded"], found.value.fields["given"]) == ("ab" * 8, "cd" * 8)


def test_forcing_several_opens_only_what_differs(ledger: Ledger) -> None:
    ledger.charge_all(HOSPITAL, [entry(DIAGNOSIS, FACTS, 1), entry(AGE, FACTS, 1)], budget=9)
    changed = [entry(DIAGNOSIS, replace(FACTS, table_fingerprint="bb"), 1), entry(AGE, FACTS, 1)]
    with pytest.raises(TableChangedError):
        ledger.charge_all(HOSPITAL, changed)
    quoted = ledger.quote_all(HOSPITAL, changed, force=True)
    assert [charge.path.epoch for charge in quoted] == [2, 1]
    with pytest.raises(LedgerChangedError):  # the first would have been drawn on the path that it had
        ledger.charge_all(HOSPITAL, changed, force=True)
    drawn = [replace(each, path=charge.path) for each, charge in zip(changed, quoted, strict=True)]
    assert [(charge.path.epoch, charge.cost) for charge in ledger.charge_all(HOSPITAL, drawn, force=True)] == [
        (2, Decimal(1)),
        (1, ZERO),
    ]


def test_a_charge_that_relies_on_a_quote_notices_a_change_in_between(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=9)
    changed = replace(FACTS, table_fingerprint="bb")
    path = ledger.quote(HOSPITAL, DIAGNOSIS, changed, 1, force=True).path
    forced(ledger, DIAGNOSIS, replace(FACTS, table_fingerprint="cc"), 1)  # somebody else
    before = ledger.history()
    with refused(LedgerChangedError):
        ledger.charge(HOSPITAL, path, changed, 1, force=True)
    assert ledger.history() == before
    assert forced(ledger, DIAGNOSIS, changed, 1).path.epoch == 3


def test_a_quote_says_what_the_charge_does_and_writes_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetMissingError):
        ledger.quote(HOSPITAL, DIAGNOSIS, FACTS, 1)
    calls: list[tuple[PathFacts, str, dict[str, Any]]] = [
        (FACTS, "0.5", {"budget": 2}),
        (FACTS, "0.75", {}),
        (FACTS, "0.25", {"again": True}),
        (replace(FACTS, id_type="integer"), "1", {"force": True}),
    ]
    for facts, epsilon, options in calls:
        before = ledger.history()
        quoted = ledger.quote(HOSPITAL, DIAGNOSIS, facts, epsilon, **options)
        assert ledger.history() == before
        assert ledger.charge(HOSPITAL, quoted.path, facts, epsilon, **options) == quoted


# Steps of Algorithm 1, which are drawn afresh


def step(
    ledger: Ledger, path: PathId, facts: PathFacts, old: Any, epsilon: Any, *, dry: bool = False, **options: Any
) -> Charge:
    stepped = replace(facts, sampler=Sampler.ALGORITHM_1)
    asked = [entry(path, stepped, epsilon, last=as_epsilon(old), digest="ab" * 32)]
    if dry:
        return ledger.quote_all(HOSPITAL, asked, **options)[0]
    return ledger.charge_all(HOSPITAL, asked, reason="the table is lost", **options)[0]


def test_a_step_is_charged_once_and_from_the_highest_level(ledger: Ledger) -> None:
    first = step(ledger, DIAGNOSIS, FACTS, "0.5", 1, budget=2)  # from reports that this ledger does not know
    assert (first.cost, first.path.epoch, first.previous, first.is_new_path) == (Decimal(1), 1, None, True)
    assert (first.spent_before, first.spent_after, first.budget) == (ZERO, Decimal(1), Decimal(2))
    with refused(LevelError, says="was released already; a second draw at one level would break the guarantee"):
        step(ledger, DIAGNOSIS, FACTS, "0.5", 1)
    with refused(LevelError, largest="1"):
        step(ledger, DIAGNOSIS, FACTS, "0.5", "1.5")
    before = ledger.history()
    quoted = step(ledger, DIAGNOSIS, FACTS, 1, "1.5", dry=True)
    assert ledger.history() == before
    assert step(ledger, DIAGNOSIS, FACTS, 1, "1.5") == quoted
    assert (quoted.cost, quoted.previous, quoted.is_new_path) == (Decimal("0.5"), Decimal(1), False)
    with refused(BudgetExceededError, left="0.5", budget="2", needed="0.6"):
        step(ledger, DIAGNOSIS, FACTS, "1.5", "2.1")
    assert step(ledger, DIAGNOSIS, FACTS, "1.5", 2).spent_after == 2
    ledger.verify()


def test_a_step_goes_up_and_closes_the_keyed_path(ledger: Ledger) -> None:
    for epsilon in (1, "0.5"):
        with refused(LevelError, previous="1", says="epsilon may only grow: the last reports are at"):
            step(ledger, DIAGNOSIS, FACTS, 1, epsilon, budget=3)
    assert ledger.history() == []
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=3)
    with refused(LevelError, says="epsilon may only grow: the last reports are at"):
        step(ledger, DIAGNOSIS, FACTS, 1, 1)
    with refused(WrongKeyError, what="the key", says="is not what") as found:
        step(ledger, DIAGNOSIS, replace(FACTS, key_fingerprint="5678"), 1, 2)
    assert "force" not in found.value.remedy  # a new path cannot begin with old reports
    charge = step(ledger, DIAGNOSIS, FACTS, 1, 2)
    assert (charge.cost, charge.path.epoch, charge.previous, charge.spent_after) == (
        Decimal(1),
        1,
        Decimal(1),
        Decimal(2),
    )
    with pytest.raises(SamplerChangedError) as closed:
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 3)
    assert (closed.value.fields["recorded"], closed.value.fields["given"]) == ("algorithm-1", "path")
    ledger.charge(HOSPITAL, AGE, replace(FACTS, growing=True), 1)
    with refused(PathChangedError, says="as a growing table"):
        step(ledger, AGE, FACTS, 1, 2)
    ledger.verify()


# Exactness


def test_three_times_a_tenth_is_three_tenths(ledger: Ledger) -> None:
    for column in ("a", "b", "c"):
        ledger.charge(HOSPITAL, PathId("r", column), FACTS, 0.1, budget=0.3)
    assert str(spent(ledger)) == "0.3"
    assert ledger.balance(HOSPITAL).left == 0
    with refused(BudgetExceededError, left="0", budget="0.3"):
        ledger.charge(HOSPITAL, PathId("r", "d"), FACTS, "1e-30")


def test_very_large_and_very_small_amounts_add_up_exactly(ledger: Ledger) -> None:
    small, large = "1e-100", "9" * 60
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, small, budget=large)
    with pytest.raises(BudgetExceededError):  # by exactly that small amount
        ledger.charge(HOSPITAL, AGE, FACTS, large)
    assert ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, large).cost == Decimal("9" * 59 + "8." + "9" * 100)
    assert str(spent(ledger)) == large
    ledger.verify()
    assert isinstance(ledger.history()[-1], LevelReleased)


def test_the_callers_decimal_context_changes_nothing(ledger: Ledger) -> None:
    with decimal.localcontext() as context:
        context.prec, context.rounding = 2, decimal.ROUND_UP
        context.Emax, context.Emin = 1, -1
        context.traps[decimal.Inexact] = context.traps[decimal.FloatOperation] = True
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "1.2345", budget="2.46913")
        ledger.charge(HOSPITAL, AGE, FACTS, "1.23456")
        balance = ledger.balance(HOSPITAL)
        ledger.verify()
    assert (str(balance.spent), str(balance.left)) == ("2.46906", "0.00007")


@LONG_ON_POSTGRES
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_history_adds_up(ledger: Ledger, data: st.DataObject) -> None:
    """Against an independent reckoning in whole thousandths."""
    subject = Subject.object(f"device-{len(ledger.subjects())}")
    budget = data.draw(st.integers(1, 5000))
    ledger.set_budget(subject, Decimal(budget).scaleb(-3), reason="by hand")
    largest: dict[str, int] = {}
    asks = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3000)), max_size=12)
    for column, epsilon in data.draw(asks):
        after = {**largest, column: max(epsilon, largest.get(column, 0))}
        try:
            ledger.charge(
                subject, PathId("r", column), FACTS, Decimal(epsilon).scaleb(-3), again=data.draw(st.booleans())
            )
            assert sum(after.values()) <= budget
            largest = after
        except BudgetExceededError:
            assert sum(after.values()) > budget
        except LevelError:
            assert epsilon < largest[column]
        assert spent(ledger, subject) == Decimal(sum(largest.values())).scaleb(-3)
    ledger.verify()


@pytest.mark.parametrize("epsilon", [0, -1, "nan", "x", None, True])
@LONG_ON_POSTGRES
def test_an_epsilon_that_is_none_is_refused(ledger: Ledger, epsilon: Any) -> None:
    with pytest.raises(EpsilonError):
        ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, epsilon, budget=1)
    assert ledger.history() == []


# What is remembered


def test_history_is_frozen_and_readable(ledger: Ledger) -> None:
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "0.5", budget=1, reason="release to a.parquet")
    ledger.raise_budget(HOSPITAL, 2, reason="sale 17")
    ledger.set_budget(Subject.object("device-17"), 1, reason="by hand")
    history = ledger.history()
    assert history == [
        BudgetSet(HOSPITAL, NOON, Decimal(1), "release to a.parquet"),
        PathOpened(HOSPITAL, NOON, DIAGNOSIS, FACTS, "release to a.parquet"),
        LevelReleased(
            HOSPITAL, NOON, DIAGNOSIS, Decimal("0.5"), Decimal("0.5"), "aa", "release to a.parquet"
        ),
        BudgetRaised(HOSPITAL, NOON, Decimal(1), Decimal(2), "sale 17"),
        BudgetSet(Subject.object("device-17"), NOON, Decimal(1), "by hand"),
    ]  # fmt: skip
    assert [str(event) for event in ledger.history(HOSPITAL)] == [
        "2026-07-01 12:00:00 population 'hospital': budget set to 1 (release to a.parquet)",
        "2026-07-01 12:00:00 population 'hospital': path opened for 'diagnosis' of release 'survey-2026' "
        "(release to a.parquet)",
        "2026-07-01 12:00:00 population 'hospital': released 'diagnosis' of release 'survey-2026' at 0.5 for 0.5 "
        "(release to a.parquet)",
        "2026-07-01 12:00:00 population 'hospital': budget raised from 1 to 2 (sale 17)",
    ]
    frozen: list[Any] = [*history, HOSPITAL, DIAGNOSIS, FACTS, ledger.balance(HOSPITAL)]
    for thing in frozen:
        with pytest.raises((FrozenInstanceError, TypeError)):
            thing.subject = thing.release = "another"
    assert all(event.time.tzinfo == UTC for event in history)


def test_times_are_kept_in_utc(opener: Opener) -> None:
    east = timezone(timedelta(hours=2))
    ledger = opener(clock=lambda: NOON.astimezone(east))
    ledger.set_budget(HOSPITAL, 1, reason="by hand")
    assert ledger.history()[0].time == NOON
    assert str(ledger.history()[0]).startswith("2026-07-01 12:00:00")


def test_it_is_remembered(opener: Opener) -> None:
    with opener() as first:
        first.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=2)
        history, balance = first.history(), first.balance(HOSPITAL)
    with refused(LedgerAccessError, what="was closed"):
        first.balance(HOSPITAL)
    with opener(create=False) as second:
        assert (second.history(), second.balance(HOSPITAL)) == (history, balance)
        assert second.charge(HOSPITAL, DIAGNOSIS, FACTS, 1).cost == 0


def test_two_open_ledgers_see_each_other(opener: Opener) -> None:
    one, two = opener(), opener()
    one.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=1)
    with pytest.raises(BudgetExceededError):
        two.charge(HOSPITAL, AGE, FACTS, "0.1")


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    ledger.set_budget(HOSPITAL, 1, reason="by hand")
    granted: list[int] = []

    def work(number: int) -> None:
        for step in range(4):
            try:
                ledger.charge(HOSPITAL, PathId(f"r{number}", f"a{step}"), FACTS, "0.1")
                granted.append(number)
            except BudgetExceededError:
                pass
            ledger.balance(HOSPITAL)

    threads = [Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 10
    assert spent(ledger) == 1
    ledger.verify()


# Names


@pytest.mark.parametrize("name", ["", " x", "x ", "a\nb", "\0", "e\u0301", "\ud800", "x" * 501, None, 17])
def test_names_that_could_be_mistaken_are_refused(name: Any) -> None:
    for kind, make in (("population", Subject.population), ("object", Subject.object)):
        with refused(SubjectError, what=f"the name of a {kind}"):
            make(name)
    with pytest.raises(PathNameError):
        entry(PathId("r", name), FACTS, 1)
    with pytest.raises(PathNameError):
        entry(PathId(name, "a"), FACTS, 1)
    with pytest.raises(PathNameError):
        replace(FACTS, id_type=name)
    if name is not None:  # nobody has seen the whole table
        with refused(PathNameError, what="the table fingerprint of a path"):
            replace(FACTS, table_fingerprint=name)
    with refused(SubjectError, says="a population or an object"):
        Subject("people", "x")  # type: ignore[arg-type]


def test_facts_say_the_options_of_their_encoding() -> None:
    hashed = LocalHash(["a", "b"], buckets=300).encoding
    assert (
        replace(FACTS, encoding=hashed.name, params=hashed.params.hex()).options == hashed.options == {"buckets": 300}
    )
    assert FACTS.options == {}


@pytest.mark.parametrize(("sampler", "last"), [(Sampler.ALGORITHM_1, None), (Sampler.PATH, Decimal(1))])
def test_an_entry_of_algorithm_1_alone_has_last_reports(sampler: Sampler, last: Decimal | None) -> None:
    with pytest.raises(ValueError, match="goes on from the level of the last reports"):
        entry(DIAGNOSIS, replace(FACTS, sampler=sampler), 2, last=last)


def test_names_are_only_text(ledger: Ledger) -> None:
    for name in ("'; DROP TABLE ledger_event; --", "%", "*", "ä", "日本", "a b", "x" * 500):
        subject, identity = Subject.population(name), PathId(name, name)
        ledger.set_budget(subject, 1, reason=name)
        ledger.charge(subject, identity, FACTS, 1, budget=1)
        assert ledger.balance(subject).paths[0].path == identity
        assert len(ledger.history(subject)) == 3
    ledger.verify()


# Dated releases


WAGES = {year: PathId("wages", "job", date=year) for year in ("2026", "2027", "2028")}


def declare(ledger: Ledger, *years: str, each: Any = 1, **options: Any) -> Any:
    return ledger.declare_series(HOSPITAL, "wages", dict.fromkeys(years, each), reason="every year", **options)


def test_dates_are_paths_of_their_own_and_add_up(ledger: Ledger) -> None:
    account = declare(ledger, "2026", "2027", budget=2)
    assert [(each.date, each.budget) for each in account.series("wages")] == [("2026", 1), ("2027", 1)]
    assert account == ledger.account(HOSPITAL)
    for year, before in (("2026", 0), ("2027", 1)):
        charge = ledger.charge(HOSPITAL, WAGES[year], FACTS, "0.5")
        assert (charge.cost, charge.spent_before, charge.is_new_path) == (Decimal("0.5"), Decimal(before), True)
        assert ledger.charge(HOSPITAL, WAGES[year], FACTS, 1).cost == Decimal("0.5")
    assert spent(ledger) == 2
    ledger.verify()


def test_what_a_date_may_not_do(ledger: Ledger) -> None:
    declare(ledger, "2026", budget=5)
    with refused(DateError, date="2027", remedy="series"):
        ledger.charge(HOSPITAL, WAGES["2027"], FACTS, 1)
    with refused(DateError, budget="1", epsilon="1.1", remedy="series_more"):
        ledger.charge(HOSPITAL, WAGES["2026"], FACTS, "1.1")
    with refused(DateError, dates="2026", remedy="date"):
        ledger.charge(HOSPITAL, PathId("wages", "job"), FACTS, "0.1")
    with refused(DateError, date="2026", remedy="series", release="survey-2026"):
        ledger.charge(HOSPITAL, replace(DIAGNOSIS, date="2026"), FACTS, "0.1")
    assert spent(ledger) == 0


def test_a_forced_path_of_a_date_costs_what_was_declared_for_it(ledger: Ledger) -> None:
    """All epochs of a column at one date are read by the same people: together they may cost what was said."""
    declare(ledger, "2026", budget=5)
    ledger.charge(HOSPITAL, WAGES["2026"], FACTS, "0.6")
    other, forced = replace(FACTS, table_fingerprint="2:other"), replace(WAGES["2026"], epoch=2)
    with refused(DateError, budget="1", epsilon="1.2", remedy="series_more"):
        ledger.charge(HOSPITAL, forced, other, "0.6", force=True)
    ledger.charge(HOSPITAL, forced, other, "0.4", force=True)
    with refused(DateError, budget="1", epsilon="1.1"):
        ledger.charge(HOSPITAL, forced, other, "0.5")
    assert spent(ledger) == 1


def test_several_series_fit_into_one_budget(ledger: Ledger) -> None:
    """What was declared for others counts as if it were spent, and so does what several columns of a date cost."""
    declare(ledger, "2026", "2027", budget=3)
    with refused(BudgetExceededError, needed="3.5", budget="3"):
        ledger.declare_series(HOSPITAL, "health", {"2026": "1.5"}, reason="too")
    for column in ("job", "wage"):
        ledger.charge(HOSPITAL, PathId("wages", column, date="2026"), FACTS, 1)
    with refused(BudgetExceededError, needed="3.5", budget="3"):
        declare(ledger, "2028", each="0.5")


def test_a_series_does_not_change_a_budget(ledger: Ledger) -> None:
    declare(ledger, "2026", budget=3)
    with refused(BudgetError, budget="3", asked="4", remedy="raise_budget"):
        declare(ledger, "2027", budget=4)
    assert len(declare(ledger, "2027", budget=3).series("wages")) == 2


def test_a_series_is_declared_within_the_budget(ledger: Ledger) -> None:
    with refused(BudgetExceededError, needed="3", budget="none"):
        declare(ledger, "2026", "2027", "2028")
    with refused(BudgetExceededError, needed="3", budget="2.5"):
        declare(ledger, "2026", "2027", "2028", budget="2.5")
    assert ledger.subjects() == []  # nothing was begun
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, "0.5", budget=3)
    with refused(BudgetExceededError, needed="3.5", budget="3"):
        declare(ledger, "2026", "2027", "2028")
    declare(ledger, "2026", "2027")
    with refused(DateError, date="2026", budget="1"):
        declare(ledger, "2026", each="0.9")
    assert declare(ledger, "2026", each="1.2").series("wages")[0].budget == Decimal("1.2")
    declare(ledger, "2026", "2027", each="1.2")  # again, and more
    ledger.verify()
    with refused(DateError, release="survey-2026"):
        ledger.declare_series(HOSPITAL, "survey-2026", {"2026": "0.1"}, reason="late")
    for bad in ("", "20 26", "2026)", "x" * 41):
        with pytest.raises((PathNameError, DateError)):
            declare(ledger, bad, each="0.01")


def test_a_snapshot_is_remembered(ledger: Ledger) -> None:
    first = entry(DIAGNOSIS, replace(FACTS, as_of="2026-07-01"), "0.5", snapshot="ab" * 32)
    ledger.charge_all(HOSPITAL, [first], budget=2)
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1)
    (state,) = ledger.account(HOSPITAL).paths
    assert (state.snapshot, state.facts.as_of, ledger.snapshots()) == ("ab" * 32, "2026-07-01", {"ab" * 32})
    ledger.charge_all(HOSPITAL, [replace(first, epsilon=as_epsilon(1), snapshot="cd" * 32)])
    assert ledger.snapshots() == {"cd" * 32}
    ledger.verify()


def test_what_paths_were_opened_with_by_whomever(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every population, under one key; an account that is known is not read again."""
    ledger.charge(HOSPITAL, DIAGNOSIS, FACTS, 1, budget=2)
    asked = [DIAGNOSIS, PathId(DIAGNOSIS.release, "age")]
    assert ledger.facts_of(asked, FACTS.key_fingerprint) == {DIAGNOSIS.attribute: FACTS}
    assert ledger.facts_of(asked, "another") == {}
    known = ledger.account(HOSPITAL)
    monkeypatch.setattr(Ledger, "account", None)
    assert ledger.facts_of(asked, FACTS.key_fingerprint, known) == {DIAGNOSIS.attribute: FACTS}
