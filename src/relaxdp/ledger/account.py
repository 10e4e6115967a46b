"""The account of a vault: its budget and releases, what a request costs, and why it is rejected.

All of it is pure, without a store or a clock. So a dry run and a charge agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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
from relaxdp.ledger.events import (
    ZERO,
    BudgetRaised,
    ColumnCharge,
    Event,
    ReleaseCharged,
    ReleaseRetired,
    VaultCreated,
    add_amounts,
    subtract_amounts,
)
from relaxdp.theory.epsilon import format_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnState(ColumnCharge):
    """The state of a released column after its last release. Its mechanism is that of the first one."""

    largest: Decimal
    """The largest epsilon ever released, which is the cost of the column."""
    last_event: int


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """The state of a release, which has one name, after its last event."""

    name: str
    id_column: str
    id_type: str
    last_event: int
    retired: bool
    columns: Mapping[str, ColumnState]
    rows: int
    passthrough: tuple[str, ...]
    passthrough_snapshot: str | None
    unprotected_columns: tuple[str, ...]
    """Every column that ever left in the clear under this name: ids and pass-through columns."""


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of a vault and its releases, after the event with this number and digest.

    Claim: a column of a release costs the largest epsilon released from it, and all columns of all names add up,
    retired ones too (sequential composition); tests/unit/ledger/test_account.py.
    """

    vault: str
    key_fingerprint: str
    budget: Decimal
    releases: Mapping[str, ReleaseState]
    number: int
    digest: str
    spent: Decimal = ZERO

    @classmethod
    def from_first_event(cls, event: Event, digest: str = "") -> Account:
        """Return the account after the first event; raise `ValueError` if that did not create a vault."""
        if not isinstance(event, VaultCreated) or event.number != 1 or event.budget <= 0:
            raise ValueError("the first event does not create a vault")
        return cls(event.vault, event.key_fingerprint, event.budget, {}, 1, digest)

    @property
    def remaining(self) -> Decimal:
        """The rest of the budget."""
        return subtract_amounts(self.budget, self.spent)

    @property
    def unprotected_columns(self) -> dict[str, str]:
        """Every column that ever left in the clear, with the name of a release that it left with."""
        return {column: each.name for each in self.releases.values() for column in each.unprotected_columns}

    @property
    def protected_columns(self) -> dict[str, str]:
        """Every column that was ever released by a mechanism, with the name of such a release."""
        return {column: each.name for each in self.releases.values() for column in each.columns}

    def apply_event(self, event: Event, digest: str = "") -> Account:
        """Return the account after one more event; raise `ValueError` for an event that cannot have followed."""
        if event.number != self.number + 1 or isinstance(event, VaultCreated):
            raise ValueError("it has another number, or creates a vault that exists")
        after = replace(self, number=event.number, digest=digest)
        if isinstance(event, BudgetRaised):
            if event.previous != self.budget or event.budget <= self.budget:
                raise ValueError("it does not raise the budget from what it was")
            return replace(after, budget=event.budget)
        if isinstance(event, ReleaseCharged):
            spent = add_amounts([self.spent, *(each.cost for each in event.columns)])
            if spent > self.budget:
                raise ValueError("it exceeds the budget")
            return replace(after, spent=spent, releases={**self.releases, event.name: self._apply_release(event)})
        if isinstance(event, ReleaseRetired):
            known = self.releases.get(event.name)
            if known is None or known.retired:
                raise ValueError("it retires a release that is not in use")
            retired = replace(known, retired=True, last_event=event.number)
            return replace(after, releases={**self.releases, event.name: retired})
        return after

    def _apply_release(self, event: ReleaseCharged) -> ReleaseState:
        known = self.releases.get(event.name)
        if known is not None and (known.retired or known.id_type != event.id_type):
            raise ValueError("it continues a release that is retired or has ids of another type")
        if len({each.column for each in event.columns}) != len(event.columns) or not event.columns:
            raise ValueError("it has no column, or one twice")
        columns = {} if known is None else dict(known.columns)
        for charge in event.columns:
            columns[charge.column] = _apply_charge(columns.get(charge.column), charge, event.number)
        before = () if known is None else known.unprotected_columns
        unprotected = dict.fromkeys([*before, event.id_column, *event.passthrough])
        return ReleaseState(
            event.name, event.id_column, event.id_type, event.number, False, columns, event.rows, event.passthrough,
            event.passthrough_snapshot, tuple(unprotected),
        )  # fmt: skip


