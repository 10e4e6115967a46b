"""Workers whose parent died end too: otherwise they would keep the port, and nobody would watch over them."""

from __future__ import annotations

import asyncio
import os
import signal

_SECONDS = 1.0


async def end_with_parent() -> None:
    """Ask this process to stop once it has another parent."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
