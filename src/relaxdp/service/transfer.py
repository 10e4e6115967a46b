"""Files on their way, into the service or out of it: private, whole, and gone in the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from relaxdp.errors import RelaxdpError, TableFileError
from relaxdp.server_errors import MalformedRequestError, StorageUnavailableError, TooManyRequestsError
from relaxdp.service.limits import MOST_DRAINED, announced, broken_off, too_large
from relaxdp.storage.database import unacknowledged
from relaxdp.tables.atomic_files import make_temporary_folder


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a folder that nobody else can read, see `temporary_folder`; without one the service cannot work."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(make_temporary_folder())
        except TableFileError:
            raise unacknowledged(
                StorageUnavailableError(
                    "there is no place for files on their way: the folder for temporary files cannot be written to."
                )
            ) from None
        yield folder


_PART_BYTES = 256 << 10


def nameless(write: Callable[[Path], None]) -> IO[bytes]:
    """Let `write` make a file, and return it open and without a name, so that nothing of it can stay.

    While it has a name it is in a workplace, which the next one sweeps if we are killed meanwhile.
    """
    try:
        with workplace() as folder:
            write(folder / "file")
            return (folder / "file").open("rb")
    except RelaxdpError:  # a sentence already, though some of ours are of the system's kinds as well
        raise
    except OSError as problem:  # whose own text may be Arrow's, and show where the file is
        why = os.strerror(problem.errno) if problem.errno else "it is not known why"
    raise StorageUnavailableError("the file cannot be written now: {why}.", why=why)


class HandedOut(StreamingResponse):
    """An open file that is handed out whole, whatever part of it was asked for, and closed, however that ends.

    Starlette's own response needs a name, which this file has no more, and answers with parts.
    """

    def __init__(self, file: IO[bytes], name: str, media_type: str) -> None:
        self._file = file
        headers = {
            "content-length": str(os.fstat(file.fileno()).st_size),
            "content-disposition": f'attachment; filename="{name}"',
            "cache-control": "no-store",
            "accept-ranges": "none",
        }
        super().__init__(iter(partial(file.read, _PART_BYTES), b""), media_type=media_type, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, or nothing of it where only the head was asked for."""
        with self._file:
            if scope["method"] == "HEAD":
                self._file.seek(0, os.SEEK_END)
            await super().__call__(scope, receive, send)


MOST_AT_ONCE = 8
"""How many files may arrive at once: each may be as large as the limit, and takes that much of the disk."""

_WRITTEN_AT_ONCE = 1 << 20
_at_once = 0


@asynccontextmanager
async def receive_file(request: Request, *, most: int, media_type: str) -> AsyncIterator[Path]:
    """Receive the body of a request as a file that nobody else can read, and that is gone when this ends.

    It may take long, so the client must be known before it may hold a part of the disk with this.
    """
    if announced(request, media_type.encode()) > max(most, MOST_DRAINED):
        raise too_large(most)
    stack = ExitStack()
    with _one_of_a_few():
        try:
            path = await asyncio.to_thread(stack.enter_context, workplace()) / "file"
            with _storing():
                path.touch(0o600)
                file = path.open("wb", buffering=0)  # a buffer would be written once more when a full disk is given up
            with file:
                await _receive(request, file, most)
            yield path
        finally:
            await asyncio.to_thread(stack.close)


@contextmanager
def _one_of_a_few() -> Iterator[None]:
    """Count a file while it is here, and reject one too many. All requests are in one thread."""
    global _at_once  # noqa: PLW0603
    if _at_once >= MOST_AT_ONCE:
        raise TooManyRequestsError("too many files are arriving at once.")
    _at_once += 1
    try:
        yield
    finally:
        _at_once -= 1


async def _receive(request: Request, file: FileIO, most: int) -> None:
    """Write a body to a file, a part at a time and in a thread: a disk may be slow, and others are to be served."""
    parts: list[bytes] = []
    held = size = 0
    more = True
    while more and size <= most + MOST_DRAINED:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise broken_off()
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size > most:  # what is too large is read on for a while, and forgotten
            parts = []
            continue
        parts.append(part)
        held += len(part)
        if held >= _WRITTEN_AT_ONCE or not more:
            with _storing():
                await asyncio.to_thread(_write, file, parts)
            parts, held = [], 0
    if size > most:
        raise too_large(most)
    if size == 0:
        raise MalformedRequestError("the body of the request is empty.")


def _write(file: FileIO, parts: list[bytes]) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[file.write(rest) :]


@contextmanager
def _storing() -> Iterator[None]:
    """Turn the system's exceptions into a sentence without a path."""
    try:
        yield
    except OSError as problem:
        why = problem.strerror or "it is not known why"
    else:
        return
    raise StorageUnavailableError("the file cannot be kept now: {why}.", why=why)
