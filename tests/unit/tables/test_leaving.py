"""A signal that comes while Python drops exceptions still ends the process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.patience import PATIENCE

PROGRAM = """
import os, signal, time
from relaxdp.{module} import {name} as begin

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)  # the handler runs here, and Python drops what it raises

def go():
    last = Last()
    del last
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)
    except BaseException:
        pass  # as a library in C does in its callbacks
    while True:
        time.sleep(0.01)

{body}
"""


@pytest.mark.parametrize(
    ("module", "name", "body", "status"),
    [
        ("cli.terminal", "handle_signals", "with begin():\n    go()", 128 + signal.SIGTERM),
        ("service.run", "_end_in_peace", "begin()\ngo()", 0),
    ],
)
def test_a_stop_is_not_lost_where_exceptions_are_dropped(module: str, name: str, body: str, status: int) -> None:
    program = PROGRAM.format(module=module, name=name, body=body)
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == status, done.stderr


def test_a_server_that_was_asked_to_stop_is_not_asked_again() -> None:
    """Its own handler takes a second time for impatience, and cuts its connections off."""
    program = """
import os, signal
from relaxdp.cli.terminal import handle_signals
heard = []
with handle_signals():
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)
print(len(heard))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
