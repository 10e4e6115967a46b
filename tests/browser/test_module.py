"""The browser's module, run by node: the second implementation agrees with the frozen vectors."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.patience import PATIENCE


def test_javascript_agrees(node: str) -> None:
    tests = sorted(str(file) for file in Path(__file__).parent.glob("*.test.mjs"))
    assert tests
    run = subprocess.run([node, "--test", *tests], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
