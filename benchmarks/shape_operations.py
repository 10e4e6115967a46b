"""Which files an operation visits, and how often it goes from one package to another.

What counts is what somebody meets who follows the operation for the first time: its functions in the order in which
they are first entered. *Files* are the files of these functions; a *switch* is a function in another package than the
function before it. A module that stands in no package is one of its own. Lambdas and comprehensions belong to the
function that they are written in. Every thread has an order of its own, since it is chance how threads take turns. An
operation is done twice, and the second time is the one that counts: then everything is loaded.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.collector.component import CollectorComponent
from relaxdp.market.listings import PreparedLevel, add_level, create_listing, find_listing
from relaxdp.market.orders import request_order
from relaxdp.market.publish import draw_levels
from relaxdp.market.receipts import Signer, create_signing_key
from relaxdp.service.application import build_application
from relaxdp.service.maintenance import prepare
from relaxdp.service.schema import SCHEMA
from relaxdp.service.settings import Settings
from relaxdp.storage.database import Database

Operation = Callable[[str], object]
"""Does an operation once, under a name that was not used before."""
VALUES = ["flu", "covid", "none"]


class Steps:
    """The functions of a source folder that were entered, by thread, in the order of their first times."""

    def __init__(self, source: Path) -> None:
        self._prefix, self.counts = f"{source}{os.sep}", False
        self._entered: dict[int, dict[tuple[str, str], None]] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as `sys.setprofile` wants it."""
        code = frame.f_code
        if self.counts and event == "call" and code.co_filename.startswith(self._prefix) and code.co_name[0] != "<":
            entered = self._entered.setdefault(threading.get_ident(), {})
            entered[code.co_filename.removeprefix(self._prefix), code.co_qualname] = None

    @property
    def files(self) -> set[str]:
        """The files that were visited."""
        return {file for entered in self._entered.values() for file, _ in entered}

    @property
    def switches(self) -> int:
        """How often the package changed."""
        orders = [[Path(file).parts[0] for file, _ in entered] for entered in self._entered.values()]
        return sum(one != other for order in orders for one, other in pairwise(order))

    @property
    def packages(self) -> list[str]:
        """The files by package, packages in the order in which they are first met."""
        found: dict[str, dict[str, None]] = {}
        for file in (file for entered in self._entered.values() for file, _ in entered):
            package, *rest = Path(file).parts
            found.setdefault(package.removesuffix(".py"), {})["/".join(rest).removesuffix(".py")] = None
        return [f"{package} ({', '.join(files)})" if all(files) else package for package, files in found.items()]


