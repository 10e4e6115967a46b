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

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-table.md"
LABELS = [f"value-{number}" for number in range(10)]
TURNS = 3

# What one turn does, once to warm up and once for the clock; it prints seconds and peak memory.
TURN = """
import json, os, shutil, sys, time
from pathlib import Path
what, source, target, threads, labels = json.loads(sys.argv[1])
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
import pyarrow as pa, pyarrow.parquet as pq, duckdb
pa.set_cpu_count(threads)
import relaxdp as rx
from relaxdp.tables import transaction
os.environ["XDG_STATE_HOME"] = str(Path(target).with_name("state"))
def release(**more):
    shutil.rmtree(Path(target).with_name("study.vault"), ignore_errors=True)
    vault = rx.Vault.create(Path(target).with_name("study.vault"), budget=1)
    vault.release(source, {"answer": rx.Categorical(labels)}, id="id", epsilon=1, name="r", **more)
def release_unsealed():
    # The same transaction, but what was drawn from is neither packed, encrypted nor written.
    seal = transaction.PartSealer.seal_rows
    transaction.PartSealer.seal_rows = lambda self, kind, number, rows: bytes([0] * 4 + [kind])
    try:
        release(output=target)
    finally:
        transaction.PartSealer.seal_rows = seal
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
        release(output=target)
    elif what == "release without a snapshot":
        release_unsealed()
    elif what == "sort":
        connection = duckdb.connect(config={"threads": threads, "memory_limit": "600MB"})
        connection.execute(f"COPY (SELECT * FROM '{source}' ORDER BY id) TO '{target}' (FORMAT parquet)")
    elif what == "group by":
        connection = duckdb.connect(config={"threads": threads})
        connection.execute(f"SELECT answer, count(*) FROM '{source}' GROUP BY answer").fetchall()
    elif what == "group by of a frame":
        connection = duckdb.connect(config={"threads": threads})
        connection.execute("SELECT answer, count(*) FROM frame GROUP BY answer").fetchall()
    else:
        rx.estimate(frame if "frame" in what else source).interval()
frame = pq.read_table(source) if "frame" in what else None
work()  # so that imports and caches are warm
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


def make_table(path: Path, rows: int, *, shuffled: bool, is_text: bool = False) -> None:
    """Write ids and a dictionary-encoded string column of ten values, part by part."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(rows) if shuffled else np.arange(rows)
    kind = pa.string() if is_text else pa.int64()
    schema = pa.schema([("id", kind), ("answer", pa.dictionary(pa.int8(), pa.string()))])
    with pa_parquet.ParquetWriter(path, schema) as writer:
        for part in np.array_split(ids, max(1, rows // 1_000_000)):
            codes = pa.array(rng.integers(0, 10, len(part)).astype(np.int8))
            answers = pa.DictionaryArray.from_arrays(codes, pa.array(LABELS))
            own = pa.array([f"patient-{number:010d}" for number in part.tolist()]) if is_text else pa.array(part)
            writer.write_table(pa.table({"id": own, "answer": answers}, schema=schema))


def measure(rows: int, many: int, folder: Path) -> str:
    """Return the page."""
    ordered, shuffled, texts, out = (folder / f"{name}.parquet" for name in ("sorted", "shuffled", "texts", "out"))
    make_table(ordered, rows, shuffled=False)
    make_table(shuffled, rows, shuffled=True)
    make_table(texts, rows, shuffled=True, is_text=True)
    lean, _ = turn("lean rewrite", ordered, out, 2)
    two, memory = turn("release", ordered, out, 2)
    mixed_lean, _ = turn("lean rewrite", shuffled, out, 2)
    mixed, mixed_memory = turn("release", shuffled, out, 2)
    sort, _ = turn("sort", texts, out, 2)
    text, text_memory = turn("release", texts, out, 2)
    turn("release", ordered, folder / "released.parquet", 2)
    group, _ = turn("group by", folder / "released.parquet", out, 2)
    estimate, _ = turn("estimate", folder / "released.parquet", out, 2)
    frame_group, _ = turn("group by of a frame", folder / "released.parquet", out, 2)
    frame_estimate, _ = turn("estimate of a frame", folder / "released.parquet", out, 2)
    for file in (ordered, shuffled, texts):
        file.unlink()
    make_table(ordered, many, shuffled=False)
    bare, _ = turn("release without a snapshot", ordered, out, 2)
    sealed, _ = turn("release", ordered, out, 2)
    (snapshot,) = (folder / "study.vault" / "snapshots").iterdir()
    size = snapshot.stat().st_size / many
    lines = [
        "# Benchmarks of the vault",
        "",
        f"`make bench-table` wrote this page: {rows:,} rows, an id and a dictionary-encoded string column of ten "
        "values, epsilon 1, Parquet, two cores. Each release creates a vault, seals a snapshot and charges the ledger. "
        f"Best of {TURNS} turns, each in a separate process, without Python's start.",
        "",
        "| what | seconds | compared with | ratio |",
        "|---|---:|---|---:|",
        f"| release, integer ids in order | {two:.2f} | a lean rewrite with pyarrow, {lean:.2f} s | {two / lean:.2f} |",
        f"| release, integer ids shuffled | {mixed:.2f} | a lean rewrite with pyarrow, {mixed_lean:.2f} s | "
        f"{mixed / mixed_lean:.2f} |",
        f"| release, text ids shuffled | {text:.2f} | DuckDB's own sort, {sort:.2f} s | {text / sort:.2f} |",
        f"| release, {many:,} rows in order | {sealed:.2f} | the same without the snapshot ({size:.1f} bytes a row), "
        f"{bare:.2f} s | {sealed / bare:.2f} |",
        f"| estimate | {estimate:.3f} | DuckDB: connect and group by, {group:.3f} s | {estimate / group:.2f} |",
        f"| estimate of a pyarrow table | {frame_estimate:.3f} | DuckDB: connect and group by, {frame_group:.3f} s | "
        f"{frame_estimate / frame_group:.2f} |",
        "",
        f"Peak memory: {memory:.0f} MB in order, {mixed_memory:.0f} MB shuffled, {text_memory:.0f} MB with text ids.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--many", type=int, default=100_000_000, help="rows for the cost of the snapshot")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = measure(arguments.rows, arguments.many, Path(folder))
    print(page)
    if arguments.rows == parser.get_default("rows"):
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
