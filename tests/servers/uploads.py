"""A service that takes files and nothing else: python -m tests.servers.uploads DATABASE TOKEN_FILE IDLE LIMIT."""

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
from relaxdp.service.run import BACKLOG, PatientProtocol, listen, serve
from relaxdp.service.settings import Settings
from relaxdp.service.transfer import receive_file
from relaxdp.service.worker import Worker

PARQUET = "application/vnd.apache.parquet"
passed = 0.0  # seconds on the clock by which connections are waited for, which only a test moves


class UploadPart:
    """One route for a file, and one for JSON beside it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def take_file(self, request: Request) -> Response:
        """Take a file, say what it was, and fail where that is asked for."""
        most = self._worker.settings.upload_limit
        async with receive_file(request, most=most, media_type=PARQUET) as path:
            if "fail" in request.query_params:
                raise RuntimeError("a mistake of the handler")
            seen = await asyncio.to_thread(_look, path)
        return Response(msgspec.json.encode(seen), media_type="application/json")

    async def take_json(self, request: Request) -> Response:
        """Take a body that is no file."""
        size = len(await read_body(request, self._worker.limits))
        return Response(msgspec.json.encode({"size": size}), media_type="application/json")

    async def pass_time(self, request: Request) -> Response:
        """Let so many seconds pass, for connections only."""
        global passed  # noqa: PLW0603
        passed += float(request.query_params["seconds"])
        return Response()

    def operations(self) -> list[Operation]:
        return [
            Operation("POST", "/v1/time", self.pass_time, "Let time pass."),
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
    """Return the application of one worker."""
    return build_application(settings, lambda worker: [UploadPart(worker)])


class Uploads(Running):
    """That service in a process of its own; `options` are its patience in seconds and its limit in bytes."""

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

    def pass_time(self, seconds: float) -> None:
        """Let time pass, for whoever keeps a connection waiting."""
        assert self.ask("POST", f"/v1/time?seconds={seconds}").status == 200


def main() -> None:
    """Serve, and print the port."""
    database, token_file, idle, limit = sys.argv[1:]
    PatientProtocol.now = lambda _: passed  # type: ignore[method-assign, assignment]
    settings = Settings(database=database, port=0, rate=0.0, idle_seconds=float(idle), upload_limit=int(limit))
    listening, address = listen(settings)
    prepare(settings, Path(token_file))
    listening.listen(BACKLOG)
    print(address.rpartition(":")[2], flush=True)
    serve(build, settings, listening)


if __name__ == "__main__":
    main()
