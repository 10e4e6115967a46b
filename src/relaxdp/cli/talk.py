"""How much a command says beside its results: `--quiet` and `--verbose`, which every command has."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextvars import ContextVar
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaxdp import __version__
from relaxdp.errors import OptionError, RelaxdpError

if TYPE_CHECKING:
    from rich.console import Console


class _Talk(IntEnum):
    QUIET = 0
    USUAL = 1
    VERBOSE = 2


_talk: ContextVar[_Talk] = ContextVar("relaxdp.talk", default=_Talk.USUAL)

_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
_Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print what draws, how long it took, and the fields of an error.")
]


def is_quiet() -> bool:
    """Tell whether the command that runs was asked to show its results alone."""
    return _talk.get() is _Talk.QUIET


def hint(sentence: str) -> None:
    """Say something that is no result and no refusal, where people read it and programs do not."""
    if not is_quiet():
        typer.echo(sentence, err=True)


def closing(sentence: str) -> None:
    """Say what was done, to a person; the result itself lies elsewhere."""
    if not is_quiet():
        typer.echo(sentence)


def aside_console() -> Console:
    """Return where progress is shown: beside the results, and nowhere if it is to be quiet."""
    from rich.console import Console  # noqa: PLC0415 (many commands show none)

    return Console(stderr=True, quiet=is_quiet())


def talking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes `--quiet` and `--verbose` too, and heeds them while it runs."""
    shown = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", _Quiet), ("verbose", _Verbose))
    ]

    @wraps(command)
    def talks(*, quiet: bool, verbose: bool, **said: Any) -> Any:
        if quiet and verbose:
            raise OptionError("--quiet and --verbose cannot be combined.", hint="Leave one of them out.")
        before = _talk.set(_Talk.QUIET if quiet else _Talk.VERBOSE if verbose else _Talk.USUAL)
        try:
            return _in_detail(command, said) if verbose else command(**said)
        finally:
            _talk.reset(before)

    told: Any = talks
    told.__signature__ = shown.replace(parameters=[*shown.parameters.values(), *added])
    told.__annotations__ = {each.name: each.annotation for each in told.__signature__.parameters.values()}
    return talks


def _in_detail(command: Callable[..., Any], said: dict[str, Any]) -> Any:
    from relaxdp.draw.kernel.loaded import in_use  # noqa: PLC0415 (nobody else waits for it)

    hint(f"relaxdp {__version__}, drawn by {in_use()}")
    began = time.monotonic()
    try:
        return command(**said)
    except RelaxdpError as problem:
        fields = "".join(f", {name}={value!r}" for name, value in problem.fields.items())
        hint(f"rejected: {problem.code}{fields}")  # fields hold no secret, see `errors`
        raise
    finally:
        hint(f"took {time.monotonic() - began:.2f} s")
