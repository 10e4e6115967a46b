"""How long a test waits for what must happen: so long that a machine ten times slower is in time as well.

Nobody waits that long where all is well, since every wait ends with its event. No test measures time: what depends on
the passing of time gets a clock of its own, which the test moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 180.0

T = TypeVar("T")


def until(what: Callable[[], T]) -> T:
    """Return what a function finds, as soon as it finds anything; another process or thread may have to do it."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
    return found