def follow_operation(context: Callable[[Path], AbstractContextManager[Operation]], source: Path) -> Steps:
    """Return the steps of an operation that was done once before."""
    steps, state = Steps(source), os.environ.get("XDG_STATE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))  # keys leave marks there
        threading.setprofile(steps)
        sys.setprofile(steps)
        try:
            with context(Path(folder)) as operation:
                operation("first")
                steps.counts = True
                operation("second")
                steps.counts = False
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            os.environ.pop("XDG_STATE_HOME")
            if state is not None:
                os.environ["XDG_STATE_HOME"] = state
    return steps


@contextmanager
def release_by_function(folder: Path) -> Iterator[Operation]:
    """Release a column from file to file, with a vault that is open."""
    source, vault = _table(folder), rx.Vault.create(folder / "study.vault", budget=9)

    def operation(name: str) -> None:
        vault.release(source, {"answer": VALUES}, id="id", epsilon=1, name=name, output=folder / f"{name}.parquet")

    yield operation


@contextmanager
def release_by_command(folder: Path) -> Iterator[Operation]:
    """Release the same column with `relaxdp release`."""
    source, vault = _table(folder), str(folder / "study.vault")
    rx.Vault.create(vault, budget=9)

    def operation(name: str) -> None:
        words = ["--id", "id", "--column", f"answer={','.join(VALUES)}", "--epsilon", "1", "--vault", vault]
        _command("release", str(source), str(folder / f"{name}.parquet"), "--name", name, *words)

    yield operation


@contextmanager
def estimate_by_command(folder: Path) -> Iterator[Operation]:
    """Estimate from one released file with `relaxdp estimate`."""
    released = str(folder / "released.parquet")
    rx.Vault.create(folder / "study.vault", budget=9).release(
        _table(folder), {"answer": VALUES}, id="id", epsilon=1, name="survey", output=released
    )
    yield lambda _: _command("estimate", released)


@contextmanager
def sale(folder: Path) -> Iterator[Operation]:
    """Order the level of a listing that approves orders at once."""
    vault = rx.Vault.create(folder / "study.vault", budget=9)
    vault.release(_table(folder), {"answer": VALUES}, id="id", epsilon=1, name="survey")
    (level,) = draw_levels(vault, "survey", "answer", [Decimal(1)], None)
    signer, database = Signer(create_signing_key()), Database(str(folder / "market.db"))
    database.prepare(SCHEMA)
    with database.writing() as connection:
        listing = create_listing(
            connection, listing_id="survey", kind="release", seller="seller", description=level.description,
            column=level.column, id_column=level.id_column, currency="EUR", title=None, about=None,
            approval="automatic",
        )  # fmt: skip
        add_level(connection, listing, PreparedLevel.create(level, folder), "60")

    def operation(buyer: str) -> None:
        with database.writing() as connection:
            listing = find_listing(connection, "survey")
            request_order(connection, listing, buyer, "1", upgrade=False, signer=signer, now=0)

    yield operation
    database.close()


@contextmanager
def device_report(folder: Path) -> Iterator[Operation]:
    """Send a device's report to the collector's application, without a socket between them."""
    settings = Settings(database=f"sqlite:///{folder}/service.db", request_log=False)
    token = prepare(settings)
    app: Any = build_application(settings, lambda resources: [CollectorComponent(resources)])
    level = rx.Categorical(VALUES).level(1)
    report = {"level": {"epsilon": "1", "threshold": str(level.threshold)}, "report": "flu"}
    asked = {"question": "?", "encoding": {"name": "categorical", "values": VALUES}, "levels": [{"epsilon": "1"}]}
    started, stop = asyncio.Event(), asyncio.Event()

    async def receive() -> Any:
        return {"type": "lifespan.shutdown" if started.is_set() and await stop.wait() else "lifespan.startup"}

    async def send(message: Any) -> None:
        assert message["type"] in ("lifespan.startup.complete", "lifespan.shutdown.complete"), message
        started.set()

    async def begin() -> tuple[asyncio.Task[None], str]:
        life = asyncio.create_task(app({"type": "lifespan"}, receive, send))
        await started.wait()
        await asyncio.sleep(0.5)  # what the service does at its start is over then
        made = await _ask(app, "/v1/campaigns", asked, f"Bearer {token}")
        return life, f"/v1/campaigns/{made['id']}/reports"

    async def end(life: asyncio.Task[None]) -> None:
        stop.set()
        await life

    with asyncio.Runner() as runner:
        life, path = runner.run(begin())
        yield lambda _: runner.run(_ask(app, path, {"device": secrets.token_hex(16), **report}))
        runner.run(end(life))
    gc.unfreeze()  # a service never ends, so it has frozen what was there


OPERATIONS: dict[str, Callable[[Path], AbstractContextManager[Operation]]] = {
    "one release, by command": release_by_command,
    "one release, by function": release_by_function,
    "one estimate, by command": estimate_by_command,
    "one sale": sale,
    "one report of a device": device_report,
}


def _table(folder: Path) -> Path:
    place = folder / "table.parquet"
    pa_parquet.write_table(pa.table({"id": range(300), "answer": VALUES * 100}), place)
    return place


def _command(*words: str) -> None:
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == 0, (result.output, result.exception)


async def _ask(app: Any, path: str, body: Any, authorization: str = "") -> Any:
    headers = [(b"content-type", b"application/json"), (b"authorization", authorization.encode())]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "scheme": "http",
             "http_version": "1.1", "root_path": ""}  # fmt: skip
    answers: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    await app(scope, receive, send)
    content = b"".join(each.get("body", b"") for each in answers)
    assert answers[0]["status"] < 300, content
    return json.loads(content)
