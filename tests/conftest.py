"""Shared by all tests: what to do where a real part (node, a browser, a server) is missing."""

from __future__ import annotations

import os
import shutil

import pytest


def require(program: str) -> str:
    """Return where a program is. Where CI demands everything its absence is a failure, elsewhere a visible skip."""
    found = shutil.which(program)
    if found is None:
        message = f"{program} is not installed"
        if os.environ.get("RELAXDP_REQUIRE_ALL"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def node() -> str:
    """The JavaScript runtime."""
    return require("node")
