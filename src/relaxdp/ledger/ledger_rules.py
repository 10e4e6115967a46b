"""Rules of the ledger: what a request costs, and why it is rejected. Pure, so a dry run and a charge agree."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from unicodedata import is_normalized

from relaxdp.errors import (
    ArgumentError,
    BudgetError,
    BudgetExceededError,
    LedgerBusyError,
    ReleaseChangedError,
    UnknownReleaseError,
)
from relaxdp.ledger.account import Account, ReleaseState, compute_cost
from relaxdp.ledger.events import BudgetRaised, ReleaseCharged, ReleaseRetired, add_amounts
from relaxdp.theory.epsilon import format_epsilon

MAX_CHARACTERS = 500


def make_release_event(account: Account, draft: ReleaseCharged, expected_state: ReleaseState | None) -> ReleaseCharged:
    """Return the event that charges a release, or reject what may not be released.

    The draft has no number and no costs yet. It was planned for the expected state of its name, None for a new one.
    """
    check_name(draft.name, "release")
    for column in draft.columns:
        check_name(column.column, "column")
    known = account.releases.get(draft.name)
    if draft.action == "relax" or known is not None:
        known = require_release(account, draft.name)
    if known != expected_state:  # The snapshots of this plan would forget rows.
        raise LedgerBusyError(
            "The release {name!r} changed while this release ran: another process released it.",
            hint="Run the command again.",
            name=draft.name,
        )
    if known is not None:
        _reject_changed_release(known, draft)
    _reject_exposed_columns(account, draft)
    states = {} if known is None else known.columns
    columns = tuple(replace(each, cost=compute_cost(states.get(each.column), each.epsilon)) for each in draft.columns)
    _reject_overspending(account, add_amounts(each.cost for each in columns))
    return replace(draft, number=account.number + 1, columns=columns)


def make_budget_event(account: Account, budget: Decimal, reason: str, time: datetime) -> BudgetRaised:
    """Return the event that raises the budget; reject a smaller or equal one."""
    check_reason(reason)
    if budget <= account.budget:
        raise BudgetError(
            "The budget is {budget}, and {asked} does not raise it. A budget can never be lowered.",
            hint="Choose a budget above {budget}.",
            budget=format_epsilon(account.budget),
            asked=format_epsilon(budget),
        )
    return BudgetRaised(account.number + 1, time, account.budget, budget, reason)


def make_retirement_event(account: Account, name: str, reason: str, time: datetime) -> ReleaseRetired:
    """Return the event that retires a release; reject an unknown or retired one."""
    check_reason(reason)
    require_release(account, name)
    return ReleaseRetired(account.number + 1, time, name, reason)


def require_release(account: Account, name: str) -> ReleaseState:
    """Return a release that may be continued; reject an unknown or retired one."""
    check_name(name, "release")
    found = account.releases.get(name)
    if found is None:
        names = [repr(each.name) for each in account.releases.values() if not each.retired]
        raise UnknownReleaseError(
            "The vault has no release {name!r}.",
            hint="Its releases are: {listed}." if names else "Nothing can be continued: release a table first.",
            name=name,
            listed=", ".join(names),
        )
    if found.retired:
        raise UnknownReleaseError(
            "The release {name!r} is retired, so its name cannot be used again. Its cost stays.",
            hint="Release the table under a new name, at full cost.",
            name=name,
        )
    return found


def check_reason(reason: object) -> None:
    """Reject a reason that is not one line of printable text."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_CHARACTERS or not reason.isprintable():
        raise BudgetError(
            "The reason must be one line of 1 to {most} printable characters.",
            hint='Write a reason such as "board decision of March".',
            most=MAX_CHARACTERS,
        )


def check_name(text: Any, kind: str) -> None:
    """Reject a name that is empty or could look like another one. The name is not shown: it may be a secret."""
    is_text = isinstance(text, str) and 0 < len(text) <= MAX_CHARACTERS
    if not is_text or text != text.strip() or not text.isprintable():
        raise ArgumentError(
            "The name of a {what} must be text of 1 to {most} characters, without a space at its ends and without "
            "control characters.",
            hint="Use a name such as 'patients-2026'.",
            what=kind,
            most=MAX_CHARACTERS,
        )
    if not is_normalized("NFC", text):
        raise ArgumentError(
            "The name of a {what} is not in Unicode's composed form (NFC).",
            hint="Normalize it with unicodedata.normalize('NFC', name).",
            what=kind,
        )


def _reject_changed_release(released: ReleaseState, draft: ReleaseCharged) -> None:
    if draft.id_type != released.id_type:
        raise ReleaseChangedError(
            "The ids of {name!r} are of type {recorded!r}, and the ids of this table are of type {given!r}.",
            hint="Convert the id column to {recorded!r}, or choose a new name. A new name is charged in full.",
            name=draft.name,
            recorded=released.id_type,
            given=draft.id_type,
        )
    for each in draft.columns:
        state = released.columns.get(each.column)
        if state is not None and (state.mechanism, state.params) != (each.mechanism, each.params):
            raise ReleaseChangedError(
                "Column {column!r} of {name!r} was first released with the mechanism {recorded!r}, not with {given!r}."
                if state.mechanism != each.mechanism
                else "The values or parameters of column {column!r} differ from the first release of {name!r}.",
                hint="Declare the same mechanism, values and order of values as before, or choose a new name. A new "
                "name is charged in full.",
                name=draft.name,
                column=each.column,
                recorded=state.mechanism,
                given=each.mechanism,
            )


def _reject_exposed_columns(account: Account, draft: ReleaseCharged) -> None:
    """Reject a column that would leave both protected and in the clear, in this release or with an earlier one."""
    in_clear = dict.fromkeys((draft.id_column, *draft.passthrough), draft.name)
    unprotected, protected = {**account.unprotected_columns, **in_clear}, account.protected_columns
    for each in draft.columns:
        release = unprotected.get(each.column)
        if release is not None:
            raise ReleaseChangedError(
                "Column {column!r} was released without protection in {release!r}, so a mechanism cannot protect it.",
                hint="Leave it out of `columns`. If it contains other data than in {release!r}, rename it.",
                column=each.column,
                release=release,
            )
    for column in in_clear:
        if column in protected:
            raise ReleaseChangedError(
                "Column {column!r} is protected in {release!r}, so it cannot be an id or a pass-through column.",
                hint="Leave it out of `passthrough` and `id`. If it contains other data than in {release!r}, "
                "rename it.",
                column=column,
                release=protected[column],
            )


def _reject_overspending(account: Account, needed: Decimal) -> None:
    if needed > account.remaining:
        raise BudgetExceededError(
            "The budget is too small. This release needs {needed}, and {left} of {budget} is left.",
            hint="Choose a lower epsilon, or raise the budget: `relaxdp budget raise {enough} --reason WHY`, or "
            "vault.raise_budget({enough}, reason=...).",
            needed=format_epsilon(needed),
            left=format_epsilon(account.remaining),
            budget=format_epsilon(account.budget),
            enough=format_epsilon(add_amounts([account.spent, needed])),
        )
