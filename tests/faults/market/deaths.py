"""Deaths at a chosen instant: before a statement of a process, or right before or after its commit."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

from relaxdp.market.market import Market


def die_in_time(market: Market, when: int | str) -> None:
    """Let this process be killed before its n-th statement; or `before` or `after` its first commit of a change."""
    engine: Any = market._database.engine
    dialect = engine.dialect
    execute, execute_many, commit = dialect.do_execute, dialect.do_executemany, dialect.do_commit
    statements: list[str] = []

    def counted(real: Any, arguments: tuple[Any, ...]) -> None:
        statements.append(arguments[1])
        if len(statements) == when:
            _die()
        real(*arguments)

    def committed(connection: Any) -> None:
        is_change = any(each.startswith(("INSERT", "UPDATE")) for each in statements)
        if is_change and when == "before":
            _die()
        commit(connection)
        if is_change and when == "after":
            _die()

    dialect.do_execute = lambda *arguments: counted(execute, arguments)
    dialect.do_executemany = lambda *arguments: counted(execute_many, arguments)
    dialect.do_commit = committed


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def limit_files(size: int) -> None:
    """Let the system refuse what would make a file larger than this."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
