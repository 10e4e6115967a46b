"""Faults at the n-th step of an operation, and operations in forked processes.

A step is a write, flush or close of a file that is being written, an fsync, a rename, a removal, a new file or folder,
or a statement by which SQLite writes. At one of them the process ends without any cleanup, or the step fails.
"""

from __future__ import annotations

import errno
import io
import os
import pickle
import signal
import sqlite3
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

MEMORY = next((place for place in ("/dev/shm",) if os.access(place, os.W_OK)), None)
"""A folder in memory, if there is one: nothing here depends on a disk, which would be waited for."""
CRASHED = 77
"""The exit status of a process that ended at a step."""
_CALLS = ("fsync", "rename", "replace", "unlink", "mkdir")
_STATEMENTS = ("BEGIN IMMEDIATE", "INSERT", "COMMIT")


def crash(step: str) -> None:
    """End the process: nothing is flushed, closed or removed."""
    os._exit(CRASHED)


def fail(step: str) -> None:
    """Let a step fail: the disk is full, or broken."""
    is_full = len(step) % 2 == 0
    if step in _STATEMENTS:
        problem = sqlite3.OperationalError("disk")
        problem.sqlite_errorcode = sqlite3.SQLITE_FULL if is_full and step != "COMMIT" else sqlite3.SQLITE_IOERR
        raise problem
    code = errno.ENOSPC if is_full else errno.EIO
    raise OSError(code, os.strerror(code))


class Steps:
    """Counts steps, and acts before or after the n-th; -1 is the charge, -2 the step after it. 0 only counts."""

    def __init__(self, at: int, act: Callable[[str], None], *, after: bool = False) -> None:
        self._at, self._act, self._after = at, act, after
        self.names: list[str] = []
        self._since_charge = 0

    @property
    def reached(self) -> str | None:
        """The step that was chosen; None where there were fewer."""
        return self.names[self._at - 1] if 0 < self._at <= len(self.names) else None

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count one step, and run it within."""
        self.names.append(name)
        self._since_charge -= name == "INSERT" or self._since_charge < 0
        is_it = self._at in (len(self.names), self._since_charge or None)
        if is_it and not self._after:
            self._act(name)
        yield
        if is_it and self._after:
            self._act(name)

    @contextmanager
    def installed(self) -> Iterator[Steps]:
        """Count all steps of this process within."""
        steps, real_open, real_new, real_connect = self, io.open, os.open, sqlite3.connect

        def counted(name: str) -> Callable[..., Any]:
            real = getattr(os, name)

            def call(*arguments: Any, **options: Any) -> Any:
                with steps.step(name):
                    return real(*arguments, **options)

            return call

        def open_new(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if not flags & os.O_CREAT:
                return real_new(path, flags, *arguments, **options)
            with steps.step("create"):
                return real_new(path, flags, *arguments, **options)

        def open_file(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            found = real_open(file, mode, *arguments, **options)
            return found if set(mode) <= set("rbt") else _WrittenFile(found, steps)

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *arguments: Any) -> Any:
                name = next((each for each in _STATEMENTS if sql.startswith(each)), None)
                if name is None:
                    return super().execute(sql, *arguments)
                with steps.step(name):
                    return super().execute(sql, *arguments)

        def connect(*arguments: Any, **options: Any) -> Any:
            return real_connect(*arguments, factory=Connection, **options)

        replaced: dict[Any, dict[str, Any]] = {
            os: {"open": open_new, **{name: counted(name) for name in _CALLS}},
            io: {"open": open_file},
            sqlite3: {"connect": connect},
        }
        with ExitStack() as stack:
            for module, functions in replaced.items():
                stack.enter_context(patch.multiple(module, **functions))
            yield self


class _WrittenFile:
    """A file whose writing is counted."""

    def __init__(self, file: Any, steps: Steps) -> None:
        self._file, self._steps = file, steps

    def write(self, content: Any) -> Any:
        with self._steps.step("write"):
            return self._file.write(content)

    def flush(self) -> None:
        with self._steps.step("flush"):
            self._file.flush()

    def close(self) -> None:
        if not self._file.closed:
            try:
                with self._steps.step("close"):
                    self._file.close()
            finally:
                self._file.close()  # the system closes a file also where the last bytes do not fit

    def __enter__(self) -> _WrittenFile:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Child:
    """A forked process that runs one action and returns what it returns."""

    def __init__(self, action: Callable[[], Any], delay: float = 0) -> None:
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the threads of Arrow are idle
            self.process = os.fork()
        if self.process == 0:
            try:
                time.sleep(delay)
                found = pickle.dumps((True, action()))
            except BaseException:
                found = pickle.dumps((False, traceback.format_exc()))
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(found)
            os._exit(0)
        os.close(writing)
        self._pipe = os.fdopen(reading, "rb")

    def wait(self, kill_after: float | None = None) -> Any:
        """Return what the action returned; None where the process crashed, or was killed after some seconds."""
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(self.process, signal.SIGKILL)
        with self._pipe:
            content = self._pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        if status:
            assert status < 0 or status == CRASHED
            return None
        is_done, found = pickle.loads(content)
        assert is_done, found
        return found
