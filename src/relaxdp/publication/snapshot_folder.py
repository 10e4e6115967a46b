"""The folder of a ledger's snapshots: how one is made, kept under its digest, found, and swept when nobody needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO

from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.key import Key
from relaxdp.draw.private_file import sync_folder
from relaxdp.draw.stream import PathId
from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import RelaxdpError, SnapshotError, TableFileError
from relaxdp.ledger.ledger import Ledger
from relaxdp.publication.description import FileDescription
from relaxdp.publication.snapshot import PartWriter, cannot_be_written
from relaxdp.publication.staging import aside, left_behind

_ENDING = ".snapshot"
_DIGITS = 32
"""So much of its digest a file is called by."""


class Snapshot:
    """A snapshot that is being made: beside the others of a ledger, under a name that nobody looks for yet."""

    def __init__(
        self, place: Path, folder: Path, key: Key, paths: Sequence[PathId], subject: str, ledger: Ledger
    ) -> None:
        self.place, self._folder, self._key, self._ledger = place, folder, key, ledger
        # Others may keep theirs in the same folder, under the same names: only our own ledger knows ours.
        self._mark = _mark(ledger.address, key.fingerprint, subject, paths[0].release, paths[0].date)
        self._file: IO[bytes] | None = None
        self._is_settled = False

    def part(self, description: FileDescription, encodings: Sequence[Encoding]) -> PartWriter:
        """Begin the only part of it; begun again, what was written before is gone."""
        try:
            self._file = self._file or self.place.open("r+b")
            self._file.seek(0)
            self._file.truncate()
        except OSError as problem:
            raise cannot_be_written(problem) from None
        return PartWriter(self._file, self._key, description, encodings)

    def join(self, parts: Sequence[Path]) -> str:
        """Put parts that others wrote one after the other, and return the digest of the whole."""
        digest = sha256()
        try:
            with self.place.open("r+b") as whole:
                for part in parts:
                    with part.open("rb") as file:
                        while content := file.read(1 << 20):
                            whole.write(content)
                            digest.update(content)
                whole.flush()
                os.fsync(whole.fileno())
        except OSError as problem:
            raise cannot_be_written(problem) from None
        return digest.hexdigest()

    def keep(self, digest: str) -> None:
        """Give it the name that its digest makes. It is durable, and not charged yet; while it is held, it stays."""
        kept = self._folder / f"{self._mark}-{digest[:_DIGITS]}{_ENDING}"
        try:
            self.place.rename(kept)
            self.place = kept
            sync_folder(self._folder)
        except OSError as problem:
            raise cannot_be_written(problem) from None

    def settle(self) -> None:
        """Leave it there from now on: it is charged, or may be any moment."""
        self._is_settled = True

    def close(self) -> None:
        """Let go of the file, and remove what nobody was charged for."""
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses the last bytes here too
                self._file.close()
        if not self._is_settled:
            self._remove_unknown(self.place)  # whoever was interrupted may have been charged all the same

    def sweep(self) -> None:
        """Remove snapshots of the same release that no path goes on from, if their makers are gone.

        They were never charged, or what they hold is in a newer one that the ledger names instead.
        """
        for left in self._folder.glob(f"{self._mark}-*{_ENDING}"):
            with suppress(OSError), left_behind(left) as descriptor:
                if descriptor is not None:
                    self._remove_unknown(left)  # asked after the lock is held

    def _remove_unknown(self, place: Path) -> None:
        """Remove a snapshot that the ledger does not name; where nobody can tell, it stays."""
        with suppress(OSError, RelaxdpError):
            if place.stem.rpartition("-")[2] not in {each[:_DIGITS] for each in self._ledger.snapshots()}:
                place.unlink(missing_ok=True)


def _mark(*names: str) -> str:
    return sha256(b"".join(length_prefixed(name.encode()) for name in names)).hexdigest()[:16]


@contextmanager
def making(folder: Path, key: Key, paths: Sequence[PathId], subject: str, ledger: Ledger) -> Iterator[Snapshot]:
    """Hold the place of a new snapshot; one that the ledger does not name at the end is removed."""
    with ExitStack() as stack:
        if not os.path.lexists(folder):  # one that somebody made for us stays, whatever is in it
            stack.callback(_remove_empty, folder)
        while True:
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
            except OSError as problem:
                raise SnapshotError(
                    "the snapshot's folder {path!r} cannot be made: {why}.",
                    remedy="no_snapshot",
                    path=str(folder),
                    why=problem.strerror,
                ) from None
            try:
                place = stack.enter_context(aside(folder / "snapshot"))
                break
            except TableFileError as problem:
                if folder.exists():
                    raise SnapshotError(
                        "the snapshot's folder {path!r} cannot be written to: {why}.",
                        remedy="no_snapshot",
                        path=str(folder),
                        why=problem.fields.get("why"),
                    ) from None
                # else somebody who kept nothing in it removed it at this very instant
        snapshot = Snapshot(place, folder, key, paths, subject, ledger)
        stack.callback(snapshot.close)
        yield snapshot


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def find(folder: Path, digest: str) -> Path | None:
    """Return the snapshot with a digest; None where there is none."""
    with suppress(OSError):
        return next(iter(sorted(folder.glob(f"*-{digest[:_DIGITS]}{_ENDING}"))), None)
    return None
