"""A process that has imported everything and forks a device for every order that it is given.

One line of JSON in: a list of {"file", "threads"}, with "survey" and "upto" where one is to be joined first. One line
out: the children's process ids; then their exit statuses.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from tests.patience import PATIENCE

from relaxdp.device import Device
from relaxdp.device.client import Client
from relaxdp.errors import RelaxdpError


def carry_out(order: dict[str, Any]) -> int:
    """Report to all campaigns; 2 where something is refused, 3 where something else goes wrong."""
    try:
        device = Device.open(order["file"], client=Client(timeout=PATIENCE, attempts=2, first_wait=0.01))
        problems: list[str] = []
        if "survey" in order:
            for question in device.join_survey(order["survey"], upto=order["upto"]).questions:
                question.answer("fruit")

        def sync() -> None:
            for outcome in device.sync():
                if outcome.problem is not None:
                    problems.append(outcome.problem.message)

        threads = [threading.Thread(target=sync) for _ in range(order.get("threads", 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except RelaxdpError as problem:
        problems = [problem.message]
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 2 if problems else 0


def main() -> None:
    """Serve orders until there are no more."""
    for line in sys.stdin:
        children = []
        for order in json.loads(line):
            child = os.fork()
            if child == 0:
                status = 3
                try:
                    status = carry_out(order)
                finally:
                    os._exit(status)
            children.append(child)
        print(json.dumps(children), flush=True)
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)


if __name__ == "__main__":
    main()
