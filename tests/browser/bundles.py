"""The tool that bundles pages, for tests that need a bundle."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import missing, require

from relaxdp.service.bundle import tool

ROOT = Path(__file__).parents[2]


def esbuild() -> Path:
    """Return where it is. Where CI demands everything its absence is a failure, elsewhere a visible skip."""
    require("node")
    found = tool(ROOT)
    if found is None:
        missing("esbuild is not installed: `make bundle` does it")
    return found
