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

from relaxdp.errors import (
    MalformedRequestError,
    RelaxdpError,
    RequestTimeoutError,
    StorageUnavailableError,
    TableFileError,
    TooManyRequestsError,
)
from relaxdp.publication.staging import temporary_folder
from relaxdp.service.limits import MOST_DRAINED, announced, broken_off, too_large
from relaxdp.storage.database import unacknowledged


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a folder that nobody else can read, see `temporary_folder`; without one the service cannot work."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder())
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


WAITING = "relaxdp.waiting"
"""Where the scope of a request has since when its connection waits for the rest of it (`run.py`)."""

LEAST_RATE = 10_000
"""How many bytes of a file must arrive in a second, once it has been waited for as long as for any request."""

MOST_AT_ONCE = 8
"""How many files a worker has at once: each may be as large as the limit, and takes that much of the disk."""

_WRITTEN_AT_ONCE = 1 << 20
_at_once = 0


class Waiting:
    """Since when a connection waits for a request, None where it does not, and for how many seconds it may.

    It does not know the connection: a request that did, and is known to it, would stay in memory with it.
    """

    __slots__ = ("clock", "patience", "since")

    def __init__(self, clock: Callable[[], float], patience: float) -> None:
        self.clock, self.patience = clock, patience
        self.since: float | None = None

    def anew(self) -> None:
        """Wait as long again, for a request that may take long as long as it does not stand still."""
        if self.since is not None:
            self.since = self.clock()


@asynccontextmanager
async def receive_file(request: Request, *, most: int, media_type: str) -> AsyncIterator[Path]:
    """Receive the body of a request as a file that nobody else can read, and that is gone when this ends.

    It may take long, as long as the connection is never silent for too long and not too slow for long. So whoever asks
    must be known before they may hold a connection and a part of the disk with this.
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
    """Count a file while it is here, and refuse one too many. All of a worker's requests are in one thread."""
    global _at_once  # noqa: PLW0603
    if _at_once >= MOST_AT_ONCE:
        raise TooManyRequestsError("too many files are arriving at once.")
    _at_once += 1
    try:
        yield
    finally:
        _at_once -= 1


class _Pace:
    """How long a file may still be waited for: each part of it adds the seconds that it may take, up to the patience.

    So the rate is one of the last while: what came fast at first does not pay for hours of drops. Time in which we
    write is ours and does not count.
    """

    def __init__(self, waiting: Waiting) -> None:
        self._waiting, self._left, self._asked = waiting, waiting.patience, 0.0

    def ask(self) -> None:
        """Start to wait for a part."""
        self._asked = self._waiting.clock()

    def arrived(self, size: int) -> None:
        """Note that a part came; refuse what is too slow."""
        self._left += size / LEAST_RATE - (self._waiting.clock() - self._asked)
        if self._left < 0:
            raise RequestTimeoutError(
                "the file arrives too slowly: after {seconds:g} seconds, at least {bytes:,} bytes must arrive in a "
                "second.",
                seconds=self._waiting.patience,
                bytes=LEAST_RATE,
            )
        self._left = min(self._left, self._waiting.patience)
        self._waiting.anew()


async def _receive(request: Request, file: FileIO, most: int) -> None:
    """Write a body to a file, a part at a time and in a thread: a disk may be slow, and others are to be served."""
    waiting = request.scope.get(WAITING)
    pace = None if waiting is None else _Pace(waiting)
    parts: list[bytes] = []
    held = size = 0
    more = True
    while more and size <= most + MOST_DRAINED:
        if pace is not None:
            pace.ask()
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise broken_off()
        part = message.get("body", b"")
        if pace is not None:
            pace.arrived(len(part))
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
