"""Memory beyond inputs and results must not grow with the number of objects: one fresh process per size."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from benchmarks.results import Memory, MemoryComparison


def memory_comparison(case: str, values: int, sizes: tuple[int, int], note: Callable[[str], None]) -> MemoryComparison:
    """Measure `path` or `step` for few and for many objects."""
    what = f"{case}, m = {values}"
    few, many = (_measure(what, case, values, objects, note) for objects in sizes)
    return MemoryComparison(what, few, many)


def _measure(what: str, case: str, values: int, objects: int, note: Callable[[str], None]) -> Memory:
    note(f"memory, {what}: {objects:,} objects ...")
    command = [sys.executable, "-m", "benchmarks.memory_child", case, str(values), str(objects)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Memory(**json.loads(answer))
