"""Marks in the user's state folder that show where a key has answered in pools: a copy of the key is noticed.

A mark holds the place of what was written down for the key, never the key. It is made before the first answer and
confirmed after it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from relaxdp.errors import StateFolderWarning
from relaxdp.sampling.private_file import (
    PrivateFileError,
    get_state_folder,
    lock_folder,
    read_private_file,
    write_private_file,
)


class Marks:
    """The marks of one key."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the marks against other processes, so that two copies of a key do not begin at the same instant.

        Where the state folder cannot be used, this warns and returns False.
        """
        with ExitStack() as stack:
            problem: object = None
            try:
                folder = self.folder()
                folder.mkdir(0o700, parents=True, exist_ok=True)
                if os.name == "posix":
                    stack.enter_context(lock_folder(folder))
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

    def is_confirmed(self, here: str) -> bool:
        """Tell whether it is known that the key has spent here."""
        return self._read().get(here, False)

    def write(self, here: str, *, sure: bool) -> bool:
        """Mark, durably, that the key is about to spend here, or that it surely has; where that cannot be, say so."""
        content = json.dumps({"place": here, "sure": sure}).encode()
        try:
            write_private_file(self.mark_of(here), content, replace=True)
        except PrivateFileError as problem:
            self._warn(problem)
            return False
        return True

    def mark_of(self, place: str) -> Path:
        """Return the file of a mark."""
        return self.folder() / f"{sha256(os.fsencode(place)).hexdigest()[:16]}.json"

    def _read(self) -> dict[str, bool]:
        found = {}
        with suppress(OSError, RuntimeError):
            for file in self.folder().glob("*.json"):
                try:
                    mark = json.loads(read_private_file(file) or b"")
                    found[str(mark["place"])] = mark["sure"] is True
                except PrivateFileError as problem:
                    self._warn(problem)
                except (ValueError, KeyError, TypeError):
                    self._warn(f"holds a damaged mark, {file.name!r}")
        return found

    def folder(self) -> Path:
        """Return the folder of the marks of the key; a `RuntimeError` where the user has no home."""
        return get_state_folder() / "pools" / self._fingerprint

    def _warn(self, problem: object) -> None:
        try:
            folder = repr(str(self.folder()))
        except RuntimeError:
            folder = "of this user"
        warnings.warn(
            f"the state folder {folder} {problem}. It shows where a key has answered. Without it a copy of "
            "the key is not noticed.",
            StateFolderWarning,
            stacklevel=2,
        )
