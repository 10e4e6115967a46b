"""What a process wanted and what it was told, written down before and after, so that a kill takes none of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Line = dict[str, Any]


class Attempt(NamedTuple):
    """Something that a process tried, and how it ended: `done`, `refused`, or cut off by a kill (None)."""

    task: Line
    end: str | None
    told: Line


class Log:
    """The log of one slot, in which one process after the other goes on."""

    def __init__(self, folder: Path, slot: int) -> None:
        self.path = folder / f"log-{slot}"
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(self._descriptor, b"\n")  # a line that was cut off ends here

    def write(self, line: Line) -> None:
        """Write a line; it is there whatever happens to this process next."""
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")

    def unfinished(self) -> Line | None:
        """Return what the process before this one was doing when it was killed."""
        last = list(attempts(self.path))[-1:]
        return last[0].task if last and last[0].end is None else None


def attempts(path: Path) -> Iterator[Attempt]:
    """Return what was tried, in order."""
    task: Line | None = None
    for text in path.read_text("utf-8").splitlines():
        try:
            line: Line = json.loads(text)
        except ValueError:  # nothing, or a line that was cut off
            continue
        if "try" in line:
            if task is not None:
                yield Attempt(task, None, {})
            task = line["try"]
        else:
            assert task is not None
            yield Attempt(task, "done" if "done" in line else "refused", line.get("done", line))
            task = None
    if task is not None:
        yield Attempt(task, None, {})


def everything(folder: Path) -> list[Attempt]:
    """Return what all processes tried."""
    return [attempt for path in sorted(folder.glob("log-*")) for attempt in attempts(path)]
