"""The trials of mutants: each in a forked process of its own, with the tests that should notice.

A mutant of a function is put into the function itself, in a copy of a process that has imported everything and has
collected the tests. One of what is computed by the import needs a process in which nothing of ours is imported yet.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import inspect
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "relaxdp"

Outcome = Literal["killed", "timed out", "survived", "never imported"]

# Imported once, so that a trial has only our own modules and the tests to import.
_HEAVY = (
    "cryptography.hazmat.primitives.cmac", "hypothesis.strategies", "mpmath", "narwhals", "numpy", "pandas", "polars",
    "psycopg", "pyarrow.compute", "pyarrow.parquet", "scipy.stats", "sqlalchemy", "sympy",
)  # fmt: skip
_OPTIONS = ("-x", "-q", "--assert=plain", "--tb=native", "-p", "no:cacheprovider", "--rootdir", str(ROOT))
_OUTCOMES: dict[int, Outcome] = {0: "survived", 99: "never imported"}
_NEVER_IMPORTED = 99
_MOST_BYTES, _MOST_SECONDS = 16 << 30, 600


def prepare(folder: Path, heavy: Sequence[str] = _HEAVY) -> None:
    """Import what all trials need, and let hypothesis look at the same examples each time.

    `folder` keeps what was compiled, so that only the mutant is compiled anew.
    """
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["RELAXDP_KERNEL"] = "off"  # what is mutated must be what draws
    sys.pycache_prefix, sys.dont_write_bytecode = str(folder), False
    for name in heavy:
        importlib.import_module(name)
    settings = importlib.import_module("hypothesis").settings
    settings.register_profile("mutants", derandomize=True, database=None)
    settings.load_profile("mutants")
    assert "relaxdp" not in sys.modules
    gc.freeze()


class Trials:
    """The trials of the mutants of one module."""

    def __init__(self, module: str, source: str, tests: Sequence[str], log: Path) -> None:
        self._name = "relaxdp." + module.removesuffix(".py").replace("/", ".")
        self._path = SOURCE / module
        self._clean = compile(source, str(self._path), "exec", dont_inherit=True)
        self._tests, self._log = tests, log

    def run(self, mutants: Sequence[CodeType]) -> Iterator[Outcome]:
        """Return how the trial without a mutant ends, which must survive, and then that of each mutant."""
        changes = [changed_functions(self._clean, mutant) for mutant in mutants]
        together = self._together([change for change in changes if change is not None])
        most_seconds = next(together)
        yield "survived" if most_seconds else "killed"
        for mutant, change in zip(mutants, changes, strict=True):
            if change is not None:
                yield next(together)
            else:
                yield _outcome(_forked(lambda: self._alone(mutant), most_seconds))  # noqa: B023
        assert next(together, None) is None  # it waits for its process

    def _alone(self, mutant: CodeType) -> int:
        finder = _Finder(self._name, self._path, mutant)
        sys.meta_path.insert(0, finder)
        with TemporaryDirectory(prefix="mutant-") as folder:
            found = int(self._pytest(Path(folder)))
        return found if finder.loader.used or found else _NEVER_IMPORTED

    def _together(self, changes: list[dict[CodeType, CodeType]]) -> Iterator[Any]:
        """Fork a process that collects the tests once and is forked again for each mutant.

        Return first how many seconds a trial may take, or 0 where a test fails without any mutant, then the outcomes.
        """
        read, write = os.pipe()
        parent = os.fork()
        if parent == 0:
            os.close(read)
            try:
                with TemporaryDirectory(prefix="mutant-") as folder, os.fdopen(write, "wb", buffering=0) as results:
                    self._pytest(Path(folder), _EachMutant(self._name, changes, Path(folder), results.write))
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as results, contextlib.suppress(EOFError):
            while True:
                yield pickle.load(results)
        os.waitpid(parent, 0)

    def _pytest(self, folder: Path, *plugins: object) -> int | pytest.ExitCode:
        with self._log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        return pytest.main([*_OPTIONS, f"--basetemp={folder / 'tests'}", *self._tests], plugins=plugins)


class _EachMutant:
    """Runs the collected tests in a fork of the process, once for each mutant: those first that took the least time."""

    def __init__(
        self, name: str, changes: list[dict[CodeType, CodeType]], folder: Path, tell: Callable[[bytes], object]
    ) -> None:
        self._name, self._changes, self._tell = name, changes, tell
        self._times = folder / "times"
        self._functions: list[FunctionType] = []
        self._caches: list[Any] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._look_around()
        clean = _outcome(_forked(lambda: self._run(session, {}), _MOST_SECONDS))
        most_seconds = 0
        if session.items and clean == "survived":
            times = pickle.loads(self._times.read_bytes())
            most_seconds = 2 + ceil(3 * sum(times.values()))
            session.items.sort(key=lambda item: times[item.nodeid])
        self._tell(pickle.dumps(most_seconds))
        for change in self._changes if most_seconds else []:
            status = _forked(lambda: self._run(session, change), most_seconds)  # noqa: B023
            self._tell(pickle.dumps(_outcome(status)))
        return True

    def _look_around(self) -> None:
        """Find the module's functions, wherever they are: pytest imports a module with doctests a second time.

        What functions have cached is found as well, to be forgotten. Then nothing more is collected: whatever a fork
        writes to, were it the number of references, it has to copy.
        """
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__module__ == self._name:
                self._functions.append(thing)
            elif hasattr(type(thing), "cache_clear") and str(getattr(thing, "__module__", "")).startswith("relaxdp"):
                self._caches.append(thing)
        gc.disable()
        gc.freeze()

    def _run(self, session: pytest.Session, change: dict[CodeType, CodeType]) -> int:
        if not self._functions or not change.keys() <= {function.__code__ for function in self._functions}:
            return _NEVER_IMPORTED
        for function in self._functions:
            function.__code__ = change.get(function.__code__, function.__code__)
        for cache in self._caches:
            cache.cache_clear()
        times = {}
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            start = time.process_time()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            times[item.nodeid] = time.process_time() - start
            if session.testsfailed:
                return 1
        self._times.write_bytes(pickle.dumps(times))
        return 0


def changed_functions(clean: CodeType, mutant: CodeType) -> dict[CodeType, CodeType] | None:
    """Return which functions are other ones in a mutant; None where what is run by the import itself differs."""
    if _own(clean) != _own(mutant):
        return None
    changed: dict[CodeType, CodeType] = {}
    for old, new in zip(_nested(clean), _nested(mutant), strict=True):
        if old == new:
            continue
        if old.co_name.startswith("<"):  # what the import itself goes through
            return None
        if old.co_flags & inspect.CO_OPTIMIZED:  # a function
            changed[old] = new
        else:  # the body of a class
            inner = changed_functions(old, new)
            if inner is None:
                return None
            changed |= inner
    return changed


def _own(code: CodeType) -> tuple[object, ...]:
    constants = [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, code.co_names, constants, len(_nested(code))


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


class _Replaced(SourceFileLoader):
    """Loads one module from code that is not that of its file."""

    code: CodeType
    used = False

    def get_code(self, fullname: str) -> CodeType:
        self.used = True
        return self.code


class _Finder:
    """Finds that module before anybody else does."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name = name
        self.loader = _Replaced(name, str(path))
        self.loader.code = code

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self.loader.path, loader=self.loader)


def _forked(work: Callable[[], int], most_seconds: int) -> int | None:
    """Return the status of a forked process that does the work; None if it waited for what does not come."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
            os._exit(work())
        finally:
            os._exit(1)
    status, deadline = None, time.monotonic() + 60 + 10 * most_seconds
    while status is None and time.monotonic() < deadline:
        done, found = os.waitpid(child, os.WNOHANG)
        if done:
            status = found
        else:
            time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # with all that it started
    if status is None:
        os.waitpid(child, 0)
    return status


def _outcome(status: int | None) -> Outcome:
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return "timed out"
    return _OUTCOMES.get(os.waitstatus_to_exitcode(status), "killed")
