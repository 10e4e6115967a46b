"""A Spark session: found or started, and every problem with it one sentence."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from relaxdp.errors import MissingPartError, SparkError
from relaxdp.table.spark_worker import BATCH_ROWS


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


@contextmanager
def spark_sentences() -> Iterator[None]:
    """Turn what Spark raises into one sentence: its own text has pages, and may show plans and paths."""
    with _quiet():
        try:
            yield
        except Exception as problem:
            if type(problem).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            kind = type(problem).__name__
        else:
            return
    what = {
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
