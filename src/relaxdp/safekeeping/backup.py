"""A backup: one file with the key, sealed, a consistent copy of its ledger, and what lies beside the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from relaxdp.draw.key import Key
from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import BackupError, refusing
from relaxdp.ledger.ledger import Ledger, utc_now
from relaxdp.publication.staging import aside, passing_folder, refuse_existing
from relaxdp.safekeeping.archive import FOLDERS, LEDGER, Contents, Writer, is_part
from relaxdp.safekeeping.seal import check_passphrase, seal


def folder_beside(ledger: Path, kind: str) -> Path:
    """Return where what belongs to a ledger lies: its snapshots, or the tags of its growing tables."""
    return ledger.with_name(f"{ledger.name}.{kind}")


@refusing("Nothing was written.")
def back_up(
    target: Path, ledger: str | os.PathLike[str], *, key: Key | None = None, passphrase: str | None = None
) -> Contents:
    """Write a backup; with a key it is sealed under the passphrase. Others may go on releasing meanwhile.

    The file appears when it is whole and on disk, and only its owner can read it.

    Claim: what is restored is one moment of the ledger, with the files that it names; tests/unit/safekeeping.
    """
    if key is not None:
        check_passphrase(passphrase or "")
    try:
        with aside(target) as place, passing_folder(target) as folder, Ledger.open(ledger, create=False) as book:
            with ExitStack() as stack:
                files = _held_still(book, folder / LEDGER, stack)
                with Ledger.open(folder / LEDGER, create=False) as copy:
                    copy.verify()
                    events = copy.history()
                with place.open("r+b") as file:
                    writer = Writer(file)
                    for name, source in files.items():
                        writer.add(name, source)
                    contents = Contents(
                        made=utc_now().isoformat(timespec="seconds"),
                        ledger=book.address,
                        events=len(events),
                        last=events[-1].time.isoformat(timespec="seconds") if events else None,
                        key=None if key is None else key.fingerprint,
                        parts=writer.parts,
                    )
                    writer.finish(contents, None if key is None else seal(key, str(passphrase), contents.dumps()))
                    file.flush()
                    os.fsync(file.fileno())
            refuse_existing(target)
            place.rename(target)
            sync_folder(target.parent)
    except OSError as problem:
        if isinstance(problem, BackupError) or not problem.strerror:
            raise
        raise BackupError(
            "the backup {path!r} cannot be written: {why}.", path=str(target), why=problem.strerror
        ) from None
    return contents


def _held_still(book: Ledger, copy: Path, stack: ExitStack) -> dict[str, IO[bytes]]:
    """Copy the ledger, and open the files that belong to it, while nobody exchanges them.

    Files are never written to once they have their names, so that what is open can be read at leisure.
    """
    found: dict[str, IO[bytes]] = {}
    with ExitStack() as locks:
        folders = {kind: folder_beside(Path(book.address), kind) for kind in FOLDERS}
        for folder in folders.values() if "://" not in book.address else ():
            if folder.is_dir():
                locks.enter_context(_locked(folder))
        book.copy_to(copy)
        found[LEDGER] = stack.enter_context(copy.open("rb"))
        for kind, folder in folders.items():
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if is_part(f"{kind}/{file.name}") and file.is_file():  # what begins with a dot is unfinished
                    found[f"{kind}/{file.name}"] = stack.enter_context(file.open("rb"))
    return found


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_folder(folder))
        except PrivateFileError as problem:
            raise BackupError("the folder {folder!r} {problem}.", folder=str(folder), problem=problem) from None
        yield
