"""Where a secret comes from that lies in no file: a command prints it, or the system's keyring keeps it.

Neither what a command printed nor what a keyring says when it fails is repeated: it may be the secret.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KEYRING = "keyring:"
"""What the name of a key begins with that the system's keyring keeps; ./keyring:NAME is a file."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}", re.ASCII)
_MOST_PRINTED = 1 << 16


class SourceError(Exception):
    """Why a source gives nothing; the caller turns it into a sentence of its own."""


def keyring_name(place: object) -> str | None:
    """Return the name that the text keyring:NAME says; None for the name of a file, as every `Path` is."""
    return place.removeprefix(KEYRING) if isinstance(place, str) and place.startswith(KEYRING) else None


def is_keyring_name(name: object) -> bool:
    """Tell whether a keyring takes a name, on every system."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def words_of(command: str | Sequence[str]) -> list[str]:
    """Return a command's words, as a shell would cut them; no shell ever sees them."""
    try:
        words = shlex.split(command, posix=os.name == "posix") if isinstance(command, str) else list(command)
    except ValueError:
        raise SourceError("has a quotation mark that is not closed") from None
    if not words:
        raise SourceError("is empty")
    return words


def printed_by(words: Sequence[str]) -> bytes:
    """Run a command and return what it prints. It may ask at the terminal, and complain there."""
    # Where no person sits at standard input, a table may come from there, and is not the command's.
    is_asked = sys.stdin is not None and sys.stdin.isatty()
    try:
        with subprocess.Popen(  # noqa: S603 (it is what the person asked for, and no shell reads it)
            list(words), stdout=subprocess.PIPE, stdin=None if is_asked else subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None  # noqa: S101
            content = process.stdout.read(_MOST_PRINTED + 1)
            if len(content) > _MOST_PRINTED:
                process.kill()
    except (OSError, ValueError) as problem:
        raise SourceError(f"cannot be run: {getattr(problem, 'strerror', None) or 'no such command'}") from None
    if len(content) > _MOST_PRINTED:
        raise SourceError("printed much more than a secret")
    if process.returncode < 0:
        raise SourceError(f"was stopped by signal {-process.returncode}")
    if process.returncode > 0:
        raise SourceError(f"failed with exit status {process.returncode}")
    return content


def program_of(command: str | Sequence[str]) -> str:
    """Return what a command is called in a sentence: its program alone, for its other words may be private."""
    try:
        return Path(words_of(command)[0]).name
    except SourceError:
        return ""


def ask_keyring(method: str, service: str, name: str, *secret: str) -> Any:
    """Ask the system's keyring; an `ImportError` where the package is not installed."""
    import keyring  # noqa: PLC0415 (few keys lie there)

    with contextlib.suppress(Exception):  # backends raise what they like
        return getattr(keyring, method)(service, name, *secret)
    raise SourceError("the system's keyring does not answer")
