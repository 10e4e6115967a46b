"""Run a command that prints a secret. Its output is never repeated in a message, because it may be the secret."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_MOST_PRINTED = 1 << 16


class SourceError(Exception):
    """Why a source gives nothing; the caller turns it into a sentence of its own."""


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
