"""One release of many rows by Spark on this machine: seconds, rows and the memory of all its processes together."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.table import LABELS, make_table


def spark_run(folder: Path, rows: int) -> dict[str, Any]:
    """Release `rows` shuffled rows through `relaxdp release --engine spark`, and watch the processes that it starts."""
    source, target = folder / "spark-in.parquet", folder / "spark-out"
    make_table(source, rows, shuffled=True)
    command = [sys.executable, "-m", "relaxdp"]
    subprocess.run([*command, "keygen", "key"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    release = ["release", source.name, target.name, "--id", "id", "--column", "answer", "--values", ",".join(LABELS)]
    options = ["--epsilon", "1", "--key", "key", "--budget", "5", "--engine", "spark", "--master", "local[2,4]"]
    start, peak, workers = time.perf_counter(), 0.0, 0.0
    running = subprocess.Popen([*command, *release, *options], cwd=folder, start_new_session=True)
    while running.poll() is None:
        sizes = _sizes(running.pid)
        peak = max(peak, sum(size for _, size in sizes))
        workers = max(workers, max((size for name, size in sizes if name != "java"), default=0.0))
        time.sleep(0.25)
    seconds = time.perf_counter() - start
    if running.returncode:
        raise SystemExit("the Spark release failed")
    sizes_out = sum(file.stat().st_size for file in target.iterdir())
    found = {"rows": rows, "seconds": seconds, "peak": peak, "worker": workers, "bytes_out": sizes_out}
    print(f"spark: {found}", flush=True)
    return found


def _sizes(session: int) -> list[tuple[str, float]]:
    """Return name and resident memory in MB, pages shared with others divided among them, of a session's processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = folder.joinpath("stat").read_text().rpartition(")")[::2]
            if int(fields.split()[3]) != session:
                continue
            lines = folder.joinpath("smaps_rollup").read_text().splitlines()
            size = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (OSError, StopIteration, ValueError):
            continue
        found.append((name.partition("(")[2], size / 1000))
    return found
