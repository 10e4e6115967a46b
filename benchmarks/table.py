"""`relaxdp release` and `estimate` on ten million rows, beside what reading, writing, sorting and counting cost.

python -m benchmarks.table [--rows N] (`make bench-table`) writes docs/benchmarks-table.md. Each figure is the best of
three turns, and every turn is a process of its own, so that peak memory is its own too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

import relaxdp as rx

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-table.md"
LABELS = [f"value-{number}" for number in range(10)]
TURNS = 3

# What one turn does, once to warm up (on Spark more often) and once for the clock; it prints seconds and peak memory.
TURN = """
import json, os, shutil, sys, time
from pathlib import Path
what, source, target, threads, labels = json.loads(sys.argv[1])
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
import pyarrow as pa, pyarrow.parquet as pq, duckdb
pa.set_cpu_count(threads)
import relaxdp as rx
from decimal import Decimal
from relaxdp.table.counting import count
from relaxdp.table.release import release_table
from relaxdp.publication.request import ColumnRequest, TableRequest
def work():
    shutil.rmtree(target) if Path(target).is_dir() else Path(target).unlink(missing_ok=True)
    if what in ("rewrite", "lean rewrite"):
        settings = {"compression": "zstd", "compression_level": 1}
        if what == "lean rewrite":  # as a release is written
            settings |= {"use_dictionary": ["answer"], "column_encoding": {"id": "DELTA_BINARY_PACKED"}}
        with pq.ParquetFile(source) as file:
            with pq.ParquetWriter(target, file.schema_arrow, **settings) as writer:
                for batch in file.iter_batches(1 << 18, columns=["id", "answer"]):
                    writer.write_batch(batch)
    elif what == "release":
        columns = [ColumnRequest("answer", rx.Categorical(labels))]
        key = rx.Key.from_bytes(bytes(32))
        request = TableRequest(
            source=Path(source),
            target=Path(target),
            id_column="id",
            columns=columns,
            epsilon=Decimal(1),
            key=key,
            release="r",
        )
        release_table(request, None, threads=threads)
    elif what in ("paid", "paid and kept"):
        for left in Path(target).parent.glob("ledger*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        os.environ["XDG_STATE_HOME"] = str(Path(target).parent / "ledger-state")
        rx.release(
            source, {"answer": labels}, to=target, id="id", epsilon=1, key=rx.Key.from_bytes(bytes(32)), release="r",
            ledger=Path(target).with_name("ledger"), budget=1, threads=threads, snapshots=what == "paid and kept",
        )
    elif what == "release on Spark":
        said, key, where = {"answer": labels}, Path(target).with_name("key"), f"local[{threads}]"
        rx.release(source, said, to=target, id="id", epsilon=1, key=key, ledger=None, engine="spark", master=where)
    elif what == "sort":
        connection = duckdb.connect(config={"threads": threads, "memory_limit": "600MB"})
        connection.execute(f"COPY (SELECT * FROM '{source}' ORDER BY id) TO '{target}' (FORMAT parquet)")
    elif what == "group by":
        connection = duckdb.connect(config={"threads": threads})
        connection.execute(f"SELECT answer, count(*) FROM '{source}' GROUP BY answer").fetchall()
    else:
        count([Path(source)]).groups[0][1].estimate().interval()
# Imports, caches and the file system's own are warm for everybody; what Java runs often, it compiles.
for _ in range(6 if what == "release on Spark" else 1):
    work()
start = time.perf_counter()
work()
seconds = time.perf_counter() - start
# Not getrusage: a child's figure begins with what its parent held when it was started.
peak = next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmHWM")) / 1000
print(json.dumps([seconds, peak]))
"""


def turn(what: str, source: Path, target: Path, threads: int = 1) -> tuple[float, float]:
    """Return the best time in seconds and the largest peak of memory in MB, over a few turns."""
    order = json.dumps([what, str(source), str(target), threads, LABELS])
    command = [sys.executable, "-c", TURN, order]
    turns = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(TURNS)]
    results = [json.loads(each.stdout.splitlines()[-1]) for each in turns]  # DuckDB may have drawn a bar before
    print(f"{what}, {source.name}, {threads} thread(s): {min(results)[0]:.2f} s", flush=True)
    return min(seconds for seconds, _ in results), max(memory for _, memory in results)


def make_table(path: Path, rows: int, *, shuffled: bool) -> None:
    """Write integer ids and a dictionary-encoded string column of ten values, part by part."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(rows) if shuffled else np.arange(rows)
    schema = pa.schema([("id", pa.int64()), ("answer", pa.dictionary(pa.int8(), pa.string()))])
    with pa_parquet.ParquetWriter(path, schema) as writer:
        for part in np.array_split(ids, max(1, rows // 1_000_000)):
            codes = pa.array(rng.integers(0, 10, len(part)).astype(np.int8))
            answers = pa.DictionaryArray.from_arrays(codes, pa.array(LABELS))
            writer.write_table(pa.table({"id": part, "answer": answers}, schema=schema))


def measure(rows: int, folder: Path) -> str:
    """Return the page."""
    ordered, shuffled, out = folder / "sorted.parquet", folder / "shuffled.parquet", folder / "out.parquet"
    make_table(ordered, rows, shuffled=False)
    make_table(shuffled, rows, shuffled=True)
    rewrite, _ = turn("rewrite", ordered, out)
    lean, _ = turn("lean rewrite", ordered, out)
    one, one_memory = turn("release", ordered, out)
    two, two_memory = turn("release", ordered, out, 2)
    paid, _ = turn("paid", ordered, out, 2)
    kept, _ = turn("paid and kept", ordered, out, 2)
    (snapshot,) = (folder / "ledger.snapshots").iterdir()
    size = snapshot.stat().st_size / rows
    rx.Key.generate().save(folder / "key")
    spark, _ = turn("release on Spark", ordered, folder / "out", 2)
    mixed_rewrite, _ = turn("rewrite", shuffled, out)
    sort, _ = turn("sort", shuffled, out)
    mixed, mixed_memory = turn("release", shuffled, out)
    turn("release", ordered, folder / "released.parquet")
    group, _ = turn("group by", folder / "released.parquet", out)
    estimate, _ = turn("estimate", folder / "released.parquet", out)
    lines = [
        "# Benchmarks of the table tool",
        "",
        f"`make bench-table` wrote this page: {rows:,} rows, an integer id and a dictionary-encoded string column of "
        f"ten values, epsilon 1, Parquet. Best of {TURNS} turns, each in a process of its own, without Python's start.",
        "",
        "| what | seconds | compared with | ratio | target |",
        "|---|---:|---|---:|---:|",
        f"| release, sorted by id, one core | {one:.2f} | read and rewrite with pyarrow, {rewrite:.2f} s | "
        f"{one / rewrite:.2f} | ≤ 5 |",
        f"| the same | {one:.2f} | the same, written as a release is, {lean:.2f} s | {one / lean:.2f} | ≤ 1.5 |",
        f"| release, shuffled, one core | {mixed:.2f} | 5 rewrites and DuckDB's sort ({sort:.2f} s) | "
        f"{mixed / (5 * mixed_rewrite + sort):.2f} | ≤ 1 |",
        f"| release, sorted, two cores | {two:.2f} | one core | {one / two:.2f} times as fast | ≥ 1.5 |",
        f"| release, two cores, with a ledger and a snapshot of {size:.1f} bytes a row | {kept:.2f} | without the "
        f"snapshot, {paid:.2f} s | {kept / paid:.2f} | ≤ 1.2 |",
        f"| release, sorted, two cores of Spark (`local[2]`, the seventh in one session) | {spark:.2f} | the local "
        f"engine, core beside core | {two / spark:.2f} of it on two, {one / spark / 2:.2f} of it on one | ≥ 0.4 |",
        f"| estimate, one core | {estimate:.3f} | DuckDB: connect and group by, {group:.3f} s | "
        f"{estimate / group:.2f} | ≤ 1.5 |",
        "",
        f"Peak memory: {one_memory:.0f} MB (one core), {two_memory:.0f} MB (two), {mixed_memory:.0f} MB (shuffled).",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = measure(arguments.rows, Path(folder))
    print(page)
    if arguments.rows == parser.get_default("rows"):
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
