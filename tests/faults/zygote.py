"""A process that has imported everything and forks a child for every release that it is told to run.

Starting Python and its libraries takes a second; a campaign of kills needs the instants after that.
One line of JSON in: a list of the arguments of `carry_out`, one for each child. One line out: the children's process
ids; then, when they have ended, their exit statuses.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.faults.table.releases import release

from relaxdp.errors import RelaxdpError
from relaxdp.table import output

LATE = ("pandas", "relaxdp.ledger.sqlite")
"""What a first release imports on its way: each child would, for most of its life, and be killed there."""


def fill_the_disk(limit: int) -> None:
    """Let no file grow beyond a number of bytes once an output is begun."""
    start = output.Output.__init__

    def limited(*arguments: Any, **options: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        start(*arguments, **options)

    output.Output.__init__ = limited  # type: ignore[method-assign]


@contextmanager
def heard(place: Path) -> Iterator[None]:
    """Put what is said on standard error into a file; through a pipe, which a full disk does not stop."""
    reading, writing = os.pipe()
    os.dup2(writing, sys.stderr.fileno())
    yield
    os.close(writing)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with os.fdopen(reading, "rb") as said:
        place.write_bytes(said.read())


def carry_out(order: dict[str, Any], *, state: str, says: str | None = None, disk: int | None = None) -> int:
    """Run the release, in the state folder of the test that asks; 2 where it is refused.

    What is said on standard error goes to the file `says`; `disk` is how many bytes fit.
    """
    os.environ["XDG_STATE_HOME"] = state
    if disk is not None:
        fill_the_disk(disk)
    with nullcontext() if says is None else heard(Path(says)):
        try:
            release(**{**order, "folder": Path(order["folder"])})
        except RelaxdpError as problem:
            sys.stderr.write(f"{problem.message}\n")
            return 2
    return 0


def main() -> None:
    """Serve orders until there are no more. Several may be under way at once."""
    for name in LATE:
        import_module(name)
    for line in sys.stdin:
        orders = json.loads(line)
        children = []
        for order in orders:
            child = os.fork()
            if child == 0:
                os._exit(carry_out(**order))
            children.append(child)
        print(json.dumps(children), flush=True)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(statuses), flush=True)


if __name__ == "__main__":
    main()
