"""One call in a process of its own: how much memory it takes beyond its inputs and its result. Prints JSON.

The arguments are path or step, the number of values and the number of objects.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import relaxdp as rx
from relaxdp.hazmat import relax_once
from relaxdp.theory.epsilon import compute_threshold
from relaxdp.theory.randomized_response import compute_retention

Call = Callable[[int], NDArray[np.unsignedinteger]]

# Loads what is loaded lazily, and is too short to leave behind buffers that the measured call could reuse.
WARM_UP = 1_000


def main(case: str, values: int, objects: int) -> None:
    """Make the inputs, measure the call twice, each time in another way, and print what was found."""
    call = {"path": _path, "step": _step}[case](values, objects)
    call(WARM_UP)
    _forget_peak()
    before = _peak()
    result = call(objects)
    after = _peak()
    resident = None if before is None or after is None else after - before - result.nbytes
    del result
    tracemalloc.start()
    result = call(objects)
    allocated = tracemalloc.get_traced_memory()[1] - result.nbytes
    print(json.dumps({"objects": objects, "resident": resident, "allocated": allocated}))


def _path(values: int, objects: int) -> Call:
    truths = np.random.default_rng(1).integers(0, values, objects, dtype=np.uint8)
    object_ids, mechanism, key = np.arange(objects), rx.Categorical(range(values)), rx.Key.generate()

    def call(count: int) -> NDArray[np.unsignedinteger]:
        reports: NDArray[np.unsignedinteger] = mechanism.release(
            truths[:count], object_ids[:count], key=key, epsilon=1, name="benchmark", column="answer"
        )
        return reports

    return call


def _step(values: int, objects: int) -> Call:
    generator = np.random.default_rng(1)
    truths, last = (generator.integers(0, values, objects, dtype=np.uint8) for _ in range(2))
    old, new = (compute_retention(compute_threshold(epsilon, values)) for epsilon in ("0.5", "1"))
    return lambda count: relax_once(values, old, new, truths=truths[:count], last_reports=last[:count])


def _forget_peak() -> None:
    """Set the process's peak to what it holds now (Linux). Making the inputs may have needed more."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> int | None:
    """Return the peak of this process's memory in bytes.

    Not `ru_maxrss`: a new process inherits the peak of the one that started it, and would seem not to grow at all.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
