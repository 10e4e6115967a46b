"""The part of the adapter that uses Spark, in a separate process: a session cannot be shared with other tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golden import driver

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def run_spark(folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Release a table as a Spark DataFrame at several levels, and return reports, accounts and estimates.

    `asked` has the `table`, the `values` of each column, `id`, `name`, `epsilons`, the `passthrough` columns, the `key`
    in hexadecimal digits, and the `budget`.
    """
    folder.mkdir()
    arguments = [sys.executable, "-m", "tests.golden.driver_spark", str(folder)]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder)}
    done = subprocess.run(
        arguments, input=json.dumps(asked), env=os.environ | environment, cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads((folder / "answer.json").read_text("utf-8"))
    return answer


def release_levels(session: Any, folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Release at every level, and estimate the first column from the last release."""
    holder = driver.DataHolder(folder / "holder", key=bytes.fromhex(asked["key"]), budget=asked["budget"])
    names = list(asked["table"])
    rows = list(zip(*asked["table"].values(), strict=True))
    frame = session.createDataFrame(rows, names).repartition(3)
    columns = {column: driver.k_ary(values) for column, values in asked["values"].items()}
    where: dict[str, Any] = {"id": asked["id"], "name": asked["name"], "passthrough": asked["passthrough"]}
    steps = []
    for epsilon in asked["epsilons"]:
        made = holder.release(frame, columns, epsilon=epsilon, **where)
        steps.append(
            {
                "is_spark": type(made.table).__module__.startswith("pyspark"),
                "ids": made.ids,
                "reports": made.reports,
                "passthrough": made.passthrough,
                "costs": made.costs,
                "spent": str(holder.account()["spent"]),
            }
        )
    column, by = next(iter(columns)), asked["passthrough"][0]
    groups = {group: each.table() for group, each in driver.estimate_groups(made, column, by=by).items()}
    estimates = {"all": driver.estimate(made, column).table(), "groups": groups}
    return {"steps": steps, **estimates, "history": holder.history()}


def main(folder: Path) -> None:
    """Read what is asked from standard input, and write the answer to a file of the folder."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    warnings.simplefilter("ignore", FutureWarning)
    builder = SparkSession.builder.appName("golden").master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()
    try:
        answer = release_levels(session, folder, json.load(sys.stdin))
    finally:
        session.stop()
    (folder / "answer.json").write_text(json.dumps(answer), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
