"""A key and its ledger: where a key has spent in one, another is begun only on purpose, and that is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from relaxdp.errors import LedgerError, SecondLedgerError
from relaxdp.ledger.begun import mark_of
from relaxdp.ledger.elsewhere import Marks
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.subject import check_reason

_LOOKING = 5.0
"""How many seconds to wait for another ledger."""
_WAY_OUT = (
    "or, if there must be a new one, say why: --new-ledger REASON (in Python, new_ledger='...'). Nothing was released."
)


@contextmanager
def spending(ledger: Ledger, fingerprint: str, new_ledger: str = "") -> Iterator[str]:
    """Hold the marks of a key while a ledger is charged, and give what that is to record: why it is begun anew.

    The mark is durable before the charge, so that no crash leaves a charge without one, and confirmed after it.
    """
    marks, here = Marks("ledgers", fingerprint), ledger.address
    if ledger.knows_key(fingerprint) and marks.is_confirmed(here):
        yield ""
        return
    with marks.held() as can_be_written:
        anew = refuse_second(ledger, fingerprint, new_ledger)
        is_marked = can_be_written and (marks.is_confirmed(here) or marks.write(here, sure=False))
        yield anew
        if is_marked:
            marks.write(here, sure=True)


def refuse_second(ledger: Ledger, fingerprint: str, new_ledger: str = "") -> str:
    """Refuse a ledger that knows nothing of a key that has spent; with a reason, return what is to be recorded."""
    if ledger.knows_key(fingerprint):
        return ""
    here = ledger.address
    places = Marks("ledgers", fingerprint).elsewhere(here, partial(_is_used, fingerprint))
    if not places:
        return ""
    listed = " and ".join(map(repr, places))
    if new_ledger:
        check_reason(new_ledger)
        return f"{new_ledger}; it has spent in {listed}"
    if here in places:
        raise SecondLedgerError(
            f"this key has spent in the ledger {here!r}, which knows nothing of it any more. Restore it "
            f"(docs/ledger.md); {_WAY_OUT}",
            ledgers=places,
        )
    raise SecondLedgerError(
        f"this key has spent in another ledger: {listed}. One that begins anew would forget that. Go on with it "
        f"(--ledger; in Python, ledger=); {_WAY_OUT}",
        ledgers=places,
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
