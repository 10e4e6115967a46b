"""Completion in bash, zsh and fish: `relaxdp completion SHELL`, and which values an option can take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

VARIABLE = "_RELAXDP_COMPLETE"
"""The script of a shell sets it when it asks for completions."""


class ShellChoice(StrEnum):
    """Shells that ask for completions."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[ShellChoice, typer.Argument(help="The shell that you type in.")]) -> None:
    """Print a script that completes commands, options and their values in bash, zsh or fish.

    bash: eval "$(relaxdp completion bash)" in ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after compinit.
    fish: relaxdp completion fish > ~/.config/fish/completions/relaxdp.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # noqa: PLC0415

    typer.echo(get_completion_script(prog_name="relaxdp", complete_var=VARIABLE, shell=shell.value))


def answer_shells() -> None:
    """Let the questions of the shells' scripts be answered."""
    from typer.completion import completion_init  # type: ignore[attr-defined] # noqa: PLC0415

    completion_init()


def completer(name: str) -> Callable[[Any, str], list[Any]] | None:
    """Return what completes the values of an option, by its name; None leaves them to typer, and then to the shell.

    A shell offers file names where there is nothing else.
    """
    find = _FINDERS.get(name)
    if find is None:
        return None

    def complete(ctx: Any, incomplete: str) -> list[Any]:
        from typer.core import CompletionItem  # type: ignore[attr-defined] # noqa: PLC0415

        found: Iterable[str] = ()
        with suppress(Exception):  # who types must not be interrupted by a file that cannot be read
            found = find(ctx, incomplete)
        return [CompletionItem(each) for each in found if each.startswith(incomplete)]

    return complete


def _encodings(ctx: Any, incomplete: str) -> list[str]:
    from relaxdp.encodings.registry import offered  # noqa: PLC0415

    return ["auto", *(each.name for each in offered() if each.domain != "words")]


def _stores(ctx: Any, incomplete: str) -> list[str]:
    """Return the kind of store that is no file, once somebody begins to type it: else file names are offered."""
    return ["postgresql://"] if incomplete else []


def _columns(ctx: Any, incomplete: str) -> list[str]:
    """Return the columns of the table that was named before; a CSV file may have a person in its first line."""
    from relaxdp.table.formats import Input  # noqa: PLC0415
    from relaxdp.table.kinds import Format, format_of  # noqa: PLC0415

    source = Path(ctx.args[0])  # typer stops at the option that lacks its value, and leaves what came before
    return list(Input(source).schema.names) if format_of(source) in (Format.PARQUET, Format.IPC) else []


_FINDERS: dict[str, Callable[[Any, str], list[str]]] = {
    "encoding": _encodings, "ledger": _stores, "db": _stores,
    "column": _columns, "id_column": _columns, "keep": _columns, "by": _columns, "cross": _columns,
}  # fmt: skip
