"""Marks that notice a ledger which is lost, or a second one that a copy of a key would begin.

One lies beside a ledger's file and says that it was begun: so one that is lost is missed, not begun anew. Nothing is
charged from it and nothing is in it; whoever knows what is lost removes it, and begins again. Others lie in the user's
state folder, by the key's fingerprint: what is kept beside a key is found through links, but not from a copy. Such a
mark holds the fingerprint and the address (without a password) of what was written down for the key, never the key. It
is made before the first charge and confirmed after it: one that was not confirmed may belong to a charge that never
happened, and is looked into. Beside it stands how many entries a ledger had after the last charge: one that has fewer
is an older copy.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

from relaxdp.draw.private_file import PrivateFileError, locked_folder, read_private, write_private
from relaxdp.errors import StateFolderWarning

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


def state_folder() -> Path:
    """Return where this user's programs remember things; a `RuntimeError` where the user has no home."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given / "relaxdp"
    system = platform.system()
    if system == "Windows":  # pragma: no cover
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "relaxdp"
    return Path.home() / ("Library/Application Support" if system == "Darwin" else ".local/state") / "relaxdp"


class Marks:
    """The marks of one key, of what lies beside keys: ledgers, or what was answered in pools."""

    def __init__(self, kind: Literal["ledgers", "pools"], fingerprint: str) -> None:
        self._kind, self._fingerprint = kind, fingerprint

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the marks against other processes, so that two copies of a key do not begin at the same instant.

        A state folder that cannot be used stops nobody. It is said, and False is given.
        """
        with ExitStack() as stack:
            problem: object = None
            try:
                folder = self.folder()
                folder.mkdir(0o700, parents=True, exist_ok=True)
                if os.name == "posix":
                    stack.enter_context(locked_folder(folder))
            except OSError as found:
                problem = f"cannot be used: {found.strerror}"
            except (PrivateFileError, RuntimeError) as found:
                problem = found
            if problem is not None:
                self._warn(problem)
            yield problem is None

    def elsewhere(self, here: str, is_used: Callable[[str], bool]) -> list[str]:
        """Return where the key has spent, other than in something that is here and knows nothing of it yet.

        A mark that was not confirmed counts if what it leads to `is_used`; here it cannot be.
        """
        found = sorted(self._read().items())
        return [place for place, sure in found if sure or (place != here and is_used(place))]

    def places(self) -> list[str]:
        """Return all places at which the key has surely spent."""
        return [place for place, sure in sorted(self._read().items()) if sure]

    def entries(self, place: str) -> int:
        """Return how many entries the ledger at a place had at least; 0 where that is unknown."""
        with suppress(OSError, RuntimeError, ValueError):
            return int(self._count_of(place).read_bytes())
        return 0

    def count(self, here: str, entries: int) -> None:
        """Write down how many entries the ledger has now.

        Nobody waits for the disk: after a power cut a smaller number notices less, and never a ledger that is whole.
        """
        with suppress(OSError, RuntimeError):
            descriptor = os.open(self._count_of(here), os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, b"%020d\n" % entries)  # of one length, so that nothing of an old one is left
            finally:
                os.close(descriptor)

    def is_confirmed(self, here: str) -> bool:
        """Tell whether it is known that the key has spent here."""
        return self._read().get(here, False)

    def write(self, here: str, *, sure: bool) -> bool:
        """Mark, durably, that the key is about to spend here, or that it surely has; where that cannot be, say so."""
        content = json.dumps({"place": here, "sure": sure}).encode()
        try:
            write_private(self.mark_of(here), content, replace=True)
        except PrivateFileError as problem:
            self._warn(problem)
            return False
        return True

    def mark_of(self, place: str) -> Path:
        """Return the file of a mark."""
        return self.folder() / f"{sha256(os.fsencode(place)).hexdigest()[:16]}.json"

    def _count_of(self, place: str) -> Path:
        return self.mark_of(place).with_suffix(".entries")

    def _read(self) -> dict[str, bool]:
        found = {}
        with suppress(OSError, RuntimeError):
            for file in self.folder().glob("*.json"):
                try:
                    mark = json.loads(read_private(file) or b"")
                    found[str(mark["place"])] = mark["sure"] is True
                except PrivateFileError as problem:
                    self._warn(problem)
                except (ValueError, KeyError, TypeError):
                    self._warn(f"holds a damaged mark, {file.name!r}")
        return found

    def folder(self) -> Path:
        """Return where the marks of the key lie; a `RuntimeError` where the user has no home."""
        return state_folder() / self._kind / self._fingerprint

    def _warn(self, problem: object) -> None:
        try:
            folder = repr(str(self.folder()))
        except RuntimeError:
            folder = "of this user"
        warnings.warn(
            f"the state folder {folder} {problem}. It remembers where a key has spent; without it a copy of the key "
            "is not noticed.",
            StateFolderWarning,
            stacklevel=2,
        )
