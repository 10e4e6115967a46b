"""What commands print next to their results: messages, progress, and the options --quiet and --verbose."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaxdp import __version__
from relaxdp.errors import ArgumentError, RelaxdpError

if TYPE_CHECKING:
    from rich.console import Console

    from relaxdp.tables.transaction import Progress


_is_quiet: ContextVar[bool] = ContextVar("relaxdp.is_quiet", default=False)

_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
_Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print what draws, how long it took, and the fields of an error.")
]


def is_quiet() -> bool:
    """Tell whether the running command prints results and errors only."""
    return _is_quiet.get()


def print_note(sentence: str) -> None:
    """Print a note to standard error, unless --quiet is given."""
    if not is_quiet():
        typer.echo(sentence, err=True)


def print_done(sentence: str) -> None:
    """Print what was done, unless --quiet is given."""
    if not is_quiet():
        typer.echo(sentence)


def get_stderr_console() -> Console:
    """Return the console for progress: standard error, or nothing with --quiet."""
    from rich.console import Console  # noqa: PLC0415 (many commands show none)

    return Console(stderr=True, quiet=is_quiet())


@contextmanager
def show_progress(label: str, unit: str) -> Iterator[Progress | None]:
    """Show a progress bar at a terminal; yield the function that advances it."""
    console = get_stderr_console()
    if not console.is_terminal or console.quiet:
        yield None
        return
    from rich import progress  # noqa: PLC0415 (many commands show none)

    columns = (
        progress.TextColumn(label), progress.BarColumn(), progress.MofNCompleteColumn(), progress.TextColumn(unit),
        progress.TimeRemainingColumn(),
    )  # fmt: skip
    bar = progress.Progress(*columns, console=console, transient=True)
    tasks: list[Any] = []

    def advance(done: int, whole: int | None) -> None:
        if not tasks:  # The bar starts with the first step.
            bar.start()
            tasks.append(bar.add_task("", total=None))
        bar.update(tasks[0], completed=done, total=whole)

    try:
        yield advance
    finally:
        bar.stop()


def add_verbosity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that also takes --quiet and --verbose."""
    shown = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", _Quiet), ("verbose", _Verbose))
    ]

    @wraps(command)
    def run(*, quiet: bool, verbose: bool, **arguments: Any) -> Any:
        if quiet and verbose:
            raise ArgumentError("--quiet and --verbose cannot be combined.", hint="Leave one of them out.")
        before = _is_quiet.set(quiet)
        try:
            return _run_verbosely(command, arguments) if verbose else command(**arguments)
        finally:
            _is_quiet.reset(before)

    wrapped: Any = run
    wrapped.__signature__ = shown.replace(parameters=[*shown.parameters.values(), *added])
    wrapped.__annotations__ = {each.name: each.annotation for each in wrapped.__signature__.parameters.values()}
    return run


def _run_verbosely(command: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    from relaxdp.sampling.kernel.c_library import get_sampler_name  # noqa: PLC0415 (importing it takes time)

    print_note(f"relaxdp {__version__}, drawn by {get_sampler_name()}")
    began = time.monotonic()
    try:
        return command(**arguments)
    except RelaxdpError as problem:
        fields = "".join(f", {name}={value!r}" for name, value in problem.fields.items())
        print_note(f"rejected: {problem.code}{fields}")  # fields hold no secret, see `errors`
        raise
    finally:
        print_note(f"took {time.monotonic() - began:.2f} s")
