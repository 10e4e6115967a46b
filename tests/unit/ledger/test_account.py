"""The account: what events add up to, and which events cannot follow."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.ledger.ledger_places import KEY, TIME, VAULT, charge, created, request_of

from relaxdp.errors import BudgetError, RelaxdpError
from relaxdp.ledger.account import Account, make_budget_raise_event, make_release_event, make_retirement_event
from relaxdp.ledger.events import BudgetRaised, CopyAdopted, Event, ReleaseRetired, add_amounts, parse_budget
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.sqlite_store import SqliteStore

BEGUN = Account.from_first_event(created(), "d1")


def test_a_column_costs_its_largest_level_and_all_columns_add_up() -> None:
    account = BEGUN.apply_event(charge(BEGUN, levels={"diagnosis": "0.5", "age": "0.1"}))
    account = account.apply_event(charge(account, levels={"diagnosis": "0.7"}), "d3")
    account = account.apply_event(charge(account, levels={"diagnosis": "0.3"}), "d4")
    account = account.apply_event(charge(account, "next", levels={"diagnosis": "0.2"}, passthrough=(), rows=7), "d5")
    assert (account.spent, account.remaining, account.budget) == (Decimal("1.0"), Decimal(1), Decimal(2))
    state = account.releases["patients"]
    column = state.columns["diagnosis"]
    assert (column.largest, column.epsilon, column.last_event) == (Decimal("0.7"), Decimal("0.3"), 4)
    assert (state.last_event, state.rows, state.passthrough, state.retired) == (4, 1200, ("year",), False)
    assert column.snapshot == f"{3:064x}"
    assert (account.number, account.digest) == (5, "d5")
    retired = account.apply_event(ReleaseRetired(6, TIME, "patients", "x"))
    assert retired.spent == account.spent
    assert retired.releases["patients"].retired
    assert retired.apply_event(CopyAdopted(7, TIME, "x", "y")).releases == retired.releases


def test_what_left_in_the_clear_stays_in_the_clear() -> None:
    account = BEGUN.apply_event(charge(BEGUN, passthrough=("year", "city"), id_column="person"))
    account = account.apply_event(charge(account, passthrough=()))
    account = account.apply_event(charge(account, "next", passthrough=("sex",)))
    assert account.releases["patients"].passthrough == ()
    assert account.unprotected_columns == {
        "person": "patients", "year": "patients", "city": "patients", "patient": "next", "sex": "next",
    }  # fmt: skip
    assert account.protected_columns == {"diagnosis": "next"}


ONCE = BEGUN.apply_event(charge(BEGUN))
GOOD = charge(ONCE, levels={"diagnosis": "0.75"})
COLUMN = GOOD.columns[0]


@pytest.mark.parametrize(
    "event",
    [
        replace(created(), number=3),
        replace(GOOD, number=2),
        replace(GOOD, number=4),
        replace(GOOD, columns=()),
        replace(GOOD, columns=(COLUMN, COLUMN)),
        replace(GOOD, id_type="text"),
        replace(GOOD, columns=(replace(COLUMN, cost=Decimal(0)),)),
        replace(GOOD, columns=(replace(COLUMN, cost=Decimal("0.75")),)),
        replace(GOOD, columns=(replace(COLUMN, epsilon=Decimal(0), cost=Decimal(0)),)),
        replace(GOOD, columns=(replace(COLUMN, params="cd"),)),
        replace(GOOD, columns=(replace(COLUMN, mechanism="unary"),)),
        replace(GOOD, columns=(replace(COLUMN, epsilon=Decimal("2.01"), cost=Decimal("1.51")),)),
        BudgetRaised(3, TIME, Decimal(2), Decimal(2), "x"),
        BudgetRaised(3, TIME, Decimal(1), Decimal(3), "x"),
        ReleaseRetired(3, TIME, "unknown", "x"),
    ],
)
def test_an_event_that_cannot_have_followed(event: Event) -> None:
    ONCE.apply_event(GOOD)
    with pytest.raises(ValueError, match=r"\bit\b|column"):
        ONCE.apply_event(event)


def test_a_retired_release_is_not_continued() -> None:
    account = ONCE.apply_event(ReleaseRetired(3, TIME, "patients", "x"))
    with pytest.raises(ValueError, match="retired"):
        account.apply_event(replace(GOOD, number=4))
    with pytest.raises(ValueError, match="not in use"):
        account.apply_event(ReleaseRetired(4, TIME, "patients", "x"))


@pytest.mark.parametrize("event", [GOOD, replace(GOOD, number=1), replace(created(), number=2), created(0)])
def test_a_first_event_that_creates_no_vault(event: Event) -> None:
    with pytest.raises(ValueError, match="does not create"):
        Account.from_first_event(event)
    assert Account.from_first_event(created("0.5")).budget == Decimal("0.5")
    assert Account.from_first_event(created(1)).budget == 1


def test_a_column_is_charged_once() -> None:
    """The second charge of the same level would cost nothing, and the first one is not the last of the column."""
    first = GOOD.columns[0]
    twice = replace(GOOD, columns=(first, replace(first, cost=Decimal(0))))
    with pytest.raises(ValueError, match="one twice"):
        ONCE.apply_event(twice)


@pytest.mark.parametrize("written", [0, -1, "x", "inf", None, True])
def test_a_budget_is_a_positive_number(written: Any) -> None:
    assert parse_budget("2.50") == Decimal("2.5")
    with pytest.raises(BudgetError, match="must be a positive number"):
        parse_budget(written)


STEPS: st.SearchStrategy[list[Any]] = st.lists(
    st.one_of(
        st.tuples(
            st.just("release"),
            st.sampled_from(["a", "b"]),
            st.dictionaries(
                st.sampled_from(["x", "y", "z"]), st.decimals("0.001", "1.5", places=3), min_size=1, max_size=3
            ),
        ),
        st.tuples(st.just("raise"), st.decimals("1", "4", places=2), st.just({})),
        st.tuples(st.just("retire"), st.sampled_from(["a", "b"]), st.just({})),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_random_events_add_up_equally_in_memory_and_from_disk(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    """Whatever is tried: one ledger that appends, and one that reads the file, agree; nothing is ever overspent."""
    path = tmp_path_factory.mktemp("random") / "ledger.db"
    ledger = Ledger(SqliteStore(path), KEY, VAULT)
    account, events = ledger.create(created()), [created().to_json()]
    for kind, what, levels in steps:

        def make(now: Account, kind: str = kind, what: Any = what, levels: Any = levels) -> Event:
            if kind == "raise":
                return make_budget_raise_event(now, what, "x", TIME)
            if kind == "retire":
                return make_retirement_event(now, what, "x", TIME)
            return make_release_event(now, *request_of(now, what, levels=levels))

        try:
            account = ledger.append_event(make)
            events.append(ledger.read_events()[-1].to_json())
        except RelaxdpError:
            assert ledger.read_account() == account
        largest = [state.largest for each in account.releases.values() for state in each.columns.values()]
        assert account.spent == add_amounts(largest) <= account.budget
    fresh = Ledger(SqliteStore(path), KEY, VAULT)
    assert fresh.read_account() == account
    assert [event.to_json() for event in fresh.read_events()] == events
