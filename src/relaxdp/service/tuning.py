"""The interpreter of a worker, tuned for many short requests beside a thread that writes."""

from __future__ import annotations

import gc
import sys

_SWITCH_SECONDS = 0.0005
_THRESHOLDS = (20_000, 20, 50)


def tune() -> None:
    """Let the writer have the interpreter soon, and the garbage collector look only at what requests leave behind.

    The writer comes back from the database often and briefly: it must not wait 5 ms each time. Everything that was
    imported stays for good; without this, looking through it takes longer than a thousand requests.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