def compute_cost(column_state: ColumnState | None, epsilon: Decimal) -> Decimal:
    """Return the cost that a level adds to a column; a level up to the largest one is free (post-processing)."""
    largest = ZERO if column_state is None else column_state.largest
    return subtract_amounts(max(epsilon, largest), largest)


def _apply_charge(column_state: ColumnState | None, charge: ColumnCharge, event_number: int) -> ColumnState:
    if charge.epsilon <= 0 or charge.cost != compute_cost(column_state, charge.epsilon):
        raise ValueError("a column has another cost than its level")
    if column_state is not None and (column_state.mechanism, column_state.params) != (charge.mechanism, charge.params):
        raise ValueError("a column has another mechanism than before")
    largest = charge.epsilon if column_state is None else max(column_state.largest, charge.epsilon)
    return ColumnState(**asdict(charge), largest=largest, last_event=event_number)


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
        known = require_active_release(account, draft.name)
    if known != expected_state:  # The snapshots of this plan would forget rows.
        raise LedgerBusyError(
            "Another process released {name!r} while this release ran.",
            hint="Run the same call or command again.",
            name=draft.name,
        )
    if known is not None:
        _reject_changed_release(known, draft)
    _reject_exposed_columns(account, draft)
    states = {} if known is None else known.columns
    columns = tuple(replace(each, cost=compute_cost(states.get(each.column), each.epsilon)) for each in draft.columns)
    _reject_overspending(account, add_amounts(each.cost for each in columns))
    return replace(draft, number=account.number + 1, columns=columns)


def make_budget_raise_event(account: Account, budget: Decimal, reason: str, time: datetime) -> BudgetRaised:
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


def make_retirement_event(account: Account, release_name: str, reason: str, time: datetime) -> ReleaseRetired:
    """Return the event that retires a release; reject an unknown or retired one."""
    check_reason(reason)
    require_active_release(account, release_name)
    return ReleaseRetired(account.number + 1, time, release_name, reason)


def require_active_release(account: Account, name: str) -> ReleaseState:
    """Return a release that may be continued; reject an unknown or retired one."""
    check_name(name, "release")
    found = account.releases.get(name)
    if found is None:
        names = [repr(each.name) for each in account.releases.values() if not each.retired]
        raise UnknownReleaseError(
            "The vault has no release {name!r}.",
            hint="Choose one of: {listed}." if names else "Nothing can be continued: release a table first.",
            name=name,
            listed=", ".join(names),
        )
    if found.retired:
        raise UnknownReleaseError(
            "The release {name!r} is retired: its name cannot be used again, and its cost remains charged.",
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
            "The ids of the release {name!r} are of type {recorded!r}, but those of this table are of type {given!r}.",
            hint="Convert the id column to {recorded!r}, or choose a new release name, which is charged in full.",
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
                hint="Declare the same mechanism, values and order of values as before, or choose a new release name, "
                "which is charged in full.",
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
                "Column {column!r} was released without protection in {release!r}, so nothing can protect it any more.",
                hint="Leave it out of columns= (--column). If it has other data than in {release!r}, rename it.",
                column=each.column,
                release=release,
            )
    for column in in_clear:
        if column in protected:
            raise ReleaseChangedError(
                "Column {column!r} is protected in {release!r}, so it cannot be an id or a pass-through column.",
                hint="Leave it out of passthrough= (--passthrough) and id= (--id). If it has other data than in "
                "{release!r}, rename it.",
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
