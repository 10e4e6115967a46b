"""Files that are made for one answer: handed out whole, and gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from relaxdp.errors import RelaxdpError, StorageUnavailableError
from relaxdp.service.workplace import workplace

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
    raise StorageUnavailableError(f"the file cannot be written now: {why}. Nothing was handed out.")


class HandedOut(StreamingResponse):
    """An open file that is handed out whole, whatever part of it was asked for, and closed, however that ends."""

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
