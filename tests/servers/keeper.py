"""Keep a server alive for as long as its owner lives: python keeper.py FOLDER USER PROGRAM ARGUMENT...

The owner holds our standard input. A line on it means: stop the server, keep the folder. Its end without a line means
that the owner is done or was killed: stop the server and remove the folder. Forked children of the owner may hold
the pipe open, so its process id is watched as well.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys


def _asked(owner: int, server: subprocess.Popen[bytes]) -> bytes:
    """Wait, and return what the owner said last."""
    while server.poll() is None:
        if select.select([0], [], [], 0.2)[0]:
            return os.read(0, 100)
        if os.getppid() != owner:
            return b""
    return b"keep"  # it ended by itself, or somebody killed it: its owner will see to the rest


def main() -> None:
    """Run the server."""
    folder, user, *command = sys.argv[1:]
    owner = os.getppid()
    rights = {"user": user, "group": user, "extra_groups": []} if user else {}
    server: subprocess.Popen[bytes] = subprocess.Popen(command, stdin=subprocess.DEVNULL, **rights)  # type: ignore[call-overload]
    keep = _asked(owner, server)
    with contextlib.suppress(ProcessLookupError):
        # PostgreSQL reads these as: fast, and without any tidying up.
        server.send_signal(signal.SIGQUIT if keep in (b"", b"crash") else signal.SIGINT)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
