"""A process with a Spark session that forks a driver for every release that it is told to run, like `zygote`.

A driver that is killed leaves Spark and its tasks running, and their files: what a real cluster would be left with.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.faults.table.releases import EVERYONE, request_of
from tests.patience import PATIENCE

from relaxdp.errors import RelaxdpError
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication.transaction import publish
from relaxdp.table.spark.release import SparkFolderDrawing
from relaxdp.table.spark.session import start_session


def carry_out(session: Any, order: dict[str, Any]) -> int:
    """Run the release; 2 where it is refused."""
    folder = Path(order["folder"])
    try:
        with Ledger.open(folder / "ledger", timeout=PATIENCE) as ledger:
            request = request_of(folder, order["target"], order["epsilon"])
            frame = session.read.parquet(str(request.source))
            drawing = SparkFolderDrawing(frame, request, request.target, partitions=2)
            publish(drawing, Payer(ledger, EVERYONE, budget=order["budget"], accept=True))
    except RelaxdpError as problem:
        sys.stderr.write(f"{problem.message}\n")
        return 2
    return 0


def main() -> None:
    """Serve orders until there are no more, one at a time."""
    session = start_session("local[2]")
    for line in sys.stdin:
        (order,) = json.loads(line)
        child = os.fork()
        if child == 0:
            # The connections to Java are the parent's; a driver of its own makes its own.
            session.sparkContext._gateway._gateway_client.deque.clear()
            os._exit(carry_out(session, order))
        print(json.dumps([child]), flush=True)
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
