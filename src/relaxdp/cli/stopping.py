"""A command that is asked to stop tidies up, as after Ctrl-C, and says so in one sentence."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from relaxdp.cli.streams import say
from relaxdp.table.interrupts import leave

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def stops_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does: by default they would leave unfinished files, and truths in them.

    The exit status is 128 and the number of the signal. Whoever wants one of them ignored (nohup) is not overruled.
    """
    asked: list[signal.Signals] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if asked:  # systems send several of them, and none may interrupt the tidying up
            return
        asked.append(signal.Signals(number))
        logging.disable()  # libraries show where they were interrupted
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt) and interrupt is not signal.default_int_handler:
            with suppress(KeyboardInterrupt):
                interrupt(signal.SIGINT, frame)  # the server's ends its connections and goes on until they have ended
                return
            # Spark's has cancelled its tasks.
        # Not a KeyboardInterrupt, after which Python may end itself by that signal, whatever the exit status is to be.
        leave(number, 128 + number, asked.clear)

    mine = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, stop)
    try:
        yield
    except BaseException as problem:
        if not asked or (isinstance(problem, SystemExit) and not problem.code):
            raise
        say(f"stopped by {asked[0].name}. What was unfinished was removed.")
        sys.exit(128 + asked[0])
    finally:
        logging.disable(logging.NOTSET)
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
