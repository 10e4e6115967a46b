"""How every command reads: help that is whole, words for what an option takes, and what a typing mistake meant.

And completion in bash, zsh and fish: `relaxdp completion SHELL`, and which values an option can take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp.cli.talk import talking

_WORDS = {
    "NUMBER": "alpha beta budget epsilon first last limit old_epsilon planned_epsilon",
    "NUMBERS": "bins levels",
    "LOW HIGH": "number_range",
    "NAME": "by column cross encoding id_column keep method name nulls only population",
    "VALUES": "values",
    "FILE": "values_file",
    "FOLDER": "folder out",
    "FILE|URL": "db ledger",
    "URL": "embed master server",
    "HOST": "host trusted_proxy",
    "TIME": "opens closes",
    "PRICES": "prices",
    "FORMULA": "formula",
    "REASON": "reason",
    "DIGITS": "public_key",
}
_OF_NAME = {name: word for word, names in _WORDS.items() for name in names.split()}


def _word(parameter: Any) -> str:
    """Return what a parameter takes in a word that people read: by its name, or else by its type."""
    kind = str(parameter.type_descriptor.annotation)
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    if "int" in kind or ("float" in kind and "tuple" not in kind):
        return "NUMBER"
    return _OF_NAME.get(parameter.name, "FILE" if "Path" in kind else "TEXT")


class GroupedCommand(TyperCommand):
    """A command whose help shows options that belong together under a heading of their own."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        parameters: list[Any] = list(self.params)
        for each in parameters:
            if each.metavar is None and not getattr(each, "is_flag", False) and not each.type_descriptor.is_choice:
                each.metavar = _word(each)
            completes = completer(each.name)
            if completes is not None:
                each.shell_complete = completes

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage without the braces that typer puts around what is required."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and then the groups in the order in which they first occur."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind, (name, text) = "Options", record
                if parameter.param_type_name == "argument":  # its name is the word; typer adds a type of Python's
                    kind, name = "Arguments", name.partition(" <")[0]
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append((name, text))
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class WholeGroup(TyperGroup):
    """A group of commands that lists what each does in a whole sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph of each command's help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (each.help or "").partition("\n\n")[0]) for name, each in self.commands.items()])


class Commands(typer.Typer):
    """A group of commands that all read and talk alike."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": WholeGroup, "no_args_is_help": True, "rich_markup_mode": None, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command; the function itself stays what it was."""
        add = super().command(name, **{"cls": GroupedCommand, **settings})

        def added(function: Any) -> Any:
            add(talking(function))
            return function

        return added


def meant(problem: Any) -> None:
    """Let typer's refusal of an unknown option say which one was probably meant, as it does for commands."""
    likely = getattr(problem, "possibilities", None)
    if likely:
        problem.message = f"{problem.message}. Did you mean {likely[0]!r}?"
        problem.possibilities = None


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
    return list(Input(source).schema.names) if format_of(source) is Format.PARQUET else []


_FINDERS: dict[str, Callable[[Any, str], list[str]]] = {
    "encoding": _encodings, "ledger": _stores, "db": _stores,
    "column": _columns, "id_column": _columns, "keep": _columns, "by": _columns, "cross": _columns,
}  # fmt: skip
