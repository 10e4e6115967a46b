"""`relaxdp backup`: a copy of a ledger and the files next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.options import KeyCommand, KeyOption, LedgerOption, key_of, ledger_place
from relaxdp.cli.talk import closing


def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder for the copy; it must not exist.")],
    key: KeyOption = None,
    key_command: KeyCommand = None,
    ledger: LedgerOption = None,
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Copy the key too. With snapshots, it gives the true values away.")
    ] = False,
) -> None:
    """Copy a ledger, its snapshots and its row tags into a new folder, without the key.

    Releases may run meanwhile. To restore, copy the files back. Make a copy after each release: an older one does not
    contain what was spent since.
    """
    from relaxdp.publication.backup import back_up  # noqa: PLC0415 (slow to import)

    place = ledger_place(ledger, key, key_command)
    events = back_up(place, folder, key=key_of(key, key_command) if with_key else None)
    closing(f"copied the ledger {str(place)!r} with {events:,} entries to {str(folder)!r}")
