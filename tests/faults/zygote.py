"""A process that has imported everything and forks a child for every release that it is told to run.

Starting Python and its libraries takes a second; a campaign of kills needs the instants after that.
One line of JSON in: the arguments. One line out: the child's process id; then, when it has ended, its exit status.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.faults.table.releases import release

from relaxdp.errors import RelaxdpError


def carry_out(order: dict[str, Any]) -> int:
    """Run the release; 2 where it is refused."""
    try:
        release(**{**order, "folder": Path(order["folder"])})
    except RelaxdpError as problem:
        sys.stderr.write(f"{problem.message}\n")
        return 2
    return 0


def main() -> None:
    """Serve orders until there are no more. Several may be under way at once."""
    for line in sys.stdin:
        orders = json.loads(line)
        children = []
        for order in orders:
            child = os.fork()
            if child == 0:
                os._exit(carry_out(order))
            children.append(child)
        print(json.dumps(children), flush=True)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(statuses), flush=True)


if __name__ == "__main__":
    main()
