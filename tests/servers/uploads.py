"""A service that takes files and nothing else: python -m tests.servers.uploads DATABASE TOKEN_FILE LIMIT."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from tests.servers.collectors import Running

from relaxdp.service.application import build_application
from relaxdp.service.limits import read_body
from relaxdp.service.maintenance import prepare
from relaxdp.service.operations import Operation
from relaxdp.service.resources import Resources
from relaxdp.service.run import BACKLOG, listen, serve
from relaxdp.service.settings import Settings
from relaxdp.service.transfer import receive_file

PARQUET = "application/vnd.apache.parquet"


class UploadPart:
    """One route for a file, and one for JSON beside it."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def take_file(self, request: Request) -> Response:
        """Take a file, say what it was, and fail where that is asked for."""
        most = self._resources.settings.upload_limit
        async with receive_file(request, most=most, media_type=PARQUET) as path:
            if "fail" in request.query_params:
                raise RuntimeError("a mistake of the handler")
            seen = await asyncio.to_thread(_look, path)
        return Response(msgspec.json.encode(seen), media_type="application/json")

    async def take_json(self, request: Request) -> Response:
        """Take a body that is no file."""
        size = len(await read_body(request, self._resources.limits))
        return Response(msgspec.json.encode({"size": size}), media_type="application/json")

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "POST",
                "/v1/file",
                self.take_file,
                "Take a file.",
                body_media_type=PARQUET,
                nothing="Nothing was stored.",
            ),
            Operation("POST", "/v1/json", self.take_json, "Take JSON."),
        ]

    def parameters(self) -> dict[str, dict[str, Any]]:
        return {}

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def check(self) -> None: ...


def _look(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    own, folder = path.stat(), path.parent.stat()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    modes = [oct(each.st_mode & 0o777) for each in (own, folder)]
    return {"size": own.st_size, "digest": digest, "modes": modes, "folder": str(path.parent.parent), "peak": peak}


def build(settings: Settings) -> ASGIApp:
    """Return the application."""
    return build_application(settings, lambda resources: [UploadPart(resources)])


class Uploads(Running):
    """That service in a process of its own; its one option is its limit in bytes."""

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.kept = self.folder / "kept"
        self.kept.mkdir()
        words = [self.url, str(self.token_file), *self.options]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.servers.uploads", *words], stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True, env={**os.environ, "TMPDIR": str(self.kept)},
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text("utf-8")[-3000:]
        self.process.stdout.close()
        self.host, self.port = "127.0.0.1", int(line)


def main() -> None:
    """Serve, and print the port."""
    database, token_file, limit = sys.argv[1:]
    settings = Settings(database=database, port=0, rate=0.0, upload_limit=int(limit))
    listening, address = listen(settings)
    prepare(settings, Path(token_file))
    listening.listen(BACKLOG)
    print(address.rpartition(":")[2], flush=True)
    serve(build, settings, listening)


if __name__ == "__main__":
    main()
