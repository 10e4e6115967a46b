"""Files in the bodies of requests: written to a private file as they arrive, never held in memory as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from io import FileIO
from pathlib import Path

from starlette.requests import Request

from relaxdp.errors import MalformedRequestError, StorageUnavailableError
from relaxdp.service.bodies import MOST_DRAINED, announced, broken_off, too_large
from relaxdp.service.workplace import workplace

WAITING = "relaxdp.waiting"
"""Where the scope of a request has since when its connection waits for the rest of it (`connections.py`)."""

_WRITTEN_AT_ONCE = 1 << 20


class Waiting:
    """Since when a connection waits for a request; None where it does not.

    It does not know the connection: a request that did, and is known to it, would stay in memory with it.
    """

    __slots__ = ("_clock", "since")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.since: float | None = None

    def anew(self) -> None:
        """Wait as long again, for a request that may take long as long as it does not stand still."""
        if self.since is not None:
            self.since = self._clock()


@asynccontextmanager
async def receive_file(request: Request, *, most: int, media_type: str) -> AsyncIterator[Path]:
    """Receive the body of a request as a file that nobody else can read, and that is gone when this ends.

    It may take as long as it takes, as long as the connection is never silent for too long. So whoever asks must be
    known before they may hold a connection with this.
    """
    if announced(request, media_type.encode()) > max(most, MOST_DRAINED):
        raise too_large(most)
    stack = ExitStack()
    path = await asyncio.to_thread(stack.enter_context, workplace()) / "file"
    try:
        with _storing():
            path.touch(0o600)
            file = path.open("wb", buffering=0)  # a buffer would be written once more when a full disk is given up
        with file:
            await _receive(request, file, most)
        yield path
    finally:
        await asyncio.to_thread(stack.close)


async def _receive(request: Request, file: FileIO, most: int) -> None:
    """Write a body to a file, a part at a time and in a thread: a disk may be slow, and others are to be served."""
    waiting = request.scope.get(WAITING)
    parts: list[bytes] = []
    held = size = 0
    more = True
    while more and size <= most + MOST_DRAINED:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise broken_off()
        if waiting is not None:
            waiting.anew()
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
        raise MalformedRequestError("the body of the request is empty. Nothing was stored.")


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
    raise StorageUnavailableError(f"the file cannot be kept now: {why}. Nothing was stored.")
