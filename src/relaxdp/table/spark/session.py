"""Spark: a session that is started for one release or lent, its log, and what it says in our sentences."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Event, Thread
from typing import Any

from relaxdp.errors import MissingPartError, OptionError, SparkError, TableFileError
from relaxdp.publication.request import ReleaseRequest
from relaxdp.publication.transaction import Drawing, Progress
from relaxdp.table.formats import Input
from relaxdp.table.release import refuse_reports
from relaxdp.table.spark.worker import BATCH_ROWS


def start_session(master: str | None, *, log: Path | None = None) -> Any:
    """Return a Spark session on `master`; without one, where spark-submit or Spark's own settings say, else here.

    What the Java process says while it runs goes to `log` if one is named: a terminal is no place for it.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("this needs Spark: pip install 'relaxdp[spark]'.") from None
    if "PYSPARK_GATEWAY_PORT" not in os.environ and SparkSession.getActiveSession() is None:
        _require_java()
    here = master is None or master.startswith("local")
    if here:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("relaxdp release")
    settings = {"spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
    if here:  # a page for everybody who can reach this machine is nothing that was asked for
        settings["spark.ui.enabled"] = "false"
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder = builder if master is None else builder.master(master)
    with _stderr_to(log), _quiet():
        try:
            session = builder.getOrCreate()
        except Exception:
            session = None
    if session is None:
        where = "here" if here else f"at {master}"
        raise SparkError("Spark could not start {where}: is the address right, and Java 17 or newer?", where=where)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
    return session


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        where = "JAVA_HOME does not lead to it" if home else "it is not on the PATH"
        raise SparkError(
            "Spark needs Java 17 or newer, and {where}. On Debian: apt-get install openjdk-17-jre-headless.",
            where=where,
        )


_NO_UUIDS = "FIXED_LEN_BYTE_ARRAY (UUID)"
"""What Spark calls a column that it does not read without being told its schema."""


@contextmanager
def spark_sentences() -> Iterator[None]:
    """Turn what Spark raises into one sentence: its own text has pages, and may show plans and paths."""
    with _quiet():
        try:
            yield
        except Exception as problem:
            is_gone = isinstance(problem, ConnectionError)
            if not is_gone and type(problem).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            kind = "UUID" if _NO_UUIDS in str(problem) else type(problem).__name__
        else:
            return
    what = {
        "UUID": "reads UUIDs only from a file, or a folder of files, whose path is on this machine",
        "AnalysisException": "could not read the table: it is not there, or is not Parquet",
        "PythonException": "gave up on a task that failed again and again; its log says which",
    }.get(kind, "stopped before the work was done; its log says why")
    error = SparkError("Spark {what}.", what=what)
    try:
        raise error
    finally:
        # What Spark raised would come along, and it quotes cells.
        error.__context__ = None


@contextmanager
def watched(session: Any, progress: Any) -> Iterator[None]:
    """Tell `progress` how many tasks of the stage under way are done, until the block ends."""
    over = Event()

    def look() -> None:
        tracker = session.sparkContext.statusTracker()
        while not over.wait(0.3):
            for stage in tracker.getActiveStageIds():
                found = tracker.getStageInfo(stage)
                if found is not None and found.numTasks:
                    progress(found.numCompletedTasks, found.numTasks)

    watcher = Thread(target=look, daemon=True)
    if progress is not None:
        watcher.start()
    try:
        yield
    finally:
        over.set()
        if progress is not None:
            watcher.join()


@contextmanager
def _no_contexts() -> Iterator[None]:
    """Keep pyspark from logging what it raises: the text quotes the cell that an expression could not take."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415
    except ImportError:  # before Spark 4 nothing is logged
        yield
        return
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]

    def nothing(_: Any) -> bool:
        return False

    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), _no_contexts():
        # pyspark warns of pandas 3, which it only needs for functions that are not used here.
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        warnings.filterwarnings("ignore", message=".*pandas >= 3.*")
        yield


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Let a process that starts within the block write its errors to a file; it keeps the descriptor."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(descriptor, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(descriptor)
        os.close(kept)


# What people expect of a name; a folder of Parquet files under it would surprise them after it was charged.
_OTHER_FILES = (
    ".csv", ".tsv", ".gz", ".zst", ".arrow", ".feather", ".ipc", ".xlsx", ".txt", ".json", ".jsonl", ".zip",
)  # fmt: skip


_WORTH = 1_000_000
"""So many rows are worth a core."""


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
        if source.lower().endswith(_OTHER_FILES):
            raise OptionError("the Spark engine reads Parquet.")
        if target.name.lower().endswith(_OTHER_FILES):
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
        from relaxdp.table.spark.release import SparkInput  # noqa: PLC0415

        with self.logged():
            return SparkInput(start_session(self._master, log=self._log), self._source)

    def drawing(self, request: ReleaseRequest, progress: Progress | None = None) -> Drawing:
        """Return what draws from the table into the folder."""
        from relaxdp.table.spark.release import SparkFolderDrawing  # noqa: PLC0415
        from relaxdp.table.spark.runs import SparkRunsDrawing, ascending_pieces  # noqa: PLC0415

        self._refuse_reports([each.column for each in request.columns])
        pieces = ascending_pieces(self._source, request.id_column, request.input_columns())
        options: Any = {
            "names": self.table.names, "types": self.table.types, "worker_key": self._worker_key,
            "partitions": self._partitions, "progress": progress,
        }  # fmt: skip
        # So few row groups that cores would wait, or fewer than the tasks that were asked for: Spark cuts them up.
        context = self.table.frame.sparkSession.sparkContext
        tasks = self._partitions or min(context.defaultParallelism, sum(each.rows for each in pieces or ()) // _WORTH)
        if pieces is None or len(pieces) < tasks:
            drawing = SparkFolderDrawing(self.table.frame, request, self._target, **options)
        else:
            drawing = SparkRunsDrawing(self.table.frame, request, self._target, pieces=pieces, **options)
        drawing.is_faster_locally = pieces is not None and context.master.startswith("local")
        return drawing

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
