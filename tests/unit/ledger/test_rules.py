"""Rules: what a release costs, and what is rejected with which words."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.ledger.ledger_places import TIME, charge, created, request_of

from relaxdp.errors import (
    ArgumentError,
    BudgetError,
    BudgetExceededError,
    LedgerBusyError,
    RelaxdpError,
    ReleaseChangedError,
    UnknownReleaseError,
)
from relaxdp.ledger.account import (
    Account,
    check_reason,
    make_budget_raise_event,
    make_release_event,
    make_retirement_event,
)

EMPTY = Account.from_first_event(created())
ONCE = EMPTY.apply_event(charge(EMPTY, levels={"diagnosis": "0.5", "age": "0.25"}))
STATE = ONCE.releases["patients"]


def costs(account: Account, **levels: object) -> list[str]:
    return [str(each.cost) for each in charge(account, levels=levels).columns]


def test_costs() -> None:
    assert costs(EMPTY, diagnosis="0.5", age="0.1") == ["0.5", "0.1"]
    assert costs(ONCE, age="0.30", diagnosis="0.5", city="1") == ["0.05", "0", "1"]
    assert costs(ONCE, diagnosis="0.1") == ["0"]
    event = charge(ONCE, levels={"diagnosis": "1"}, accepted_new_rows=True)
    assert (event.number, event.time, event.accepted_new_rows, event.rows) == (3, TIME, True, 1200)


def test_the_last_of_the_budget() -> None:
    assert costs(ONCE, diagnosis="1.75") == ["1.25"]
    with pytest.raises(BudgetExceededError) as found:
        costs(ONCE, diagnosis="1.7", age="0.300001")
    assert str(found.value) == (
        "The budget is too small. This release needs 1.250001, and 1.25 of 2 is left. "
        "Choose a lower epsilon, or raise the budget: `relaxdp budget raise 2.000001 --reason WHY`, or "
        "vault.raise_budget(2.000001, reason=...)."
    )
    assert found.value.fields["left"] == "1.25"


def rejected(kind: type[RelaxdpError], account: Account, **changes: Any) -> str:
    with pytest.raises(kind) as found:
        charge(account, **changes)
    assert found.value.hint
    return str(found.value)


@pytest.mark.parametrize(
    "stale",
    [
        {"expected": None},
        {"expected": replace(STATE, last_event=3)},
        {"expected": replace(STATE, columns={})},
        {"expected": replace(STATE, columns={"diagnosis": replace(STATE.columns["diagnosis"], snapshot="00")})},
    ],
)
def test_a_plan_that_another_process_overtook(stale: dict[str, Any]) -> None:
    message = rejected(LedgerBusyError, ONCE, **stale)
    assert message.startswith("Another process released 'patients' while this release ran")
    assert message.endswith("Run the same call or command again.")


def test_a_new_column_or_name_that_another_process_released_first() -> None:
    planned = request_of(EMPTY)
    with pytest.raises(LedgerBusyError):
        make_release_event(ONCE, *planned)
    planned = request_of(ONCE, levels={"city": 1})
    with pytest.raises(LedgerBusyError):
        make_release_event(ONCE.apply_event(charge(ONCE, levels={"city": 1})), *planned)
    # Another name does not matter.
    assert make_release_event(ONCE.apply_event(charge(ONCE, "other")), *request_of(ONCE))


def test_facts_of_the_first_release_are_fixed() -> None:
    assert "are of type 'integer', but those of this table are of type 'text'" in rejected(
        ReleaseChangedError, ONCE, id_type="text"
    )
    [column] = request_of(ONCE)[0].columns
    for changed, words in [
        (replace(column, mechanism="unary"), "with the mechanism 'categorical', not with 'unary'"),
        (replace(column, params="ab13"), "The values or parameters of column 'diagnosis' differ"),
    ]:
        message = rejected(ReleaseChangedError, ONCE, columns=(changed,))
        assert words in message
        assert "ab13" not in message


def test_a_column_is_protected_or_in_the_clear_and_never_both() -> None:
    retired = ONCE.apply_event(make_retirement_event(ONCE, "patients", "x", TIME))
    cases: list[tuple[Account, str, dict[str, Any]]] = [
        (EMPTY, "a", {"levels": {"year": 1}}),  # also passed through
        (EMPTY, "a", {"levels": {"patient": 1}}),  # also the id
        (ONCE, "next", {"levels": {"year": 1}, "passthrough": ()}),  # passed through by an earlier release
        (ONCE, "next", {"levels": {"patient": 1}, "id_column": "person"}),  # the id of an earlier release
        (ONCE, "next", {"levels": {"x": 1}, "passthrough": ("age",)}),  # protected by an earlier release
        (ONCE, "next", {"levels": {"x": 1}, "id_column": "age"}),
        (ONCE, "patients", {"passthrough": ("age",)}),
        (retired, "next", {"levels": {"x": 1}, "id_column": "age"}),
    ]
    for account, name, changes in cases:
        assert "Column" in rejected(ReleaseChangedError, account, name=name, **changes)


def test_relaxing_needs_a_release() -> None:
    assert rejected(UnknownReleaseError, ONCE, name="x", action="relax") == (
        "The vault has no release 'x'. Choose one of: 'patients'."
    )
    assert "release a table first" in rejected(UnknownReleaseError, EMPTY, name="x", action="relax")
    assert charge(ONCE, action="relax").action == "relax"


def test_a_retired_name_is_never_used_again() -> None:
    retired = ONCE.apply_event(make_retirement_event(ONCE, "patients", "consent ended", TIME))
    for action in ("release", "relax"):
        assert "is retired" in rejected(UnknownReleaseError, retired, action=action)
    with pytest.raises(UnknownReleaseError):
        make_retirement_event(retired, "patients", "again", TIME)
    with pytest.raises(UnknownReleaseError):
        make_retirement_event(retired, "x", "again", TIME)


def test_budgets_only_grow() -> None:
    raised = make_budget_raise_event(ONCE, Decimal("2.5"), "board", TIME)
    assert ONCE.apply_event(raised).remaining == Decimal("1.75")
    for budget in ("2", "1"):
        with pytest.raises(BudgetError, match="A budget can never be lowered"):
            make_budget_raise_event(ONCE, Decimal(budget), "board", TIME)


@pytest.mark.parametrize("reason", ["", "  ", "a\nb", "x" * 501, None, 7, "\ud800"])
def test_reasons(reason: Any) -> None:
    check_reason("x" * 500)
    with pytest.raises(BudgetError, match="one line of 1 to 500"):
        make_budget_raise_event(ONCE, Decimal(3), reason, TIME)
    with pytest.raises(BudgetError, match="one line of 1 to 500"):
        make_retirement_event(ONCE, "patients", reason, TIME)


def test_the_longest_names() -> None:
    name = "x" * 500
    assert charge(EMPTY, name, levels={name: 1})


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "x" * 501, "a\u0308", None, ("a",), "\ud800"])
def test_names(name: Any) -> None:
    for changes in ({"name": name}, {"levels": {name: 1}}):
        with pytest.raises(ArgumentError, match="^The name of a (release|column)"):
            charge(EMPTY, **changes)
