"""Who pays for a release: which ledger, whose budget, and what the person who releases has agreed to.

Where a key has spent in one ledger, another is begun only on purpose, and that is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from relaxdp.draw.key import Key, key_place
from relaxdp.errors import LedgerAccessError, LedgerError, OldLedgerError, PathChangedError, SecondLedgerError
from relaxdp.ledger.account import Account
from relaxdp.ledger.entries import Entry, Subject, check_reason
from relaxdp.ledger.ledger import Charge, Ledger
from relaxdp.ledger.marks import Marks, mark_of

SNAPSHOTS, TAGS = BESIDE = ("snapshots", "tags")
"""What lies beside a ledger, in folders of its name and these endings."""
_MOST_NAMED = 12
_LOOKING = 5.0
"""How many seconds to wait for another ledger."""


@contextmanager
def spending(ledger: Ledger, fingerprint: str, new_ledger: str = "") -> Iterator[str]:
    """Hold the marks of a key while a ledger is charged, and give what that is to record: why it is begun anew.

    The mark is durable before the charge, so that no crash leaves a charge without one, and confirmed after it. Then
    the entries are counted: by their number an older copy of the ledger is known.
    """
    marks, here = Marks("ledgers", fingerprint), ledger.address
    if ledger.knows_key(fingerprint) and marks.is_confirmed(here):
        yield refuse_second(ledger, fingerprint, new_ledger)
        marks.count(here, ledger.entries)
        return
    with marks.held() as can_be_written:
        anew = refuse_second(ledger, fingerprint, new_ledger)
        is_marked = can_be_written and (marks.is_confirmed(here) or marks.write(here, sure=False))
        yield anew
        if is_marked:
            marks.write(here, sure=True)
            marks.count(here, ledger.entries)


def refuse_second(ledger: Ledger, fingerprint: str, new_ledger: str = "") -> str:
    """Refuse a ledger that knows nothing of a key that has spent; with a reason, return what is to be recorded."""
    here = ledger.address
    if ledger.knows_key(fingerprint):
        return _refuse_older(ledger, Marks("ledgers", fingerprint).entries(here), new_ledger)
    places = Marks("ledgers", fingerprint).elsewhere(here, partial(_is_used, fingerprint))
    if not places:
        return ""
    listed = " and ".join(map(repr, places))
    if new_ledger:
        check_reason(new_ledger)
        return f"{new_ledger}; it has spent in {listed}"
    if here in places:
        raise SecondLedgerError(
            "this key has spent in the ledger {here!r}, which knows nothing of it any more. Restore it "
            "(docs/ledger.md).",
            remedy="new_ledger",
            here=here,
            ledgers=places,
        )
    raise SecondLedgerError(
        "this key has spent in another ledger: {listed}. One that begins anew would forget that.",
        remedy="ledger new_ledger",
        listed=listed,
        ledgers=places,
    )


def _refuse_older(ledger: Ledger, known: int, new_ledger: str) -> str:
    """Refuse a ledger that has fewer entries than were `known` before it was looked at: it is an older copy."""
    found = ledger.entries
    if found >= known:
        return ""
    if new_ledger:
        check_reason(new_ledger)
        return f"{new_ledger}; it had {known} entries, and has {found}"
    raise OldLedgerError(
        "the ledger {here!r} is an older copy: it had {known:,} entries when this key last spent, and has {found:,}.",
        remedy="older_ledger",
        here=ledger.address,
        known=known,
        found=found,
    )


def ledger_of(key: str | os.PathLike[str]) -> Path:
    """Return where the ledger of a key lies: beside the file itself, whatever links lead to it."""
    real = key_place(key).resolve()
    return real.with_name(f"{real.name}.ledger")


def folder_beside(ledger: Path, kind: str) -> Path:
    """Return where what belongs to a ledger lies: its snapshots, or the tags of its growing tables."""
    return ledger.with_name(f"{ledger.name}.{kind}")


def ledger_beside(key: Key) -> Path:
    """Return the ledger of a key; where only those of other keys lie there, a new one would forget what was spent."""
    if key.source is None:
        places = Marks("ledgers", key.fingerprint).elsewhere("", partial(_is_used, key.fingerprint))
        raise LedgerAccessError(
            "this key comes from no file beside which a ledger could lie. It has spent in {listed}."
            if places
            else "this key comes from no file beside which a ledger could lie.",
            remedy="say_ledger",
            listed=" and ".join(map(repr, places)),
            ledgers=places,
        )
    place = ledger_of(key.source)
    others = sorted(other.name for other in place.parent.glob("*.ledger"))
    if others and not place.exists() and not mark_of(place).exists():
        raise LedgerAccessError(
            "this key has no ledger yet, and {other!r} lies beside it.",
            remedy="which_ledger",
            other=others[0],
            file=place.name,
        )
    return place


def refuse_other_name(known: Account, release: str, columns: Sequence[str]) -> None:
    """Refuse to open a second path of a column only because its file has another name this year."""
    for column in columns:
        releases = sorted({state.path.release for state in known.paths if state.path.attribute == column})
        if releases and release not in releases:
            more = f" and {len(releases) - _MOST_NAMED:,} more" if len(releases) > _MOST_NAMED else ""
            raise PathChangedError(
                "{column!r} was released before, as release {other!r}. A new path would cost as much again."
                if len(releases) == 1
                else "{column!r} was released before, as releases {listed}. A new path would be one more to pay for.",
                remedy="which_release" if len(releases) == 1 else "which_releases",
                column=column,
                other=releases[0],
                listed=", ".join(map(repr, releases[:_MOST_NAMED])) + more,
            )


def _is_used(fingerprint: str, address: str) -> bool:
    """Look whether a charge that was not confirmed has happened; where nobody can tell, it has."""
    file = Path(address)
    if "://" not in address and not file.exists() and not mark_of(file).exists():
        return False
    try:
        with Ledger.open(address, create=False, timeout=_LOOKING) as other:
            return other.knows_key(fingerprint)
    except LedgerError:
        return True


@dataclass(frozen=True, slots=True)
class Payer:
    """A subject of a ledger that a release is charged to."""

    ledger: Ledger
    subject: Subject
    budget: Any = None
    reason: str = ""
    again: bool = False
    force: bool = False
    growing: Path | None = None
    """The folder of row tags where the table may grow; None where it may not."""
    new_ledger: str = ""
    """Why a key that has spent in another ledger is to begin one more; empty where it may not."""
    snapshots: Path | None = None
    """The folder in which what is released is kept sealed; None where it is not."""
    accept: bool = False
    """Whether it is paid for though it tells next to nothing."""

    def look(self) -> Account:
        """Return how the account stands before anything is drawn."""
        return self.ledger.account(self.subject)

    def quote(self, entries: Sequence[Entry], known: Account) -> list[Charge]:
        """Return what a release would cost, as the account is known; or refuse what the ledger would refuse."""
        for fingerprint in {entry.facts.key_fingerprint for entry in entries}:
            refuse_second(self.ledger, fingerprint, self.new_ledger)
        return self.ledger.quote_all(
            self.subject, entries, again=self.again, force=self.force, budget=self.budget, known=known
        )

    def charge(self, entries: Sequence[Entry]) -> list[Charge]:
        """Charge everything together, durably. What was drawn on an epoch that is over meanwhile is refused."""
        with spending(self.ledger, entries[0].facts.key_fingerprint, self.new_ledger) as anew:
            return self.ledger.charge_all(
                self.subject,
                entries,
                again=self.again,
                force=self.force,
                budget=self.budget,
                reason=self.reason,
                anew=anew,
            )
