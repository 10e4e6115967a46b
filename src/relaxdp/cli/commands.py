"""How every command reads: help that is whole, words for what an option takes, and what a typing mistake meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp.cli.talk import talking
from relaxdp.errors import OptionError

_WORDS = {
    "NUMBER": "alpha beta budget epsilon first last limit planned_epsilon",
    "NUMBERS": "levels",
    "LOW HIGH": "number_range",
    "NAME": "by column cross encoding id_column method name only passthrough population",
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


def explain_usage_error(problem: Any, command: str | None) -> OptionError:
    """Return typer's error as one of ours: what is wrong, and what was probably meant."""
    words: list[str] = []
    context = getattr(problem, "ctx", None)
    while context is not None and context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    called = " ".join(["relaxdp", *(words or filter(None, [command]))])
    likely, param = getattr(problem, "possibilities", None), getattr(problem, "param", None)
    problem.possibilities = None  # Typer would add all of them to its sentence.
    sentence, _, meant = problem.format_message().partition(" Did you mean ")
    way_out = f"Did you mean {meant}" if meant else f"Did you mean {likely[0]!r}?" if likely else ""
    if sentence.startswith("Missing option") and param is not None:
        way_out = f"Add {param.opts[0]} {param.metavar or 'VALUE'}."
    elif sentence.startswith(("Missing argument", "Got unexpected")):
        way_out = f"Write: {called} {' '.join(problem.ctx.command.collect_usage_pieces(problem.ctx))}."
    return OptionError(
        "{sentence}",
        hint="{way_out} Run `{called} --help` for more." if way_out else "Run `{called} --help`.",
        sentence=f"{sentence.rstrip('.')}.",
        way_out=way_out,
        called=called,
    )
