"""Talks to a zygote: a process that has imported everything, and forks a worker for each order that it is given."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Zygote:
    """The forking process of one module; a worker that is born of it is running within milliseconds."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._at_work = False

    def start(self, *orders: dict[str, Any]) -> list[int]:
        """Give orders, and return the workers' process numbers."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        children = self.line()
        self._at_work = True
        return children

    def line(self) -> list[int]:
        """Return the next line that it says: numbers, such as how its workers ended."""
        assert self._process.stdout is not None
        found: list[int] = json.loads(self._process.stdout.readline())
        self._at_work = False
        return found

    def settle(self) -> None:
        """Hear what a test that failed did not wait for: the next one has other workers."""
        if self._at_work:
            self.line()

    def close(self) -> None:
        """End it, and wait until it is gone."""
        with self._process:
            pass
