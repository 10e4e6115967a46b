"""The mark beside a ledger's file that says that it was begun: so one that is lost is missed, not begun anew.

Nothing is charged from it and nothing is in it; whoever knows what is lost removes it, and begins again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from relaxdp.draw.private_file import write_private

ENDING = ".begun"
_TEXT = """\
A ledger of privacy budgets, {name}, was begun here.
While this file lies here no other one is begun under that name: it would forget what was spent.
If the ledger is lost, docs/ledger.md says what to do ("Backup and restore").
"""


def mark_of(ledger: Path) -> Path:
    """Return where the mark of a ledger lies."""
    return ledger.with_name(ledger.name + ENDING)


def mark(ledger: Path) -> None:
    """Write down, durably, that a ledger was begun; a `PrivateFileError` where that cannot be."""
    place = mark_of(ledger)
    if not place.exists():
        with suppress(FileExistsError):  # another process was faster
            write_private(place, _TEXT.format(name=ledger.name).encode(), replace=False)
