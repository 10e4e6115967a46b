"""Compare a ledger with released files: one that does not contain a released level is an old copy."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from relaxdp.draw.stream import PathId
from relaxdp.errors import OldLedgerError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import ZERO, add_up
from relaxdp.ledger.events import PathOpened
from relaxdp.ledger.ledger import Ledger
from relaxdp.table.formats import released
from relaxdp.table.kinds import files_of

_MOST_NAMED = 12


def check_ledger(ledger: Ledger, files: Sequence[Path]) -> int:
    """Reject a ledger that lacks a level of the released files; return how many columns were compared.

    To go on with such a ledger would spend the same budget again. A file does not name the population that was charged
    for it, so any population counts.
    """
    events = ledger.history()
    accounts = add_up(events)
    opened = {(each.path, each.facts.key_fingerprint, each.subject) for each in events if isinstance(each, PathOpened)}
    known: dict[tuple[PathId, str], Decimal] = {}
    for path, key, subject in opened:
        state = accounts[subject].at(path)
        known[path, key] = max(known.get((path, key), ZERO), ZERO if state is None else state.largest)
    shown: dict[tuple[PathId, str], tuple[Decimal, Path]] = {}
    for file in (part for each in files for part in files_of(each)):
        for column in released(file)[1].columns.values():
            at = column.path, column.key_fingerprint
            if at not in shown or column.epsilon > shown[at][0]:
                shown[at] = column.epsilon, file
    missing = [
        f"{path} left at {epsilon_text(epsilon)} ({file.name!r}), and the ledger "
        + (f"knows {epsilon_text(known[path, key])}" if known.get((path, key)) else f"knows nothing of it by key {key}")
        for (path, key), (epsilon, file) in sorted(shown.items())
        if known.get((path, key), ZERO) < epsilon
    ]
    if missing:
        more = f"; and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
        raise OldLedgerError(
            "the ledger {ledger!r} is older than what was released: {listed}.",
            remedy="charge_missing",
            ledger=ledger.address,
            listed="; ".join(missing[:_MOST_NAMED]) + more,
            missing=len(missing),
        )
    return len(shown)
