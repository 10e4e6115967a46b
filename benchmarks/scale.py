"""How the cost of a release grows with objects, levels and values, and what a billion objects would take.

python -m benchmarks.scale [--most N] (`make scale`) writes docs/scale.md and its picture. Every figure
comes from a process of its own, so that peak memory is its own too; it needs a quiet machine and 15 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale_page import picture, write_page
from benchmarks.table import make_table

DOCS = Path(__file__).parents[1] / "docs"

# What one process does: a warm-up on few rows, then the clock. It prints seconds and peak memory in MB.
TURN = """
import json, os, shutil, sys, time
from decimal import Decimal
from pathlib import Path
what, source, target, small, values, epsilon = json.loads(sys.argv[1])
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:1]))
import numpy as np, pyarrow as pa
pa.set_cpu_count(1)
import relaxdp as rx
from relaxdp.tables.estimate import count
KEY = rx.Key.from_bytes(bytes(32))
os.environ["XDG_STATE_HOME"] = str(Path(target).with_name("state"))
def work(source):
    Path(target).unlink(missing_ok=True)
    if what == "release":
        place = Path(target).with_name("study.vault")
        shutil.rmtree(place, ignore_errors=True)
        said = {"answer": rx.Categorical([f"value-{n}" for n in range(values)])}
        vault = rx.Vault.create(place, budget=9)
        vault.release(source, said, id="id", epsilon=Decimal(epsilon), name="r", output=target)
    elif what == "estimate":
        count([Path(source)]).groups[0][1].estimate().interval()
    else:
        rows = int(source)
        coded = rx.Categorical(range(values))
        truth = np.zeros(rows, np.uint8 if values <= 256 else np.uint32)
        coded.release(truth, np.arange(rows), key=KEY, epsilon=Decimal(epsilon), name="r", column="a")
work(small)
start = time.perf_counter()
work(source)
# Not getrusage: a child's figure begins with what its parent held when it was started.
peak = next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmHWM")) / 1000
print(json.dumps([time.perf_counter() - start, peak]))
"""


def turn(what: str, source: Any, target: Path, small: Any, values: int = 10, epsilon: str = "1") -> tuple[float, float]:
    """Return seconds and peak memory in MB; the better of two turns, because a machine is never quite quiet."""
    order = json.dumps([what, str(source), str(target), str(small), values, epsilon])
    command = [sys.executable, "-c", TURN, order]
    turns = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(2)]
    found = [json.loads(each.stdout) for each in turns]
    print(f"{what}, {source}, {values} values, epsilon {epsilon}: {min(found)[0]:.3f} s", flush=True)
    return min(seconds for seconds, _ in found), max(memory for _, memory in found)


def by_objects(folder: Path, most: int) -> list[dict[str, Any]]:
    """Measure tables of 10^4 rows and more, sorted and shuffled."""
    small, rows_of = folder / "small.parquet", []
    make_table(small, 10_000, shuffled=False)
    turn("release", small, folder / "small-out.parquet", small)
    rows = 10_000
    while rows <= most:
        source, mixed, target = folder / "in.parquet", folder / "mixed.parquet", folder / "out.parquet"
        make_table(source, rows, shuffled=False)
        make_table(mixed, rows, shuffled=True)
        shuffled, shuffled_memory = turn("release", mixed, target, small)
        release, memory = turn("release", source, target, small)
        estimate, _ = turn("estimate", target, folder / "none", folder / "small-out.parquet")
        rows_of.append(
            {
                "rows": rows,
                "release": release,
                "memory": memory,
                "shuffled": shuffled,
                "shuffled_memory": shuffled_memory,
                "estimate": estimate,
                "bytes_in": source.stat().st_size,
                "bytes_out": target.stat().st_size,
            }
        )
        for file in (source, mixed, target):
            file.unlink()
        rows *= 10
    return rows_of


def by_level_and_values(folder: Path, rows: int) -> tuple[dict[str, float], dict[int, float]]:
    """Measure the array function alone, for one million objects: nanoseconds an object."""
    none = folder / "none"
    levels = {
        epsilon: turn("array", rows, none, 10_000, epsilon=epsilon)[0] / rows * 1e9
        for epsilon in ("0.05", "0.1", "0.25", "0.5", "1", "2", "4", "8")
    }
    values = {m: turn("array", rows, none, 10_000, values=m)[0] / rows * 1e9 for m in (2, 5, 10, 100, 1000, 10_000)}
    return levels, values


def main() -> None:
    """Measure, draw and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        objects = by_objects(folder, arguments.most)
        levels, values = by_level_and_values(folder, min(1_000_000, arguments.most))
    found = {"objects": objects, "levels": levels, "values": values}
    print(json.dumps(found, indent=1))
    if arguments.most == parser.get_default("most"):
        picture(found, DOCS / "figures" / "scale.png")
        write_page(found, DOCS / "scale.md")


if __name__ == "__main__":
    main()
