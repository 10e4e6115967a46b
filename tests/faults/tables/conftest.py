"""Shared by the histories of vaults."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.tables.steps import MEMORY


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a world choose the state folder, and put it back."""
    monkeypatch.setenv("XDG_STATE_HOME", os.environ["XDG_STATE_HOME"])


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, if there is one."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)
