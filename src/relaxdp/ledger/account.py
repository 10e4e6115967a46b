"""The account of a vault: everything its events add up to. A pure fold, without a store or a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnState(ColumnCharge):
    """A column of a release, as its last release recorded it. Its mechanism is that of the first release."""

    largest: Decimal
    """The largest epsilon ever released, which is the cost of the column."""
    last_event: int


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """A release by its name, as its last event left it."""

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
            columns[charge.column] = _charge_column(columns.get(charge.column), charge, event.number)
        before = () if known is None else known.unprotected_columns
        unprotected = dict.fromkeys([*before, event.id_column, *event.passthrough])
        return ReleaseState(
            event.name, event.id_column, event.id_type, event.number, False, columns, event.rows, event.passthrough,
            event.passthrough_snapshot, tuple(unprotected),
        )  # fmt: skip


def compute_cost(column_state: ColumnState | None, epsilon: Decimal) -> Decimal:
    """Return what a level adds to the cost of a column: a level up to the largest one is free (post-processing)."""
    largest = ZERO if column_state is None else column_state.largest
    return subtract_amounts(max(epsilon, largest), largest)


def _charge_column(column_state: ColumnState | None, charge: ColumnCharge, event_number: int) -> ColumnState:
    if charge.epsilon <= 0 or charge.cost != compute_cost(column_state, charge.epsilon):
        raise ValueError("a column has another cost than its level")
    if column_state is not None and (column_state.mechanism, column_state.params) != (charge.mechanism, charge.params):
        raise ValueError("a column has another mechanism than before")
    largest = charge.epsilon if column_state is None else max(column_state.largest, charge.epsilon)
    return ColumnState(**asdict(charge), largest=largest, last_event=event_number)
