"""The browser's module, run by node: the second implementation agrees with the frozen vectors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.patience import PATIENCE


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
def test_javascript_agrees(node: str, long: bool) -> None:
    tests = sorted(str(file) for file in Path(__file__).parent.glob("*.test.mjs"))
    assert tests
    run = subprocess.run(
        [node, "--test", *tests], env={**os.environ, "RELAXDP_LONG": "1" if long else "0"},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:]
