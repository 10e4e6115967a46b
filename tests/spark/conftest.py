"""One real Spark session for all tests here: two cores, and four attempts for every task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import require

from relaxdp.table.spark.session import start_session

MASTER = "local[2,4]"


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """A Java that lives for seconds does not earn what its second compiler and its parallel collector cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    require("java")
    folder: Path = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        events = folder / "events"
        events.mkdir()
        # Everything that Spark would write down anywhere is kept, so that a test can look for what must not be there.
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(events),
            "spark.eventLog.compress": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.shuffle.partitions": "4",
            "spark.local.dir": str(folder),
            "spark.driver.memory": "1g",
        }
        arguments = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
        session = start_session(MASTER, log=folder / "spark.log")
        session.relaxdp_folder = folder
        yield session
        session.stop()
