"""Spark from file to file: a session for one release, whose Java process does not talk into the terminal."""

from __future__ import annotations

import atexit
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from relaxdp.errors import OptionError, SparkError, TableFileError
from relaxdp.table.formats import Input
from relaxdp.table.publication import Drawing, Progress
from relaxdp.table.release import refuse_reports
from relaxdp.table.request import ReleaseRequest

_ENDINGS = (".csv", ".arrow", ".feather", ".ipc")
# What people expect of a name; a folder of Parquet files under it would surprise them after it was charged.
_NO_FOLDERS = (*_ENDINGS, ".tsv", ".txt", ".json", ".xlsx", ".gz", ".zip")


class SparkPlace:
    """Where Spark runs and what it reads; nothing starts before it is needed."""

    def __init__(
        self,
        source: str,
        target: Path,
        *,
        master: str | None = None,
        worker_key: str | None = None,
        partitions: int | None = None,
    ) -> None:
        if source.lower().endswith(_ENDINGS):
            raise OptionError("the Spark engine reads Parquet.")
        if target.name.lower().endswith(_NO_FOLDERS):
            raise OptionError(
                "{target!r}: the Spark engine writes a folder of Parquet files, and its name must not end "
                "like that of another kind of file.",
                target=str(target),
            )
        self._source, self._target, self._master = source, target, master
        self._worker_key, self._partitions = worker_key, partitions
        self._log = Path(tempfile.gettempdir(), f"relaxdp-spark-{secrets.token_hex(6)}.log")
        atexit.register(self._forget)

    @cached_property
    def table(self) -> Any:
        """The table, as Spark reads it."""
        from relaxdp.table.spark import SparkInput  # noqa: PLC0415
        from relaxdp.table.spark_session import start_session  # noqa: PLC0415

        with self.logged():
            return SparkInput(start_session(self._master, log=self._log), self._source)

    def drawing(self, request: ReleaseRequest, progress: Progress | None = None) -> Drawing:
        """Return what draws from the table into the folder."""
        from relaxdp.table.spark import SparkFolderDrawing  # noqa: PLC0415

        self._refuse_reports([each.column for each in request.columns])
        return SparkFolderDrawing(
            self.table.frame,
            request,
            self._target,
            names=self.table.names,
            worker_key=self._worker_key,
            partitions=self._partitions,
            progress=progress,
        )

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Say where Spark's log is, and leave it there, if Spark failed."""
        try:
            yield
        except SparkError as problem:
            if self._log.exists() and self._log.stat().st_size:
                atexit.unregister(self._forget)
                problem.remedy, problem.fields["log"] = "spark_log", str(self._log)
            raise

    def _forget(self) -> None:
        self._log.unlink(missing_ok=True)

    def _refuse_reports(self, columns: list[str]) -> None:
        """Refuse a released file that lies here: Spark does not show what a Parquet file says about itself."""
        try:
            table = Input(Path(self._source))
        except TableFileError:  # an address, or a folder that only Spark takes for a table
            return
        refuse_reports(table, columns)
