"""A backup: one file with the key, sealed, a consistent copy of its ledger, and what lies beside it; and its return.

When it comes back, everything is looked at aside, and takes its place only where nothing else is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import IO

from relaxdp.draw.key import Key
from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import BackupError, KeyFileError, LedgerError, refusing
from relaxdp.ledger.events import Event, PathOpened
from relaxdp.ledger.ledger import Ledger, utc_now
from relaxdp.ledger.marks import Marks, mark
from relaxdp.ledger.payer import BESIDE, folder_beside
from relaxdp.ledger.sqlite import SqliteStore
from relaxdp.ledger.store import own_tools, store_of
from relaxdp.publication.staging import aside, passing_folder, refuse_existing
from relaxdp.safekeeping.archive import (
    LEDGER,
    Contents,
    Reader,
    Writer,
    check_passphrase,
    is_part,
    opened,
    seal,
    unseal,
)
from relaxdp.safekeeping.released import refuse_old


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
        folders = {kind: folder_beside(Path(book.address), kind) for kind in BESIDE}
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


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back, and where its key had spent before."""

    contents: Contents
    elsewhere: tuple[str, ...]
    """Ledgers that the key has spent in, other than this one, as this user's marks know."""
    compared: int
    """How many released columns it was compared with."""
    forgotten: int
    """How many entries the ledger had that are not in the backup, as this user's marks know."""


@refusing("Nothing was restored.")
def restore(
    source: Path,
    ledger: str | os.PathLike[str],
    *,
    key: str | None = None,
    passphrase: Callable[[], str] | None = None,
    released: Sequence[Path] = (),
) -> Restored:
    """Put a backup back: the ledger and what lies beside it, and where `key` names a place, the key too.

    Nothing is overwritten. Whoever is killed in the last instant asks again: what is there and the same may stay. A
    ledger that does not know what the `released` files show is refused, and so is one that goes on elsewhere.
    """
    store = store_of(ledger, timeout=0)
    here = Path(store.address())
    if not isinstance(store, SqliteStore):
        raise own_tools()
    with opened(source) as backup, ExitStack() as stack:
        _refuse_ledger(here)
        secret = None if key is None or passphrase is None else _unsealed(source, backup, key, passphrase)
        try:
            folder = stack.enter_context(passing_folder(here))
            _extract(backup, folder)
            with Ledger.open(folder / LEDGER, create=False) as book:
                book.verify()
                events = book.history()
                compared = refuse_old(book, released, backup_of=str(here))
            _refuse_files(backup, here)
            elsewhere = _elsewhere(events, here)
            stack.enter_context(locked_folder(here.parent))
            _refuse_ledger(here)
            if secret is not None and key is not None and not _has(secret.fingerprint, key):
                secret.save(key)  # the first, for only this can still be refused
            _put_in_place(backup, folder, here)
            (folder / LEDGER).rename(here)  # the last: where it is, all is
            sync_folder(here.parent)
            mark(here)
        except OSError as problem:
            if not problem.strerror:
                raise
            raise BackupError("{path!r} cannot be restored: {why}.", path=str(here), why=problem.strerror) from None
        except PrivateFileError as problem:
            raise BackupError("the folder of {path!r} {problem}.", path=str(here), problem=problem) from None
    known = _remembered(backup.contents, here, _keys(events))
    return Restored(backup.contents, elsewhere, compared, max(0, known - len(events)))


def _remembered(contents: Contents, here: Path, keys: set[str]) -> int:
    """Let the marks of the keys know the ledger where it is now, and return how many entries it had, as they know.

    That number stays: a release into an older ledger is refused, until somebody says why it goes on.
    """
    most = 0
    for fingerprint in keys:
        marks = Marks("ledgers", fingerprint)
        with marks.held() as can_be_written:
            known = max(contents.events, marks.entries(str(here), contents.ledger))
            most = max(most, known)
            if can_be_written:
                marks.write(str(here), sure=True)
                marks.count(str(here), known)
    return most


def _unsealed(source: Path, backup: Reader, place: str, passphrase: Callable[[], str]) -> Key:
    """Return the key of a backup, or refuse it before anything is written."""
    if backup.contents.key is None:
        raise BackupError("the backup {path!r} was made without the key.", remedy="without_key", path=str(source))
    if os.path.lexists(place) and not _has(backup.contents.key, place):
        raise KeyFileError("{path!r} exists already.", remedy="without_key", path=place)
    key = unseal(backup.sealed(), passphrase(), backup.listed)
    if key is None or key.fingerprint != backup.contents.key:
        raise BackupError("the passphrase is not that of {path!r}, or the file was changed.", path=str(source))
    return key


def _has(fingerprint: str, place: str) -> bool:
    try:
        return Key.load(place).fingerprint == fingerprint
    except KeyFileError:
        return False


def _refuse_ledger(here: Path) -> None:
    if any(os.path.lexists(f"{here}{suffix}") for suffix in ("", "-wal", "-journal")):
        raise BackupError(
            "the ledger {path!r} exists already, or its log (-wal) does. Move it away first.", path=str(here)
        )


def _extract(backup: Reader, folder: Path) -> None:
    for name in backup.contents.parts:
        place = folder / name
        place.parent.mkdir(0o700, exist_ok=True)
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            backup.extract(name, file)
            file.flush()
            os.fsync(file.fileno())


def _refuse_files(backup: Reader, here: Path) -> None:
    """Refuse where another file has the name of one that is to come back; the same one may be there."""
    for name, part in backup.contents.parts.items():
        kind, _, rest = name.partition("/")
        place = folder_beside(here, kind) / rest
        if rest and os.path.lexists(place):
            with place.open("rb") as file:
                if file_digest(file, "sha256").hexdigest() != part.sha256:
                    raise BackupError("{path!r} exists already, and is another one.", path=str(place))


def _put_in_place(backup: Reader, folder: Path, here: Path) -> None:
    for kind in BESIDE:
        names = [name for name in backup.contents.parts if name.startswith(f"{kind}/")]
        target = folder_beside(here, kind)
        if names:
            target.mkdir(0o700, exist_ok=True)
            for name in names:
                (folder / name).replace(target / name.partition("/")[2])  # where one is there, it is the same
            sync_folder(target)


def _keys(events: Sequence[Event]) -> set[str]:
    return {each.facts.key_fingerprint for each in events if isinstance(each, PathOpened)}


def _elsewhere(events: Sequence[Event], here: Path) -> tuple[str, ...]:
    """Return where the keys of a ledger have spent before; refuse where the same ledger goes on at one of these places.

    It is the same if it began with the same event. One that begins otherwise was begun on purpose, and stays.
    """
    places = sorted({place for key in _keys(events) for place in Marks("ledgers", key).places()} - {str(here)})
    for place in places:
        if "://" in place or not Path(place).exists():
            continue
        try:
            with Ledger.open(place, create=False) as other:
                is_same = other.history()[:1] == list(events[:1])
        except LedgerError:
            is_same = True  # where nobody can tell
        if is_same:
            raise BackupError(
                "this ledger is still at {place!r}: two that go on would each spend the budget. Go on with that one, "
                "or move it away first.",
                place=place,
            )
    return tuple(places)
