"""A plain copy of a ledger, with the snapshots and row tags next to it, in a new folder."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from relaxdp.draw.key import Key
from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import RelaxdpError, TableFileError, refusing
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import BESIDE, folder_beside
from relaxdp.publication.staging import aside_folder, refuse_existing


@refusing("Nothing was written.")
def back_up(ledger: str | os.PathLike[str], folder: Path, *, key: Key | None = None) -> int:
    """Copy a ledger and the files next to it, and return how many events it has; releases may run meanwhile.

    The folder appears once it is complete and on disk, and only its owner can read it. Its files keep their names.
    """
    try:
        with (
            aside_folder(folder) as place,
            Ledger.open(ledger, create=False) as book,
            ExitStack() as stack,
        ):
            made = place / "backup"
            made.mkdir(0o700)
            copy = made / Path(book.address).name
            for name, source in _copy_ledger(book, copy, stack).items():
                (made / name).parent.mkdir(0o700, exist_ok=True)
                _copy_file(source, made / name)
            with Ledger.open(copy, create=False) as copied:
                copied.verify()
                events = copied.entries
            if key is not None:
                key.save(made / ("key" if key.source is None else key.source.name))
            for each in (*filter(Path.is_dir, made.iterdir()), made):
                sync_folder(each)
            refuse_existing(folder)
            made.rename(folder)
            sync_folder(folder.parent)
    except (OSError, PrivateFileError) as problem:
        if isinstance(problem, RelaxdpError):
            raise
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise TableFileError("the backup {path!r} cannot be written: {why}.", path=str(folder), why=why) from None
    return events


def _copy_ledger(book: Ledger, copy: Path, stack: ExitStack) -> dict[str, IO[bytes]]:
    """Copy the ledger, and return the files next to it, which are open until the stack is closed.

    A file there is never written to, but it is removed after a newer one is charged. So the files are opened while
    nothing can be charged.
    """
    folders = [folder_beside(Path(book.address), kind) for kind in BESIDE]
    with ExitStack() as locks:
        for folder in filter(Path.is_dir, folders):
            locks.enter_context(locked_folder(folder))
        locks.enter_context(book.copied_to(copy))
        return {
            f"{folder.name}/{file.name}": stack.enter_context(file.open("rb"))
            for folder in filter(Path.is_dir, folders)
            for file in sorted(folder.iterdir())
            if file.is_file() and not file.name.startswith(".")  # A name that begins with a dot is unfinished.
        }


def _copy_file(source: IO[bytes], target: Path) -> None:
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
