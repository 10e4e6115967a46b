"""Events of a ledger: frozen records, with the canonical JSON that the hash chain is computed from."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from relaxdp.errors import BudgetError, EpsilonError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, drop_trailing_zeros, format_epsilon

ZERO = Decimal(0)

# An epsilon has at most 60 digits before and 160 after the point, so sums stay far below this precision. If one did
# not, the trap would raise instead of rounding.
_EXACT = Context(prec=1000, Emin=-999999, Emax=999999, capitals=1, clamp=0, traps=[Inexact, InvalidOperation])
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


def add_amounts(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum, without trailing zeros.

    >>> add_amounts([Decimal("0.1")] * 3)
    Decimal('0.3')
    """
    result = ZERO
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return drop_trailing_zeros(result)


def subtract_amounts(larger: Decimal, smaller: Decimal) -> Decimal:
    """Return the exact difference, without trailing zeros.

    >>> subtract_amounts(Decimal("0.50"), Decimal("0.1")), subtract_amounts(Decimal("0.5"), Decimal("0.5"))
    (Decimal('0.4'), Decimal('0'))
    """
    return drop_trailing_zeros(_EXACT.subtract(larger, smaller))


def parse_amount(text: str) -> Decimal:
    """Parse an amount such as '0.5', without sign or exponent; raise `ValueError` for any other text."""
    if not _PLAIN.fullmatch(text):
        raise ValueError("this is not an amount")
    return Decimal(text)


def parse_budget(written: Epsilon) -> Decimal:
    """Return a budget as an exact, positive, finite number."""
    try:
        return as_epsilon(written)
    except EpsilonError as problem:
        raise BudgetError(
            "The budget must be a positive number, not {epsilon}.", hint="Pass a number such as 2.", **problem.fields
        ) from None


Action = Literal["release", "relax"]


@dataclass(frozen=True, slots=True)
class _Event(ABC):
    """The fields of every event: its number, counted from 1, and its time in UTC."""

    number: int
    time: datetime

    @abstractmethod
    def describe(self) -> str:
        """Return what happened, in one line."""

    def __str__(self) -> str:
        return f"{self.number}  {self.time.astimezone(UTC):%Y-%m-%d %H:%M:%S}  {self.describe()}"

    def to_json(self) -> str:
        """Return the canonical JSON: sorted names, no spaces, decimals as text."""
        content = {"event": _STORED_NAMES[type(self)], **_convert_to_json(self)}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class VaultCreated(_Event):
    """The vault was created with its first budget."""

    budget: Decimal
    reason: str
    vault: str
    key_fingerprint: str

    def describe(self) -> str:
        return f"created with a budget of {format_epsilon(self.budget)}{_format_reason(self.reason)}"


@dataclass(frozen=True, slots=True)
class BudgetRaised(_Event):
    """The budget was raised."""

    previous: Decimal
    budget: Decimal
    reason: str

    def describe(self) -> str:
        ends = f"from {format_epsilon(self.previous)} to {format_epsilon(self.budget)}"
        return f"budget raised {ends}{_format_reason(self.reason)}"


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """The snapshot of a column after a release: its digest, and how many rows are in it."""

    snapshot: str
    """Its digest, in hexadecimal."""
    known: int
    joined: int
    """Rows that joined after the first release."""
    left: int
    """Known rows that are absent from the table."""
    exchanged: int
    """Rows that joined while others were absent, summed over releases, since this was last accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCharge(SnapshotSummary):
    """One released column: its level, its mechanism, the new snapshot of its true values, and its cost."""

    column: str
    epsilon: Decimal
    mechanism: str
    params: str
    """The parameters of the mechanism as a digest, in hexadecimal."""
    description: dict[str, Any]
    """Everything that is needed to rebuild the mechanism, as JSON."""
    why: str
    """Why this mechanism was chosen."""
    cost: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class ReleaseCharged(_Event):
    """Columns were released or relaxed together under one name."""

    name: str
    action: Action
    id_column: str
    id_type: str
    columns: tuple[ColumnCharge, ...]
    passthrough: tuple[str, ...]
    passthrough_snapshot: str | None
    rows: int
    accepted_new_rows: bool

    def describe(self) -> str:
        verb = {"release": "released", "relax": "relaxed"}[self.action]
        charges = (
            f"{each.column!r} at {format_epsilon(each.epsilon)} for {format_epsilon(each.cost)}"
            for each in self.columns
        )
        unprotected = ", ".join(map(repr, (self.id_column, *self.passthrough)))
        accepted = "; new rows accepted" if self.accepted_new_rows else ""
        return f"{verb} {self.name!r} ({self.rows:,} rows): {', '.join(charges)}; unprotected: {unprotected}{accepted}"


@dataclass(frozen=True, slots=True)
class ReleaseRetired(_Event):
    """A release was retired: its name is never used again, and its cost stays."""

    name: str
    reason: str

    def describe(self) -> str:
        return f"retired {self.name!r}{_format_reason(self.reason)}"


@dataclass(frozen=True, slots=True)
class CopyAdopted(_Event):
    """A copy of the vault was accepted as the newest one."""

    reason: str
    found: str
    """In words, how this copy contradicted what the machine had seen."""

    def describe(self) -> str:
        return f"adopted a copy that {self.found}{_format_reason(self.reason)}"


Event = VaultCreated | BudgetRaised | ReleaseCharged | ReleaseRetired | CopyAdopted
_EVENT_CLASSES: dict[str, type[Event]] = {
    "Created": VaultCreated,
    "BudgetRaised": BudgetRaised,
    "Released": ReleaseCharged,
    "Retired": ReleaseRetired,
    "Adopted": CopyAdopted,
}
_STORED_NAMES: dict[type[_Event], str] = {event_class: name for name, event_class in _EVENT_CLASSES.items()}


def parse_event(text: str) -> Event:
    """Parse the text that `to_json` wrote of an event; raise `ValueError` for any other text."""
    try:
        content = json.loads(text)
        event: Event = _build_record(_EVENT_CLASSES[content.pop("event")], content)
        is_canonical = event.to_json() == text
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        is_canonical = False
    if not is_canonical:
        raise ValueError("it is not an event of this version of relaxdp")
    return event


def _format_reason(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _convert_to_json(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _convert_to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_convert_to_json(each) for each in value]
    if isinstance(value, Decimal):
        return format_epsilon(value)
    return value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value


_get_hints = cache(get_type_hints)


def _build_record(record_class: Any, content: dict[str, Any]) -> Any:
    hints = _get_hints(record_class)
    if set(content) != set(hints):
        raise ValueError("the fields differ")
    return record_class(**{name: _parse_field(hint, content[name]) for name, hint in hints.items()})


def _parse_field(type_hint: Any, value: Any) -> Any:
    """Return the value of a field by its declared type. JSON cannot tell an amount from text."""
    origin, options = get_origin(type_hint), get_args(type_hint)
    if type_hint is Decimal:
        return parse_amount(value)
    if type_hint is datetime:
        return datetime.fromisoformat(value)
    if origin is tuple and isinstance(value, list):
        return tuple(_parse_field(options[0], each) for each in value)
    if origin is UnionType and value is None:
        return None
    if origin is UnionType:
        return _parse_field(options[0], value)
    if is_dataclass(type_hint):
        return _build_record(type_hint, value)
    is_right = value in options if origin is Literal else type(value) is (origin or type_hint)
    if not is_right or (type_hint is int and value < 0):
        raise ValueError("the type differs")
    return value
