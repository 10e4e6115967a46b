"""How large a campaign of kills is: short in `make test`, longer in `make test-long`, as asked in `make faults`."""

from __future__ import annotations

import os
from typing import Any

import pytest


def sizes(short: int, longer: int) -> list[Any]:
    """Return the sizes of a campaign, as the parameters of a test."""
    asked = os.environ.get("RELAXDP_FAULTS")
    return [int(asked)] if asked else [short, pytest.param(longer, marks=pytest.mark.long)]
