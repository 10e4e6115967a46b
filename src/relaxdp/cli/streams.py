"""What commands say, to whom, and how they stop: all of it arrives, and a stop is one sentence."""

from __future__ import annotations

import codecs
import io
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from relaxdp.errors import RelaxdpError
from relaxdp.tables.interrupts import is_leaving, leave, stay

_PLAINLY = "relaxdp.plainly"
_ASCII = "relaxdp_ascii"
# What our own tables and bars are drawn with, and plain letters that look like it.
_LOOKS = {"±": "+-", "…": "~", **{chr(block): "#" for block in range(0x2580, 0x25A0)}}


def _plainly(problem: UnicodeError) -> tuple[str, int]:
    """Write what an encoding has not as JSON escapes do: no two texts become one, and JSON stays what it was."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    missing = problem.object[problem.start : problem.end]
    return "".join(_LOOKS.get(letter) or _escape(letter) for letter in missing), problem.end


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _ascii(name: str) -> codecs.CodecInfo | None:
    """Return ASCII under a name of our own: typer takes "ascii" for a mistake and writes UTF-8 in its place."""
    if name != _ASCII:
        return None
    plain = codecs.lookup("ascii")
    return codecs.CodecInfo(
        plain.encode, plain.decode, plain.streamreader, plain.streamwriter, plain.incrementalencoder,
        plain.incrementaldecoder, _ASCII,
    )  # fmt: skip


def take_all_text() -> None:
    """Let the output take every text, whatever its encoding. Errors are written like that by Python itself."""
    codecs.register_error(_PLAINLY, _plainly)
    codecs.register(_ascii)
    stream = sys.stdout
    # Who chose another way of handling it (PYTHONIOENCODING=ascii:replace) keeps that one.
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        is_ascii = codecs.lookup(stream.encoding).name == "ascii"
        stream.reconfigure(encoding=_ASCII if is_ascii else stream.encoding, errors=_PLAINLY)


@contextmanager
def all_arrives() -> Iterator[None]:
    """Wait until everything that was said has arrived; where it cannot, say so in one sentence and end.

    Who closed a pipe has read enough, and is told nothing.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as problem:
        stuck = None if isinstance(problem, RelaxdpError) else next(filter(_is_stuck, (sys.stdout, sys.stderr)), None)
        if stuck is None:
            raise
        _let_go(stuck)
        if not isinstance(problem, BrokenPipeError):
            say(f"the output cannot be written: {problem.strerror}. Only the words are lost; what was done stays done.")
        sys.exit(1)


def say(sentence: str) -> None:
    """Say what went wrong. Where nobody can be told, the exit status still tells it."""
    try:
        sys.stderr.write(f"{sentence}\n")
    except OSError:
        _let_go(sys.stderr)


def _is_stuck(stream: TextIO | None) -> bool:
    """Return whether a stream takes nothing any more. It is asked itself: errors do not say where they come from."""
    if stream is None:
        return False
    try:
        stream.write("\n")
        stream.flush()
    except OSError:
        return True
    return False


def _let_go(stream: TextIO) -> None:
    """Lead a stream to where everything is taken: Python would complain about the rest of it at the end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def stops_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does: by default they would leave unfinished files, and truths in them.

    The exit status is 128 and the number of the signal. Whoever wants one of them ignored (nohup) is not overruled.
    """
    asked: list[signal.Signals] = []
    is_served = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_served
        if asked and (is_served or is_leaving()):  # systems send several, and none may interrupt the tidying up
            return
        asked.append(signal.Signals(number))
        logging.disable()  # libraries show where they were interrupted
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt) and interrupt is not signal.default_int_handler:
            with suppress(KeyboardInterrupt):
                interrupt(signal.SIGINT, frame)  # the server's ends its connections and goes on until they have ended
                is_served = True  # a second one would be taken for impatience, and cut them off
                return
            # Spark's has cancelled its tasks.
        # Not a KeyboardInterrupt, after which Python may end itself by that signal, whatever the exit status is to be.
        leave(number, 128 + number)

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
        stay()
        logging.disable(logging.NOTSET)
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
