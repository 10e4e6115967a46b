"""Spark from the command line: a session for one release, whose Java process does not talk into the terminal."""

from __future__ import annotations

import atexit
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from relaxdp.errors import OptionError, SparkError, TableFileError
from relaxdp.ledger.ledger import Charge
from relaxdp.table.charging import Account
from relaxdp.table.formats import Input
from relaxdp.table.refusals import refuse_reports
from relaxdp.table.release import Outcome
from relaxdp.table.request import TableRequest

_ENDINGS = (".csv", ".arrow", ".feather", ".ipc")
# What people expect of a name; a folder of Parquet files under it would surprise them after it was charged.
_NO_FOLDERS = (*_ENDINGS, ".tsv", ".txt", ".json", ".xlsx", ".gz", ".zip")


class SparkPlace:
    """Where Spark runs and what it reads; nothing starts before it is needed."""

    def __init__(
        self, source: str, target: Path, master: str | None, worker_key: str | None, partitions: int | None
    ) -> None:
        if source.lower().endswith(_ENDINGS):
            raise OptionError("the Spark engine reads Parquet. Nothing was released.")
        if target.name.lower().endswith(_NO_FOLDERS):
            raise OptionError(
                f"{str(target)!r}: the Spark engine writes a folder of Parquet files, and its name must not end like "
                "that of another kind of file. Nothing was released."
            )
        self._source, self._master = source, master
        self._worker_key, self._partitions = worker_key, partitions
        self._log = Path(tempfile.gettempdir(), f"relaxdp-spark-{secrets.token_hex(6)}.log")
        atexit.register(self._forget)

    @cached_property
    def table(self) -> Any:
        """The table, as Spark reads it."""
        from relaxdp.table.spark import SparkInput  # noqa: PLC0415
        from relaxdp.table.spark_session import start_session  # noqa: PLC0415

        with self._logged():
            return SparkInput(start_session(self._master, log=self._log), self._source)

    def work(self, request: TableRequest, account: Account | None) -> Callable[..., Outcome]:
        """Return what does the release."""

        def run(*, threads: int, progress: Any) -> Outcome:
            with self._logged():
                outcome: Outcome = self._release(request).to_folder(request.target, account, progress=progress)
            return outcome

        return run

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """Say where Spark's log is, and leave it there, if Spark failed."""
        try:
            yield
        except SparkError as problem:
            if not self._log.exists() or not self._log.stat().st_size:
                raise
            atexit.unregister(self._forget)
            raise SparkError(f"{problem.message} Spark's log: {self._log}") from None

    def _forget(self) -> None:
        self._log.unlink(missing_ok=True)

    def quote(self, request: TableRequest, account: Account) -> Callable[[], list[Charge]]:
        """Return what tells the cost."""
        return lambda: self._release(request).quote(account)

    def _release(self, request: TableRequest) -> Any:
        from relaxdp.table.spark import SparkRelease  # noqa: PLC0415

        self._refuse_reports([each.column for each in request.columns])
        return SparkRelease(
            self.table.frame,
            request,
            names=self.table.names,
            worker_key=self._worker_key,
            partitions=self._partitions,
        )

    def _refuse_reports(self, columns: list[str]) -> None:
        """Refuse a released file that lies here: Spark does not show what a Parquet file says about itself."""
        try:
            table = Input(Path(self._source))
        except TableFileError:  # an address, or a folder that only Spark takes for a table
            return
        refuse_reports(table, columns)
