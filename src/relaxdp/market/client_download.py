"""A file that was bought: it appears when it is whole, and when it is the one that the receipt is about."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from relaxdp.errors import ServerAnswerError, TableFileError
from relaxdp.table.temporary import aside, put_in_place

Ask = Callable[[Callable[[http.client.HTTPResponse], None]], None]
_PART = 1 << 20


def save(ask: Ask, target: Path, digest: str, moved: Callable[[int], None] | None = None) -> None:
    """Let `ask` hand an answer over, and write it to `target` if its SHA-256 is `digest`."""
    found = ""

    def receive(response: http.client.HTTPResponse) -> None:
        nonlocal found
        found = _written(response, place, target, moved)

    try:
        with aside(target) as place:
            ask(receive)
            if not hmac.compare_digest(found.encode(), digest.encode()):
                raise ServerAnswerError(
                    "the file that the market sent is not the one that its receipt is about: the digest is another. "
                    "Nothing was written."
                )
            put_in_place(place, target)
    except TableFileError as problem:
        raise TableFileError(problem.message.replace("released", "written"), **problem.fields) from None


def _written(response: http.client.HTTPResponse, place: Path, target: Path, moved: Callable[[int], None] | None) -> str:
    """Write an answer and return its digest. Problems of the disk and of the connection are told apart."""
    digest = hashlib.sha256()
    try:
        file = place.open("wb")
    except OSError as problem:
        _unwritable(target, problem)
    with file:
        while part := response.read(_PART):
            digest.update(part)
            try:
                file.write(part)
            except OSError as problem:
                _unwritable(target, problem)
            if moved is not None:
                moved(len(part))
        if response.length:  # what is shorter than it was announced is asked for again
            raise http.client.IncompleteRead(b"", response.length)
        try:
            file.flush()
            os.fsync(file.fileno())
        except OSError as problem:
            _unwritable(target, problem)
    return digest.hexdigest()


def _unwritable(target: Path, problem: OSError) -> NoReturn:
    raise TableFileError(f"{str(target)!r} cannot be written: {problem.strerror}. Nothing was written.") from None
