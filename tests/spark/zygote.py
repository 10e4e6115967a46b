"""A process with a Spark session that forks a driver for every release that it is given.

A driver that is killed leaves Spark and its tasks running, as on a real cluster.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import relaxdp as rx
from relaxdp.errors import RelaxdpError

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
ASKED: dict[str, Any] = {"id": "person", "name": "patients"}
COLUMNS = {"answer": ["no", "yes"]}


def run_release(session: Any, order: dict[str, Any]) -> int:
    """Release, and write the rows that came back; 2 where it is rejected."""
    folder = Path(order["folder"])
    try:
        frame = session.read.parquet(str(folder / "in.parquet"))
        made = rx.Vault(folder / "study.vault").release(frame, COLUMNS, epsilon=order["epsilon"], **ASKED)
        rows = sorted((row["person"], row["answer"]) for row in made.to_frame().collect())
        (folder / order["target"]).write_text(json.dumps([str(made.cost), rows]), "utf-8")
    except RelaxdpError as problem:
        sys.stderr.write(f"{problem.message}\n")
        return 2
    return 0


def main() -> None:
    """Serve orders until there are no more, one at a time."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    warnings.simplefilter("ignore", FutureWarning)
    builder = SparkSession.builder.appName("kills").master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session: Any = builder.getOrCreate()
    for line in sys.stdin:
        (order,) = json.loads(line)
        child = os.fork()
        if child == 0:
            # The connections to Java are the parent's; the driver makes its own.
            session.sparkContext._gateway._gateway_client.deque.clear()
            os._exit(run_release(session, order))
        print(json.dumps([child]), flush=True)
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
