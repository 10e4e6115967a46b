"""One real Spark session for all tests here: two cores, and four attempts for every task."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import require

MASTER = "local[2,4]"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start Spark. Everything that it would write down anywhere is kept, so that a test can search it."""
    require("java")
    from pyspark.sql import SparkSession  # noqa: PLC0415

    folder: Path = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.eventLog.compress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.enabled": "false",  # it would join small partitions, and a test states how many there are
        "spark.local.dir": str(folder),
        "spark.driver.memory": "1g",
        # A Java that lives for seconds does not earn what its second compiler and its parallel collector cost.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.log.level": "ERROR",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("tests").master(MASTER)
        for name, value in settings.items():
            builder = builder.config(name, value)
        session: Any = builder.getOrCreate()
        session.relaxdp_folder = folder
        yield session
        session.stop()
