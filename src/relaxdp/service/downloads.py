"""Files that are made for one answer: handed out whole, and gone afterwards."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send


class HandedOut(FileResponse):
    """A file that is handed out whole, whatever part of it was asked for, and is gone afterwards, however that ends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. A range that makes no sense would be refused in words that are not ours."""
        headers = [(name, value) for name, value in scope["headers"] if name not in (b"range", b"if-range")]
        try:
            await super().__call__({**scope, "headers": headers}, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)
